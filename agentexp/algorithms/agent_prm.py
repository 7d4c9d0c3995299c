"""AgentPRM, Algorithm 1 of arXiv 2502.10325: play, estimate Q from returns, fit a process reward
model, improve the policy against it; again.

The paper pairs policy pi_i with Q_{i-1}, which judged its training; so does everything here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from agentexp.algorithms.monitor import Monitor
from agentexp.algorithms.online_dpo import OnlineDpo
from agentexp.algorithms.q_fit import QFit
from agentexp.envs.base import Environment
from agentexp.errors import ConfigError
from agentexp.learning.reward_model import RewardModel
from agentexp.packing import trunks
from agentexp.rollouts.collect import Rollouts
from agentexp.rollouts.tasks import TaskSampler
from agentexp.seeding import seed_for
from agentexp.types import Iteration


class AgentPrm:
    """One iteration is one pass of Algorithm 1's loop.

    tasks_per_iteration x rollouts_per_task episodes of pi_{i-1} are played at `temperature`; `fit`
    trains Q_{i-1} on them; `improvement` moves the policy at the states of the same episodes;
    `monitor` plays games that were not trained on and picks the policy that goes on.
    """

    def __init__(
        self,
        *,
        environment: Environment,
        rollouts: Rollouts,
        seed: int,
        split: str,
        tasks_per_iteration: int,
        rollouts_per_task: int,
        temperature: float,
        fit: QFit,
        improvement: OnlineDpo,
        monitor: Monitor | None,
    ) -> None:
        for key, value in (("tasks_per_iteration", tasks_per_iteration), ("rollouts_per_task", rollouts_per_task)):
            if value < 1:
                raise ConfigError(f"algorithm.{key} is {value}; at least 1 is needed")
        self.rollouts, self.seed = rollouts, seed
        self.tasks = TaskSampler(tasks=environment.tasks(split), seed=seed_for(seed, "agent prm", "tasks"))
        self.tasks.check(tasks_per_iteration, "algorithm.tasks_per_iteration")
        self.tasks_per_iteration, self.rollouts_per_task = tasks_per_iteration, rollouts_per_task
        self.temperature = temperature
        self.fit, self.improvement, self.monitor = fit, improvement, monitor
        self.progress: Callable[[str, int, int], None] | None = None
        self.measure: Callable[[str, RewardModel], None] | None = None  # set by `run`, to measure best of n

    def iterate(self, i: int) -> Iteration:
        """Lines 3-6 of Algorithm 1."""
        played = self.rollouts.collect(  # line 3: D_i, rollouts of pi_{i-1}
            self.tasks.next(self.tasks_per_iteration),
            rollouts_per_task=self.rollouts_per_task,
            temperature=self.temperature,
            seed=seed_for(self.seed, "agent prm", "rollouts", i),
            progress=None if self.progress is None else partial(self.progress, "playing"),
        )
        trajectories = tuple(t for g in played.groups for t in g.trajectories)
        fitted = self.fit.fit(trajectories, iteration=i, progress=self.progress)  # lines 4, 5: eq. (1), (2)
        if i == 0 and self.measure is not None:
            self.measure("BoN(pi_0,Q_0)", self.fit.reward_model)
        states = [trunk for t in trajectories if t.scored for trunk in trunks(t)]
        if self.monitor is not None:
            self.monitor.begin(iteration=i, learner=self.improvement.learner)
        improved = self.improvement.improve(  # line 6: eq. (3)
            states,
            iteration=i,
            watch=None if self.monitor is None else self.monitor.watch,
            progress=self.progress,
        )
        watched = {} if self.monitor is None else self.monitor.end()  # line 7: the best on validation games
        if self.measure is not None:
            self.measure(f"BoN(pi_{i + 1},Q_{i})", self.fit.reward_model)
        scored = [t.outcome for t in trajectories if t.outcome is not None]
        rollout = {
            "reward": math.fsum(o.reward for o in scored) / max(1, len(scored)),
            "success": sum(o.success for o in scored) / max(1, len(scored)),
        }
        clock = {name: value for name, value in played.stats.items() if name.endswith("seconds")}
        stats = {name: value for name, value in played.stats.items() if name not in clock}
        groups = {
            "rollout": {**rollout, **stats},
            "prm": fitted,
            "dpo": improved,
            "monitor": watched,
            "time": clock,
        }
        return Iteration(
            metrics={f"{group}/{k}": float(v) for group, values in groups.items() for k, v in values.items()},
            trajectories=trajectories,
        )

    def state_dict(self) -> dict[str, Any]:
        return {
            "learner": self.improvement.learner.state_dict(),
            "reward_learner": self.fit.learner.state_dict(),
            "tasks": self.tasks.state_dict(),
            "policy_version": self.improvement.policy.version,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.improvement.learner.load_state_dict(state["learner"])
        self.fit.learner.load_state_dict(state["reward_learner"])
        self.tasks.load_state_dict(state["tasks"])
        self.improvement.policy.refresh()
        self.improvement.policy.version = int(state["policy_version"])

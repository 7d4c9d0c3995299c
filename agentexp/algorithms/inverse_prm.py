"""InversePRM, Algorithm 2 of arXiv 2502.10325: a process reward model from demonstrations alone, and
the policy that it teaches. No outcome reward is read; a test poisons them with NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from agentexp.agents.base import Agent
from agentexp.algorithms.inverse_fit import InverseFit, Path, paths
from agentexp.algorithms.monitor import Monitor
from agentexp.algorithms.online_dpo import OnlineDpo
from agentexp.envs.base import Environment
from agentexp.errors import ConfigError
from agentexp.learning.reward_model import RewardModel
from agentexp.policies.chat import Chat
from agentexp.rollouts.collect import Rollouts
from agentexp.rollouts.demonstrations import expert_play
from agentexp.rollouts.tasks import TaskSampler
from agentexp.seeding import seed_for
from agentexp.types import Iteration


class InversePrm:
    """One iteration is one pass of Algorithm 2's loop.

    demonstrations, noise, max_turns, split: the expert's play, the same episodes that `sft` with the
    same keys and seed imitates; demonstrations_seed: that seed (null: the run's). An imperfect expert's
    random moves are not its choice and teach nothing. tasks_per_iteration x rollouts_per_task: episodes of pi_{i-1},
    added to those of all learners before. `monitor` looks at success on validation games; leave it
    out (null) where not even the choice of the policy may see an outcome.
    """

    def __init__(
        self,
        *,
        environment: Environment,
        agent: Agent,
        chat: Chat,
        rollouts: Rollouts,
        seed: int,
        split: str,
        demonstrations: int,
        demonstrations_seed: int | None,
        noise: float,
        max_turns: int,
        tasks_per_iteration: int,
        rollouts_per_task: int,
        temperature: float,
        fit: InverseFit,
        improvement: OnlineDpo,
        monitor: Monitor | None,
    ) -> None:
        counted = {
            "demonstrations": demonstrations,
            "tasks_per_iteration": tasks_per_iteration,
            "rollouts_per_task": rollouts_per_task,
        }
        for key, value in counted.items():
            if value < 1:
                raise ConfigError(f"algorithm.{key} is {value}; at least 1 is needed")
        self.environment, self.agent, self.chat, self.rollouts, self.seed = environment, agent, chat, rollouts, seed
        self.demonstrations_seed = seed if demonstrations_seed is None else demonstrations_seed
        self.split, self.demonstrations, self.noise, self.max_turns = split, demonstrations, noise, max_turns
        self.tasks = TaskSampler(tasks=environment.tasks(split), seed=seed_for(seed, "inverse prm", "tasks"))
        self.tasks.check(tasks_per_iteration, "algorithm.tasks_per_iteration")
        self.tasks_per_iteration, self.rollouts_per_task = tasks_per_iteration, rollouts_per_task
        self.temperature = temperature
        self.fit, self.improvement, self.monitor = fit, improvement, monitor
        self.expert: list[Path] = []  # D+
        self.learners: list[Path] = []  # D-: of all past policies
        self.progress: Callable[[str, int, int], None] | None = None
        self.measure: Callable[[str, RewardModel], None] | None = None  # set by `run`, to measure best of n

    def iterate(self, i: int) -> Iteration:
        """Lines 2-5 of Algorithm 2."""
        if not self.expert:
            self.expert = self.play_expert()  # line 1: D+
        played = self.rollouts.collect(
            self.tasks.next(self.tasks_per_iteration),
            rollouts_per_task=self.rollouts_per_task,
            temperature=self.temperature,
            seed=seed_for(self.seed, "inverse prm", "rollouts", i),
            progress=None if self.progress is None else partial(self.progress, "playing"),
        )
        trajectories = tuple(t for g in played.groups for t in g.trajectories)
        mine = [path for t in trajectories if t.scored for path in paths(t, expert=False)]
        self.learners += mine  # line 3: D- grows
        fitted = self.fit.fit(self.expert, self.learners, iteration=i, progress=self.progress)  # line 4: eq. (11)
        if i == 0 and self.measure is not None:
            self.measure("BoN(pi_0,Q_0)", self.fit.reward_model)
        if self.monitor is not None:
            self.monitor.begin(iteration=i, learner=self.improvement.learner)
        improved = self.improvement.improve(  # line 5: eq. (12)
            [path.trunk for path in mine],
            iteration=i,
            watch=None if self.monitor is None else self.monitor.watch,
            progress=self.progress,
        )
        watched = {} if self.monitor is None else self.monitor.end()
        if self.measure is not None:
            self.measure(f"BoN(pi_{i + 1},Q_{i})", self.fit.reward_model)
        clock = {name: value for name, value in played.stats.items() if name.endswith("seconds")}
        stats = {name: value for name, value in played.stats.items() if name not in clock}
        groups = {"rollout": stats, "prm": fitted, "dpo": improved, "monitor": watched, "time": clock}
        return Iteration(
            metrics={f"{group}/{k}": float(v) for group, values in groups.items() for k, v in values.items()},
            trajectories=trajectories,
        )

    def play_expert(self) -> list[Path]:
        """The demonstrations; deterministic, so a resume makes them again."""
        played = expert_play(
            environment=self.environment,
            agent=self.agent,
            chat=self.chat,
            split=self.split,
            count=self.demonstrations,
            noise=self.noise,
            max_turns=self.max_turns,
            seed=self.demonstrations_seed,
        )
        return [path for t in played if t.scored for path in paths(t, expert=True)]

    def state_dict(self) -> dict[str, Any]:
        return {
            "learner": self.improvement.learner.state_dict(),
            "reward_learner": self.fit.learner.state_dict(),
            "tasks": self.tasks.state_dict(),
            "policy_version": self.improvement.policy.version,
            "learners": [path.to_plain() for path in self.learners],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.improvement.learner.load_state_dict(state["learner"])
        self.fit.learner.load_state_dict(state["reward_learner"])
        self.tasks.load_state_dict(state["tasks"])
        self.learners = [Path.from_plain(plain) for plain in state["learners"]]
        self.improvement.policy.refresh()
        self.improvement.policy.version = int(state["policy_version"])

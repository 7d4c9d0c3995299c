"""LOOP, Algorithm 1 of arXiv 2502.01600, and those that differ from it by their keys only:
RLOO, GRPO, GRPO without KL, RwNorm, per-turn and per-trajectory LOOP, REINFORCE.

No value network and no second model: one copy of the weights plays, learns and, with the adapter
switched off, is the reference. (Only a KL on a model without an adapter keeps a snapshot.)
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from torch import Tensor

from agentexp.advantages import Estimator, advantages
from agentexp.envs.base import Environment
from agentexp.errors import ConfigError
from agentexp.learning.learner import Learner
from agentexp.learning.optimiser import mean_metrics
from agentexp.losses.ppo import ClippedPolicyLoss
from agentexp.packing import Row, Weighting, to_samples, token_weights
from agentexp.policies.base import Policy
from agentexp.rollouts.collect import Enough, Rollouts
from agentexp.rollouts.tasks import TaskSampler
from agentexp.seeding import seed_for
from agentexp.types import Group, Iteration, Sample, Trajectory


class Loop:
    """Leave-one-out PPO without a critic.

    tasks_per_iteration x rollouts_per_task episodes are played, each member's advantage comes from
    its own group as collected, members with |A| below min_abs_advantage are dropped, and the rest
    are learnt in `epochs` passes of shuffled minibatches of `minibatch` rows. old_logps: whose
    log-probs stand in the ratio's denominator, recomputed by the learner before the first step
    (the paper) or as the sampler reported them. max_kl stops the iteration's remaining steps once
    a minibatch's KL(old || new) estimate exceeds it. shuffle_advantages permutes advantages within
    each group: a negative control that must not learn.
    """

    def __init__(
        self,
        *,
        environment: Environment,
        rollouts: Rollouts,
        policy: Policy,
        learner: Learner,
        loss: ClippedPolicyLoss,
        seed: int,
        split: str,
        tasks_per_iteration: int,
        rollouts_per_task: int,
        temperature: float,
        enough: Enough | None,
        advantage: Estimator,
        min_abs_advantage: float,
        weighting: Weighting,
        epochs: int,
        minibatch: int,
        max_kl: float | None,
        old_logps: Literal["learner", "sampler"],
        shuffle_advantages: bool,
    ) -> None:
        if rollouts_per_task < 2 and advantage != "none":
            raise ConfigError(
                f"algorithm.rollouts_per_task is {rollouts_per_task}, but advantage {advantage!r} compares the members "
                "of a group; use 2 or more rollouts, or algorithm=reinforce"
            )
        counted = {"tasks_per_iteration": tasks_per_iteration, "epochs": epochs, "minibatch": minibatch}
        for key, value in counted.items():
            if value < 1:
                raise ConfigError(f"algorithm.{key} is {value}; at least 1 is needed")
        if enough is not None and enough.per_task > rollouts_per_task:
            raise ConfigError(
                f"algorithm.enough.per_task is {enough.per_task}, but only {rollouts_per_task} rollouts are played of "
                "each task; lower it, or raise rollouts_per_task"
            )
        for key, bound in (("min_abs_advantage", min_abs_advantage), ("max_kl", max_kl)):
            if bound is not None and not bound >= 0.0:
                raise ConfigError(f"algorithm.{key} is {bound}; 0 or more is needed")
        if learner.temperature != temperature:
            raise ConfigError(
                f"the sampler's temperature {temperature} and the learner's {learner.temperature} differ; "
                "the ratio is 1 before the first step only if they are equal"
            )
        self.rollouts, self.policy, self.learner, self.loss, self.seed = rollouts, policy, learner, loss, seed
        self.tasks = TaskSampler(tasks=environment.tasks(split), seed=seed_for(seed, "loop", "tasks"))
        self.tasks.check(tasks_per_iteration, "algorithm.tasks_per_iteration")
        self.tasks_per_iteration, self.rollouts_per_task = tasks_per_iteration, rollouts_per_task
        self.temperature, self.enough = temperature, enough
        self.estimator, self.min_abs_advantage, self.weighting = advantage, min_abs_advantage, weighting
        self.epochs, self.minibatch, self.max_kl = epochs, minibatch, max_kl
        self.old_logps, self.shuffle_advantages = old_logps, shuffle_advantages
        self.snapshot: dict[str, Tensor] | None = None  # the reference of a fully trained model, if a KL needs it
        self.progress: Callable[[str, int, int], None] | None = None  # set by `run`, to show how far a collection is

    def iterate(self, i: int) -> Iteration:
        """One pass of the outer loop (Algorithm 1, lines 2-9)."""
        played = self.rollouts.collect(  # line 4: K rollouts of pi_old
            self.tasks.next(self.tasks_per_iteration),
            rollouts_per_task=self.rollouts_per_task,
            temperature=self.temperature,
            seed=seed_for(self.seed, "loop", "rollouts", i),
            enough=self.enough,
            progress=None if self.progress is None else partial(self.progress, "playing"),
        )
        judged, counts = self.judge(played.groups, i)  # line 5: eq. (3)
        samples = [s for trajectory, a in judged for s in to_samples(trajectory, a)]
        metrics = self.improve(samples, i)  # lines 7-9: eq. (5), (9)
        self.policy.refresh()
        trajectories = tuple(t for g in played.groups for t in g.trajectories)
        clock = {name: value for name, value in played.stats.items() if name.endswith("seconds")}
        stats = {name: value for name, value in played.stats.items() if name not in clock}
        return Iteration(
            metrics={
                **_named("rollout", {**outcomes(trajectories), **stats}),
                **_named("group", counts),
                **_named("train", metrics),
                **_named("time", clock),
            },
            trajectories=trajectories,
        )

    def judge(self, groups: Sequence[Group], i: int) -> tuple[list[tuple[Trajectory, float]], dict[str, float]]:
        """Scored members with their advantages, pruned; and what was refused or carried nothing."""
        judged: list[tuple[Trajectory, float]] = []
        counts = {"refused": 0.0, "flat": 0.0, "not_finite": 0.0, "pruned": 0.0, "trained": 0.0}
        for group in groups:
            members = [t for t in group.scored if t.outcome is not None and math.isfinite(t.outcome.reward)]
            counts["not_finite"] += len(group.scored) - len(members)
            rewards = [t.outcome.reward for t in members if t.outcome is not None]
            if len(members) < (1 if self.estimator == "none" else 2):
                counts["refused"] += 1
                continue
            values = advantages(rewards, self.estimator)
            counts["flat"] += not any(values)
            if self.shuffle_advantages:
                random.Random(seed_for(self.seed, "loop", "shuffled", i, group.task.id)).shuffle(values)
            kept = [
                (t, a) for t, a in zip(members, values, strict=True) if a != 0.0 and abs(a) >= self.min_abs_advantage
            ]
            counts["pruned"] += len(members) - len(kept)
            judged += kept
        counts["trained"] = float(len(judged))
        return judged, counts

    def improve(self, samples: list[Sample], i: int) -> dict[str, float]:
        """Epochs of shuffled minibatches; the mean of each metric over the steps taken."""
        if not samples:
            return {"steps": 0.0, "skipped_iteration": 1.0}
        if self.old_logps == "learner":
            samples = self.with_old_logps(samples)
        reference = self.reference_logps(samples) if self.loss.kl_coefficient else None
        history: list[dict[str, float]] = []
        stopped = 0.0
        for epoch in range(self.epochs):
            order = list(range(len(samples)))
            random.Random(seed_for(self.seed, "loop", "minibatches", i, epoch)).shuffle(order)
            for at in range(0, len(order), self.minibatch):
                chosen = order[at : at + self.minibatch]
                weights = token_weights([samples[n] for n in chosen], self.weighting)
                rows = [
                    Row(sample=samples[n], weight=w, reference_logps=reference[n] if reference else None)
                    for n, w in zip(chosen, weights, strict=True)
                ]
                history.append(self.learner.step(rows, self.loss))
                if self.max_kl is not None and history[-1]["kl_old"] > self.max_kl:
                    stopped = 1.0
                    break
            if stopped:
                break
        return {
            **mean_metrics(history),
            "first_ratio": history[0]["ratio"],
            "steps": float(len(history)),
            "stopped_on_kl": stopped,
        }

    def with_old_logps(self, samples: Sequence[Sample]) -> list[Sample]:
        """The same rows with pi_old's log-probs as the learner computes them."""
        computed = self.learner.logps(samples)
        return [
            Sample(ids=s.ids, mask=s.mask, turn=s.turn, old_logps=old, advantage=s.advantage, origin=s.origin)
            for s, old in zip(samples, computed, strict=True)
        ]

    def reference_logps(self, samples: Sequence[Sample]) -> list[tuple[float, ...]]:
        """Log-probs of what this algorithm started from: the adapter switched off, or, where all
        weights learn, a snapshot taken before the first step (the one case with a second copy)."""
        model = self.learner.model
        if self.snapshot is None and not model.has_adapter:
            self.snapshot = model.weights()
        with model.as_reference(self.snapshot):
            return self.learner.logps(samples)

    def state_dict(self) -> dict[str, Any]:
        return {
            "learner": self.learner.state_dict(),
            "tasks": self.tasks.state_dict(),
            "policy_version": self.policy.version,
            "snapshot": self.snapshot,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state["learner"])
        self.tasks.load_state_dict(state["tasks"])
        self.policy.refresh()
        self.policy.version = int(state["policy_version"])
        self.snapshot = state["snapshot"]


def outcomes(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Mean reward and success of the scored rollouts (metrics, not an evaluation)."""
    scored = [t.outcome for t in trajectories if t.outcome is not None]
    if not scored:
        return {}
    return {
        "reward": math.fsum(o.reward for o in scored) / len(scored),
        "success": sum(o.success for o in scored) / len(scored),
    }


def _named(prefix: str, values: dict[str, float]) -> dict[str, float]:
    return {f"{prefix}/{name}": float(value) for name, value in values.items()}

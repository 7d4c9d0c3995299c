"""ETO, exploration-based trajectory optimisation (arXiv 2403.02502): the expert's whole trajectory against
the student's own failed one of the same task, by DPO.

-log sigma( beta sum_t [log pi(a+_t | s+_t) / pi_ref(…)] - beta sum_t [log pi(a-_t | s-_t) / pi_ref(…)] )

The student starts from supervised fine-tuning on the same demonstrations (`algorithm@warm_start=sft`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from agentexp.algorithms.expert_pool import ExpertPool
from agentexp.errors import ConfigError
from agentexp.learning.learner import Learner
from agentexp.learning.logps import token_logps
from agentexp.learning.optimiser import mean_metrics
from agentexp.losses.base import Loss
from agentexp.losses.preference import PairLogps, PreferenceLoss
from agentexp.packing import Row, collate, to_samples
from agentexp.policies.base import Policy
from agentexp.rollouts.collect import Rollouts
from agentexp.rollouts.tasks import TaskSampler
from agentexp.seeding import seed_for
from agentexp.types import Iteration, Sample, Trajectory


@dataclass(frozen=True, kw_only=True, slots=True)
class TrajectoryPair:
    """An expert's trajectory and a failed one as rows. reference: log pi_ref of either whole."""

    chosen: tuple[Sample, ...]
    rejected: tuple[Sample, ...]
    reference: tuple[float, float] = (0.0, 0.0)

    @property
    def rows(self) -> tuple[Sample, ...]:
        return self.chosen + self.rejected

    @property
    def tokens(self) -> tuple[int, int]:
        """Trained tokens of either side."""
        return sum(sum(s.mask) for s in self.chosen), sum(sum(s.mask) for s in self.rejected)


class Eto:
    """tasks_per_iteration tasks of the pool's demonstrations are played once; those that the student
    fails are pairs, learnt in `epochs` shuffled passes of pairs_per_step.

    preference: any loss on pairs, here on the log-probs of whole trajectories. reference: whose
    log-probs stand for pi_ref, the policy before the first iteration ("start") or before each
    ("round"). Trajectories with a row over the pool's max_context_tokens are left out and counted. The
    pool's views are not used: whole trajectories are as the agent shows them.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        learner: Learner,
        rollouts: Rollouts,
        seed: int,
        pool: ExpertPool,
        preference: PreferenceLoss,
        reference: Literal["start", "round"],
        tasks_per_iteration: int,
        temperature: float,
        pairs_per_step: int,
        epochs: int,
    ) -> None:
        if min(tasks_per_iteration, pairs_per_step, epochs) < 1:
            raise ConfigError(
                f"eto: tasks_per_iteration {tasks_per_iteration}, pairs_per_step {pairs_per_step} and epochs {epochs} "
                "must be at least 1"
            )
        if preference.needs_kl:
            raise ConfigError("eto compares whole trajectories, which have no KL estimate; use a loss without one")
        self.policy, self.learner, self.rollouts, self.seed, self.pool = policy, learner, rollouts, seed, pool
        self.preference, self.reference = preference, reference
        self.tasks_per_iteration, self.temperature = tasks_per_iteration, temperature
        self.pairs_per_step, self.epochs = pairs_per_step, epochs
        self.snapshot: dict[str, Tensor] | None = None
        self.tasks: TaskSampler | None = None
        self.experts: dict[str, Trajectory] = {}
        self.progress: Callable[[str, int, int], None] | None = None  # set by `run`

    def prepare(self) -> TaskSampler:
        """The tasks that the expert showed, each once."""
        if self.tasks is None:
            self.pool.fill()
            self.experts = {t.task.id: t for t in self.pool.played}
            tasks = [t.task for t in self.experts.values()]
            self.tasks = TaskSampler(tasks=tasks, seed=seed_for(self.seed, "eto", "tasks"))
            self.tasks.check(self.tasks_per_iteration, "algorithm.tasks_per_iteration")
        return self.tasks

    def iterate(self, i: int) -> Iteration:
        """Explore, pair, learn."""
        played = self.rollouts.collect(
            self.prepare().next(self.tasks_per_iteration),
            rollouts_per_task=1,
            temperature=self.temperature,
            seed=seed_for(self.seed, "eto", "rollouts", i),
            progress=None if self.progress is None else partial(self.progress, "playing"),
        )
        trajectories = tuple(t for g in played.groups for t in g.trajectories)
        pairs, counts = self.pairs(trajectories)
        history: list[dict[str, float]] = []
        if pairs:
            pairs = self.with_reference(pairs)
            for epoch in range(self.epochs):
                order = list(range(len(pairs)))
                random.Random(seed_for(self.seed, "eto", "pairs", i, epoch)).shuffle(order)
                batches = [order[at : at + self.pairs_per_step] for at in range(0, len(order), self.pairs_per_step)]
                history += [self.step([pairs[n] for n in batch]) for batch in batches]
        self.policy.refresh()
        clock = {name: value for name, value in played.stats.items() if name.endswith("seconds")}
        stats = {name: value for name, value in played.stats.items() if name not in clock}
        train = {**mean_metrics(history), "steps": float(len(history))}
        groups = {"rollout": {**counts, **stats}, "train": train, "time": clock}
        return Iteration(
            metrics={f"{g}/{k}": float(v) for g, values in groups.items() for k, v in values.items()},
            trajectories=trajectories,
        )

    def pairs(self, trajectories: Sequence[Trajectory]) -> tuple[list[TrajectoryPair], dict[str, float]]:
        """The expert's against each failed one, and what was counted."""
        scored = [t for t in trajectories if t.outcome is not None]
        failed = [t for t in scored if t.outcome is not None and not t.outcome.success]
        found = []
        for t in failed:
            chosen, rejected = (
                tuple(s for s in to_samples(side, 0.0) if any(s.mask)) for side in (self.experts[t.task.id], t)
            )
            longest = max((len(s.ids) for s in chosen + rejected), default=0)
            if chosen and rejected and longest <= self.pool.max_context_tokens:
                found.append(TrajectoryPair(chosen=chosen, rejected=rejected))
        success = 1.0 - len(failed) / max(1, len(scored))
        return found, {"success": success, "pairs": float(len(found)), "over_long": float(len(failed) - len(found))}

    def with_reference(self, pairs: Sequence[TrajectoryPair]) -> list[TrajectoryPair]:
        """The same with log pi_ref of both sides, where the loss reads it."""
        if not self.preference.needs_reference:
            return list(pairs)
        model = self.learner.model
        if self.snapshot is None or self.reference == "round":
            self.snapshot = model.weights()
        with model.with_weights(self.snapshot):
            values = iter(self.learner.logps([s for p in pairs for s in p.rows]))
        return [
            TrajectoryPair(
                chosen=p.chosen,
                rejected=p.rejected,
                reference=(
                    math.fsum(math.fsum(next(values)) for _ in p.chosen),
                    math.fsum(math.fsum(next(values)) for _ in p.rejected),
                ),
            )
            for p in pairs
        ]

    def step(self, pairs: Sequence[TrajectoryPair]) -> dict[str, float]:
        """One optimiser step; a pair's rows stand in one micro-batch."""
        lengths = [len(p.rows) * max(len(s.ids) for s in p.rows) for p in pairs]
        return self.learner.update(lengths, lambda indices: self.loss([pairs[n] for n in indices], len(pairs)))

    def loss(self, pairs: Sequence[TrajectoryPair], total: int) -> Loss:
        """The share of these pairs in the mean over all."""
        rows = [Row(sample=s, weight=tuple(map(float, s.mask))) for p in pairs for s in p.rows]
        batch = collate(rows).to(self.learner.model.device)
        sums_R = token_logps(self.learner.model, batch.ids, batch.mask, self.learner.temperature).sum(1)
        owner = [2 * n + (k >= len(p.chosen)) for n, p in enumerate(pairs) for k in range(len(p.rows))]
        where = torch.tensor(owner, device=sums_R.device)
        sides = torch.zeros(2 * len(pairs), dtype=sums_R.dtype, device=sums_R.device).index_add(0, where, sums_R)
        tokens = torch.tensor([p.tokens for p in pairs], device=sums_R.device)
        held = torch.tensor([p.reference for p in pairs], device=sums_R.device)
        both = PairLogps(
            chosen=sides[0::2],
            rejected=sides[1::2],
            chosen_n=tokens[:, 0],
            rejected_n=tokens[:, 1],
            reference_chosen=held[:, 0],
            reference_rejected=held[:, 1],
            kl=0.0,
        )
        margin = (both.chosen - both.rejected - both.reference_chosen + both.reference_rejected).detach()
        metrics = {
            "margin": margin.sum() / total,
            "accuracy": (margin > 0).float().sum() / total,
            "chosen_tokens": tokens[:, 0].float().sum() / total,
            "rejected_tokens": tokens[:, 1].float().sum() / total,
        }
        return Loss(total=self.preference(both).sum() / total, metrics=metrics)

    def state_dict(self) -> dict[str, Any]:
        return {
            "learner": self.learner.state_dict(),
            "tasks": self.prepare().state_dict(),
            "snapshot": self.snapshot if self.reference == "start" else None,
            "policy_version": self.policy.version,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state["learner"])
        self.prepare().load_state_dict(state["tasks"])
        self.snapshot = state["snapshot"]
        self.policy.refresh()
        self.policy.version = int(state["policy_version"])

"""Fitting Q_i to what trajectories returned: line 5 of AgentPRM's Algorithm 1 (arXiv 2502.10325).

Legend: Qhat(s, a) the mean discounted return to go of a step, in [0, 1] (eq. 1); Q(s, a) the
reward model's score after the last id of the action.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from agentexp.errors import ConfigError, RolloutError
from agentexp.learning.optimiser import mean_metrics
from agentexp.learning.reward_learner import RewardLearner
from agentexp.learning.reward_model import RewardModel, score
from agentexp.learning.trees import lay, tree_size
from agentexp.losses.base import Loss
from agentexp.losses.process_reward import bradley_terry, soft_bce
from agentexp.packing import trunks
from agentexp.seeding import seed_for
from agentexp.step_values import Discount, State, StepValue, held_out, preference_pairs, step_values, visit_counts
from agentexp.types import Branch, Trajectory, Tree, Trunk

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A tree and what its scored tokens should be worth. absolute: `columns` of the trunk with their
    Qhat. relative: the branches, chosen and rejected in turn, and no values."""

    tree: Tree
    columns: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()  # one a column, or one a pair of branches


class QFit:
    """Trains the reward model on one collection.

    target: "absolute" (soft BCE on Qhat, eq. 2) or "relative" (Bradley-Terry on actions of one state
    whose Qhat differ by min_gap or more). state, discount, gamma: see step_values. reward_low,
    reward_high: the range of the environment's rewards, mapped to [0, 1]. held_out: share of games
    whose steps are not trained on but measured. epochs: passes; rows_per_step: trajectories
    (absolute) or states (relative) of an optimiser step. restart: fit every Q_i from the start.
    Each distinct (s, a) weighs the same, however often it was visited.
    """

    def __init__(
        self,
        *,
        reward_model: RewardModel,
        learner: RewardLearner,
        seed: int,
        target: Literal["absolute", "relative"],
        state: State,
        discount: Discount,
        gamma: float,
        reward_low: float,
        reward_high: float,
        min_gap: float,
        held_out: float,
        epochs: int,
        rows_per_step: int,
        restart: bool,
    ) -> None:
        if min(epochs, rows_per_step) < 1 or not 0.0 < gamma <= 1.0 or not 0.0 <= held_out < 1.0 or not min_gap >= 0.0:
            raise ConfigError(
                f"Q fit: epochs {epochs} and rows_per_step {rows_per_step} must be at least 1, gamma {gamma} in "
                f"(0, 1], held_out {held_out} in [0, 1), min_gap {min_gap} at least 0"
            )
        self.reward_model, self.learner, self.seed = reward_model, learner, seed
        self.target, self.state, self.discount, self.gamma = target, state, discount, gamma
        self.reward_range, self.min_gap, self.share_held_out = (reward_low, reward_high), min_gap, held_out
        self.epochs, self.rows_per_step, self.restart = epochs, rows_per_step, restart

    def fit(self, trajectories: Sequence[Trajectory], *, iteration: int, progress: Progress | None) -> dict[str, float]:
        """Fit on the trajectories' steps; what was counted and how well held-out games are predicted."""
        apart = held_out(
            [t.task.scenario for t in trajectories], fraction=self.share_held_out, seed=seed_for(self.seed, "held out")
        )
        sides: dict[bool, list[Trajectory]] = {False: [], True: []}
        for t in trajectories:
            sides[t.task.scenario in apart].append(t)
        train, test = sides[False], sides[True]
        values = self.values_of(train)
        targets = self.absolute(train, values) if self.target == "absolute" else self.relative(train, values)
        if not targets:
            raise RolloutError(
                f"{len(train)} trajectories gave no {self.target} targets for the reward model (min_gap "
                f"{self.min_gap}); play more rollouts of each task, or use algorithm.fit.target=absolute"
            )
        if self.restart:
            self.learner.restart()
        history: list[dict[str, float]] = []
        batches = self.batches(len(targets), iteration)
        self.learner.begin(len(batches))
        for n, chosen in enumerate(batches):
            history.append(self.step([targets[k] for k in chosen]))
            if progress is not None:
                progress("fit Q", n + 1, len(batches))
        return {
            **mean_metrics(history),
            "steps": float(len(history)),
            "games_held_out": float(len(apart)),
            **visit_counts(values),
            **self.measured(train, test, values),
        }

    def values_of(self, trajectories: Sequence[Trajectory]) -> list[StepValue]:
        """Eq. (1)."""
        return step_values(
            trajectories, gamma=self.gamma, state=self.state, discount=self.discount, reward_range=self.reward_range
        )

    def absolute(self, trajectories: Sequence[Trajectory], values: Sequence[StepValue]) -> list[Target]:
        """One target per trunk: Qhat after the last id of every action."""
        by_turn = {(v.trajectory, v.turn): v for v in values}
        found = []
        for n, trajectory in enumerate(trajectories):
            for trunk in trunks(trajectory):
                steps = [(d, by_turn[n, d.turn]) for d in trunk.decisions if (n, d.turn) in by_turn]
                if steps:
                    found.append(
                        Target(
                            tree=Tree(trunk=trunk),
                            columns=tuple(d.end - 1 for d, _ in steps),
                            values=tuple(v.q for _, v in steps),
                            weights=tuple(1.0 / v.visits for _, v in steps),
                        )
                    )
        return found

    def relative(self, trajectories: Sequence[Trajectory], values: Sequence[StepValue]) -> list[Target]:
        """One target per state: its pairs of actions as branches of the history where it was first met."""
        at: dict[tuple[int, int], tuple[Trunk, tuple[int, ...], int]] = {}
        for n, trajectory in enumerate(trajectories):
            for trunk in trunks(trajectory):
                for d in trunk.decisions:
                    at[n, d.turn] = (trunk, trunk.ids[d.start : d.end], d.start)
        by_state: dict[str, list[tuple[StepValue, StepValue]]] = {}
        for better, worse in preference_pairs(values, min_gap=self.min_gap):
            by_state.setdefault(better.state, []).append((better, worse))
        found = []
        for pairs in by_state.values():
            trunk, _, start = at[pairs[0][0].trajectory, pairs[0][0].turn]
            cut = Trunk(
                ids=trunk.ids[:start],
                decisions=tuple(d for d in trunk.decisions if d.end <= start),
                origin=trunk.origin,
            )
            said = [at[v.trajectory, v.turn][1] for pair in pairs for v in pair]
            found.append(
                Target(
                    tree=Tree(trunk=cut, branches=tuple(Branch(at=start, ids=ids) for ids in said)),
                    weights=(1.0,) * len(pairs),
                )
            )
        return found

    def step(self, targets: Sequence[Target]) -> dict[str, float]:
        """One optimiser step."""
        total = math.fsum(w for t in targets for w in t.weights)
        sizes = [tree_size(t.tree) for t in targets]
        return self.learner.update(sizes, lambda indices: self.loss([targets[i] for i in indices], total))

    def loss(self, targets: Sequence[Target], total: float) -> Loss:
        """Eq. (2), or Bradley-Terry, over these targets; `total` is the weight of the whole step."""
        model = self.reward_model
        batch = lay([t.tree for t in targets], dtype=model.dtype, device=model.device)
        weights = torch.tensor([w / total for t in targets for w in t.weights], device=model.device)
        if self.target == "absolute":
            rows = torch.tensor([n for n, t in enumerate(targets) for _ in t.columns], device=model.device)
            columns = torch.tensor([c for t in targets for c in t.columns], device=model.device)
            values = torch.tensor([v for t in targets for v in t.values], device=model.device)
            return Loss(total=soft_bce(model.logits(batch, rows, columns), values, weights), metrics={})
        rows = torch.tensor([row for row, _, _ in batch.branches], device=model.device)
        columns = torch.tensor([end - 1 for _, _, end in batch.branches], device=model.device)
        logits = model.logits(batch, rows, columns)
        return Loss(total=bradley_terry(logits[0::2], logits[1::2], weights), metrics={})

    def measured(
        self, train: Sequence[Trajectory], test: Sequence[Trajectory], values: Sequence[StepValue]
    ) -> dict[str, float]:
        """How well the games that were held out are predicted, beside a constant (the train mean)."""
        known = self.values_of(test) if test else []
        if not known:
            return {}
        trees = [(n, Tree(trunk=trunk)) for n, t in enumerate(test) for trunk in trunks(t)]
        scores = score(
            self.reward_model, [t for _, t in trees], tokens_per_microbatch=self.learner.tokens_per_microbatch
        )
        found = {
            (n, d.turn): raw
            for (n, tree), s in zip(trees, scores, strict=True)
            for d, raw in zip(tree.trunk.decisions, s.decisions, strict=True)
        }
        raw = torch.tensor([found[v.trajectory, v.turn] for v in known], dtype=torch.float64)
        q = torch.tensor([v.q for v in known], dtype=torch.float64)
        even = torch.full_like(q, 1.0 / len(q))
        mean = math.fsum(v.q for v in values) / len(values)
        odds = math.log(max(mean, 1e-6) / max(1.0 - mean, 1e-6))
        result = {"held_out_correlation": _correlation(raw.sigmoid(), q)}
        if self.target == "absolute":
            result["held_out_bce"] = float(soft_bce(raw, q, even))
            result["held_out_bce_constant"] = float(soft_bce(torch.full_like(q, odds), q, even))
        return result

    def batches(self, count: int, iteration: int) -> list[list[int]]:
        """Every epoch's steps, shuffled."""
        found = []
        for epoch in range(self.epochs):
            order = list(range(count))
            random.Random(seed_for(self.seed, "fit", iteration, epoch)).shuffle(order)
            found += [order[k : k + self.rows_per_step] for k in range(0, count, self.rows_per_step)]
        return found


def _correlation(x: torch.Tensor, y: torch.Tensor) -> float:
    """Pearson's, 0 where one side does not vary."""
    a, b = x - x.mean(), y - y.mean()
    scale = float(a.norm() * b.norm())
    return float(a @ b) / scale if scale > 0.0 else 0.0

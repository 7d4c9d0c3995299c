"""Fitting Q by telling the expert's transitions from the learners': line 4 of InversePRM's Algorithm 2
(arXiv 2502.10325). No reward is read anywhere in this file.

Legend: Delta = Q(s, a) - gamma Q(s', a'), a' drawn from pi_{i-1}; Delta = Q(s, a) where the episode
ended by itself. E+ over the expert's transitions, E- over those of all past learners.

-E+ log sigma(Delta) - E- log(1 - sigma(Delta))          eq. (11), its second sign corrected (printed: +)
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from agentexp.errors import ConfigError, RolloutError
from agentexp.learning.optimiser import mean_metrics
from agentexp.learning.reward_learner import RewardLearner
from agentexp.learning.reward_model import RewardModel
from agentexp.learning.trees import lay, tree_size
from agentexp.losses.base import Loss
from agentexp.losses.process_reward import inverse
from agentexp.packing import trunks
from agentexp.policies.hf import HfPolicy
from agentexp.seeding import seed_for
from agentexp.types import Branch, Decision, StopReason, Trajectory, Tree, Trunk

NextAction = Literal["policy", "released"]
Balance = Literal["sides", "trajectories", "none"]
Unfinished = Literal["drop", "terminal"]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """One trajectory's transitions on one trunk. ended: its last decision was the episode's last, and
    the environment, not a budget, ended it. deliberate: of each decision, whether the player chose it;
    an imperfect expert's random moves are none of its transitions."""

    trunk: Trunk
    ended: bool
    expert: bool
    deliberate: tuple[bool, ...]

    def to_plain(self) -> dict[str, Any]:
        """As a checkpoint keeps it."""
        return {
            "ids": list(self.trunk.ids),
            "decisions": [[d.turn, d.start, d.end] for d in self.trunk.decisions],
            "origin": self.trunk.origin,
            "ended": self.ended,
            "expert": self.expert,
            "deliberate": list(self.deliberate),
        }

    @staticmethod
    def from_plain(plain: dict[str, Any]) -> Path:
        """The inverse of `to_plain`."""
        decisions = tuple(Decision(turn=turn, start=start, end=end) for turn, start, end in plain["decisions"])
        trunk = Trunk(ids=tuple(plain["ids"]), decisions=decisions, origin=plain["origin"])
        return Path(trunk=trunk, ended=plain["ended"], expert=plain["expert"], deliberate=tuple(plain["deliberate"]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Transitions:
    """A trunk with one branch a' per next state, and the weight of each transition. Transition t is
    decision t; `branch[t]` is the index of its a', None at a terminal state. `logged[t]`: the next
    decision's own action stands for a'."""

    tree: Tree
    expert: bool
    decision: tuple[int, ...]
    branch: tuple[int | None, ...]
    logged: tuple[bool, ...]
    weight: float = 1.0  # of each


def paths(trajectory: Trajectory, *, expert: bool) -> list[Path]:
    """A trajectory's trunks. A transition over a rewritten history is lost: its s' stands elsewhere."""
    found = trunks(trajectory)
    done = trajectory.stop is StopReason.DONE
    return [
        Path(
            trunk=trunk,
            ended=done and n == len(found) - 1,
            expert=expert,
            deliberate=tuple(trajectory.turns[d.turn].deliberate for d in trunk.decisions),
        )
        for n, trunk in enumerate(found)
        if trunk.decisions
    ]


class InverseFit:
    """Trains the reward model to tell two sides apart.

    next_action: "policy" draws a' from pi_{i-1} on both sides, as eq. (9) says; "released" keeps the
    logged a' of the learners' side. unfinished: what the last transition of an episode that a budget
    ended is: left out ("drop"), or as if the episode had ended there ("terminal"). balance: each
    side weighs half ("sides"), as many trajectories of either side ("trajectories"), or every
    transition the same ("none"). q_penalty: times the mean of Q^2, since eq. (9) alone has no
    bound. max_new_tokens: of a'. epochs, rows_per_step, restart: as in QFit.
    """

    def __init__(
        self,
        *,
        reward_model: RewardModel,
        learner: RewardLearner,
        policy: HfPolicy,
        seed: int,
        gamma: float,
        next_action: NextAction,
        unfinished: Unfinished,
        balance: Balance,
        q_penalty: float,
        temperature: float,
        max_new_tokens: int,
        epochs: int,
        rows_per_step: int,
        restart: bool,
    ) -> None:
        if min(epochs, rows_per_step, max_new_tokens) < 1 or not 0.0 < gamma <= 1.0 or not q_penalty >= 0.0:
            raise ConfigError(
                f"inverse fit: epochs {epochs}, rows_per_step {rows_per_step} and max_new_tokens {max_new_tokens} must "
                f"be at least 1, gamma {gamma} in (0, 1], q_penalty {q_penalty} at least 0"
            )
        self.reward_model, self.learner, self.policy, self.seed = reward_model, learner, policy, seed
        self.gamma, self.next_action, self.unfinished, self.balance = gamma, next_action, unfinished, balance
        self.q_penalty, self.temperature, self.max_new_tokens = q_penalty, temperature, max_new_tokens
        self.epochs, self.rows_per_step, self.restart = epochs, rows_per_step, restart

    def fit(
        self, expert: Sequence[Path], learners: Sequence[Path], *, iteration: int, progress: Progress | None
    ) -> dict[str, float]:
        """Fit on both sides; `learners` holds the paths of all past policies."""
        seed = seed_for(self.seed, "inverse fit", iteration)
        both = self.balanced(expert, learners, seed)
        found = [t for t in self.transitions(both, seed) if t.decision]
        sides = {side: sum(len(t.decision) for t in found if t.expert is side) for side in (True, False)}
        if not all(sides.values()):
            raise RolloutError(
                f"the expert's side has {sides[True]} transitions and the learners' {sides[False]}; both are needed"
            )
        if self.balance == "sides":
            found = [replace(t, weight=0.5 / sides[t.expert]) for t in found]
        if self.restart:
            self.learner.restart()
        history: list[dict[str, float]] = []
        steps = math.ceil(len(found) / self.rows_per_step) * self.epochs
        self.learner.begin(steps)
        for epoch in range(self.epochs):
            order = list(range(len(found)))
            random.Random(seed_for(seed, "epoch", epoch)).shuffle(order)
            for k in range(0, len(order), self.rows_per_step):
                history.append(self.step([found[n] for n in order[k : k + self.rows_per_step]]))
                if progress is not None:
                    progress("fit Q", len(history), steps)
        return {
            **mean_metrics(history),
            "steps": float(len(history)),
            "expert_transitions": float(sides[True]),
            "learner_transitions": float(sides[False]),
        }

    def balanced(self, expert: Sequence[Path], learners: Sequence[Path], seed: int) -> list[Path]:
        """Both sides, the larger one thinned if trajectories are to be balanced."""
        if self.balance != "trajectories":
            return [*expert, *learners]
        count = min(len(expert), len(learners))
        rng = random.Random(seed_for(seed, "balance"))
        return [p for side in (expert, learners) for p in rng.sample(list(side), count)]

    def transitions(self, both: Sequence[Path], seed: int) -> list[Transitions]:
        """Every path's transitions, a' drawn now."""
        drawn = [p.expert or self.next_action == "policy" for p in both]
        points = [[d.start for d in p.trunk.decisions[1:]] if draw else [] for p, draw in zip(both, drawn, strict=True)]
        said = self.policy.branch(
            [p.trunk.ids for p in both],
            points,
            n=1,
            max_tokens=self.max_new_tokens,
            temperature=self.temperature,
            seeds=[[seed_for(seed, "next action", n, at) for at in ats] for n, ats in enumerate(points)],
        )
        found = []
        for path, ats, state, draw in zip(both, points, said, drawn, strict=True):
            last = len(path.trunk.decisions) - 1
            whole = [t for t in range(last + 1) if t < last or path.ended or self.unfinished == "terminal"]
            kept = [t for t in whole if path.deliberate[t]]
            found.append(
                Transitions(
                    tree=Tree(
                        trunk=path.trunk,
                        branches=tuple(Branch(at=at, ids=c[0].ids) for at, c in zip(ats, state, strict=True)),
                    ),
                    expert=path.expert,
                    decision=tuple(kept),
                    branch=tuple(t if draw and t < last else None for t in kept),
                    logged=tuple(not draw and t < last for t in kept),
                )
            )
        return found

    def step(self, chosen: Sequence[Transitions]) -> dict[str, float]:
        """One optimiser step."""
        total = math.fsum(t.weight * len(t.decision) for t in chosen)
        sizes = [tree_size(t.tree) for t in chosen]
        return self.learner.update(sizes, lambda indices: self.loss([chosen[i] for i in indices], total))

    def loss(self, chosen: Sequence[Transitions], total: float) -> Loss:
        """The share of these rows in eq. (11)."""
        model = self.reward_model
        batch = lay([t.tree for t in chosen], dtype=model.dtype, device=model.device)
        first = 0  # the row's first branch in batch.branches
        here: list[tuple[int, int]] = []
        there: list[tuple[int, int] | None] = []
        for row, t in enumerate(chosen):
            ends = [d.end - 1 for d in t.tree.trunk.decisions]
            for k, branch, logged in zip(t.decision, t.branch, t.logged, strict=True):
                here.append((row, ends[k]))
                if branch is not None:
                    there.append((row, batch.branches[first + branch][2] - 1))
                else:
                    there.append((row, ends[k + 1]) if logged else None)
            first += len(t.tree.branches)
        spots = torch.tensor(here + [spot or (0, 0) for spot in there], device=model.device)
        logits = model.logits(batch, spots[:, 0], spots[:, 1])
        q, q_next = logits[: len(here)], logits[len(here) :]
        goes_on = torch.tensor([spot is not None for spot in there], device=model.device)
        delta = q - self.gamma * q_next.masked_fill(~goes_on, 0.0)
        expert = torch.tensor([t.expert for t in chosen for _ in t.decision], device=model.device)
        weights = torch.tensor([t.weight / total for t in chosen for _ in t.decision], device=model.device)
        penalty = (weights * q.square()).sum()
        with torch.no_grad():
            right = ((delta > 0.0) == expert).to(weights.dtype)
            metrics = {"accuracy": (weights * right).sum(), "q_squared": penalty.detach()}
        return Loss(total=inverse(delta, expert, weights) + self.q_penalty * penalty, metrics=metrics)

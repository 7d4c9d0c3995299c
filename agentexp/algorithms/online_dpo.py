"""Online DPO against a process reward model: the policy step of AgentPRM and InversePRM
(arXiv 2502.10325, Algorithm 1 line 6, Algorithm 2 line 5).

max_pi E[Q(s, a)] - beta KL(pi || pi_{i-1})                            eq. (3), (5), (10)

At states of given trunks the policy of this moment samples n actions, Q ranks them, best against
worst is a pair, and pi moves by DPO whose reference is pi_{i-1}: the policy that played, not the
one that supervised training made. No environment runs here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from agentexp.errors import ConfigError
from agentexp.learning.learner import Learner
from agentexp.learning.optimiser import mean_metrics
from agentexp.learning.reward_model import RewardModel, score
from agentexp.learning.trees import branch_logps, lay, tree_size
from agentexp.losses.base import Loss
from agentexp.losses.preference import LengthScale, dpo, dpo_regression, preference_margin
from agentexp.packing import buckets
from agentexp.policies.hf import HfPolicy
from agentexp.seeding import seed_for
from agentexp.types import Branch, Completion, Tree, Trunk

Unfinished = Literal["keep", "drop", "penalty"]
Labels = Literal["hard", "soft"]
Unit = Literal["probability", "raw"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RankedPairs:
    """A trunk with the two branches of every state that formed a pair: chosen, rejected, chosen, …"""

    tree: Tree
    gaps: tuple[float, ...]  # Q(chosen) - Q(rejected)


class OnlineDpo:
    """`steps` rounds of sample, rank, learn.

    trunks_per_step: trajectories whose states are visited in a round; states_per_trunk: how many of
    each one's decisions (null: all). samples_per_state: n. temperature, max_new_tokens: of the
    samples. unit: what Q is, the sigmoid of the reward model's score ("probability", AgentPRM's) or the
    score itself ("raw", InversePRM's). labels: "hard" says only which of two is better (DPO, the
    released code's), "soft" also by how much, so that the policy stops at the solution of eq. (3).
    beta: weight of the KL. length_scale, alpha: see losses.preference. min_gap: a pair's least
    difference in Q; equal scores never form one. epochs: passes over a round's pairs.
    unfinished: an action that hit max_new_tokens is scored like any other (keep), cannot be
    in a pair (drop), or counts as worth `unfinished_score` (penalty; the released code's -1).
    """

    def __init__(
        self,
        *,
        policy: HfPolicy,
        learner: Learner,
        reward_model: RewardModel,
        seed: int,
        steps: int,
        trunks_per_step: int,
        states_per_trunk: int | None,
        samples_per_state: int,
        temperature: float,
        max_new_tokens: int,
        unit: Unit,
        labels: Labels,
        beta: float,
        length_scale: LengthScale,
        alpha: float,
        min_gap: float,
        epochs: int,
        unfinished: Unfinished,
        unfinished_score: float,
    ) -> None:
        counted = {
            "steps": (steps, 1),
            "trunks_per_step": (trunks_per_step, 1),
            "samples_per_state": (samples_per_state, 2),
            "max_new_tokens": (max_new_tokens, 1),
            "epochs": (epochs, 1),
            "states_per_trunk": (1 if states_per_trunk is None else states_per_trunk, 1),
        }
        for key, (value, least) in counted.items():
            if value < least:
                raise ConfigError(f"online DPO: {key} is {value}; at least {least} is needed")
        if not beta > 0.0 or not min_gap >= 0.0 or not temperature > 0.0:
            raise ConfigError(
                f"online DPO: beta is {beta} and temperature {temperature}, both must be above 0; "
                f"min_gap is {min_gap}, 0 or more is needed"
            )
        self.policy, self.learner, self.reward_model, self.seed = policy, learner, reward_model, seed
        self.steps, self.trunks_per_step, self.states_per_trunk = steps, trunks_per_step, states_per_trunk
        self.samples_per_state, self.temperature, self.max_new_tokens = samples_per_state, temperature, max_new_tokens
        self.unit, self.labels = unit, labels
        self.beta, self.length_scale, self.alpha, self.min_gap = beta, length_scale, alpha, min_gap
        self.epochs, self.unfinished, self.unfinished_score = epochs, unfinished, unfinished_score

    def improve(
        self,
        trunks: Sequence[Trunk],
        *,
        iteration: int,
        watch: Callable[[int], bool] | None,
        progress: Callable[[str, int, int], None] | None,
    ) -> dict[str, float]:
        """Move the policy away from what it is now, its reference. `watch` is told the number of
        rounds made and may end the rest."""
        if not trunks:
            raise ConfigError("online DPO was given no trajectories; there are no states to sample at")
        reference = self.learner.model.weights()  # pi_{i-1}
        order = _endless(len(trunks), seed_for(self.seed, "online dpo", iteration, "order"))
        history: list[dict[str, float]] = []
        for step in range(self.steps):
            chosen = [trunks[next(order)] for _ in range(self.trunks_per_step)]
            history.append(self.round(chosen, reference, seed_for(self.seed, "online dpo", iteration, step)))
            if progress is not None:
                progress("online dpo", step + 1, self.steps)
            if watch is not None and watch(step + 1):
                break
        made = [h for h in history if h["pairs"]]
        always = ("pairs", "ties", "unfinished", "states", "score")
        return {
            **{name: math.fsum(h[name] for h in history) / len(history) for name in always},
            **mean_metrics([{k: v for k, v in h.items() if k not in always} for h in made]),
            "rounds": float(len(history)),
            "rounds_without_pairs": float(len(history) - len(made)),
        }

    def round(self, trunks: Sequence[Trunk], reference: dict[str, Tensor], seed: int) -> dict[str, float]:
        """Sample at the trunks' states, rank, and take `epochs` optimiser steps on all pairs."""
        ranked, counts = self.rank(trunks, seed)
        trees = [r.tree for r in ranked]
        if not trees:
            return counts
        with self.learner.model.with_weights(reference):
            held = self.logps(trees)
        total = sum(len(r.gaps) for r in ranked)
        sizes = [tree_size(t) for t in trees]
        steps = [
            self.learner.update(
                sizes, lambda indices: self.loss([ranked[i] for i in indices], [held[i] for i in indices], total)
            )
            for _ in range(self.epochs)
        ]
        self.policy.refresh()
        gap = math.fsum(g for r in ranked for g in r.gaps) / total
        return {**counts, **mean_metrics(steps), "gap": gap}

    def rank(self, trunks: Sequence[Trunk], seed: int) -> tuple[list[RankedPairs], dict[str, float]]:
        """The pairs at the trunks' states by the reward model, and what was counted."""
        points = [self.states(t, seed) for t in trunks]
        said = self.policy.branch(
            [t.ids for t in trunks],
            points,
            n=self.samples_per_state,
            max_tokens=self.max_new_tokens,
            temperature=self.temperature,
            seeds=[[seed_for(seed, n, at) for at in ats] for n, ats in enumerate(points)],
        )
        trees = [
            Tree(
                trunk=t, branches=tuple(Branch(at=at, ids=c.ids) for at, cs in zip(ats, state, strict=True) for c in cs)
            )
            for t, ats, state in zip(trunks, points, said, strict=True)
        ]
        scores = score(self.reward_model, trees, tokens_per_microbatch=self.learner.tokens_per_microbatch)
        ranked: list[RankedPairs] = []
        counts = {"pairs": 0.0, "ties": 0.0, "unfinished": 0.0, "states": 0.0, "score": 0.0}
        values: list[float] = []
        for tree, found, state in zip(trees, scores, said, strict=True):
            branches: list[Branch] = []
            gaps: list[float] = []
            n = self.samples_per_state
            for k, completions in enumerate(state):
                worth = self.worth(completions, found.branches[k * n : (k + 1) * n])
                values += worth.values()
                counts["states"] += 1
                counts["unfinished"] += sum(c.finish == "length" for c in completions)
                best, worst = (
                    max(worth, key=worth.__getitem__, default=-1),
                    min(worth, key=worth.__getitem__, default=-1),
                )
                gap = worth[best] - worth[worst] if worth else 0.0
                if gap <= 0.0 or gap < self.min_gap or completions[best].ids == completions[worst].ids:
                    counts["ties"] += 1
                    continue
                branches += [tree.branches[k * n + best], tree.branches[k * n + worst]]
                gaps.append(gap)
            counts["pairs"] += len(gaps)
            if gaps:
                ranked.append(RankedPairs(tree=Tree(trunk=tree.trunk, branches=tuple(branches)), gaps=tuple(gaps)))
        counts["score"] = math.fsum(values) / len(values) if values else 0.0
        return ranked, counts

    def states(self, trunk: Trunk, seed: int) -> list[int]:
        """Where to sample on a trunk: how many ids are read at each chosen state."""
        starts = [d.start for d in trunk.decisions]
        if self.states_per_trunk is None or len(starts) <= self.states_per_trunk:
            return starts
        return sorted(random.Random(seed_for(seed, "states", trunk.origin)).sample(starts, self.states_per_trunk))

    def worth(self, completions: Sequence[Completion], scores: Sequence[float]) -> dict[int, float]:
        """What each candidate counts for, by its index; those that cannot be in a pair are absent."""
        found = {}
        for n, (completion, value) in enumerate(zip(completions, scores, strict=True)):
            if completion.finish != "length" or self.unfinished == "keep":
                found[n] = 1.0 / (1.0 + math.exp(-value)) if self.unit == "probability" else value
            elif self.unfinished == "penalty":
                found[n] = self.unfinished_score
        return found

    @torch.no_grad()
    def logps(self, trees: Sequence[Tree]) -> list[Tensor]:
        """Summed log-probs of every tree's branches."""
        model = self.learner.model
        model.network.eval()
        found: dict[int, Tensor] = {}
        for indices in buckets([tree_size(t) for t in trees], self.learner.tokens_per_microbatch):
            chosen = [trees[i] for i in indices]
            batch = lay(chosen, dtype=model.causal_lm.dtype, device=model.device)
            logps = branch_logps(model, batch, self.learner.temperature)
            found |= dict(zip(indices, torch.split(logps, [len(t.branches) for t in chosen]), strict=True))
        return [found[n] for n in range(len(trees))]

    def loss(self, ranked: Sequence[RankedPairs], held: Sequence[Tensor], total: int) -> Loss:
        """The share of these pairs in the mean of `dpo`, or of `dpo_regression`."""
        model, trees = self.learner.model, [r.tree for r in ranked]
        batch = lay(trees, dtype=model.causal_lm.dtype, device=model.device)
        logps, kept = branch_logps(model, batch, self.learner.temperature), torch.cat(list(held))
        n = torch.tensor([len(b.ids) for t in trees for b in t.branches], device=logps.device)
        margin, before = (
            preference_margin(p[0::2], p[1::2], n[0::2], n[1::2], scale=self.length_scale, alpha=self.alpha)
            for p in (logps, kept)
        )
        if self.labels == "hard":
            terms = dpo(margin, before, beta=self.beta) / total
        else:
            gaps = torch.tensor([g for r in ranked for g in r.gaps], dtype=margin.dtype, device=margin.device)
            terms = dpo_regression(margin, before, gaps, beta=self.beta) / total
        with torch.no_grad():
            moved = logps - kept
            metrics = {
                "margin": (margin - before).sum() / total,
                "accuracy": (margin > before).float().sum() / total,
                "chosen_shift": moved[0::2].sum() / total,
                "rejected_shift": moved[1::2].sum() / total,
                "chosen_tokens": n[0::2].float().sum() / total,
                "rejected_tokens": n[1::2].float().sum() / total,
            }
        return Loss(total=terms.sum(), metrics=metrics)


def _endless(count: int, seed: int) -> Iterator[int]:
    """Indices in shuffled passes without end."""
    passes = 0
    while True:
        order = list(range(count))
        random.Random(seed_for(seed, passes)).shuffle(order)
        yield from order
        passes += 1

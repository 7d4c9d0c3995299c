"""Agentic-DPO (arXiv 2607.10601), and those that differ from it by their keys only: supervised fine-tuning
on views (PPA + SFT), DFT, DPO, SimPO, KTO, Step-DPO.

L = lambda L_SFT(a+ | s) - log sigma( beta / max(|a+|, |a-|)^alpha [log pi(a+ | s) - log pi(a- | s)] )

a+ is the expert's action at the expert's state s, shown in a view phi ~ Unif(Phi); a- the likeliest wrong one
among K of the student's own; lambda = sft_weight. Summed log-probs, no reference model. No environment
runs here but where the expert plays, before the first round, and where a round is chosen, after each.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor

from agentexp.algorithms.expert_pool import ExpertPool
from agentexp.algorithms.hard_negatives import Contrast, Grown, HardNegatives, branch_sums, grow
from agentexp.algorithms.round_choice import RoundChoice
from agentexp.errors import ConfigError
from agentexp.learning.learner import Learner
from agentexp.learning.optimiser import mean_metrics
from agentexp.learning.trees import branch_token_logps, lay, tree_size
from agentexp.losses.base import Loss
from agentexp.losses.imitation import ActionScale, Imitation, action_weights
from agentexp.losses.preference import PairLogps, PreferenceLoss
from agentexp.policies.base import Policy
from agentexp.seeding import seed_for
from agentexp.types import Iteration


class AgenticDpo:
    """One iteration is one round: visits_per_round expert states (null: all), pairs_per_step an optimiser
    step. The first warm_up_rounds (R0) only imitate; every later one samples anew from the student.

    preference: the loss on pairs (null: imitation only, nothing is sampled). reference: whose log-probs
    stand for pi_ref in losses that have one, the policy after the warm-up or that of the round's
    beginning. imitation, sft_weight, warm_up_sft_weight, sft_scale: the anchor, its weight lambda,
    that of R0, and what its terms are averaged over. states: "every" visited state may make a pair;
    "first_wrong" visits whole trajectories and keeps the first that does (Step-DPO). restart: each
    round begins with a fresh optimiser and schedule. choice: hands on the best round (null: the
    last). shuffle_sides: a negative control; a random side of each pair counts as chosen.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        learner: Learner,
        seed: int,
        pool: ExpertPool,
        negatives: HardNegatives,
        preference: PreferenceLoss | None,
        reference: Literal["warm_up", "round"],
        imitation: Imitation,
        sft_weight: float,
        warm_up_sft_weight: float,
        sft_scale: ActionScale,
        states: Literal["every", "first_wrong"],
        warm_up_rounds: int,
        visits_per_round: int | None,
        pairs_per_step: int,
        restart: bool,
        choice: RoundChoice | None,
        shuffle_sides: bool,
    ) -> None:
        least = {
            "warm_up_rounds": (warm_up_rounds, 0),
            "visits_per_round": (1 if visits_per_round is None else visits_per_round, 1),
            "pairs_per_step": (pairs_per_step, 1),
            "sft_weight": (sft_weight, 0),
            "warm_up_sft_weight": (warm_up_sft_weight, 0),
        }
        for key, (value, smallest) in least.items():
            if not smallest <= value < math.inf:
                raise ConfigError(f"algorithm.{key} is {value}; at least {smallest} is needed")
        if preference is None and sft_weight == 0.0:
            raise ConfigError("algorithm.preference is null and sft_weight 0: nothing would be learnt; set one of them")
        self.policy, self.learner, self.seed, self.pool, self.negatives = policy, learner, seed, pool, negatives
        self.preference, self.reference, self.imitation = preference, reference, imitation
        self.sft_weight, self.warm_up_sft_weight, self.sft_scale = sft_weight, warm_up_sft_weight, sft_scale
        self.states, self.warm_up_rounds, self.visits_per_round = states, warm_up_rounds, visits_per_round
        self.pairs_per_step, self.restart, self.choice = pairs_per_step, restart, choice
        self.shuffle_sides = shuffle_sides
        self.snapshot: dict[str, Tensor] | None = None  # pi_ref, if a loss needs the policy after the warm-up
        self.progress: Callable[[str, int, int], None] | None = None  # set by `run`

    def iterate(self, i: int) -> Iteration:
        """R0, or a refresh round."""
        if self.choice is not None and self.choice.go_on(self.learner.model):
            self.policy.refresh()
        contrasting = self.preference is not None and i >= self.warm_up_rounds
        visits, found = self.pool.visits(  # s ~ the expert's, without replacement; phi ~ Unif(Phi)
            self.visits_per_round,
            round=i,
            most_new_tokens=self.negatives.max_new_tokens,
            whole=contrasting and self.states == "first_wrong",
        )
        if contrasting:  # K actions of the student, without the expert's, the likeliest
            contrasts, counts = self.negatives.find(
                visits, self.learner, seed=seed_for(self.seed, "agentic dpo", i), progress=self.progress
            )
            if self.states == "first_wrong":
                contrasts = first_wrong(contrasts, i, self.seed)
            contrasts = self.with_reference(contrasts)
        else:
            contrasts, counts = [Contrast(visit=v, rejected=None) for v in visits], {}
        if self.restart:
            self.learner.restart()
        weight = self.sft_weight if i >= self.warm_up_rounds else self.warm_up_sft_weight
        steps = range(0, len(contrasts), self.pairs_per_step)
        history = []
        for n, at in enumerate(steps):
            history.append(self.step(contrasts[at : at + self.pairs_per_step], weight, seed_for(self.seed, "sides", i)))
            if self.progress is not None:
                self.progress("learning from pairs", n + 1, len(steps))
        self.policy.refresh()
        seen: dict[str, float] = {}
        if self.choice is not None:
            seen, changed = self.choice.look(self.learner.model, i)
            if changed:
                self.policy.refresh()
        train = {**_means(history), "steps": float(len(history)), "pairs": _pairs(contrasts)}
        groups = {"pool": found, "negatives": counts, "train": train, "choice": seen}
        return Iteration(metrics={f"{g}/{k}": float(v) for g, values in groups.items() for k, v in values.items()})

    def with_reference(self, contrasts: list[Contrast]) -> list[Contrast]:
        """The same, with log pi_ref of both sides if the loss reads it."""
        assert self.preference is not None
        if not self.preference.needs_reference:
            return contrasts
        model = self.learner.model
        if self.snapshot is None or self.reference == "round":
            self.snapshot = model.weights()  # before the first step of the first round that contrasts, or of each
        with model.with_weights(self.snapshot):
            sums = branch_sums(self.learner, [c.visit for c in contrasts], [_sides(c) for c in contrasts])
        return [
            replace(c, reference=(s[0], s[1])) if c.rejected is not None else c
            for c, s in zip(contrasts, sums, strict=True)
        ]

    def step(self, contrasts: Sequence[Contrast], sft_weight: float, seed: int) -> dict[str, float]:
        """One optimiser step on these states as one batch."""
        kl = self.kl(contrasts) if self.preference is not None and self.preference.needs_kl else 0.0
        weights = action_weights([len(c.visit.said) for c in contrasts], self.sft_scale)
        grown = grow([c.visit for c in contrasts], [_sides(c) for c in contrasts])

        def part(indices: list[int]) -> Loss:
            return self.loss([grown[g] for g in indices], contrasts, weights, sft_weight, kl, seed)

        return self.learner.update([tree_size(g.tree) for g in grown], part)

    def loss(
        self,
        grown: Sequence[Grown],
        contrasts: Sequence[Contrast],
        weights: Sequence[float],
        sft_weight: float,
        kl: float,
        seed: int,
    ) -> Loss:
        """The share of these trees in the loss over `contrasts`: the mean over all of them, where those
        without a negative have no contrastive term."""
        model = self.learner.model
        batch = lay([g.tree for g in grown], dtype=model.causal_lm.dtype, device=model.device)
        logps_P, owner_P = branch_token_logps(model, batch, self.learner.temperature)
        sums_N = torch.zeros(len(batch.branches), dtype=logps_P.dtype, device=model.device).index_add(
            0, owner_P, logps_P
        )
        members = [n for g in grown for n in g.of]
        firsts = [b for b, n in enumerate(members) if b == 0 or members[b - 1] != n]  # the expert's branches
        anchor_N = torch.zeros_like(sums_N)
        anchor_N[firsts] = torch.tensor([weights[members[b]] for b in firsts], device=model.device)
        sft = (anchor_N[owner_P] * self.imitation(logps_P)).sum()
        metrics = {"sft_loss": sft.detach()}
        total = sft_weight * sft
        plus = [b for b in firsts if contrasts[members[b]].rejected is not None]
        if plus and self.preference is not None:
            preferred = self.preference(self.pairs(plus, members, sums_N, contrasts, kl, seed)).sum() / len(contrasts)
            total = total + preferred
            with torch.no_grad():
                paired = [contrasts[members[b]] for b in plus]
                margin = sums_N[plus] - sums_N[[b + 1 for b in plus]]
                count = _pairs(contrasts)
                metrics |= {
                    "preference_loss": preferred.detach(),
                    "margin": margin.sum() / count,
                    "accuracy": (margin > 0).float().sum() / count,
                    "chosen_tokens": torch.tensor(sum(len(c.visit.said) for c in paired) / count),
                    "rejected_tokens": torch.tensor(sum(len(c.rejected or ()) for c in paired) / count),
                }
        return Loss(total=total, metrics=metrics)

    def pairs(
        self,
        plus: Sequence[int],
        members: Sequence[int],
        sums_N: Tensor,
        contrasts: Sequence[Contrast],
        kl: float,
        seed: int,
    ) -> PairLogps:
        """Branch b in `plus` against branch b + 1; under the control, a random one of the two is chosen."""
        paired = [contrasts[members[b]] for b in plus]
        swap = [self.shuffle_sides and random.Random(seed_for(seed, c.visit.key)).random() < 0.5 for c in paired]
        better = [b + s for b, s in zip(plus, swap, strict=True)]
        worse = [b + 1 - s for b, s in zip(plus, swap, strict=True)]
        lengths = [(len(c.visit.said), len(c.rejected or ())) for c in paired]

        def tensor(values: Sequence[tuple[float, float]], side: int) -> Tensor:
            return torch.tensor([v[side ^ s] for v, s in zip(values, swap, strict=True)], device=sums_N.device)

        held = [c.reference for c in paired]
        return PairLogps(
            chosen=sums_N[better],
            rejected=sums_N[worse],
            chosen_n=tensor(lengths, 0),
            rejected_n=tensor(lengths, 1),
            reference_chosen=tensor(held, 0),
            reference_rejected=tensor(held, 1),
            kl=kl,
        )

    def kl(self, contrasts: Sequence[Contrast]) -> float:
        """KTO's z: max(0, mean of log pi - log pi_ref) of expert actions at other states of the batch."""
        paired = [c for c in contrasts if c.rejected is not None]
        if len(paired) < 2 or self.snapshot is None:
            return 0.0
        visits = [c.visit for c in paired]
        others = [[visits[(n + 1) % len(visits)].said] for n in range(len(visits))]
        now = branch_sums(self.learner, visits, others)
        with self.learner.model.with_weights(self.snapshot):
            before = branch_sums(self.learner, visits, others)
        return max(0.0, math.fsum(a - b for (a,), (b,) in zip(now, before, strict=True)) / len(visits))

    def state_dict(self) -> dict[str, Any]:
        return {
            "learner": self.learner.state_dict(),
            "snapshot": self.snapshot if self.reference == "warm_up" else None,  # a round's is taken anew
            "choice": None if self.choice is None else self.choice.state_dict(),
            "policy_version": self.policy.version,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state["learner"])
        self.snapshot = state["snapshot"]
        if self.choice is not None:
            self.choice.load_state_dict(state["choice"])
        self.policy.refresh()
        self.policy.version = int(state["policy_version"])


def first_wrong(contrasts: Sequence[Contrast], round: int, seed: int) -> list[Contrast]:
    """Of every trajectory the first state with a negative, shuffled (Step-DPO's pairs)."""
    first: dict[int, Contrast] = {}
    for c in contrasts:
        n, turn = c.visit.order
        if c.rejected is not None and (n not in first or turn < first[n].visit.order[1]):
            first[n] = c
    found = list(first.values())
    random.Random(seed_for(seed, "first wrong", round)).shuffle(found)
    return found


def _sides(contrast: Contrast) -> list[tuple[int, ...]]:
    """The expert's action, then the wrong one if there is one."""
    said = [contrast.visit.said]
    return said if contrast.rejected is None else [*said, contrast.rejected]


def _means(history: Sequence[dict[str, float]]) -> dict[str, float]:
    """Means over steps; of what only pairs have, over the steps that had some."""
    everywhere = set(history[0]).intersection(*history) if history else set()
    return {
        **mean_metrics([h for h in history if "margin" in h]),
        **mean_metrics([{k: v for k, v in h.items() if k in everywhere} for h in history]),
    }


def _pairs(contrasts: Sequence[Contrast]) -> float:
    return float(sum(c.rejected is not None for c in contrasts))

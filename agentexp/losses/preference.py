"""Losses on pairs: of actions at the same state or, in ETO, of trajectories of the same task.

Legend: B pairs; all tensors [B]; + chosen, - rejected; logp the sum of an action's token log-probs,
n its number of tokens, Delta_ref the reference's logp+ - logp- (0: no reference).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from agentexp.errors import ConfigError

LengthScale = Literal["sum", "mean", "power"]


def preference_margin(
    chosen_logp: Tensor,
    rejected_logp: Tensor,
    chosen_n: Tensor,
    rejected_n: Tensor,
    *,
    scale: LengthScale,
    alpha: float,
) -> Tensor:
    """The scaled difference of log-probs.

    sum: logp+ - logp- (DPO). mean: logp+ / n+ - logp- / n- (each side by its own length).
    power: (logp+ - logp-) / max(n+, n-)^alpha (Agentic-DPO; alpha 0.5 there).
    """
    if scale == "mean":
        return chosen_logp / chosen_n - rejected_logp / rejected_n
    difference = chosen_logp - rejected_logp
    if scale == "sum":
        return difference
    longest = chosen_n.maximum(rejected_n).to(difference.dtype)
    margin: Tensor = difference / longest.pow(alpha)
    return margin


def dpo(margin: Tensor, reference_margin: Tensor, *, beta: float) -> Tensor:
    """-log sigma(beta (margin - reference_margin)) per pair [B]. With a zero reference: Agentic-DPO's
    contrastive term; both margins are on the same length scale."""
    return -logsigmoid(beta * (margin - reference_margin))


def dpo_regression(margin: Tensor, reference_margin: Tensor, gap: Tensor, *, beta: float) -> Tensor:
    """Cross-entropy of sigma(margin - reference_margin) against sigma(gap / beta), per pair [B].

    gap: Q(s, a+) - Q(s, a-). Least where beta (margin - reference_margin) = gap on every pair, which
    is where pi is proportional to pi_ref exp(Q / beta): the solution of max E[Q] - beta KL(pi || pi_ref)
    (arXiv 2502.10325, eq. (3)). A hard label has no such point; its margin grows with every step.
    """
    target = (gap / beta).sigmoid()
    return binary_cross_entropy_with_logits(margin - reference_margin, target, reduction="none")


@dataclass(frozen=True, kw_only=True)
class PairLogps:
    """What a preference loss reads: [B] each. reference_*: log pi_ref of the two sides (0 where none is
    needed). kl: an estimate of KL(pi || pi_ref), a number without gradient (0 where none is needed)."""

    chosen: Tensor
    rejected: Tensor
    chosen_n: Tensor
    rejected_n: Tensor
    reference_chosen: Tensor
    reference_rejected: Tensor
    kl: float


class PreferenceLoss(Protocol):
    """Pairs become one term each [B]. needs_reference: reads reference_*. needs_kl: reads kl."""

    needs_reference: bool
    needs_kl: bool

    def __call__(self, pairs: PairLogps) -> Tensor: ...


class ZeroReferenceDpo:
    """-log sigma(beta margin), no reference model: Agentic-DPO (arXiv 2607.10601), where the margin is
    (logp+ - logp-) / max(n+, n-)^alpha: length_scale power, beta .008, alpha .5."""

    needs_reference = False
    needs_kl = False

    def __init__(self, *, beta: float, length_scale: LengthScale, alpha: float) -> None:
        _check(beta, "alpha", alpha)
        self.beta, self.length_scale, self.alpha = beta, length_scale, alpha

    def __call__(self, pairs: PairLogps) -> Tensor:
        now = _margin(pairs, pairs.chosen, pairs.rejected, self.length_scale, self.alpha)
        return dpo(now, torch.zeros_like(now), beta=self.beta)


class Dpo:
    """-log sigma(beta (margin - reference margin)): DPO (arXiv 2305.18290, eq. 7) with length_scale sum.
    Step-DPO (arXiv 2406.18629) is the same at a trajectory's first wrong step, ETO (arXiv 2403.02502)
    the same on the summed log-probs of whole trajectories."""

    needs_reference = True
    needs_kl = False

    def __init__(self, *, beta: float, length_scale: LengthScale, alpha: float) -> None:
        _check(beta, "alpha", alpha)
        self.beta, self.length_scale, self.alpha = beta, length_scale, alpha

    def __call__(self, pairs: PairLogps) -> Tensor:
        now = _margin(pairs, pairs.chosen, pairs.rejected, self.length_scale, self.alpha)
        before = _margin(pairs, pairs.reference_chosen, pairs.reference_rejected, self.length_scale, self.alpha)
        return dpo(now, before, beta=self.beta)


class SimPo:
    """-log sigma(beta (logp+ / n+ - logp- / n-) - gamma): SimPO (arXiv 2405.14734, eq. 6). No reference;
    gamma is the margin that the chosen side must be ahead by."""

    needs_reference = False
    needs_kl = False

    def __init__(self, *, beta: float, gamma: float) -> None:
        _check(beta, "gamma", gamma)
        self.beta, self.gamma = beta, gamma

    def __call__(self, pairs: PairLogps) -> Tensor:
        margin = _margin(pairs, pairs.chosen, pairs.rejected, "mean", 0.0)
        return -logsigmoid(self.beta * margin - self.gamma)


class Kto:
    """[w+ (1 - sigma(beta (r+ - z))) + w- (1 - sigma(beta (z - r-)))] / 2 with r = logp - logp_ref: KTO
    (arXiv 2402.01306, eq. 8). Each side is an example of its own, never compared with the other; z is
    the KL estimate, without gradient."""

    needs_reference = True
    needs_kl = True

    def __init__(self, *, beta: float, chosen_weight: float, rejected_weight: float) -> None:
        _check(beta, "chosen_weight", chosen_weight)
        if min(chosen_weight, rejected_weight) < 0.0 or not chosen_weight + rejected_weight > 0.0:
            raise ConfigError(
                f"chosen_weight is {chosen_weight} and rejected_weight {rejected_weight}; "
                "neither may be negative, nor both 0"
            )
        self.beta, self.chosen_weight, self.rejected_weight = beta, chosen_weight, rejected_weight

    def __call__(self, pairs: PairLogps) -> Tensor:
        good = pairs.chosen - pairs.reference_chosen - pairs.kl
        bad = pairs.kl - (pairs.rejected - pairs.reference_rejected)
        terms: Tensor = 0.5 * (
            self.chosen_weight * (1.0 - (self.beta * good).sigmoid())
            + self.rejected_weight * (1.0 - (self.beta * bad).sigmoid())
        )
        return terms


def _margin(pairs: PairLogps, chosen: Tensor, rejected: Tensor, scale: LengthScale, alpha: float) -> Tensor:
    return preference_margin(chosen, rejected, pairs.chosen_n, pairs.rejected_n, scale=scale, alpha=alpha)


def _check(beta: float, key: str, value: float) -> None:
    if not 0.0 < beta < math.inf or not 0.0 <= value < math.inf:
        raise ConfigError(f"beta is {beta}, {key} is {value}; a finite number above 0 and one of 0 or more are needed")

"""Losses on pairs of actions at the same state.

Legend: B pairs; all tensors [B]; + chosen, - rejected; logp the sum of an action's token log-probs,
n its number of tokens, Delta_ref the reference's logp+ - logp- (0: no reference).
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

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

"""The clipped policy-gradient loss of LOOP, at three granularities.

Legend: all tensors [B, T]; w weight (sums to 1 over the whole batch), A advantage, rho the ratio
pi_theta / pi_old, eps the clip. g_eps(A) = A + eps |A| caps the objective for either sign of A.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from agentexp.losses.base import Loss
from agentexp.packing import Batch

RatioLevel = Literal["token", "turn", "trajectory"]
ClipInterval = Literal["one_plus_minus", "reciprocal"]


def log_ratio(logps: Tensor, old_logps: Tensor, mask: Tensor, turn: Tensor, level: RatioLevel) -> Tensor:
    """Log rho for every generated token, 0 elsewhere.

    token: its own. turn: the sum over its turn's tokens (the product of their ratios; described in
    LOOP's text and Fig. 2, no equation printed). trajectory: the sum over all generated tokens of
    the row (eq. 8, 9).
    """
    difference = (logps - old_logps).masked_fill(~mask, 0.0)
    if level == "token":
        return difference
    if level == "trajectory":
        return difference.sum(1, keepdim=True).expand_as(difference).masked_fill(~mask, 0.0)
    index = turn.clamp(min=0)
    sums = torch.zeros(len(turn), int(index.max()) + 1, dtype=difference.dtype, device=difference.device)
    sums = sums.scatter_add(1, index, difference)  # masked tokens add 0 to turn 0
    return sums.gather(1, index).masked_fill(~mask, 0.0)


def clipped_objective(log_rho: Tensor, advantage: Tensor, epsilon: float, interval: ClipInterval) -> Tensor:
    """min(rho A, clip(rho) A)                              LOOP eq. (5), (9), (10)

    one_plus_minus: the paper's [1 - eps, 1 + eps], equal to min(rho A, A + eps |A|).
    reciprocal: the released code's [1 / (1 + eps), 1 + eps].
    """
    rho = log_rho.exp()
    low = 1.0 - epsilon if interval == "one_plus_minus" else 1.0 / (1.0 + epsilon)
    return torch.minimum(rho * advantage, rho.clamp(low, 1.0 + epsilon) * advantage)


class ClippedPolicyLoss:
    """-sum w min(rho A, clip(rho) A), plus kl_coefficient times the k3 estimate of KL(pi || pi_ref).

    Where epsilon is null nothing is clipped (RLOO and REINFORCE, which take one step a batch).
    """

    def __init__(
        self, *, level: RatioLevel, epsilon: float | None, interval: ClipInterval, kl_coefficient: float
    ) -> None:
        if epsilon is not None and not 0.0 <= epsilon < math.inf:
            raise ValueError(f"epsilon is {epsilon}; 0 or more is needed, or null for no clip")
        if not 0.0 <= kl_coefficient < math.inf:
            raise ValueError(f"kl_coefficient is {kl_coefficient}; a finite number of 0 or more is needed")
        self.level, self.epsilon, self.interval, self.kl_coefficient = level, epsilon, interval, kl_coefficient

    def __call__(self, batch: Batch, logps: Tensor) -> Loss:
        w, advantage = batch.weight, batch.advantage
        log_rho = log_ratio(logps, batch.old_logps, batch.mask, batch.turn, self.level)
        rho = log_rho.exp()
        if self.epsilon is None:
            objective, outside = rho * advantage, torch.zeros_like(rho)
        else:
            objective = clipped_objective(log_rho, advantage, self.epsilon, self.interval)
            outside = (objective < rho * advantage).to(w.dtype)  # where the clip took the gradient away
        total = -(w * objective).sum()
        with torch.no_grad():
            token_ratio = (logps - batch.old_logps).masked_fill(~batch.mask, 0.0)
            metrics = {
                "policy_loss": total.detach(),
                "ratio": (w * rho).sum(),
                "clip_fraction": (w * outside).sum(),
                "kl_old": (w * (token_ratio.exp() - 1.0 - token_ratio)).sum(),
            }
        if self.kl_coefficient:
            if batch.reference_logps is None:
                raise ValueError("a KL term needs reference log-probs in the batch")
            kl = (w * k3(logps, batch.reference_logps, batch.mask)).sum()
            total = total + self.kl_coefficient * kl
            metrics["kl_reference"] = kl.detach()
        return Loss(total=total, metrics=metrics)


def k3(logps: Tensor, reference_logps: Tensor, mask: Tensor) -> Tensor:
    """exp(d) - 1 - d with d = log pi_ref - log pi: an estimate of KL(pi || pi_ref) per token that
    is never negative (Schulman's k3, used by GRPO)."""
    d = (reference_logps - logps).masked_fill(~mask, 0.0)
    return d.exp() - 1.0 - d

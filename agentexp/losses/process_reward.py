"""Losses of process reward models (arXiv 2502.10325).

Legend: N scored steps; Q raw scores (before the sigmoid), q targets in [0, 1], w weights that sum to 1
over the whole batch.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid


def soft_bce(q_raw: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """-sum w [q log sigma(Q) + (1 - q) log(1 - sigma(Q))]                 eq. (2), (4)"""
    terms = binary_cross_entropy_with_logits(q_raw, targets.to(q_raw.dtype), reduction="none")
    return (weights * terms).sum()


def bradley_terry(better: Tensor, worse: Tensor, weights: Tensor) -> Tensor:
    """-sum w log sigma(Q(s, a+) - Q(s, a-)): the relative reward model."""
    return -(weights * logsigmoid(better - worse)).sum()


def inverse(delta: Tensor, expert: Tensor, weights: Tensor) -> Tensor:
    """-sum+ w log sigma(Delta) - sum- w log(1 - sigma(Delta))             eq. (11)

    Printed with a plus before the second sum, which would raise the learner's Delta too; the
    released code and this have minus. expert: True on the expert's side.
    """
    signed = delta.where(expert, -delta)  # log(1 - sigma(x)) = log sigma(-x)
    return -(weights * logsigmoid(signed)).sum()

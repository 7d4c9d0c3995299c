"""Losses that imitate. Legend: tensors [B, T]; w weight over the whole batch."""

from __future__ import annotations

from torch import Tensor

from agentexp.losses.base import Loss
from agentexp.packing import Batch


def negative_log_likelihood(batch: Batch, logps: Tensor) -> Loss:
    """-sum w log pi(token). Tokens with weight 0 have exactly no gradient; observation tokens may
    have a weight (a language-model loss beside imitation), so the two parts are told apart."""
    terms = -batch.weight * logps
    acts = terms.masked_fill(~batch.mask, 0.0).sum()
    reads = terms.masked_fill(batch.mask, 0.0).sum()
    return Loss(total=acts + reads, metrics={"nll": acts.detach(), "observation_nll": reads.detach()})

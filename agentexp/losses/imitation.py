"""Losses that imitate. Legend: tensors [B, T], or [P] for picked tokens; w weight over the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

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


class Imitation(Protocol):
    """The term of every imitated token [P], from its log-prob. Weights come from `action_weights`."""

    def __call__(self, logps: Tensor) -> Tensor: ...


class Likelihood:
    """-log pi(token): supervised fine-tuning."""

    def __call__(self, logps: Tensor) -> Tensor:
        return -logps


class Dft:
    """-sg(pi(token)) log pi(token): dynamic fine-tuning (arXiv 2508.05629). Likelihood's gradient is
    1 / pi times that of a reward for the expert's token; the factor, without gradient (sg), takes
    the 1 / pi back, so tokens that the model finds unlikely no longer rule the step."""

    def __call__(self, logps: Tensor) -> Tensor:
        return -logps.detach().exp() * logps


ActionScale = Literal["mean", "token", "sum"]


def action_weights(lengths: Sequence[int], scale: ActionScale) -> list[float]:
    """The weight of each token of every action, over actions of these lengths as one batch.

    mean: every action counts the same, its tokens share that. token: every token counts the same.
    sum: every action counts by the log-prob of the whole of it.

    >>> action_weights([1, 3], "mean"), action_weights([1, 3], "token"), action_weights([1, 3], "sum")
    ([0.5, 0.16666666666666666], [0.25, 0.25], [0.5, 0.5])
    """
    if scale == "mean":
        return [1.0 / (len(lengths) * n) for n in lengths]
    return [1.0 / (sum(lengths) if scale == "token" else len(lengths))] * len(lengths)

"""What a loss is: tensors in, one number and its metrics out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from agentexp.packing import Batch


@dataclass(frozen=True, kw_only=True)
class Loss:
    """total: a scalar that is a sum of weight times term, so parts of a batch add up to the whole.
    metrics: scalars that add up likewise."""

    total: Tensor
    metrics: dict[str, Tensor]


class LossFunction(Protocol):
    """A batch and the model's log-probs become a loss."""

    def __call__(self, batch: Batch, logps: Tensor) -> Loss:
        """Logps [B, T]: the current model's log-probs where batch.weight is not 0."""
        ...

"""From logits to tokens. Legend: R rows, V vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agentexp.errors import RolloutError


def uniforms(seed: int, count: int) -> Any:
    """A seed's first `count` random numbers, by a counter-based generator: the same whatever else is
    in the batch."""
    return np.random.Generator(np.random.Philox(seed)).random(count)


def draw(logits: Tensor, temperatures: Sequence[float], numbers: Any) -> tuple[list[int], list[float]]:
    """One token per row of logits [R, V] by inverse transform from each row's own random number (None
    where all are greedy), and its log-prob at its temperature. Temperature 0 is greedy."""
    greedy = torch.tensor([t == 0.0 for t in temperatures], device=logits.device)
    scale = torch.tensor([t or 1.0 for t in temperatures], device=logits.device)
    logps = (logits.float() / scale[:, None]).log_softmax(-1)
    tokens = logps.argmax(-1)
    if numbers is not None:
        cumulative = logps.exp().cumsum(-1)
        u = torch.from_numpy(numbers).to(logits.device, torch.float32)[:, None] * cumulative[:, -1:]
        drawn = (cumulative <= u).sum(-1).clamp(max=logps.shape[-1] - 1)
        tokens = torch.where(greedy, tokens, drawn)
    chosen = logps.gather(1, tokens[:, None])[:, 0]
    if bool(chosen.isnan().any()):
        raise RolloutError(
            "the model's probabilities are not numbers: its weights diverged. Lower the learning rate "
            "(algorithm.learner.lr) and start again under another name"
        )
    return tokens.tolist(), chosen.tolist()

"""Log-probabilities of given tokens without ever holding the logits of the whole batch.

Legend: B rows, T tokens, H hidden size, V vocabulary, P picked positions, C a chunk of them.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from agentexp.learning.model import Model

CHUNK = 1024  # positions whose logits exist at one time


def cache_keyword(network: nn.Module) -> str:
    """Transformers renamed `past_key_values` to `cache` in 5.24; both are met."""
    return "cache" if "cache" in inspect.signature(network.forward).parameters else "past_key_values"


def hidden_states(model: Model, ids: Tensor, **kwargs: Any) -> Tensor:
    """Ids [B, T] -> hidden states [B, T, H]."""
    out = model.decoder(input_ids=ids, **kwargs)
    states: Tensor = out.last_hidden_state
    return states


def _chunk_logps(
    states_CH: Tensor, ids_C: Tensor, weight_VH: Tensor, bias_V: Tensor | None, temperature: float
) -> Tensor:
    logits_CV = nn.functional.linear(states_CH, weight_VH, bias_V).float()
    if temperature != 1.0:
        logits_CV = logits_CV / temperature
    return -nn.functional.cross_entropy(logits_CV, ids_C, reduction="none")


def picked_logps(model: Model, states_PH: Tensor, ids_P: Tensor, temperature: float) -> Tensor:
    """Log p(ids_P) [P], from the hidden states that predict them, in chunks whose logits are
    made again in the backward pass instead of being kept."""
    head = model.head
    parts = []
    for at in range(0, len(ids_P), CHUNK):
        states, ids = states_PH[at : at + CHUNK], ids_P[at : at + CHUNK]
        if torch.is_grad_enabled():
            part = checkpoint(_chunk_logps, states, ids, head.weight, head.bias, temperature, use_reentrant=False)
        else:
            part = _chunk_logps(states, ids, head.weight, head.bias, temperature)
        parts.append(part)
    return torch.cat(parts) if parts else states_PH.new_zeros(0, dtype=torch.float32)


def token_logps(model: Model, ids: Tensor, wanted: Tensor, temperature: float) -> Tensor:
    """Logps [B, T]: log p(ids[b, t] | ids[b, :t]) where `wanted` [B, T] is True, 0 elsewhere.

    Rows are padded on the right, so a causal network needs no padding mask. Position 0 is never
    predicted and must not be wanted.
    """
    if bool(wanted[:, 0].any()):
        raise ValueError("token 0 of a row is wanted, but nothing precedes it")
    states = hidden_states(model, ids, use_cache=False)
    rows, columns = wanted.nonzero(as_tuple=True)
    logps_P = picked_logps(model, states[rows, columns - 1], ids[rows, columns], temperature)
    empty = torch.zeros(ids.shape, dtype=logps_P.dtype, device=ids.device)
    return empty.index_put((rows, columns), logps_P)

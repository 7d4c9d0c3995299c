"""Trees as tensors: a trunk once, its branches behind it, each attending only to what it would have
followed. So alternatives at many states of one episode cost one pass over its history.

Legend: B rows, T tokens of the longest row, N branches of all rows, P picked positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from agentexp.learning.logps import picked_logps
from agentexp.learning.model import Model
from agentexp.types import Tree


@dataclass(frozen=True, kw_only=True)
class TreeBatch:
    """Trees side by side, padded on the right.

    ids, positions, parent: [B, T]; parent is the column of the token that precedes (-1: none, and for
    padding). attention: [B, 1, T, T], 0 where a query sees a key and minus infinity elsewhere; None
    where no row branches, then attention is plainly causal. branches: (row, first column, end
    column) of every branch, row by row.
    """

    ids: Tensor
    positions: Tensor
    parent: Tensor
    attention: Tensor | None
    branches: tuple[tuple[int, int, int], ...]


def tree_size(tree: Tree) -> int:
    """Tokens of a tree's row."""
    return len(tree.trunk.ids) + sum(len(b.ids) for b in tree.branches)


def lay(trees: Sequence[Tree], *, dtype: torch.dtype, device: torch.device) -> TreeBatch:
    """Lay trees side by side; `dtype` is the attention mask's, that of the model."""
    width = max(map(tree_size, trees))
    ids = torch.zeros(len(trees), width, dtype=torch.long)
    positions = torch.zeros(len(trees), width, dtype=torch.long)
    parent = torch.full((len(trees), width), -1, dtype=torch.long)
    branching = any(t.branches for t in trees)
    seen = torch.ones(width, width, dtype=torch.bool).tril().repeat(len(trees), 1, 1) if branching else None
    found: list[tuple[int, int, int]] = []
    for row, tree in enumerate(trees):
        trunk = len(tree.trunk.ids)
        ids[row, :trunk] = torch.tensor(tree.trunk.ids)
        positions[row, :trunk] = torch.arange(trunk)
        parent[row, 1:trunk] = torch.arange(trunk - 1)
        at = trunk
        for branch in tree.branches:
            end = at + len(branch.ids)
            ids[row, at:end] = torch.tensor(branch.ids)
            positions[row, at:end] = branch.at + torch.arange(end - at)
            parent[row, at] = branch.at - 1
            parent[row, at + 1 : end] = torch.arange(at, end - 1)
            if seen is not None:
                seen[row, at:end, branch.at : at] = False  # neither the trunk's later tokens nor other branches
            found.append((row, at, end))
            at = end
    attention = None
    if seen is not None:
        attention = torch.full(seen.shape, float("-inf"), dtype=dtype).masked_fill_(seen, 0.0)[:, None].to(device)
    return TreeBatch(
        ids=ids.to(device),
        positions=positions.to(device),
        parent=parent.to(device),
        attention=attention,
        branches=tuple(found),
    )


def tree_states(decoder: torch.nn.Module, batch: TreeBatch) -> Tensor:
    """Hidden states [B, T, H] of every token, each with only its own past in view."""
    out = decoder(input_ids=batch.ids, attention_mask=batch.attention, position_ids=batch.positions, use_cache=False)
    states: Tensor = out.last_hidden_state
    return states


def branch_logps(model: Model, batch: TreeBatch, temperature: float) -> Tensor:
    """The summed log-prob of each branch's ids [N], given what it follows. Differentiable; only the
    branches' own logits are computed."""
    if not batch.branches:
        return torch.zeros(0, device=batch.ids.device)
    logps_P, owner_P = branch_token_logps(model, batch, temperature)
    sums_N = torch.zeros(len(batch.branches), dtype=logps_P.dtype, device=batch.ids.device)
    return sums_N.index_add(0, owner_P, logps_P)


def branch_token_logps(model: Model, batch: TreeBatch, temperature: float) -> tuple[Tensor, Tensor]:
    """The log-prob of every token of every branch [P], branch by branch, and which branch it is of [P]."""
    states = tree_states(model.decoder, batch)
    device = batch.ids.device
    rows = torch.tensor([row for row, at, end in batch.branches for _ in range(at, end)], device=device)
    columns = torch.tensor([k for _, at, end in batch.branches for k in range(at, end)], device=device)
    owner = torch.tensor([n for n, (_, at, end) in enumerate(batch.branches) for _ in range(at, end)], device=device)
    logps_P = picked_logps(model, states[rows, batch.parent[rows, columns]], batch.ids[rows, columns], temperature)
    return logps_P, owner

"""Branches behind a trunk against plain rows."""

from __future__ import annotations

import pytest
import torch

from agentexp.learning.logps import token_logps
from agentexp.learning.model import Model
from agentexp.learning.trees import branch_logps, lay, tree_size
from agentexp.types import Branch, Tree, Trunk

TREES = [
    Tree(
        trunk=Trunk(ids=(5, 6, 7, 8, 9, 10), decisions=(), origin="a"),
        branches=(Branch(at=2, ids=(11, 12)), Branch(at=2, ids=(13,)), Branch(at=6, ids=(14, 15, 16))),
    ),
    Tree(trunk=Trunk(ids=(20, 21, 22), decisions=(), origin="b"), branches=(Branch(at=3, ids=(23, 1)),)),
    Tree(trunk=Trunk(ids=(30,), decisions=(), origin="c")),
]


def plain(model: Model, tree: Tree, branch: Branch) -> torch.Tensor:
    row = torch.tensor([[*tree.trunk.ids[: branch.at], *branch.ids]])
    wanted = torch.zeros_like(row, dtype=torch.bool)
    wanted[0, branch.at :] = True
    return token_logps(model, row, wanted, 0.7).sum()


def all_plain(model: Model) -> torch.Tensor:
    return torch.stack([plain(model, t, b) for t in TREES for b in t.branches])


def laid(trees: list[Tree]):  # type: ignore[no-untyped-def]
    return lay(trees, dtype=torch.float32, device=torch.device("cpu"))


def test_log_probs_and_gradients_equal_those_of_plain_rows(model: Model) -> None:
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0])
    (branch_logps(model, laid(TREES), 0.7) @ weights).backward()
    ours = {n: p.grad.clone() for n, p in model.trainable().items() if p.grad is not None}
    assert torch.allclose(branch_logps(model, laid(TREES), 0.7), all_plain(model), atol=1e-5)
    model.network.zero_grad()
    (all_plain(model) @ weights).backward()
    for name, p in model.trainable().items():
        assert p.grad is not None
        assert torch.allclose(ours[name], p.grad, atol=1e-5), name


def test_plain_causal_attention_would_be_seen(model: Model) -> None:
    """Negative control."""
    batch = laid(TREES)
    causal = type(batch)(
        ids=batch.ids, positions=batch.positions, parent=batch.parent, attention=None, branches=batch.branches
    )
    with torch.no_grad():
        assert not torch.allclose(branch_logps(model, causal, 0.7), all_plain(model), atol=1e-2)


def test_layout_by_hand() -> None:
    batch = laid(TREES[:1])
    assert tree_size(TREES[0]) == 12
    assert batch.positions[0].tolist() == [0, 1, 2, 3, 4, 5, 2, 3, 2, 6, 7, 8]
    assert batch.parent[0].tolist() == [-1, 0, 1, 2, 3, 4, 1, 6, 1, 5, 9, 10]
    assert batch.branches == ((0, 6, 8), (0, 8, 9), (0, 9, 12))
    assert batch.attention is not None
    seen = batch.attention[0, 0, 7] == 0.0
    assert seen.nonzero()[:, 0].tolist() == [0, 1, 6, 7]


def test_without_branches_attention_is_plainly_causal() -> None:
    assert laid(TREES[2:]).attention is None


@pytest.mark.parametrize("branch", [Branch(at=0, ids=(1,)), Branch(at=4, ids=(1,)), Branch(at=1, ids=())])
def test_a_branch_stands_on_its_trunk(branch: Branch) -> None:
    with pytest.raises(ValueError, match="branch"):
        Tree(trunk=TREES[1].trunk, branches=(branch,))

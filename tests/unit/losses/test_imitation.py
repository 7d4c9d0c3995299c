"""Imitation: the likelihood, DFT's weight, and what an action counts for."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentexp.losses.imitation import Dft, Likelihood, action_weights, negative_log_likelihood
from agentexp.packing import Row, collate
from agentexp.types import Sample


def gradient(loss: Likelihood | Dft, logps: list[float]) -> list[float]:
    x = torch.tensor(logps, dtype=torch.float64, requires_grad=True)
    loss(x).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    found: list[float] = x.grad.tolist()
    return found


def test_golden() -> None:
    """pi = .5 and .25: -log pi = .693, 1.386; times pi: .3466, .3466."""
    logps = torch.tensor([math.log(0.5), math.log(0.25)])
    assert Likelihood()(logps).tolist() == pytest.approx([math.log(2), math.log(4)])
    assert Dft()(logps).tolist() == pytest.approx([0.5 * math.log(2), 0.25 * math.log(4)])


def test_dft_s_gradient_is_the_likelihood_s_times_pi() -> None:
    """The factor has no gradient of its own: d/dx of -sg(e^x) x is -e^x, not -e^x (1 + x)."""
    logps = [math.log(0.5), math.log(0.1)]
    assert gradient(Likelihood(), logps) == [-1.0, -1.0]
    assert gradient(Dft(), logps) == pytest.approx([-0.5, -0.1])
    with_gradient = [-math.exp(x) * (1 + x) for x in logps]  # negative control
    assert gradient(Dft(), logps) != pytest.approx(with_gradient)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_weights_of_a_batch_add_up(lengths: list[int]) -> None:
    for scale, total in (("mean", 1.0), ("token", 1.0), ("sum", sum(lengths) / len(lengths))):
        weights = action_weights(lengths, scale)  # type: ignore[arg-type]
        assert sum(w * n for w, n in zip(weights, lengths, strict=True)) == pytest.approx(total)
    assert len(set(action_weights(lengths, "token"))) == 1


def test_the_scales_differ_where_lengths_do() -> None:
    """Negative control of the property above: actions of 1 and 3 tokens."""
    assert action_weights([1, 3], "mean") == pytest.approx([1 / 2, 1 / 6])
    assert action_weights([1, 3], "token") == pytest.approx([1 / 4, 1 / 4])
    assert action_weights([1, 3], "sum") == pytest.approx([1 / 2, 1 / 2])


def test_masked_tokens_have_exactly_no_gradient() -> None:
    sample = Sample(
        ids=(5, 6, 7, 8), mask=(False, False, True, True), turn=(-1, -1, 0, 0), old_logps=(0.0,) * 4,
        advantage=(0.0,) * 4, origin="s",
    )  # fmt: skip
    batch = collate([Row(sample=sample, weight=(0.0, 0.0, 0.5, 0.5))])
    logps = torch.full((1, 4), -2.0, requires_grad=True)
    negative_log_likelihood(batch, logps).total.backward()  # type: ignore[no-untyped-call]
    assert logps.grad is not None
    assert logps.grad.tolist() == [[0.0, 0.0, -0.5, -0.5]]

"""Losses of process reward models: golden values, and the sign that the paper misprints."""

from __future__ import annotations

import math

import pytest
import torch

from agentexp.losses.process_reward import bradley_terry, inverse, soft_bce

HALF = torch.tensor([0.5, 0.5])


def test_soft_bce_golden() -> None:
    # Q = sigma(0) = .5 whatever the target: log 2. Q = sigma(log 3) = .75, q = .25: -.25 log .75 - .75 log .25 = 1.1117
    got = soft_bce(torch.tensor([0.0, math.log(3.0)]), torch.tensor([0.9, 0.25]), HALF)
    assert got.item() == pytest.approx((math.log(2.0) - 0.25 * math.log(0.75) - 0.75 * math.log(0.25)) / 2, abs=1e-6)


def test_soft_bce_is_least_where_q_is_the_target() -> None:
    raw = torch.tensor([0.3, -0.2], requires_grad=True)
    soft_bce(raw, raw.detach().sigmoid(), HALF).backward()
    assert raw.grad is not None
    assert raw.grad.abs().max() < 1e-7


def test_bradley_terry_golden() -> None:
    # -log sigma(1) = .31326, -log sigma(-1) = 1.31326
    got = bradley_terry(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), HALF)
    assert got.item() == pytest.approx((0.31326 + 1.31326) / 2, abs=1e-5)


def test_inverse_golden_and_its_direction() -> None:
    # expert: -log sigma(2) = .12693; learner: -log(1 - sigma(-1)) = -log sigma(1) = .31326
    delta = torch.tensor([2.0, -1.0], requires_grad=True)
    got = inverse(delta, torch.tensor([True, False]), HALF)
    assert got.item() == pytest.approx((0.12693 + 0.31326) / 2, abs=1e-5)
    got.backward()
    assert delta.grad is not None
    assert delta.grad[0] < 0 < delta.grad[1]  # descent raises the expert's Delta and lowers the learner's


def test_the_printed_sign_would_raise_the_learners_too() -> None:
    """Negative control: eq. (11) as printed, -E+ log sigma(D) + E- log(1 - sigma(D))."""
    delta = torch.tensor([0.0, 0.0], requires_grad=True)
    printed = -(0.5 * delta[0].sigmoid().log()) + 0.5 * (1.0 - delta[1].sigmoid()).log()
    printed.backward()
    assert delta.grad is not None
    assert delta.grad[1] < 0  # the wrong way

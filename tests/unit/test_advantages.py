"""Leave-one-out against an O(K^2) loop; groups that are flat, small or broken."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.advantages import advantages, group_mean, leave_one_out, returns_to_go

REWARDS = st.lists(st.integers(-1000, 1000).map(lambda n: n / 100), min_size=2, max_size=9)


def test_leave_one_out_golden() -> None:
    # others of 1 are (0, 0, 0.5): 1 - 1/6; of 0: (1, 0, .5): -0.5; of .5: (1, 0, 0): .5 - 1/3
    assert leave_one_out([1.0, 0.0, 0.0, 0.5]) == pytest.approx([5 / 6, -0.5, -0.5, 1 / 6])


@given(REWARDS)
def test_leave_one_out_equals_the_slow_loop(rewards: list[float]) -> None:
    slow = []
    for k, r in enumerate(rewards):
        others = [x for j, x in enumerate(rewards) if j != k]
        slow.append(r - sum(others) / len(others))
    assert leave_one_out(rewards) == pytest.approx(slow, abs=1e-9)


@given(REWARDS)
def test_advantages_sum_to_zero(rewards: list[float]) -> None:
    for estimator in ("leave_one_out", "group_mean", "group_normalised", "leave_one_out_normalised"):
        assert math.fsum(advantages(rewards, estimator)) == pytest.approx(0.0, abs=1e-9)


@given(REWARDS)
def test_both_printed_forms_of_eq_3_agree(rewards: list[float]) -> None:
    k = len(rewards)
    assert leave_one_out(rewards) == pytest.approx([k / (k - 1) * a for a in group_mean(rewards)], abs=1e-9)


def test_group_normalised_golden() -> None:
    # mean 1/2, population deviation 1/2
    assert advantages([1.0, 1.0, 0.0, 0.0], "group_normalised") == pytest.approx([1, 1, -1, -1])


@pytest.mark.parametrize("estimator", ["leave_one_out", "leave_one_out_normalised", "group_normalised", "group_mean"])
def test_flat_group_is_exactly_zero(estimator: str) -> None:
    assert advantages([0.1] * 4, estimator) == [0.0] * 4  # type: ignore[arg-type]


def test_three_left_of_a_broken_group() -> None:
    assert advantages([1.0, 0.0, 0.0], "leave_one_out") == [1.0, -0.5, -0.5]


@pytest.mark.parametrize("rewards", [[1.0], []])
def test_too_small_a_group_is_refused(rewards: list[float]) -> None:
    with pytest.raises(ValueError, match="at least 2"):
        advantages(rewards, "leave_one_out")


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        advantages([1.0, math.nan], "leave_one_out")


def test_reinforce_is_the_reward_itself() -> None:
    assert advantages([0.25], "none") == [0.25]


def test_process_targets_are_the_return_to_go() -> None:
    # T = 10, gamma .95, reward 1 at the end: the first target is .95^9 = .6302, the last 1
    targets = returns_to_go([0.0] * 9 + [1.0], 0.95)
    assert targets[0] == pytest.approx(0.95**9)
    assert round(targets[0], 4) == 0.6302
    assert targets[-1] == 1.0
    assert targets == sorted(targets)  # discounting from the start would make them fall

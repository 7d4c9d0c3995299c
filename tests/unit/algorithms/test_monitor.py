"""When reward and truth part, and what is kept (arXiv 2502.10325, Fig. 3)."""

from __future__ import annotations

import pytest

from agentexp.algorithms.monitor import Look, parted


def look(rounds: int, success: float, reward: float) -> Look:
    return Look(rounds=rounds, success=success, games=100, process_reward=reward, kl=0.0)


HACKED = [look(0, 0.6, 0.5), look(10, 0.82, 0.6), look(20, 0.8, 0.7), look(30, 0.7, 0.8)]  # the shape of Fig. 3


def test_reward_up_success_down_is_parted_from_the_best_on() -> None:
    found = parted(HACKED, tolerance=0.05)
    assert found is not None
    assert found.rounds == 10


@pytest.mark.parametrize(
    "looks",
    [
        [look(0, 0.6, 0.5), look(10, 0.7, 0.6), look(20, 0.8, 0.7)],  # both rise
        [look(0, 0.6, 0.5), look(10, 0.4, 0.3)],  # both fall: training fails, but the reward model says so too
        HACKED[:3],  # within the tolerance
        [look(0, 0.6, 0.5)],
        [],
    ],
)
def test_otherwise_they_have_not_parted(looks: list[Look]) -> None:
    assert parted(looks, tolerance=0.05) is None


def test_the_first_of_equal_bests_counts() -> None:
    looks = [look(0, 0.8, 0.5), look(10, 0.8, 0.6), look(20, 0.5, 0.9)]
    found = parted(looks, tolerance=0.0)
    assert found is not None
    assert found.rounds == 0

"""Intervals: golden values with their arithmetic, properties, and a bootstrap that must widen."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.stats import Estimate, bootstrap, intervals_apart, pass_hat_k, wilson


def test_wilson_8_of_10() -> None:
    # z² = 3.841459, z²/n = .3841459, p = .8
    # middle = (.8 + .1920729) / 1.3841459 = .7167401
    # half   = 1.959964 · sqrt(.8·.2/10 + 3.841459/400) / 1.3841459 = 1.959964 · .1600114 / 1.3841459 = .2265773
    e = wilson(8, 10)
    assert (e.low, e.high) == pytest.approx((0.4901628, 0.9433174), abs=2e-6)
    assert (e.value, e.n, e.method) == (0.8, 10, "wilson")


def test_wilson_none_of_10() -> None:
    # p = 0: low = 0, high = (z²/n) / (1 + z²/n) = .3841459 / 1.3841459 = .2775328
    e = wilson(0, 10)
    assert e.low == 0.0
    assert e.high == pytest.approx(0.2775328, abs=1e-6)


@given(st.integers(1, 3000), st.data())
def test_wilson_stays_in_the_unit_interval_and_is_symmetric(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    e, mirrored = wilson(c, n), wilson(n - c, n)
    assert 0 <= e.low <= e.value <= e.high <= 1
    assert e.high > e.low
    assert e.low == pytest.approx(1 - mirrored.high, abs=1e-9)


def test_wilson_covers_about_95_percent() -> None:
    rng = random.Random(0)
    covered = sum(
        e.low <= 0.3 <= e.high for e in (wilson(sum(rng.random() < 0.3 for _ in range(100)), 100) for _ in range(2000))
    )
    assert 0.93 < covered / 2000 < 0.97


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_impossible_counts(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="needs n >= 1"):
        wilson(successes, n)


def test_bootstrap_against_all_resamples_of_three_clusters() -> None:
    # clusters a = [1, 1], b = [0], c = [0, 1]: 27 draws with replacement, enumerated. Their means are
    # 0, 1/4 and so on; the 2.5 % and 97.5 % points of the exact distribution lie at 0 (P(bbb) = 1/27 = 3.7 %)
    # and 1 (P(aaa) = 3.7 %).
    values, clusters = [1.0, 1.0, 0.0, 0.0, 1.0], ["a", "a", "b", "c", "c"]
    e = bootstrap(values, clusters=clusters, seed=1)
    assert (e.value, e.low, e.high, e.n) == (0.6, 0.0, 1.0, 5)
    sums, sizes = [2, 0, 1], [2, 1, 2]
    exact = [sum(sums[i] for i in d) / sum(sizes[i] for i in d) for d in itertools.product(range(3), repeat=3)]
    assert (min(exact), max(exact)) == (0.0, 1.0)


def test_bootstrap_is_wider_where_trials_of_a_task_agree() -> None:
    wins = [float(i % 2) for i in range(40)]
    alone = bootstrap(wins, clusters=list(range(40)), seed=0)
    # the same 40 answers, each given four times: four times the values, not four times the knowledge
    fourfold = bootstrap(wins * 4, clusters=list(range(40)) * 4, seed=0)
    assert (fourfold.low, fourfold.high) == pytest.approx((alone.low, alone.high))
    # negative control: pretending that all 160 are independent halves the interval
    wrong = bootstrap(wins * 4, clusters=list(range(160)), seed=0)
    assert wrong.high - wrong.low < 0.6 * (fourfold.high - fourfold.low)


def test_bootstrap_agrees_with_wilson_where_both_apply() -> None:
    wins = [1.0] * 60 + [0.0] * 140
    e, w = bootstrap(wins, clusters=list(range(200)), seed=3), wilson(60, 200)
    assert (e.low, e.high) == pytest.approx((w.low, w.high), abs=0.015)


@pytest.mark.parametrize("win", [0.0, 1.0])
def test_bootstrap_does_not_claim_certainty_without_spread(win: float) -> None:
    e = bootstrap([win] * 30, clusters=[i // 3 for i in range(30)], seed=0)
    assert e.method == "wilson over clusters"
    assert (e.low, e.high) == (wilson(10 * win, 10).low, wilson(10 * win, 10).high)
    assert e.n == 30


def test_bootstrap_same_seed_same_interval() -> None:
    wins = [float(i % 3 == 0) for i in range(50)]
    assert bootstrap(wins, clusters=list(range(50)), seed=4) == bootstrap(wins, clusters=list(range(50)), seed=4)


def _estimate(low: float, high: float) -> Estimate:
    return Estimate(value=(low + high) / 2, low=low, high=high, n=1, method="test")


def test_intervals_apart_touching_is_not_apart() -> None:
    assert intervals_apart(_estimate(0.1, 0.2), _estimate(0.3, 0.4))
    assert intervals_apart(_estimate(0.3, 0.4), _estimate(0.1, 0.2))
    assert not intervals_apart(_estimate(0.1, 0.3), _estimate(0.3, 0.4))
    assert not intervals_apart(_estimate(0.1, 0.9), _estimate(0.3, 0.4))


def test_pass_hat_k_counts_subsets() -> None:
    # 3 successes in 4 trials: of the 6 pairs, 3 are both successes; of the 4 triples, 1
    assert pass_hat_k(3, 4, 1) == 0.75
    assert pass_hat_k(3, 4, 2) == 0.5
    assert pass_hat_k(3, 4, 3) == 0.25
    assert pass_hat_k(3, 4, 4) == 0.0
    with pytest.raises(ValueError, match="1 <= k <= trials"):
        pass_hat_k(1, 2, 3)


def test_estimate_refuses_a_value_outside_its_interval() -> None:
    with pytest.raises(ValueError, match="outside its interval"):
        Estimate(value=0.5, low=0.6, high=0.7, n=3, method="test")

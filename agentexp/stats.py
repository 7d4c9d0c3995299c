"""Numbers with their uncertainty: intervals of success rates. Knows no task, no trajectory.

Legend: n observations, c successes, p = c/n, z = 1.96 (the 97.5 % point of the normal), G clusters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

Z95 = 1.959963984540054
RESAMPLES = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A mean with its 95 % interval. `n` is the number of observations, failures included.

    >>> str(Estimate(value=0.5, low=0.4, high=0.6, n=100, method="wilson"))
    '.500 [.400, .600]'
    """

    value: float
    low: float
    high: float
    n: int
    method: str

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"Estimate {self.value} lies outside its interval [{self.low}, {self.high}]")

    def __str__(self) -> str:
        return f"{short(self.value)} [{short(self.low)}, {short(self.high)}]"

    def to_json(self) -> dict[str, float | int | str]:
        """value, low, high, n, method."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n, "method": self.method}


def short(value: float) -> str:
    """Three decimals without the leading zero.

    >>> short(0.42), short(1.0), short(-0.25)
    ('.420', '1.000', '-.250')
    """
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 0.9995 else f"{value:.3f}"


def wilson(successes: float, n: int) -> Estimate:
    """Wilson's score interval of a proportion (Wilson 1927, eq. 3), for independent trials.

    (p + z²/2n ± z·sqrt(p(1−p)/n + z²/4n²)) / (1 + z²/n). Never leaves [0, 1], never has width 0.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"wilson: {successes} successes of {n}; needs n >= 1 and 0 <= successes <= n")
    p = successes / n
    z2_n = Z95 * Z95 / n
    middle = (p + z2_n / 2) / (1 + z2_n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2_n / (4 * n)) / (1 + z2_n)
    # p itself lies inside; min and max only undo rounding at p = 0 and p = 1
    return Estimate(
        value=p, low=min(max(0.0, middle - half), p), high=max(min(1.0, middle + half), p), n=n, method="wilson"
    )


def bootstrap(values: Sequence[float], *, clusters: Sequence[Hashable], seed: int) -> Estimate:
    """Percentile bootstrap of the mean over whole clusters (Davison & Hinkley 1997, §3.8).

    Clusters are drawn with replacement; a draw's mean weighs every value alike, as the estimate
    does. Where all clusters have the same mean, resampling cannot see any spread and would claim
    certainty: for values in [0, 1] Wilson's interval with n = number of clusters is given instead,
    and "wilson over clusters" says so.
    """
    if not values or len(values) != len(clusters):
        raise ValueError(f"bootstrap: {len(values)} values and {len(clusters)} cluster names; needs equally many, >= 1")
    sums: dict[Hashable, float] = {}
    sizes: dict[Hashable, int] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value
        sizes[cluster] = sizes.get(cluster, 0) + 1
    sum_G = np.array(list(sums.values()))
    size_G = np.array(list(sizes.values()))
    mean = math.fsum(values) / len(values)
    if np.ptp(sum_G / size_G) < 1e-12:
        return _without_spread(mean, n=len(values), clusters=len(sums), bounded=all(0 <= v <= 1 for v in values))
    rng = np.random.default_rng(seed)
    means = np.empty(RESAMPLES)
    rows = max(1, 2_000_000 // len(sums))  # bounds the memory of one block of draws
    for start in range(0, RESAMPLES, rows):
        draws_RG = rng.integers(0, len(sums), (min(rows, RESAMPLES - start), len(sums)))
        means[start : start + len(draws_RG)] = sum_G[draws_RG].sum(1) / size_G[draws_RG].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(
        value=mean, low=min(float(low), mean), high=max(float(high), mean), n=len(values), method="cluster bootstrap"
    )


def _without_spread(mean: float, *, n: int, clusters: int, bounded: bool) -> Estimate:
    if not bounded:
        return Estimate(value=mean, low=-math.inf, high=math.inf, n=n, method="no spread seen")
    interval = wilson(mean * clusters, clusters)
    return Estimate(
        value=mean, low=min(interval.low, mean), high=max(interval.high, mean), n=n, method="wilson over clusters"
    )


def intervals_apart(a: Estimate, b: Estimate) -> bool:
    """Whether two intervals have no point in common. Touching is not apart."""
    return a.high < b.low or b.high < a.low


def pass_hat_k(successes: int, trials: int, k: int) -> float:
    """pass^k of one task: the chance that k trials all succeed (τ-bench, Yao et al. 2024, §4):
    C(c, k) / C(n, k), unbiased over the choice of k of the n trials.

    >>> pass_hat_k(3, 4, 2)
    0.5
    """
    if not 1 <= k <= trials or not 0 <= successes <= trials:
        raise ValueError(f"pass^{k} of {successes} successes in {trials} trials: needs 1 <= k <= trials")
    return math.comb(successes, k) / math.comb(trials, k)

"""From the rewards of one group to one advantage per member.

Legend: r_k the reward of rollout k, K how many were collected and scored (never the nominal K).
Python floats only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

Estimator = Literal["leave_one_out", "leave_one_out_normalised", "group_normalised", "group_mean", "none"]


def leave_one_out(rewards: Sequence[float]) -> list[float]:
    """A_k = r_k - mean of the other K-1 rewards            LOOP eq. (3), second form

    >>> leave_one_out([1.0, 0.0, 0.0])
    [1.0, -0.5, -0.5]
    """
    total, others = math.fsum(rewards), len(rewards) - 1
    return [r - (total - r) / others for r in rewards]


def group_mean(rewards: Sequence[float]) -> list[float]:
    """A_k = r_k - mean of all K rewards (Dr. GRPO: no division by the deviation)."""
    mean = math.fsum(rewards) / len(rewards)
    return [r - mean for r in rewards]


def returns_to_go(rewards: Sequence[float], gamma: float) -> list[float]:
    """G_t = r_t + gamma r_{t+1} + ... : the discounted return from step t on     AgentPRM eq. (1)

    The released code discounts from the start (gamma^t) instead; the paper's equation does not.

    >>> [round(g, 4) for g in returns_to_go([0.0, 0.0, 1.0], 0.95)]
    [0.9025, 0.95, 1.0]
    """
    found: list[float] = []
    ahead = 0.0
    for reward in reversed(rewards):
        ahead = reward + gamma * ahead
        found.append(ahead)
    return found[::-1]


def deviation(rewards: Sequence[float]) -> float:
    """Population standard deviation (ddof 0, as in LOOP's released code)."""
    return math.sqrt(math.fsum(a * a for a in group_mean(rewards)) / len(rewards))


def advantages(rewards: Sequence[float], estimator: Estimator) -> list[float]:
    """One advantage per reward.

    leave_one_out: LOOP, RLOO (eq. 3). leave_one_out_normalised: LOOP RwNorm, eq. 3 divided by the
    group's deviation. group_normalised: GRPO. group_mean: Dr. GRPO. none: REINFORCE, the reward
    itself. A group whose rewards are all equal gives exact zeros (except "none").
    Raises ValueError for fewer than two rewards (except "none") or a reward that is not finite:
    the caller refuses and counts such groups.
    """
    broken = [r for r in rewards if not math.isfinite(r)]
    if broken:
        raise ValueError(f"rewards {broken} are not finite; exclude and count them before")
    if estimator == "none":
        return list(rewards)
    if len(rewards) < 2:
        raise ValueError(f"a group of {len(rewards)} has no baseline; at least 2 scored rollouts are needed")
    if min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    if estimator == "leave_one_out":
        return leave_one_out(rewards)
    if estimator == "group_mean":
        return group_mean(rewards)
    raw = leave_one_out(rewards) if estimator == "leave_one_out_normalised" else group_mean(rewards)
    spread = max(deviation(rewards), 1e-7)  # the released code's floor
    return [a / spread for a in raw]

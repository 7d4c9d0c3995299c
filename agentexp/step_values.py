"""From played episodes to what each (state, action) was worth: Qhat of AgentPRM, eq. (1) of
arXiv 2502.10325. Standard library only.

Legend: G_t the discounted return to go of step t, T the number of turns, (s, a) a state and the action
taken there.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from agentexp.advantages import returns_to_go
from agentexp.errors import DataError
from agentexp.seeding import seed_for
from agentexp.types import Trajectory

State = Literal["history", "observation"]
Discount = Literal["to_go", "from_start"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepValue:
    """One visit of (s, a): where it happened, its own return, and q, the mean over all `visits`."""

    trajectory: int  # index into the trajectories given
    turn: int
    state: str
    action: str
    return_to_go: float  # in [0, 1]
    q: float  # in [0, 1]
    visits: int


def step_values(
    trajectories: Sequence[Trajectory],
    *,
    gamma: float,
    state: State,
    discount: Discount,
    reward_range: tuple[float, float],
) -> list[StepValue]:
    """Qhat(s, a) = mean over all visits of sum_{k >= t} gamma^(k - t) r_k, mapped to [0, 1]    eq. (1)

    The reward is the episode's outcome, at its last turn. discount "from_start" has the released
    code's direction, gamma^t of the mapped reward, which pays late steps less, not more (the code
    itself discounts a reward of -1 or 1 before it maps it). state: see `state_of`.
    Trajectories without a finite outcome, and moves that nobody chose, give no steps.
    Raises DataError for a reward outside `reward_range`.
    """
    low, high = reward_range
    found: list[tuple[int, int, str, str, float]] = []
    for n, trajectory in enumerate(trajectories):
        outcome = trajectory.outcome
        if outcome is None or not math.isfinite(outcome.reward) or not trajectory.turns:
            continue
        if not low <= outcome.reward <= high:
            raise DataError(
                f"{trajectory.task.id}#{trajectory.sample} has reward {outcome.reward}, outside [{low}, {high}]; set "
                "reward_low and reward_high of the fit to the environment's range"
            )
        share = (outcome.reward - low) / (high - low)
        turns = len(trajectory.turns)
        if discount == "to_go":
            returns = returns_to_go([0.0] * (turns - 1) + [share], gamma)
        else:
            returns = [share * gamma**t for t in range(turns)]
        history = hashlib.sha256(trajectory.task.id.encode())
        for t, turn in enumerate(trajectory.turns):
            history.update(f"|{turn.segment}|{turn.prompt_ids}".encode())
            if turn.deliberate:
                here, action = state_of(trajectory, t, state, history.hexdigest()), action_of(trajectory, t, state)
                found.append((n, t, here, action, returns[t]))
            history.update(f"|{turn.completion.ids}".encode())
    pooled: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for _, _, here, action, value in found:
        pooled[here, action].append(value)
    means = {key: math.fsum(values) / len(values) for key, values in pooled.items()}
    return [
        StepValue(
            trajectory=n,
            turn=t,
            state=here,
            action=action,
            return_to_go=value,
            q=means[here, action],
            visits=len(pooled[here, action]),
        )
        for n, t, here, action, value in found
    ]


def state_of(trajectory: Trajectory, turn: int, state: State, history: str) -> str:
    """The name of the state before a turn. history: everything read and said, token for token (the
    paper's choice; revisits are rare). observation: the task, what was last seen, what is held."""
    if state == "history":
        return history
    acted = [t for t in trajectory.turns[:turn] if not t.action.is_thought]  # a thought changes nothing
    before = acted[-1].step if acted else None
    seen = trajectory.turns[0].messages[-1].content if trajectory.turns[0].messages else ""
    held = before.info.get("inventory", "") if before is not None else ""
    return _hash(trajectory.task.id, before.observation if before is not None else seen, str(held))


def action_of(trajectory: Trajectory, turn: int, state: State) -> str:
    """The name of an action: its ids where the state is token-exact, else its command."""
    taken = trajectory.turns[turn]
    if state == "history":
        return _hash(str(taken.completion.ids))
    return _hash(taken.action.text if taken.action.command is None else taken.action.command)


def preference_pairs(values: Sequence[StepValue], *, min_gap: float) -> list[tuple[StepValue, StepValue]]:
    """(better, worse) for every two actions of one state whose q differ by at least `min_gap` (and
    differ at all): the relative reward model's data. A state left by one action gives none."""
    actions: defaultdict[str, dict[str, StepValue]] = defaultdict(dict)
    for value in values:
        actions[value.state].setdefault(value.action, value)
    found = []
    for taken in actions.values():
        for one, other in combinations(taken.values(), 2):
            better, worse = (one, other) if one.q > other.q else (other, one)
            if better.q > worse.q and better.q - worse.q >= min_gap:
                found.append((better, worse))
    return found


def visit_counts(values: Sequence[StepValue]) -> dict[str, float]:
    """How often states and actions were met again."""
    pairs = {(v.state, v.action): v.visits for v in values}
    if not pairs:
        return {"step_visits": 0.0, "states": 0.0, "state_actions": 0.0}
    return {
        "step_visits": float(len(values)),
        "states": float(len({s for s, _ in pairs})),
        "state_actions": float(len(pairs)),
        "mean_visits": len(values) / len(pairs),
        "max_visits": float(max(pairs.values())),
        "visited_once": sum(v == 1 for v in pairs.values()) / len(pairs),
        "mean_q": math.fsum(v.q for v in values) / len(values),
    }


def held_out(games: Iterable[str], *, fraction: float, seed: int) -> set[str]:
    """The games whose steps are kept for measuring: whole games, so that no state stands on both sides."""
    names = sorted(set(games))
    random.Random(seed_for(seed, "held out games")).shuffle(names)
    return set(names[: round(fraction * len(names))])


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()

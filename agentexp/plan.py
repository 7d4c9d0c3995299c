"""A run as a list of moves, known before it starts: what is done, in which order, saved where. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["warm_start", "algorithm"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One thing a run does. `iteration` counts from 1 within its part (0: before the first);
    `step` counts iterations over both parts.
    """

    kind: Literal["iterate", "before", "curve", "after"]
    part: Part
    iteration: int
    step: int
    save: bool


def plan(
    *, iterations: int, warm_start_iterations: int, evaluate_before: bool, evaluate_every: int, checkpoint_every: int
) -> list[Move]:
    """Every move of a run, in order.

    >>> [f"{m.kind} {m.step}" for m in plan(iterations=2, warm_start_iterations=1, evaluate_before=True,
    ...                                     evaluate_every=1, checkpoint_every=1)]
    ['iterate 1', 'before 1', 'iterate 2', 'curve 2', 'iterate 3', 'after 3']
    """
    moves: list[Move] = []
    for i in range(1, warm_start_iterations + 1):
        save = i % checkpoint_every == 0 or i == warm_start_iterations
        moves.append(Move(kind="iterate", part="warm_start", iteration=i, step=i, save=save))
    if evaluate_before:
        part: Part = "warm_start" if warm_start_iterations else "algorithm"
        moves.append(Move(kind="before", part=part, iteration=0, step=warm_start_iterations, save=True))
    for i in range(1, iterations + 1):
        due = i % checkpoint_every == 0 or i == iterations
        measured = evaluate_every > 0 and i % evaluate_every == 0 and i < iterations
        step = warm_start_iterations + i
        # where a point of the curve follows, the checkpoint waits for it and takes its score along
        moves.append(Move(kind="iterate", part="algorithm", iteration=i, step=step, save=due and not measured))
        if measured:
            moves.append(Move(kind="curve", part="algorithm", iteration=i, step=step, save=due))
    step = warm_start_iterations + iterations
    return [*moves, Move(kind="after", part="algorithm", iteration=iterations, step=step, save=True)]

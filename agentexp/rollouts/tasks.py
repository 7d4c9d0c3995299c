"""Which tasks come next: endless shuffled passes that a resume continues in the same order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from agentexp.errors import ConfigError, DataError
from agentexp.seeding import seed_for
from agentexp.types import Task


class TaskSampler:
    """Hands out tasks in passes; each pass is the whole list in an order of its own.

    The tasks of one `next(n)` differ from each other as long as n does not exceed the list: what a
    call took at the end of a pass stands last in the pass that it begins. Tasks themselves are
    looked up when they are handed out, so a long lazy list stays lazy.
    """

    def __init__(self, *, tasks: Sequence[Task], seed: int) -> None:
        if not len(tasks):
            raise ConfigError("there are no tasks to sample from; choose another split or more games")
        self._tasks = tasks
        self._seed = seed
        self._begin(0, [])

    def next(self, n: int) -> list[Task]:
        """The next n tasks."""
        taken: list[int] = []
        while len(taken) < n:
            if self._at == len(self._order):
                self._begin(self._pass + 1, taken[-len(self._order) :])
            more = self._order[self._at : self._at + n - len(taken)]
            self._at += len(more)
            taken += more
        return [self._tasks[i] for i in taken]

    def check(self, n: int, key: str) -> None:
        """Raise ConfigError if one `next(n)` would hand out a task twice."""
        if n > len(self._tasks):
            raise ConfigError(
                f"{key} is {n}, but there are {len(self._tasks)} tasks; take at most so many, or more rollouts of each"
            )

    def state_dict(self) -> dict[str, Any]:
        """All that the order of coming tasks depends on, beside the list and the seed."""
        return {"pass": self._pass, "at": self._at, "last": list(self._last), "tasks": len(self._tasks)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        if state["tasks"] != len(self._tasks):
            raise DataError(
                f"the checkpoint was made with {state['tasks']} tasks, there are {len(self._tasks)} now; "
                "resume with the same environment and split"
            )
        self._begin(int(state["pass"]), list(state["last"]))
        self._at = int(state["at"])

    def _begin(self, number: int, last: list[int]) -> None:
        order = list(range(len(self._tasks)))
        random.Random(seed_for(self._seed, "pass", number)).shuffle(order)
        late = set(last)
        if late and len(late) < len(order):
            order = [i for i in order if i not in late] + [i for i in order if i in late]
        self._pass, self._at, self._last, self._order = number, 0, last, order

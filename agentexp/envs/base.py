"""What an environment is. Knows tasks, steps and outcomes; no model, no tokenizer, no trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from agentexp.types import Action, Outcome, Step, Task


class Session(Protocol):
    """One episode in an environment, for a single use and a single thread at a time."""

    @property
    def first(self) -> Step:
        """The opening observation."""
        ...

    def step(self, action: Action) -> Step:
        """Answer an action. A parse error is answered with an observation, never an exception.
        Raises RuntimeError after `done`."""
        ...

    def outcome(self) -> Outcome:
        """Score the state as it is now; may be called at any time before close."""
        ...

    def close(self) -> None:
        """Free what the session holds; a second call does nothing."""
        ...


class Environment(Protocol):
    """A family of tasks. `start` with the same task and seed gives the same session."""

    name: str

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split, in a fixed order. Unknown split: ConfigError naming the splits."""
        ...

    def start(self, task: Task, seed: int) -> Session: ...

    def version(self) -> Mapping[str, str]:
        """What a result must record: engine, data, their versions and hashes."""
        ...


@runtime_checkable
class HasFloor(Protocol):
    """An environment where doing nothing is sometimes right. A score is read beside its floor."""

    def floor(self, tasks: Sequence[Task]) -> float | None:
        """The success on these tasks of an agent that changes nothing and says nothing of use; None
        where that is not known."""
        ...


class Expert(Protocol):
    """A demonstrator for one episode: sees what the agent sees (and admissible commands)."""

    def act(self, step: Step) -> tuple[str, bool]:
        """(command, deliberate): deliberate is False for a random move of an imperfect expert."""
        ...


@runtime_checkable
class Teaches(Protocol):
    """An environment that brings its own expert."""

    def expert(self, task: Task, seed: int, noise: float) -> Expert:
        """`noise` is the chance of a random move at each turn (0: as good as the expert is)."""
        ...

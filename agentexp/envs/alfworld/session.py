"""One episode of ALFWorld: an engine, ours or the real one, behind the Session contract."""

from __future__ import annotations

from typing import Protocol

from agentexp.envs.alfworld.engine import REFUSED, Engine
from agentexp.envs.alfworld.expert import Searcher
from agentexp.seeding import seed_for
from agentexp.types import Action, Outcome, Step, Task


class Play(Protocol):
    """What a session needs of an engine, ours or the real one."""

    won: bool

    def reset(self) -> str: ...
    def step(self, command: str) -> tuple[str, int, bool]: ...
    def admissible(self) -> list[str]: ...
    def inventory(self) -> str: ...


class AlfWorldSession:
    """One episode; for the whole contract see `envs.base.Session`."""

    def __init__(self, *, play: Play, admissible: bool) -> None:
        self.play = play
        self._show = admissible
        self._done = False
        self._closed = False
        self._steps = 0
        self._refused = 0
        self._first = self._step(play.reset(), refused=False)

    @property
    def first(self) -> Step:
        """The opening observation: the room, then the task."""
        return self._first

    def step(self, action: Action) -> Step:
        """Play a command; what cannot be read is answered like an unknown command."""
        if self._done or self._closed:
            raise RuntimeError("step() after the episode ended; start a new session")
        self._steps += 1
        if action.command is None:
            self._refused += 1
            return self._step(action.error or REFUSED, refused=True)
        observation, _, self._done = self.play.step(action.command)
        refused = observation == REFUSED
        self._refused += refused
        return self._step(observation, refused=refused)

    def outcome(self) -> Outcome:
        """Reward 1 exactly when the game is won now."""
        won = self.play.won
        return Outcome(
            reward=float(won),
            success=won,
            metrics={"steps": float(self._steps), "refused": float(self._refused)},
        )

    def close(self) -> None:
        """End the session."""
        self._closed = True

    def _step(self, observation: str, *, refused: bool) -> Step:
        info: dict[str, object] = {"inventory": self.play.inventory(), "refused": refused}
        if self._show:
            info["admissible"] = tuple(self.play.admissible())
        return Step(observation=observation, reward=float(self.play.won), done=self._done, info=info)


class ShadowedExpert:
    """The scripted expert for one task. It plays a copy of the game along, to know the admissible
    commands where the agent is not shown them."""

    def __init__(self, *, task: Task, engine: Engine, seed: int, noise: float, explore: float) -> None:
        self._shadow = engine
        own = seed_for("alfworld expert", task.id, seed)  # equal seeds of two tasks make unlike mistakes
        self._searcher = Searcher(instruction=task.instruction, seed=own, noise=noise, explore=explore)

    def act(self, step: Step) -> tuple[str, bool]:
        """(command, deliberate) after an observation."""
        shown = step.info.get("admissible")
        command, deliberate = self._searcher.act(step.observation, shown or self._shadow.admissible())
        self._shadow.step(command)
        return command, deliberate

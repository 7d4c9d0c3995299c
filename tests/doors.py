"""A small environment that tests share; light, since child processes import it too."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Literal

from agentexp.errors import ConfigError
from agentexp.types import Action, Outcome, Step, Task

Fault = Literal["raise", "hang", "spin", "kill", "none"]


class Doors:
    """Behind one of three doors lies a key; which one depends on the task and the seed. Opening
    the right door ends the episode with reward 1.

    fault: what happens at step `fault_step` of the tasks in `faulty` (None: all), while
    `faults_left` is not used up.
    """

    name = "doors"

    def __init__(
        self,
        *,
        games: int = 8,
        fault: Fault = "none",
        fault_step: int = 3,
        faulty: Sequence[str] | None = None,
        faults_left: int = 10**9,
        lucky: bool = True,
    ) -> None:
        self.games, self.fault, self.fault_step, self.lucky = games, fault, fault_step, lucky
        self.faulty, self.faults_left = faulty, faults_left
        self.opened: list[DoorsSession] = []

    def tasks(self, split: str) -> Sequence[Task]:
        if split not in {"train", "valid"}:
            raise ConfigError(f"No split {split!r} of doors; allowed: train, valid")
        return [
            Task(id=f"{split}/{i}", env=self.name, split=split, instruction="find the key", kind="find")
            for i in range(self.games)
        ]

    def start(self, task: Task, seed: int) -> DoorsSession:
        session = DoorsSession(self, task, seed)
        self.opened.append(session)
        return session

    def version(self) -> Mapping[str, str]:
        return {"environment": self.name, "version": "1"}

    def expert(self, task: Task, seed: int, noise: float) -> DoorsExpert:
        return DoorsExpert(seed, noise)

    def strike(self, task: Task, step: int) -> None:
        """Fail, if it is time to."""
        if step != self.fault_step or self.faults_left <= 0 or (self.faulty is not None and task.id not in self.faulty):
            return
        self.faults_left -= 1
        if self.fault == "raise":
            raise OSError("the simulator lost its world")
        if self.fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fault == "hang":
            time.sleep(3600)
        if self.fault == "spin":
            while True:
                pass


class DoorsSession:
    """One episode of doors."""

    def __init__(self, env: Doors, task: Task, seed: int) -> None:
        self.env, self.task = env, task
        self.right = random.Random(f"{task.id} {seed}").randrange(1, 4) if env.lucky else 0
        self.steps = self.closed = 0
        self.done = False
        self.first = self._say(f"You face three doors ({task.id}, {seed % 1000}).")

    def step(self, action: Action) -> Step:
        if self.done or self.closed:
            raise RuntimeError("step() after the episode ended")
        self.steps += 1
        self.env.strike(self.task, self.steps)
        self.done = action.command == f"open door {self.right}"
        if self.done:
            return self._say("The key!", reward=1.0)
        if action.command in self._commands():
            return self._say("A wall.")
        return self._say(action.error or "Nothing happens.", refused=True)

    def outcome(self) -> Outcome:
        return Outcome(reward=float(self.done), success=self.done)

    def close(self) -> None:
        self.closed += 1

    def _commands(self) -> tuple[str, ...]:
        return tuple(f"open door {i}" for i in (1, 2, 3))

    def _say(self, text: str, *, reward: float = 0.0, refused: bool = False) -> Step:
        info = {"admissible": self._commands(), "inventory": "nothing", "refused": refused}
        return Step(observation=text, reward=reward, done=self.done, info=info)


class DoorsExpert:
    """Opens one door after the other; a random move opens door 1."""

    def __init__(self, seed: int, noise: float) -> None:
        self.rng, self.noise, self.tried = random.Random(seed), noise, 0

    def act(self, step: Step) -> tuple[str, bool]:
        if self.rng.random() < self.noise:
            return "open door 1", False
        self.tried += 1
        return f"open door {1 + (self.tried - 1) % 3}", True

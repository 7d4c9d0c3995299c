"""Plays the games of a split and measures success. Trains nothing, stops nothing early."""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentexp.envs.base import Environment, HasFloor
from agentexp.errors import ConfigError, DataError, RolloutError
from agentexp.evaluation.metrics import Evaluated, evaluated
from agentexp.rollouts.collect import Rollouts
from agentexp.seeding import seed_for
from agentexp.types import Task

if TYPE_CHECKING:
    from agentexp.learning.reward_model import RewardModel

Progress = Callable[[str, int, int], None]  # what is being done, how many are done, of how many


class Evaluation:
    """Success on a split, sampled at `temperature` and greedy.

    tasks: how many games of the split (null: all), curve_tasks: how many for a point of the
    learning curve; both take the first of one order that is frozen for the split, whatever the
    seed, so every run and every point plays the same games. trials: episodes a game.
    greedy: whether to measure greedy decoding beside the sampled one. best_of: the n for which best of n
    is measured where a run has a reward model. also: a second evaluation, made on every occasion of
    this one, such as other games; results keep the two apart.
    """

    def __init__(
        self,
        *,
        environment: Environment,
        rollouts: Rollouts,
        seed: int,
        split: str,
        tasks: int | None,
        curve_tasks: int | None,
        trials: int,
        temperature: float,
        greedy: bool,
        best_of: list[int],
        also: Evaluation | None,
    ) -> None:
        if also is not None and also.also is not None:
            raise ConfigError("evaluation.also has an `also` of its own; two evaluations are measured, not more")
        if trials < 1:
            raise ConfigError(f"evaluation.trials is {trials}; at least 1 is needed")
        if not temperature >= 0:
            raise ConfigError(f"evaluation.temperature is {temperature}; 0 (greedy) or more is allowed")
        if len(set(best_of)) < len(best_of) or any(n < 1 for n in best_of):
            raise ConfigError(f"evaluation.best_of is {best_of}; different numbers of 1 or more are needed")
        self.best_of = tuple(best_of)
        self.also: Evaluation | None = also
        self.environment, self.rollouts, self.seed, self.split = environment, rollouts, seed, split
        self.trials, self.temperature = trials, temperature
        self.measure_greedy = greedy and temperature > 0
        self._order = frozen_order(environment.tasks(split), split)
        self.tasks = self._first(tasks, "tasks")
        self.curve_tasks = self._first(curve_tasks, "curve_tasks")
        self._evaluated_ids = {t.id for t in (*self.tasks, *self.curve_tasks)}

    def full(self, progress: Progress) -> dict[str, Evaluated]:
        """All games: "success" as the policy is trained (sampled), and "greedy" if asked for."""
        found = {"success": self.measure(self.tasks, self.temperature, progress)}
        if self.measure_greedy:
            found["greedy"] = self.measure(self.tasks, 0.0, progress)
        return found

    def curve(self, progress: Progress) -> Evaluated:
        """A point of the learning curve: fewer games, sampled."""
        return self.measure(self.curve_tasks, self.temperature, progress)

    def measure(self, tasks: Sequence[Task], temperature: float, progress: Progress) -> Evaluated:
        """Play `trials` episodes of each task at a temperature. The same streams of randomness at
        every call: two points of a curve differ by the policy alone.
        """
        return self._play(self.rollouts, tasks, temperature, self.trials, progress, candidates=None)

    def _play(
        self,
        rollouts: Rollouts,
        tasks: Sequence[Task],
        temperature: float,
        trials: int,
        progress: Progress,
        *,
        candidates: int | None,
    ) -> Evaluated:
        started = time.monotonic()
        what = "greedy" if temperature == 0 else "sampled"
        said = what if candidates is None else f"best of {candidates}"
        collection = rollouts.collect(
            tasks,
            rollouts_per_task=trials,
            temperature=temperature,
            seed=seed_for(self.seed, "evaluation", self.split, what),
            progress=lambda done, total: progress(f"evaluate {said}", done, total),
            candidates=None if candidates is None else [candidates] * trials,
        )
        missing = [g.task.id for g in collection.groups if len(g.trajectories) != trials]
        if missing or len(collection.groups) != len(tasks):
            raise RolloutError(
                f"An evaluation of {len(tasks)} games × {trials} trials came back with {len(collection.groups)} "
                f"games, {len(missing)} of them short (first: {missing[:3]}); evaluation never cuts, so this is a bug"
            )
        return evaluated(
            collection.groups,
            split=self.split,
            temperature=temperature,
            trials=trials,
            floor=self.environment.floor(tasks) if isinstance(self.environment, HasFloor) else None,
            wall_s=time.monotonic() - started,
        )

    def best_of_n(self, reward_model: RewardModel, progress: Progress) -> dict[int, Evaluated]:
        """Best of n for every n in `best_of`, sampled, on all games. Random numbers are those of the game and
        the turn, so as long as histories agree the candidates of a smaller n are the first of a larger;
        n = 1 is the policy itself on the streams of "success"."""
        from agentexp.evaluation.best_of_n import choosing  # noqa: PLC0415  this file imports no torch

        rollouts = self.rollouts.playing(choosing(self.rollouts.policy, reward_model))
        return {n: self._play(rollouts, self.tasks, self.temperature, 1, progress, candidates=n) for n in self.best_of}

    def manifest(self) -> dict[str, Any]:
        """The frozen games: ids in order and their hash, to be compared on resume and across runs."""
        ids = [t.id for t in self.tasks]
        beside = {} if self.also is None else {"also": self.also.manifest()}
        return {
            "split": self.split,
            "games": len(ids),
            "of": len(self._order),
            "curve_games": len(self.curve_tasks),
            "sha256": ids_hash(ids),
            "ids": ids,
            "environment": dict(self.environment.version()),
            **beside,
        }

    def leaked(self, trained: Sequence[str]) -> set[str]:
        """Which of these task ids are among the games evaluated."""
        here = self._evaluated_ids.intersection(trained)
        return here if self.also is None else here | self.also.leaked(trained)

    def _first(self, n: int | None, key: str) -> Sequence[Task]:
        if n is None:
            return self._order
        if not 1 <= n <= len(self._order):
            raise ConfigError(
                f"evaluation.{key} is {n}, but split {self.split!r} has {len(self._order)} games; "
                f"allowed are 1 to {len(self._order)}, or null for all"
            )
        return self._order[:n]


def frozen_order(tasks: Sequence[Task], split: str) -> Sequence[Task]:
    """The tasks of a split in an order that depends on their ids and the split's name only."""
    twice = [i for i, count in Counter(t.id for t in tasks).items() if count > 1]
    if twice:
        raise DataError(f"Split {split!r} holds {len(twice)} task ids more than once, first {twice[0]!r}")
    if not tasks:
        raise DataError(f"Split {split!r} has no games; nothing could be measured")
    ordered = sorted(tasks, key=lambda t: t.id)
    random.Random(seed_for(0, "evaluation", "order", split)).shuffle(ordered)
    return ordered


def ids_hash(ids: Sequence[str]) -> str:
    """SHA-256 of task ids in order, one a line."""
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()


def same_games(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on where the games or the environment are not those the run began with."""
    for key in ("split", "sha256", "environment"):
        if before.get(key) != now.get(key):
            raise DataError(
                f"The evaluated games changed since this run began: {key} was {before.get(key)!r}, "
                f"is {now.get(key)!r}. "
                "Put the games back as they were, or give the run another name (name=…)."
            )
    if "also" in before or "also" in now:
        same_games(before.get("also", {}), now.get("also", {}))

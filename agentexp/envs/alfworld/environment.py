"""ALFWorld as an environment: official game files, or generated games where none are installed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, overload

from agentexp.envs.alfworld.engine import Engine
from agentexp.envs.alfworld.games import KINDS, Game
from agentexp.envs.alfworld.generate import GAMES, make_game, make_spec
from agentexp.envs.alfworld.session import AlfWorldSession, ShadowedExpert
from agentexp.errors import ConfigError, DataError, nearest
from agentexp.seeding import seed_for
from agentexp.types import Task

EngineName = Literal["pure", "textworld"]
SPLITS = ("train", "valid_seen", "valid_unseen")
RELEASE = "json_2.1.1"
_WORDING = re.compile(r'Your task is to: ((?:[^"\\]|\\[^n"])*)')


class LazyTasks(Sequence[Task]):
    """A long list of tasks, each made when it is asked for."""

    def __init__(self, size: int, make: Callable[[int], Task]) -> None:
        self._size, self._make = size, make

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        if isinstance(index, slice):
            return [self._make(i) for i in range(*index.indices(self._size))]
        if not -self._size <= index < self._size:
            raise IndexError(f"task {index} of {self._size}")
        return self._make(index % self._size)

    def __iter__(self) -> Iterator[Task]:
        return (self._make(i) for i in range(self._size))


class _AlfWorld(ABC):
    """What both environments share: sessions and experts over a way to find a task's game."""

    def __init__(self, *, engine: EngineName, admissible: bool, explore: float) -> None:
        if engine not in {"pure", "textworld"}:
            raise ConfigError(
                f"engine is {engine!r}; allowed: pure, textworld.{nearest(engine, ('pure', 'textworld'))}"
            )
        if not 0.0 <= explore <= 1.0:
            raise ConfigError(f"explore is {explore}; a chance between 0 and 1 is needed")
        self.engine, self.admissible, self.explore = engine, admissible, explore

    @abstractmethod
    def game(self, task: Task) -> Game:
        """The game of a task."""

    def start(self, task: Task, seed: int) -> AlfWorldSession:
        """Open an episode. The game has no chance in it, so `seed` changes nothing."""
        if self.engine == "textworld":
            from agentexp.envs.alfworld.textworld import TextWorldPlay  # noqa: PLC0415  (an extra)

            return AlfWorldSession(play=TextWorldPlay.of(self.game(task)), admissible=self.admissible)
        return AlfWorldSession(play=Engine(self.game(task)), admissible=self.admissible)

    def expert(self, task: Task, seed: int, noise: float) -> ShadowedExpert:
        """The scripted expert for an episode of this task."""
        return ShadowedExpert(task=task, engine=Engine(self.game(task)), seed=seed, noise=noise, explore=self.explore)


class GeneratedAlfWorld(_AlfWorld):
    """Endless made-up games in made-up rooms: splits train, valid and test, which share no room.
    Results on it are not ALFWorld scores.

    engine: "pure" (ours) or "textworld" (the real one). admissible: show the admissible commands in
    `Step.info`. explore: how often the expert searches at random. train_games, valid_games: how many.
    """

    name = "alfworld_generated"

    def __init__(
        self, *, engine: EngineName, admissible: bool, explore: float, train_games: int, valid_games: int
    ) -> None:
        super().__init__(engine=engine, admissible=admissible, explore=explore)
        self._games = {"train": train_games, "valid": valid_games, "test": GAMES["test"]}
        for split, count in self._games.items():
            if count < 1:
                raise ConfigError(f"{split}_games is {count}; at least 1 is needed")

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split; the six types take turns."""
        if split not in self._games:
            allowed = ", ".join(self._games)
            raise ConfigError(
                f"No split {split!r} of generated games; allowed: {allowed}.{nearest(split, self._games)}"
            )
        return LazyTasks(self._games[split], lambda i: self._task(split, i))

    def _task(self, split: str, number: int) -> Task:
        spec = make_spec(split, number)
        return Task(
            id=f"{split}/{number}",
            env=self.name,
            split=split,
            instruction=spec.instruction,
            kind=spec.kind,
            data={"number": number, "room": f"{spec.room.kind} {spec.room.number}"},
        )

    def game(self, task: Task) -> Game:
        """The game of a task."""
        return make_game(task.split, int(task.data["number"]))

    def version(self) -> Mapping[str, str]:
        """What a result must record."""
        label = "generated games, not ALFWorld scores"
        return {"environment": self.name, "engine": self.engine, "generator": "1", "label": label}


class AlfWorld(_AlfWorld):
    """The official games: files `<data>/json_2.1.1/<split>/<type-…>/<trial>/game.tw-pddl`.

    data: the folder (None: environment variable ALFWORLD_DATA). shuffle_placements: chance that a
    train task puts the movable objects elsewhere, so that a few games give many tasks; train_tasks:
    how many train tasks then (0: one for each game file). engine, admissible, explore: as above.
    """

    name = "alfworld"

    def __init__(
        self,
        *,
        data: str | None,
        engine: EngineName,
        admissible: bool,
        explore: float,
        shuffle_placements: float,
        train_tasks: int,
    ) -> None:
        super().__init__(engine=engine, admissible=admissible, explore=explore)
        if not 0.0 <= shuffle_placements <= 1.0:
            raise ConfigError(f"shuffle_placements is {shuffle_placements}; a chance between 0 and 1 is needed")
        if train_tasks < 0:
            raise ConfigError(f"train_tasks is {train_tasks}; 0 (each game once) or more is needed")
        self.shuffle_placements, self.train_tasks = shuffle_placements, train_tasks
        self.folder = games_folder(data)
        self._files: dict[str, list[Path]] = {}

    def files(self, split: str) -> list[Path]:
        """The game files of a split, sorted. None at all: a DataError that says what to do."""
        if split not in SPLITS:
            raise ConfigError(f"No split {split!r} of ALFWorld; allowed: {', '.join(SPLITS)}.{nearest(split, SPLITS)}")
        if split not in self._files:
            found = find_games(self.folder, split)
            if not found:
                raise DataError(
                    f"No ALFWorld games of split {split!r} under {self.folder}. `agentexp data alfworld` says how to "
                    "get them; or play generated games: environment=alfworld_generated"
                )
            self._files[split] = found
        return self._files[split]

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split."""
        files = self.files(split)
        many = self.train_tasks if split == "train" and self.train_tasks else len(files)
        return LazyTasks(many, lambda i: self._task(split, i))

    def _task(self, split: str, number: int) -> Task:
        files = self.files(split)
        path, lap = files[number % len(files)], number // len(files)
        game = f"{split}/{path.parent.parent.name}/{path.parent.name}"
        rng = random.Random(seed_for("alfworld placements", game, lap))
        shuffled = split == "train" and rng.random() < self.shuffle_placements
        placements = rng.getrandbits(62) if shuffled else 0
        return Task(
            id=f"{game}~{lap}" if shuffled or lap else game,
            env=self.name,
            split=split,
            instruction=read_instruction(path),
            scenario=game,
            kind=kind_of_folder(path.parent.parent.name),
            data={"path": str(path), "placements": placements},
        )

    def game(self, task: Task) -> Game:
        """The game of a task, with its placements."""
        return _load(str(task.data["path"]), int(task.data["placements"]))

    def version(self) -> Mapping[str, str]:
        """What a result must record."""
        listing = {s: [(p.parent.name, p.stat().st_size) for p in find_games(self.folder, s)] for s in SPLITS}
        digest = hashlib.sha256(json.dumps(listing, sort_keys=True).encode()).hexdigest()[:16]
        counts = ", ".join(f"{s} {len(files)}" for s, files in listing.items())
        return {"environment": self.name, "engine": self.engine, "games": f"{RELEASE}: {counts}", "listing": digest}


@lru_cache(maxsize=512)
def _load(path: str, placements: int) -> Game:
    if not placements:
        return Game.load(path)
    return _load(path, 0).shuffled(random.Random(placements))


@lru_cache(maxsize=8192)
def read_instruction(path: Path) -> str:
    """The wording of a game's task, without parsing the game."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"Game file {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"Game file {path} is corrupt: not text ({error.reason}). Download it again.") from error
    found = _WORDING.search(text)
    if found is None:
        raise DataError(f'Game file {path} is corrupt: no "Your task is to: …" in it. Download it again.')
    return found.group(1).strip()


def games_folder(data: str | None) -> Path:
    """Where the games are: what the user says, else ALFWORLD_DATA."""
    where = data or os.environ.get("ALFWORLD_DATA")
    if not where:
        raise DataError(
            "No folder of ALFWorld games: set environment.data or the environment variable ALFWORLD_DATA. "
            "`agentexp data alfworld` says how to get them; or play generated games: environment=alfworld_generated"
        )
    folder = Path(where).expanduser()
    if not folder.is_dir():
        raise DataError(f"ALFWorld games folder {folder} is not there. `agentexp data alfworld` says how to get it")
    return folder if (folder / RELEASE).is_dir() else folder.parent if folder.name == RELEASE else folder


def find_games(folder: Path, split: str) -> list[Path]:
    """The playable games of a split, sorted; as upstream, without sliced objects, movable receptacles
    and games marked unsolvable."""
    root = folder / RELEASE / split if (folder / RELEASE).is_dir() else folder / split
    return [
        path
        for path in sorted(root.glob("*/*/game.tw-pddl"))
        if not any(word in path.parent.parent.name for word in ("movable", "Sliced")) and _solvable(path)
    ]


def _solvable(path: Path) -> bool:
    """False where the file says so; its last key says it, so the rest is not read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            return re.search(rb'"solvable":\s*false', file.read()) is None
    except OSError:
        return True  # loading it tells what is wrong


def kind_of_folder(name: str) -> str:
    """The task type that a game folder's name begins with."""
    return KINDS.get(name.partition("-")[0], "")

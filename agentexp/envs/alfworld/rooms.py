"""Rooms made up after the statistics of real ones: which receptacles stand where, which objects occur.
A room is a function of its kind and number; a split owns its room numbers, so no two splits share one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property, lru_cache

from agentexp.envs.alfworld.tables import CONTAINS, OBJECTS, OPENABLE, PLACES, RECEPTACLES
from agentexp.seeding import seed_for

_SUFFIX = {"sinkbasin": ("sink", "_bar_sinkbasin"), "bathtubbasin": ("bathtub", "_bar_bathtubbasin")}
_SHARED = 0.08  # chance that a receptacle is reached from the same spot as the one before


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A piece of furniture: raw id, kind, the location to stand at, whether it has a door."""

    id: str
    kind: str
    location: str
    door: bool


@dataclass(frozen=True)
class Room:
    """What stays when objects move: the furniture, and which objects live here how many at a time."""

    kind: str
    number: int
    receptacles: tuple[Receptacle, ...]
    objects: dict[str, float]  # object kind -> mean number
    start: str  # location of the agent

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of receptacle that stand here, sorted."""
        return tuple(sorted({r.kind for r in self.receptacles}))

    def spots(self, item: str) -> tuple[list[Receptacle], list[float]]:
        """Where an object may lie, and how likely it is to be found there."""
        return self._spots[item]

    @cached_property
    def _spots(self) -> dict[str, tuple[list[Receptacle], list[float]]]:
        found = {}
        for item in self.objects:
            usual = PLACES.get(item, {})
            kinds = {k for k in self.kinds if item in CONTAINS.get(k, ()) or usual.get(k, 0) >= 10}
            spots = [r for r in self.receptacles if r.kind in kinds]
            found[item] = (spots, [usual.get(r.kind, 0.0) + 0.3 for r in spots])
        return found


def fresh(rng: random.Random, kind: str, taken: set[str]) -> str:
    """A new raw id in the manner of the official ones; its digits decide the number in its name."""
    head, tail = _SUFFIX.get(kind, (kind, ""))
    while True:
        entity = f"{head}_bar_{rng.randrange(1000):03d}_bar_{rng.randrange(1000):03d}{tail}"
        if entity not in taken:
            taken.add(entity)
            return entity


@lru_cache(maxsize=4096)
def make_room(kind: str, number: int) -> Room:
    """The room of this kind and number: always the same one."""
    rng = random.Random(seed_for("alfworld room", kind, number))
    taken: set[str] = set()
    receptacles: list[Receptacle] = []
    for key, counts in RECEPTACLES.items():
        room_kind, receptacle = key.split()
        if room_kind != kind:
            continue
        for _ in range(int(rng.choice(counts))):
            shares = receptacles and rng.random() < _SHARED
            location = receptacles[-1].location if shares else fresh(rng, "loc", taken)
            door = rng.random() < OPENABLE.get(receptacle, 0.0)
            receptacles.append(Receptacle(fresh(rng, receptacle, taken), receptacle, location, door))
    words = OBJECTS[kind]
    objects = {
        words[i]: float(words[i + 2]) for i in range(0, len(words), 3) if rng.random() * 100 < float(words[i + 1])
    }
    return Room(kind, number, tuple(receptacles), objects, fresh(rng, "loc", taken))

"""A scripted demonstrator: it reads the same words as the agent and the admissible commands, nothing
else. It searches where things usually are, remembers what it saw, and can be made imperfect.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentexp.envs.alfworld.tables import OPENABLE, PLACES
from agentexp.errors import DataError

_ENTITY = re.compile(r"([a-z]+ \d+)")
_SEEN = re.compile(r"you see (.*)\.", re.DOTALL)
_VERBS = {"clean": ("clean", "sinkbasin"), "heat": ("heat", "microwave"), "hot": ("heat", "microwave"),
          "cool": ("cool", "fridge")}  # fmt: skip
_TASKS = (  # how a task is worded; groups: object, receptacle or lamp
    re.compile(r"(?:look at|examine the) (?P<o>\w+) (?:under|with) the (?P<lamp>\w+)"),
    re.compile(r"(?:find|put) (?P<two>two) (?P<o>\w+) (?:and put them )?(?:in|on) (?P<r>\w+)"),
    re.compile(r"(?P<verb>clean|heat|cool) some (?P<o>\w+) and put it (?:in|on) (?P<r>\w+)"),
    re.compile(r"put an? (?P<verb>clean|hot|cool) (?P<o>\w+) (?:in|on) (?P<r>\w+)"),
    re.compile(r"put (?:an?|some) (?P<o>\w+) (?:in|on) (?P<r>\w+)"),
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a task's wording asks for."""

    item: str
    receptacle: str | None
    lamp: str | None
    verb: str | None
    tool: str | None
    count: int


def read_task(instruction: str) -> Wish:
    """Understand a task.

    >>> read_task("put a hot apple in fridge").tool
    'microwave'
    """
    for pattern in _TASKS:
        found = pattern.search(instruction.lower())
        if found:
            words = found.groupdict()
            verb, tool = _VERBS.get(words.get("verb") or "", (None, None))
            count = 2 if words.get("two") else 1
            return Wish(words["o"], words.get("r"), words.get("lamp"), verb, tool, count)
    raise DataError(f"The scripted expert does not understand the task {instruction!r}")


def kind_of(name: str) -> str:
    """The kind of a named thing: "drawer 3" is a drawer."""
    return name.partition(" ")[0]


class Searcher:
    """An expert for one episode. `noise`: chance of a random command at a turn, half of them blunders
    that the game mostly refuses, so that demonstrations show what to do after a refusal. `explore`:
    chance to look in a random unsearched place instead of the likeliest one."""

    def __init__(self, *, instruction: str, seed: int, noise: float, explore: float) -> None:
        self.wish = read_task(instruction)
        self.rng = random.Random(seed)
        self.noise, self.explore = noise, explore
        self.receptacles: list[str] = []
        self.doors: set[str] = set()  # seen closed
        self.seen: dict[str, str] = {}  # object -> receptacle
        self.searched: set[str] = set()
        self.placed: dict[str, str] = {}  # objects that serve the goal where they are
        self.treated: set[str] = set()  # cleaned, heated or cooled as asked
        self.here: str | None = None
        self.held: str | None = None
        self.command: str | None = None

    def act(self, observation: str, admissible: Sequence[str]) -> tuple[str, bool]:
        """(command, deliberate) after an observation."""
        self._read(observation)
        if not self.receptacles:  # it begins in front of something, from where the room is not told
            self.receptacles = [c[6:] for c in admissible if c.startswith("go to ")]
        random_move = self.rng.random() < self.noise
        if not random_move:
            self.command = self._plan(set(admissible))
        else:
            self.command = self._blunder() if self.rng.random() < 0.5 else self.rng.choice(admissible)
        return self.command, not random_move

    def _blunder(self) -> str:
        """A plausible command that is mostly refused: to go where one is, to take what is not there."""
        here = self.here or self.rng.choice(self.receptacles)
        place = self.rng.choice(self.receptacles)
        thing = f"{self.wish.item} {self.rng.randint(1, 3)}"
        return self.rng.choice(
            [
                f"go to {here}",
                f"open {here}",
                f"take {thing} from {here}",
                f"take {thing} from {place}",
                f"open {place}",
            ]
        )

    # ---- reading
    def _read(self, text: str) -> None:
        if self.command is None:
            found = _SEEN.search(text.partition("Your task is")[0])
            middle = found and "middle of a room" in text
            self.receptacles = _ENTITY.findall(found.group(1)) if found and middle else []
            return
        if text.startswith("Nothing happens"):
            return
        verb, _, rest = self.command.partition(" ")
        named = _ENTITY.findall(rest)
        if verb == "go":
            self.here = named[0]
        elif verb == "take":
            self.held = named[0]
            self.seen.pop(named[0], None)
            self.placed.pop(named[0], None)
        elif verb in {"put", "move"}:
            self.held = None
            self._saw(named[0], named[1])
        elif verb == self.wish.verb:
            self.treated.add(named[0])
        if verb in {"go", "open", "examine"} and named and named[0] in self.receptacles:
            self._look_at(named[0], text)

    def _look_at(self, receptacle: str, text: str) -> None:
        if "is closed" in text:
            self.doors.add(receptacle)
            return
        self.searched.add(receptacle)
        found = _SEEN.search(text)
        for item in _ENTITY.findall(found.group(1)) if found else []:
            self._saw(item, receptacle)

    def _saw(self, item: str, receptacle: str) -> None:
        if item == self.held:  # a thing that lay in two places at once
            return
        self.seen[item] = receptacle
        wish = self.wish
        done = kind_of(receptacle) == wish.receptacle and (not wish.verb or item in self.treated)
        if done and kind_of(item) == wish.item:
            self.placed[item] = receptacle

    # ---- planning
    def _plan(self, can: set[str]) -> str:
        wish, held = self.wish, self.held
        if held is None:
            return self._fetch(can)
        if kind_of(held) != wish.item:
            return self._get_rid(can)
        if wish.lamp:
            return self._use_lamp(can)
        if wish.verb and held not in self.treated:
            return self._treat(can)
        return self._put_away(can)

    def _fetch(self, can: set[str]) -> str:
        target = self._target()  # of two things, one that lies elsewhere still has to come here
        settled = {o for o, where in self.placed.items() if target in {None, where}}
        known = [o for o in self.seen if kind_of(o) == self.wish.item and o not in settled]
        known.sort(key=lambda o: (self.seen[o] != self.here, o))
        for item in known:
            where = self.seen[item]
            command = f"take {item} from {where}"
            if command in can:
                return command
            for command in (f"open {where}", f"go to {where}"):
                if command in can:
                    return command
            if where == self.here or f"examine {where}" in can:
                self.seen.pop(item)  # it is not there any more
        return self._search(can, self.wish.item)

    def _get_rid(self, can: set[str]) -> str:
        puts = sorted(c for c in can if c.startswith(("put ", "move ")))
        if puts:
            return self.rng.choice(puts)
        if self.here and f"open {self.here}" in can:
            return f"open {self.here}"
        return self._search(can, kind_of(self.held or ""))

    def _use_lamp(self, can: set[str]) -> str:
        for command in sorted(can):
            if command.startswith("use ") and kind_of(command[4:]) == self.wish.lamp:
                return command
        for lamp in [o for o in self.seen if kind_of(o) == self.wish.lamp]:
            for command in (f"go to {self.seen[lamp]}", f"open {self.seen[lamp]}"):
                if command in can:
                    return command
            self.seen.pop(lamp)
        return self._search(can, self.wish.lamp or "")

    def _treat(self, can: set[str]) -> str:
        for command in sorted(can):
            if command.startswith(f"{self.wish.verb} {self.held} "):
                return command
        tools = [f"go to {r}" for r in self.receptacles if kind_of(r) == self.wish.tool]
        return self._one_of(tools, can)

    def _put_away(self, can: set[str]) -> str:
        target = self._target()
        targets = [target] if target else [r for r in self.receptacles if kind_of(r) == self.wish.receptacle]
        for where in targets:
            for command in (f"put {self.held} in/on {where}", f"move {self.held} to {where}", f"open {where}"):
                if command in can:
                    return command
        opened = [r for r in targets if r not in self.doors or r in self.searched]
        return self._one_of([f"go to {r}" for r in opened or targets], can)

    def _target(self) -> str | None:
        """The one receptacle for both of two things, once one lies in it: where most of them lie."""
        if self.wish.count == 1 or not self.placed:
            return None
        return Counter(self.placed.values()).most_common(1)[0][0]

    def _search(self, can: set[str], want: str) -> str:
        todo = [r for r in self.receptacles if r not in self.searched]
        if not todo:
            self.searched.clear()
            todo = list(self.receptacles)
        if self.here in todo and f"open {self.here}" in can:
            return f"open {self.here}"
        elsewhere = [r for r in todo if r != self.here] or todo
        if not elsewhere:
            return self.rng.choice(sorted(can))
        if self.rng.random() < self.explore:
            where = self.rng.choice(elsewhere)
        else:
            usual = PLACES.get(want, {})
            where = max(elsewhere, key=lambda r: (self._worth(r, usual), -self.receptacles.index(r)))
        for command in (f"go to {where}", f"open {where}", f"examine {where}"):
            if command in can:
                return command
        return self.rng.choice(sorted(can))

    def _worth(self, receptacle: str, usual: dict[str, float]) -> float:
        """Things expected there for each step that looking costs (a door costs one more)."""
        kind = kind_of(receptacle)
        return round(usual.get(kind, 0.0) / (2 if OPENABLE.get(kind, 0) > 0.5 else 1))

    def _one_of(self, commands: list[str], can: set[str]) -> str:
        """The first of the commands that is admissible, else a random command."""
        return next((c for c in commands if c in can), None) or self.rng.choice(sorted(can))

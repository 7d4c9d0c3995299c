"""One ALFWorld game as it is before anyone moves: its facts, names, goal and commands. Read from a
`game.tw-pddl` file or made by the generator; shared by all sessions that play it. Knows no state.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentexp.envs.alfworld.domain import read_domain
from agentexp.envs.alfworld.facts import Relation, Row
from agentexp.envs.alfworld.grammar import Grammar, parse_grammar
from agentexp.envs.alfworld.rules import domain_text
from agentexp.errors import DataError

FLUENTS = (  # predicates that actions change, with the negated one that a text rule asks for
    *("atlocation", "inreceptacle", "not_inreceptacle", "objectatlocation", "opened", "holds", "holdsany"),
    *("isclean", "ishot", "iscool", "istoggled", "issliced"),
)
KINDS = {
    "pick_and_place_simple": "pick",
    "look_at_obj_in_light": "look",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "two",
}
_FACT = re.compile(r"\(\s*([\w@-]+)([^()]*)\)")
_PARTS = ("pddl_domain", "grammar", "pddl_problem")


@dataclass(frozen=True, slots=True)
class Move:
    """A command of this game, the action it means and the entities it names."""

    command: str
    action: str
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Goal:
    """What wins: `count` different objects of a type with these states, all in one receptacle of a
    type; or (lamp) an object of the type held where a lamp that was switched on stands."""

    object_type: str
    receptacle_type: str | None
    lamp_type: str | None
    count: int
    states: tuple[str, ...]  # isclean, ishot, iscool, issliced
    abilities: tuple[str, ...]  # cleanable, heatable, coolable, sliceable

    @property
    def kind(self) -> str:
        """pick, look, clean, heat, cool or two."""
        if self.lamp_type:
            return "look"
        verbs = {"isclean": "clean", "ishot": "heat", "iscool": "cool"}
        return next((verbs[s] for s in self.states if s in verbs), "two" if self.count == 2 else "pick")


class Game:
    """The static part of a game."""

    def __init__(self, *, domain: str, problem: str, grammar: str, source: str = "generated") -> None:
        self.source = source
        self.rules = read_domain(domain)
        self.grammar, self.task = parse_grammar(grammar)
        if self.rules.help and "help" not in self.grammar.actions:
            raise DataError("its grammar lacks the action 'help', which its domain has")
        init, goal = split_problem(problem)
        self._build(init, read_goal(goal))

    @classmethod
    def of_facts(cls, *, facts: Mapping[str, Iterable[Row]], goal: Goal, grammar: Grammar, task: str) -> Game:
        """A game from facts in memory (the generator's way), without any text to parse."""
        game = cls.__new__(cls)
        game.source, game.grammar, game.task = "generated", grammar, task
        game.rules = read_domain(domain_text())
        game._build({p: set(rows) for p, rows in facts.items()}, goal)
        return game

    @classmethod
    def load(cls, path: str | Path) -> Game:
        """Read a `game.tw-pddl` file. A missing or corrupt one is a DataError that names it."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"Game file {path} cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise DataError(f"Game file {path} is corrupt: not JSON ({error}). Download it again.") from error
        missing = [p for p in _PARTS if not isinstance(data, dict) or not isinstance(data.get(p), str)]
        if missing:
            raise DataError(f"Game file {path} is corrupt: it lacks {', '.join(missing)}. Download it again.")
        try:
            return cls(
                domain=data["pddl_domain"], problem=data["pddl_problem"], grammar=data["grammar"], source=str(path)
            )
        except DataError as error:
            raise DataError(f"Game file {path} cannot be played: {error}") from error
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"Game file {path} is corrupt: {type(error).__name__} {error}") from error

    def _build(self, init: Mapping[str, set[Row]], goal: Goal) -> None:
        self.goal = goal
        self.start = {p: Relation(init.get(p, ())) for p in FLUENTS}
        self.static = {p: Relation(rows) for p, rows in init.items() if p not in self.start}
        self.names = name_entities({e for rows in init.values() for row in rows for e in row})
        if len(self.start["atlocation"].rows) != 1:
            raise DataError(f"the agent is at {len(self.start['atlocation'].rows)} places; exactly 1 is needed")
        self.agent = next(iter(self.start["atlocation"].rows))[0]
        self.places: dict[str, list[str]] = defaultdict(list)  # receptacle -> locations
        self.receptacles_at: dict[str, list[str]] = defaultdict(list)
        for receptacle, location in sorted(init.get("receptacleatlocation", ())):
            self.places[receptacle].append(location)
            self.receptacles_at[location].append(receptacle)
        self.receptacle_types = _types(init.get("receptacletype", ()))
        self.object_types = _types(init.get("objecttype", ()))
        self.holders: dict[str, set[str]] = defaultdict(set)  # receptacle type -> object types it can contain
        for receptacle_type, object_type in init.get("cancontain", ()):
            self.holders[receptacle_type].add(object_type)
        one = {p: frozenset(row[0] for row in init.get(p, ())) for p in _ABILITIES}
        self.openable, self.pickupable = one["openable"], one["pickupable"]
        self.toggleable, self.sliceable = one["toggleable"], one["sliceable"]
        self.able = {"clean": one["cleanable"], "heat": one["heatable"], "cool": one["coolable"]}
        self.one = one
        self.rearranged = False  # its placements are not those of its source
        self.opening: str | None = None  # the first text, told once
        self._moves: dict[tuple[str, ...], Move] = {}
        self._journeys: dict[str, dict[str, Move]] = {}
        self._fits: dict[tuple[str, str], bool] = {}

    # ---- what may be done, in words
    def move(self, action: str, item: str = "", receptacle: str = "") -> Move:
        """The move of `action` on an object and a receptacle, with its command."""
        key = (action, item, receptacle)
        found = self._moves.get(key)
        if found is None:
            names = {v: e for v, e in zip(_VARIABLES.get(action, ("o", "r")), (item, receptacle), strict=True) if e}
            command = self.grammar.actions[action].command(self.names, names)
            found = self._moves[key] = Move(command, action, names)
        return found

    def journeys(self, here: str) -> dict[str, Move]:
        """The `go to` commands at a location: every receptacle that stands elsewhere."""
        found = self._journeys.get(here)
        if found is None:
            found = {m.command: m for m in self._all_journeys if m.names["lend"] != here}
            self._journeys[here] = found
        return found

    @cached_property
    def _all_journeys(self) -> list[Move]:
        text = self.grammar.actions["gotolocation"]
        moves = []
        for receptacle, places in self.places.items():
            for place in places:
                names = {"r": receptacle, "lend": place}
                moves.append(Move(text.command(self.names, names), "gotolocation", names))
        return sorted(moves, key=lambda m: m.command)

    def fits(self, item: str, receptacle: str) -> bool:
        """Whether a receptacle may contain an object, by their types."""
        key = (item, receptacle)
        found = self._fits.get(key)
        if found is None:
            types = self.object_types[item]
            found = any(types & self.holders[t] for t in self.receptacle_types[receptacle])
            self._fits[key] = found
        return found

    @cached_property
    def knives(self) -> frozenset[str]:
        """The objects that cut."""
        return frozenset(o for o, t in self.object_types.items() if t & {"knifetype", "butterknifetype"})

    @cached_property
    def goal_objects(self) -> frozenset[str]:
        """The objects that can ever satisfy the goal."""
        able = [self.one[a] for a in self.goal.abilities]
        return frozenset(
            o for o, t in self.object_types.items() if self.goal.object_type in t and all(o in a for a in able)
        )

    @cached_property
    def goal_receptacles(self) -> tuple[str, ...]:
        """The receptacles where the goal may be fulfilled (empty for look)."""
        return tuple(r for r, t in self.receptacle_types.items() if self.goal.receptacle_type in t)

    @cached_property
    def lamps(self) -> frozenset[str]:
        """The lamps that the goal of a look task accepts."""
        kind = self.goal.lamp_type
        return frozenset(o for o, t in self.object_types.items() if kind in t and o in self.toggleable)

    # ---- new games from this one
    def shuffled(self, rng: random.Random) -> Game:
        """The same room and goal with every movable object put somewhere it may be; never a game
        that is won at the start. After 100 vain tries, the game as it is."""
        held: dict[str, list[str]] = defaultdict(list)
        for item, receptacle in sorted(self.start["inreceptacle"].rows):
            held[item].append(receptacle)
        fixed = {row for row in self.start["objectatlocation"].rows if row[0] not in held}
        for _ in range(100):
            inside: set[Row] = set()
            located = set(fixed)
            for item, receptacles in held.items():
                spots = [r for r in self._sorted_receptacles if self.fits(item, r)] if item in self.pickupable else []
                if spots:
                    spot = rng.choice(spots)
                    inside.add((item, spot))
                    located.add((item, self.places[spot][0]))
                else:
                    inside.update((item, r) for r in receptacles)
                    located.update(self.start["objectatlocation"].where(0, item))
            if not self._won_with(inside):
                game = Game.__new__(Game)
                game.__dict__.update(self.__dict__)
                game.opening, game.rearranged = None, True
                game.start = {
                    **self.start,
                    "inreceptacle": Relation(inside),
                    "objectatlocation": Relation(located),
                }
                return game
        return self

    @cached_property
    def _sorted_receptacles(self) -> list[str]:
        return sorted(self.places)

    def _won_with(self, inside: set[Row]) -> bool:
        """Whether these placements fulfil the goal already, with the states of the start."""
        able = [self.start[s] for s in self.goal.states]
        good = {o for o in self.goal_objects if all((o,) in relation.rows for relation in able)}
        count = Counter(r for o, r in inside if o in good)
        return any(count[r] >= self.goal.count for r in self.goal_receptacles)


_GOAL_WORDS = frozenset(
    {
        *("objecttype", "receptacletype", "inreceptacle", "istoggled", "toggleable", "receptacleatlocation"),
        *("atlocation", "holds", "isclean", "ishot", "iscool", "issliced"),
        *("cleanable", "heatable", "coolable", "sliceable"),
    }
)
_VARIABLES = {"sliceobject": ("co", "ko")}
_ABILITIES = ("openable", "pickupable", "toggleable", "sliceable", "cleanable", "heatable", "coolable")


def _types(rows: Iterable[Row]) -> dict[str, set[str]]:
    types: dict[str, set[str]] = defaultdict(set)
    for entity, kind in rows:
        types[entity].add(kind)
    return types


def split_problem(problem: str) -> tuple[dict[str, set[Row]], str]:
    """The initial facts, and the text of the goal; all in lower case, as the real engine reads it."""
    text = problem.lower()
    if ";" in text:
        text = re.sub(r";[^\n]*", "", text)
    start, stop = text.find("(:init"), text.find("(:goal")
    if start < 0 or stop < start:
        raise DataError("its problem has no (:init …) followed by a (:goal …); the file was cut short")
    init: dict[str, set[Row]] = defaultdict(set)
    for predicate, entities in _FACT.findall(text, start + 6, stop):
        init[predicate].add(tuple(entities.split()))
    for costs in ("total-cost", "distance"):  # not facts
        init.pop(costs, None)
    return init, text[stop:]


def read_goal(text: str) -> Goal:
    """Recognise the goal of one of the six task types, of sliced objects too; refuse any other."""
    if text.count("(") > text.count(")"):
        raise DataError("its goal has unbalanced brackets; the file was cut short")
    if found := re.search(r"\((forall|or|imply|when)\b|\(not\s*\(\s*\w+", text):
        raise DataError(f"its goal uses {found.group(0)!r}, which this engine does not read; use engine: textworld")
    atoms = [(p, tuple(v.split())) for p, v in _FACT.findall(text)]
    if unknown := sorted({p for p, _ in atoms} - _GOAL_WORDS):
        raise DataError(f"its goal uses {unknown[0]!r}, which this engine does not read; use engine: textworld")
    predicates = {p for p, _ in atoms}
    lamp_variables = {row[0] for p, row in atoms if p == "istoggled"}
    types = [row for p, row in atoms if p == "objecttype"]
    wanted = [kind for variable, kind in types if variable not in lamp_variables]
    lamps = [kind for variable, kind in types if variable in lamp_variables]
    receptacles = [row[1] for p, row in atoms if p == "receptacletype"]
    states = tuple(sorted(predicates & {"isclean", "ishot", "iscool", "issliced"}))
    if len(set(wanted)) != 1 or len(set(receptacles or lamps)) != 1 or (lamps and (states or receptacles)):
        raise DataError("its goal is not of the six task types, which this engine reads; use engine: textworld")
    return Goal(
        object_type=wanted[0],
        receptacle_type=receptacles[0] if receptacles else None,
        lamp_type=lamps[0] if lamps else None,
        count=1 if lamps else sum(p == "inreceptacle" for p, _ in atoms),
        states=states,
        abilities=tuple(sorted(predicates & {"cleanable", "heatable", "coolable", "sliceable"})),
    )


def name_entities(entities: Iterable[str]) -> dict[str, str]:
    """The words of raw ids: kind and number, counted backwards over the sorted ids.

    >>> name_entities({"cup_bar_1", "cup_bar_2", "agent1"})
    {'agent1': 'agent1 ', 'cup_bar_1': 'cup 2', 'cup_bar_2': 'cup 1'}
    """
    kinds: dict[str, str] = {}
    for entity in sorted(entities):
        head, bar, _ = entity.partition("_bar_")
        kinds[entity] = (head + "basin" if "basin" in entity else head) if bar else ""
    left = Counter(kinds.values())
    names: dict[str, str] = {}
    for entity, kind in kinds.items():
        names[entity] = f"{kind} {left[kind]}" if kind else entity + " "
        left[kind] -= 1
    return names

"""A game generator: all six task types in made-up rooms, a game being a function of split and number.

Nothing made here is an ALFWorld score: placements and goals are synthetic. `write_game` saves a game
in the official file format, which the real TextWorld engine plays as well.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agentexp.envs.alfworld.facts import Row
from agentexp.envs.alfworld.games import Game, Goal
from agentexp.envs.alfworld.grammar import Grammar, parse_grammar
from agentexp.envs.alfworld.rooms import Receptacle, Room, fresh, make_room
from agentexp.envs.alfworld.rules import domain_text, grammar_text
from agentexp.envs.alfworld.tables import ABILITIES, CONTAINS, FIXED, PLACES
from agentexp.seeding import seed_for

ROOM_NUMBERS = {"train": (0, 400), "valid": (400, 500), "test": (500, 600)}  # of each kind of room
GAMES = {"train": 20_000, "valid": 2_000, "test": 2_000}


@dataclass(frozen=True, slots=True)
class TaskType:
    """One of the six: where it happens, what must be done to the object, how it is worded."""

    rooms: tuple[str, ...]
    ability: str | None
    state: str | None
    tool: str | None
    wordings: tuple[str, ...]


TASK_TYPES = {
    "pick": TaskType(
        ("kitchen", "living", "bedroom", "bathroom"), None, None, None, ("put a {o} in {r}", "put some {o} on {r}")
    ),
    "look": TaskType(
        ("living", "bedroom"), None, None, None, ("look at {o} under the {r}", "examine the {o} with the {r}")
    ),
    "clean": TaskType(
        ("kitchen", "bathroom"),
        "cleanable",
        "isclean",
        "sinkbasin",
        ("put a clean {o} in {r}", "clean some {o} and put it in {r}"),
    ),
    "heat": TaskType(
        ("kitchen",),
        "heatable",
        "ishot",
        "microwave",
        ("put a hot {o} in {r}", "heat some {o} and put it in {r}"),
    ),
    "cool": TaskType(
        ("kitchen",),
        "coolable",
        "iscool",
        "fridge",
        ("put a cool {o} in {r}", "cool some {o} and put it in {r}"),
    ),
    "two": TaskType(
        ("kitchen", "living", "bedroom", "bathroom"),
        None,
        None,
        None,
        ("put two {o} in {r}", "find two {o} and put them in {r}"),
    ),
}
LAMP = "desklamp"


@dataclass(frozen=True, slots=True)
class Spec:
    """What a generated game is about; its placements follow from `seed`."""

    kind: str
    room: Room
    item: str
    receptacle: str  # the lamp of a look task
    instruction: str
    seed: int


@lru_cache(maxsize=65536)
def make_spec(split: str, number: int) -> Spec:
    """The task of game `number` of a split: cheap, nothing is placed yet."""
    seed = seed_for("alfworld game", split, number)
    rng = random.Random(seed)
    first, last = ROOM_NUMBERS[split]
    kind = tuple(TASK_TYPES)[number % len(TASK_TYPES)]
    task = TASK_TYPES[kind]
    while True:
        room = make_room(rng.choice(task.rooms), rng.randrange(first, last))
        goals = _goals(kind, room.kind, room.number)
        if goals:
            item = rng.choice(sorted(goals))
            receptacle = rng.choice(goals[item])
            wording = rng.choice(task.wordings).format(o=item, r=receptacle)
            return Spec(kind, room, item, receptacle, wording, seed)


@lru_cache(maxsize=16384)
def _goals(kind: str, room_kind: str, number: int) -> dict[str, list[str]]:
    """What a task of this type may ask for in a room: object, and the receptacles for it."""
    room = make_room(room_kind, number)
    if kind == "look" and not _lamp_spots(room)[0]:
        return {}
    goals = {item: _targets(kind, room, item) for item in room.objects}
    return {item: receptacles for item, receptacles in goals.items() if receptacles}


def _targets(kind: str, room: Room, item: str) -> list[str]:
    """The receptacle kinds that a task of this type may ask for (look: the lamp)."""
    task = TASK_TYPES[kind]
    if item in FIXED or item not in PLACES or (task.ability and item not in ABILITIES[task.ability]):
        return []
    spots = {r.kind for r in room.spots(item)[0]}
    if kind == "look":
        return [LAMP] if spots else []
    if task.tool and task.tool not in room.kinds:
        return []
    found = [r for r in room.kinds if item in CONTAINS.get(r, ()) and r != task.tool]
    return found if task.ability else [r for r in found if spots - {r}]


@lru_cache(maxsize=1024)
def make_game(split: str, number: int) -> Game:
    """Game `number` of a split, ready to play."""
    spec = make_spec(split, number)
    task = f"Your task is to: {spec.instruction}"
    return Game.of_facts(facts=place(spec), goal=goal_of(spec), grammar=_grammar(), task=task)


@lru_cache(maxsize=1)
def _grammar() -> Grammar:
    return parse_grammar(grammar_text("Your task is to: ?"))[0]


def goal_of(spec: Spec) -> Goal:
    """What wins the game of a spec."""
    task = TASK_TYPES[spec.kind]
    look = spec.kind == "look"
    return Goal(
        object_type=spec.item + "type",
        receptacle_type=None if look else spec.receptacle + "type",
        lamp_type=spec.receptacle + "type" if look else None,
        count=2 if spec.kind == "two" else 1,
        states=(task.state,) if task.state else (),
        abilities=(task.ability,) if task.ability else (),
    )


def place(spec: Spec) -> dict[str, set[Row]]:
    """The initial facts: furniture, and every object somewhere; the goal is not yet fulfilled."""
    rng = random.Random(spec.seed + 1)
    room = spec.room
    facts: dict[str, set[Row]] = defaultdict(set)
    facts["atlocation"].add(("agent1", room.start))
    for r in room.receptacles:
        facts["receptacletype"].add((r.id, r.kind + "type"))
        facts["receptacleatlocation"].add((r.id, r.location))
        if r.door:
            facts["openable"].add((r.id,))
    for kind in room.kinds:
        facts["cancontain"].update((kind + "type", item + "type") for item in CONTAINS.get(kind, ()))
    taken = {r.id for r in room.receptacles}
    for item, mean in room.objects.items():
        wanted = item == spec.item
        count = 1 + sum(rng.random() < (mean - 1) / 3 for _ in range(3))
        count = max(count, 2) if wanted and spec.kind == "two" else count
        avoid = spec.receptacle if wanted and spec.kind in {"pick", "two"} else ""
        spots, weights = _lamp_spots(room) if item == LAMP else room.spots(item)
        kept = [i for i, spot in enumerate(spots) if spot.kind != avoid]
        if not kept:
            continue
        for spot in rng.choices([spots[i] for i in kept], [weights[i] for i in kept], k=count):
            _put(facts, fresh(rng, item, taken), item, spot)
    return facts


def _lamp_spots(room: Room) -> tuple[list[Receptacle], list[float]]:
    """Where the lamp of this room may stand: in the open. None where the room has no lamp."""
    if LAMP not in room.objects:
        return [], []
    spots, weights = room.spots(LAMP)
    kept = [i for i, spot in enumerate(spots) if not spot.door]
    return [spots[i] for i in kept], [weights[i] for i in kept]


def _put(facts: dict[str, set[Row]], entity: str, item: str, spot: Receptacle) -> None:
    facts["objecttype"].add((entity, item + "type"))
    facts["inreceptacle"].add((entity, spot.id))
    facts["objectatlocation"].add((entity, spot.location))
    for ability, items in ABILITIES.items():
        if item in items:
            facts[ability].add((entity,))
    if item not in FIXED:
        facts["pickupable"].add((entity,))


# ---- game files
def problem_text(game_facts: Mapping[str, Iterable[Row]], goal: Goal) -> str:
    """A PDDL problem with these facts and this goal."""
    typed: dict[str, set[str]] = {t: set() for t in ("agent", "location", "receptacle", "object", "rtype", "otype")}
    typed["rtype"] |= {"sinktype", "sinkbasintype", "microwavetype", "fridgetype"}  # the domain names these
    typed["otype"] |= {"knifetype", "butterknifetype"}
    columns = {
        "atlocation": ("agent", "location"),
        "receptacletype": ("receptacle", "rtype"),
        "receptacleatlocation": ("receptacle", "location"),
        "objecttype": ("object", "otype"),
        "cancontain": ("rtype", "otype"),
    }
    for predicate, types in columns.items():
        for row in game_facts.get(predicate, ()):
            for kind, entity in zip(types, row, strict=True):
                typed[kind].add(entity)
    if goal.lamp_type:
        typed["otype"].add(goal.lamp_type)
    objects = [f"{e} - {kind}" for kind, entities in typed.items() for e in sorted(entities)]
    facts = [f"({p} {' '.join(row)})" for p, rows in sorted(game_facts.items()) for row in sorted(rows)]
    head = ["(define (problem generated)", "(:domain alfred)", "(:objects", *objects, ")"]
    return "\n".join([*head, "(:init", "(= (total-cost) 0)", *facts, ")", f"(:goal {goal_text(goal)})", ")"])


def goal_text(goal: Goal) -> str:
    """A goal in PDDL."""
    if goal.lamp_type:
        return (
            "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and "
            f"(objecttype ?ot {goal.lamp_type}) (toggleable ?ot) (istoggled ?ot) (receptacleatlocation ?r ?l) "
            "(atlocation ?a ?l) (inreceptacle ?ot ?r))) (exists (?o - object ?a - agent) (and "
            f"(objecttype ?o {goal.object_type}) (holds ?a ?o))))"
        )

    def one(v: str) -> str:
        states = " ".join(f"({s} {v})" for s in (*goal.abilities, *goal.states))
        kinds = f"(objecttype {v} {goal.object_type}) (receptacletype ?r {goal.receptacle_type})"
        return f"{states} {kinds} (inreceptacle {v} ?r)".strip()

    inner = one("?o1")
    if goal.count == 2:
        inner += f" (exists (?o2 - object) (and (not (= ?o1 ?o2)) {one('?o2')}))"
    return f"(and (exists (?r - receptacle) (exists (?o1 - object) (and {inner}))))"


def write_game(split: str, number: int, folder: Path) -> Path:
    """Save a generated game as `folder/<split>/<type>-<object>-…/trial_<number>/game.tw-pddl`."""
    spec = make_spec(split, number)
    names = {"pick": "pick_and_place_simple", "look": "look_at_obj_in_light", "two": "pick_two_obj_and_place"}
    kind = names.get(spec.kind, f"pick_{spec.kind}_then_place_in_recep")
    where = folder / split / f"{kind}-{spec.item}-None-{spec.receptacle}-{spec.room.number}" / f"trial_{number}"
    where.mkdir(parents=True, exist_ok=True)
    game = {
        "pddl_domain": domain_text(),
        "grammar": grammar_text(f"Your task is to: {spec.instruction}"),
        "pddl_problem": problem_text(place(spec), goal_of(spec)),
        "solvable": True,
    }
    path = where / "game.tw-pddl"
    path.write_text(json.dumps(game), encoding="utf-8")
    (where / "traj_data.json").write_text(json.dumps({"task_type": kind}), encoding="utf-8")
    return path

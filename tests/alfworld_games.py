"""Games for tests: a small one to read at a glance, and the official ones where they are at hand."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from agentexp.envs.alfworld.engine import Engine
from agentexp.envs.alfworld.games import Game
from agentexp.envs.alfworld.rules import domain_text, grammar_text

# A kitchen: a fridge (shut) with an apple and a mug, a microwave (shut), a sink, a table with a knife,
# an egg and a lamp, a shelf. Names count backwards: apple_bar_1 is "apple 2", apple_bar_2 "apple 1".
FACTS = """
(atlocation agent1 loc_bar_0)
(receptacletype fridge_bar_1 fridgetype) (receptacleatlocation fridge_bar_1 loc_bar_1) (openable fridge_bar_1)
(receptacletype microwave_bar_1 microwavetype) (receptacleatlocation microwave_bar_1 loc_bar_2)
(openable microwave_bar_1)
(receptacletype sink_bar_1_bar_sinkbasin sinkbasintype) (receptacleatlocation sink_bar_1_bar_sinkbasin loc_bar_3)
(receptacletype table_bar_1 tabletype) (receptacleatlocation table_bar_1 loc_bar_4)
(receptacletype shelf_bar_1 shelftype) (receptacleatlocation shelf_bar_1 loc_bar_5)
(receptacletype shelf_bar_2 shelftype) (receptacleatlocation shelf_bar_2 loc_bar_5)
(cancontain fridgetype appletype) (cancontain tabletype appletype) (cancontain shelftype appletype)
(cancontain microwavetype appletype) (cancontain tabletype knifetype) (cancontain shelftype mugtype)
(objecttype apple_bar_1 appletype) (inreceptacle apple_bar_1 fridge_bar_1) (objectatlocation apple_bar_1 loc_bar_1)
(objecttype apple_bar_2 appletype) (inreceptacle apple_bar_2 table_bar_1) (objectatlocation apple_bar_2 loc_bar_4)
(objecttype mug_bar_1 mugtype) (inreceptacle mug_bar_1 fridge_bar_1) (objectatlocation mug_bar_1 loc_bar_1)
(objecttype knife_bar_1 knifetype) (inreceptacle knife_bar_1 table_bar_1) (objectatlocation knife_bar_1 loc_bar_4)
(objecttype desklamp_bar_1 desklamptype) (inreceptacle desklamp_bar_1 table_bar_1)
(objectatlocation desklamp_bar_1 loc_bar_4) (toggleable desklamp_bar_1)
(pickupable apple_bar_1) (pickupable apple_bar_2) (pickupable mug_bar_1) (pickupable knife_bar_1)
(cleanable apple_bar_1) (cleanable apple_bar_2) (heatable apple_bar_1) (heatable apple_bar_2)
(coolable apple_bar_1) (coolable apple_bar_2) (sliceable apple_bar_1) (sliceable apple_bar_2)
"""
_ONE = (
    "(exists (?r - receptacle) (exists (?o - object) (and {0} (objectType ?o appleType) (receptacleType ?r {1}) "
    "(inReceptacle ?o ?r))))"
)
GOALS = {
    "pick": _ONE.format("", "shelfType"),
    "clean": _ONE.format("(cleanable ?o) (isClean ?o)", "shelfType"),
    "heat": _ONE.format("(heatable ?o) (isHot ?o)", "shelfType"),
    "cool": _ONE.format("(coolable ?o) (isCool ?o)", "shelfType"),
    "sliced": _ONE.format("(sliceable ?o) (isSliced ?o)", "shelfType"),
    "two": "(exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 appleType) (receptacleType ?r "
    "shelfType) (inReceptacle ?o1 ?r) (exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 appleType) "
    "(receptacleType ?r shelfType) (inReceptacle ?o2 ?r))))))",
    "look": "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot deskLampType) "
    "(toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r))) "
    "(exists (?o - object ?a - agent) (and (objectType ?o appleType) (holds ?a ?o))))",
}


def kitchen(goal: str = "pick", *, facts: str = FACTS, domain: str | None = None) -> Game:
    """The small kitchen with one of GOALS."""
    problem = f"(define (problem p) (:init {facts}) (:goal {GOALS.get(goal, goal)}))"
    grammar = grammar_text("Your task is to: test.")
    return Game(domain=domain or domain_text(), problem=problem, grammar=grammar, source="small kitchen")


def play(engine: Engine, commands: str) -> list[tuple[str, int, bool]]:
    """The answers to commands written one a line."""
    return [engine.step(command) for command in commands.strip().splitlines()]


def official_games(folder: Path) -> Path:
    """The folder of official games: found or unpacked from AGENTEXP_SHARED; without it the test skips."""
    shared = os.environ.get("AGENTEXP_SHARED")
    if not shared:
        pytest.skip("AGENTEXP_SHARED is not set: no official ALFWorld games here")
    if (Path(shared) / "json_2.1.1").is_dir():
        return Path(shared)
    archives = sorted((Path(shared) / "data").glob("alfworld_json_2.1.1_*.tar.xz"))
    if not archives:
        pytest.skip(f"AGENTEXP_SHARED={shared} holds no ALFWorld games (json_2.1.1/ or data/*.tar.xz)")
    for archive in archives:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    return folder

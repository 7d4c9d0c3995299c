"""Makes unusual games out of ordinary game files: what the official games rarely or never hold, but the
rules allow. Used to compare our engine with the real one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

_FACT = re.compile(r"\(\s*([\w@-]+)((?:\s+[^\s()]+)*)\s*\)")


class Problem:
    """A PDDL problem to edit: the objects and the goal stay text, the facts are a list."""

    def __init__(self, text: str) -> None:
        start, stop = text.index("(:init"), text.index("(:goal")
        self.head, self.goal = text[:start], text[stop:]
        found = _FACT.findall(text[start + 6 : stop])
        self.facts = [(p, tuple(a.split())) for p, a in found if p != "total-cost"]

    def rows(self, predicate: str) -> list[tuple[str, ...]]:
        """The facts of one predicate."""
        return [row for p, row in self.facts if p.lower() == predicate.lower()]

    def drop(self, predicate: str, row: tuple[str, ...]) -> None:
        """Remove a fact."""
        self.facts = [(p, r) for p, r in self.facts if (p.lower(), r) != (predicate.lower(), row)]

    def text(self) -> str:
        """The problem as PDDL."""
        facts = "\n".join(f"({p} {' '.join(row)})" for p, row in self.facts)
        return f"{self.head}(:init\n(= (total-cost) 0)\n{facts}\n)\n{self.goal}"


def opened_at_start(p: Problem, rng: random.Random) -> None:
    """Some doors stand open."""
    for row in p.rows("openable"):
        if rng.random() < 0.5:
            p.facts.append(("opened", row))


def starts_at_a_place(p: Problem, rng: random.Random) -> None:
    """The agent begins in front of something."""
    agent, here = p.rows("atLocation")[0]
    p.drop("atLocation", (agent, here))
    p.facts.append(("atLocation", (agent, rng.choice(p.rows("receptacleAtLocation"))[1])))


def holds_at_start(p: Problem, rng: random.Random) -> None:
    """The agent begins with something in hand."""
    item = rng.choice(p.rows("pickupable"))[0]
    for row in p.rows("inReceptacle"):
        if row[0] == item:
            p.drop("inReceptacle", row)
    for row in p.rows("objectAtLocation"):
        if row[0] == item:
            p.drop("objectAtLocation", row)
    agent = p.rows("atLocation")[0][0]
    p.facts += [("holds", (agent, item)), ("holdsAny", (agent,))]


def treated_at_start(p: Problem, rng: random.Random) -> None:
    """Some objects are already clean, hot, cool, sliced or switched on."""
    for state, ability in (
        ("isClean", "cleanable"),
        ("isHot", "heatable"),
        ("isCool", "coolable"),
        ("isSliced", "sliceable"),
        ("isToggled", "toggleable"),
    ):
        p.facts += [(state, row) for row in p.rows(ability) if rng.random() < 0.3]


def in_two_places(p: Problem, rng: random.Random) -> None:
    """Some objects lie in two receptacles at once."""
    receptacles = [row[0] for row in p.rows("receptacleAtLocation")]
    for item, where in p.rows("inReceptacle"):
        other = rng.choice(receptacles)
        if rng.random() < 0.3 and other != where:
            p.facts.append(("inReceptacle", (item, other)))


def shared_locations(p: Problem, rng: random.Random) -> None:
    """Several receptacles are reached from one spot."""
    rows = p.rows("receptacleAtLocation")
    for receptacle, location in rows:
        if rng.random() < 0.3:
            p.drop("receptacleAtLocation", (receptacle, location))
            p.facts.append(("receptacleAtLocation", (receptacle, rng.choice(rows)[1])))


def can_contain_anything(p: Problem, rng: random.Random) -> None:
    """Everything fits everywhere, so goals are met by chance and nearly met."""
    have = set(p.rows("canContain"))
    rtypes = sorted({row[1] for row in p.rows("receptacleType")})
    otypes = sorted({row[1] for row in p.rows("objectType")})
    p.facts += [("canContain", (r, o)) for r in rtypes for o in otypes if (r, o) not in have]


def sliced_goal(p: Problem, rng: random.Random) -> None:
    """The object that the goal asks for must be sliced, where it can be."""
    target = re.search(r"\(objectType \?(o1?) (\w+)\)", p.goal, re.IGNORECASE)
    sliceable = {row[0] for row in p.rows("sliceable")}
    if target and "isToggled" not in p.goal and "istoggled" not in p.goal:
        kind = target.group(2).lower()
        if any(o in sliceable for o, t in p.rows("objectType") if t.lower() == kind):
            for v in ("?o", "?o1", "?o2"):
                p.goal = p.goal.replace(
                    f"(inReceptacle {v} ?r)", f"(inReceptacle {v} ?r) (sliceable {v}) (isSliced {v})"
                )
                p.goal = p.goal.replace(
                    f"(inreceptacle {v} ?r)", f"(inreceptacle {v} ?r) (sliceable {v}) (issliced {v})"
                )


TWISTS: dict[str, Callable[[Problem, random.Random], None]] = {
    f.__name__: f
    for f in (
        opened_at_start,
        starts_at_a_place,
        holds_at_start,
        treated_at_start,
        in_two_places,
        shared_locations,
        can_contain_anything,
        sliced_goal,
    )
}


def unusual(data: dict[str, Any], twists: list[str], seed: int) -> dict[str, Any]:
    """A copy of a game file's contents with these twists."""
    problem = Problem(data["pddl_problem"])
    rng = random.Random(seed)
    for name in twists:
        TWISTS[name](problem, rng)
    return {**data, "pddl_problem": problem.text()}

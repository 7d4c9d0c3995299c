"""Reads the PDDL domain of a game file and makes sure that it states the rules that `engine.py` plays.

The engine's rules are written in Python for speed; `rules.domain_text` states the same in PDDL. Every
game's domain is compared with it, action by action: a domain with other rules is refused, never played
wrongly. What may differ between releases is read here: the sinks that clean, and a `help` command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from agentexp.envs.alfworld.rules import domain_text
from agentexp.errors import DataError

Tree = str | tuple["Tree", ...]
_TOKEN = re.compile(r"[()]|[^\s()]+")
_SINKS = frozenset({"sinktype", "sinkbasintype"})
_UNTOLD = frozenset({"increase", "checked"})  # costs, and marks that no condition and no text reads


@dataclass(frozen=True, slots=True)
class Rules:
    """What differs between releases of the rules."""

    tools: Mapping[str, frozenset[str]]  # verb -> kinds of receptacle that do it
    help: bool


@lru_cache(maxsize=16)
def read_domain(text: str) -> Rules:
    """The rules of a domain. A DataError names the first action that this engine does not play."""
    found, known = actions(text), actions(domain_text())
    missing = sorted(set(known) - set(found))
    if missing:
        raise DataError(f"its PDDL domain lacks the action {missing[0]}; the file was cut short or edited")
    for name, action in found.items():
        if name == "help":
            continue
        if name not in known or _released(name, action) != _released(name, known[name]):
            raise DataError(
                f"its PDDL domain has rules for {name!r} that this engine does not play; play it with engine: textworld"
            )
    sinks = {kind for kind in _SINKS if ("receptacletype", "?r", kind) in _leaves(found["cleanobject"])}
    tools = {"clean": frozenset(sinks), "heat": frozenset({"microwavetype"}), "cool": frozenset({"fridgetype"})}
    return Rules(tools, "help" in found)


def actions(text: str) -> dict[str, Tree]:
    """Each action's precondition and effect in a form that layout, order and comments do not change."""
    plain = re.sub(r";[^\n]*", "", text).lower()
    stack: list[list[Tree]] = [[]]
    for token in _TOKEN.findall(plain):
        if token == "(":
            stack.append([])
        elif token != ")":
            stack[-1].append(token)
        elif len(stack) > 1:
            closed = tuple(stack.pop())
            stack[-1].append(closed)
    if len(stack) != 1 or not stack[0]:
        raise DataError("its PDDL domain has unbalanced brackets; the file was cut short or edited")
    found: dict[str, Tree] = {}
    for part in stack[0][0]:
        if isinstance(part, tuple) and part and part[0] == ":action":
            keys = {key: part[i + 1] for i, key in enumerate(part[:-1]) if isinstance(key, str) and key[0] == ":"}
            found[str(part[1])] = (_canonical(keys.get(":precondition", ())), _canonical(keys.get(":effect", ())))
    return found


def _canonical(tree: Tree) -> Tree:
    """Nested `and`s and `or`s flattened, sorted, without repetition; costs and marks dropped."""
    if isinstance(tree, str):
        return tree
    parts = [_canonical(part) for part in tree]
    parts = [part for part in parts if not (isinstance(part, tuple) and part and part[0] in _UNTOLD)]
    if parts and parts[0] in {"and", "or"}:
        head = parts[0]
        flat = {p for part in parts[1:] for p in (part[1:] if part[:1] == (head,) else (part,))}
        return (head, *sorted(flat, key=repr)) if len(flat) != 1 else flat.pop()
    return tuple(parts)


def _released(name: str, action: Tree) -> Tree:
    """The action without what may differ between releases."""
    if name == "cleanobject":  # which sinks clean
        return _canonical(_one_sink(action))
    if name == "examineobject":
        # The official way to examine what is not held is mistyped there ("?l - location,"): it never
        # applies, so the real engine offers only what is held.
        mistyped = [leaf for leaf in _leaves(action) if "location," in leaf]
        before = action[0] if isinstance(action, tuple) else ()
        if mistyped and isinstance(before, tuple) and before[:1] == ("or",) and ("holds", "?a", "?o") in before:
            return (("holds", "?a", "?o"), action[1])
    return action


def _one_sink(tree: Tree) -> Tree:
    if isinstance(tree, str):
        return "sink" if tree in _SINKS else tree
    return tuple(_one_sink(part) for part in tree)


def _leaves(tree: Tree) -> list[tuple[str, ...]]:
    """Every bracket that holds only words."""
    if isinstance(tree, str):
        return []
    if all(isinstance(part, str) for part in tree):
        return [tuple(str(part) for part in tree)]
    return [leaf for part in tree for leaf in _leaves(part)]

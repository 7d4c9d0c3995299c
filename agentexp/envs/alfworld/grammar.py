"""The text rules of a game file: parsed once into a small tree, then told against facts.

A grammar holds production rules (first alternative whose condition holds wins) and, for each
action, the template of its command and the rule of its feedback. Knows no game state but facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from agentexp.envs.alfworld.facts import Atom, Bindings, Facts, Query, holds, solve
from agentexp.errors import DataError

_ATOM = re.compile(r"(\w+)\(([^)]*)\)")
_PIECE = re.compile(r"#([^#]+)#|\[\{(.+?)\}\]|\{(.+?)\}", re.DOTALL)
_BLOCK = re.compile(r'"""(.*?)"""', re.DOTALL)
_ACTION = re.compile(r'action ([\w/-]+) \{\s*template :: "(.*?)";\s*feedback :: "(.*?)";', re.DOTALL)
_PLAYED = (  # the actions that a grammar must word
    *("look", "inventory", "examinereceptacle", "examineobject", "gotolocation", "openobject", "closeobject"),
    *("pickupobject", "putobject", "cleanobject", "heatobject", "coolobject", "toggleobject", "sliceobject"),
)
_TASK = re.compile(r'("task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*)("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class Text:
    """Words that stand as they are."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """`#rule#`: what another rule tells."""

    rule: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """`{o.indefinite + ' ' + o.name}`: literals (True, text) and names of variables (False, v)."""

    parts: tuple[tuple[bool, str], ...]


@dataclass(frozen=True, slots=True)
class Each:
    """`[{item | query}]`: one item for each solution, as an English list."""

    item: Phrase | Call
    query: Query


Node = Text | Call | Phrase | Each


@dataclass(frozen=True, slots=True)
class Alternative:
    """One right-hand side of a rule and the condition under which it is used (empty: always)."""

    condition: Query
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ActionText:
    """How an action is commanded, and the rule that tells what it did."""

    template: tuple[tuple[bool, str], ...]  # parts as of a Phrase
    feedback: str

    def command(self, names: Mapping[str, str], bound: Bindings) -> str:
        """The command for these entities."""
        return "".join([text if literal else names[bound[text]] for literal, text in self.template])


@dataclass(frozen=True, slots=True)
class Grammar:
    """All rules and action texts of a release (the task's wording is kept apart)."""

    rules: Mapping[str, tuple[Alternative, ...]]
    actions: Mapping[str, ActionText]

    def tell(self, rule: str, facts: Facts, names: Mapping[str, str], bound: Bindings, task: str = "") -> str:
        """The text of `rule` where `bound` names the entities the text is about."""
        if rule == "task":
            return task
        for alternative in self.rules.get(rule, ()):
            if holds(alternative.condition, facts, bound):
                return "".join([self.write(node, facts, names, bound, task) for node in alternative.body])
        raise DataError(f"Grammar has no rule {rule!r} that applies; its rules: {', '.join(sorted(self.rules))}")

    def write(self, node: Node, facts: Facts, names: Mapping[str, str], bound: Bindings, task: str = "") -> str:
        """The text of one piece of a right-hand side."""
        if isinstance(node, Text):
            return node.text
        if isinstance(node, Call):
            return self.tell(node.rule, facts, names, bound, task)
        if isinstance(node, Phrase):
            return "".join([text if literal else names[bound[text]] for literal, text in node.parts])
        item = node.item
        if isinstance(item, Phrase):
            parts = item.parts
            items = [
                "".join([text if literal else names[b[text]] for literal, text in parts])
                for b in solve(node.query, facts, bound)
            ]
        else:
            items = [self.tell(item.rule, facts, names, b, task) for b in solve(node.query, facts, bound)]
        if len(items) < 2:
            return items[0] if items else self.tell("list_empty", facts, names, bound)
        comma = self.tell("list_separator", facts, names, bound)
        last = self.tell("list_last_separator", facts, names, bound)
        return comma.join(items[:-1]) + last + items[-1]


def parse_grammar(text: str) -> tuple[Grammar, str]:
    """A grammar and the wording of this game's task ("Your task is to: ...").

    Raises DataError where the text is not a grammar; the message says which part.
    """
    task = _TASK.search(text)
    if task is None:
        raise DataError('Grammar has no "task" rule, which words the goal ("Your task is to: ...")')
    wording = _plain(json.loads(task.group(2), strict=False).lstrip())
    return _parse(text[: task.start(2)] + '""' + text[task.end(2) :]), wording


@lru_cache(maxsize=16)
def _parse(text: str) -> Grammar:
    rules: dict[str, tuple[Alternative, ...]] = {}
    for block in _BLOCK.findall(text):
        lines = [line for line in block.split("\n") if not line.lstrip().startswith("#")]
        try:
            entries = json.loads("\n".join(lines))
        except ValueError as error:
            raise DataError(f"Grammar block is not JSON: {error}") from error
        for name, alternatives in entries.items():  # a later block replaces a rule of the same name
            rules[name] = tuple(
                Alternative(parse_query(a.get("condition", "")), parse_body(a["rhs"])) for a in alternatives
            )
    actions = {
        name.lower(): ActionText(tuple(_template(parse_body(template))), feedback.strip("#"))
        for name, template, feedback in _ACTION.findall(text)
    }
    needed = ["intro", "list_empty", "list_separator", "list_last_separator"]
    needed += [actions[a].feedback for a in _PLAYED if a in actions]
    missing = [f"action {a!r}" for a in _PLAYED if a not in actions]
    missing += [f"rule {r!r}" for r in needed if r not in rules]
    if missing:
        raise DataError(f"Grammar lacks {', '.join(missing)}")
    return Grammar(rules, actions)


def parse_query(text: str) -> Query:
    """`openable(r:receptacle) & opened(r:receptacle)` as atoms.

    >>> parse_query("holds(a:agent, o:object)")
    (Atom(predicate='holds', variables=('a', 'o')),)
    """
    return tuple(
        Atom(name.lower(), tuple(v.split(":")[0].strip() for v in variables.split(",")))
        for name, variables in _ATOM.findall(text)
    )


def parse_body(text: str) -> tuple[Node, ...]:
    """A right-hand side as pieces.

    >>> parse_body("You open the {r.name}. #more#")[1:]
    (Phrase(parts=((False, 'r'),)), Text(text='. '), Call(rule='more'))
    """
    nodes: list[Node] = []
    at = len(text) - len(text.lstrip())  # quirk: the real parser skips white space before the first word
    for found in _PIECE.finditer(text):
        if found.start() > at:
            nodes.append(Text(_plain(text[at : found.start()])))
        at = found.end()
        call, each, phrase = found.groups()
        if call:
            nodes.append(Call(call))
        elif each:
            item, _, query = each.partition("|")
            item = item.strip()
            inner = Call(item.strip("{}").strip("#")) if "#" in item else _phrase(item)
            nodes.append(Each(inner, parse_query(query)))
        else:
            nodes.append(_phrase(phrase))
    if at < len(text):
        nodes.append(Text(_plain(text[at:])))
    return tuple(nodes)


def _plain(text: str) -> str:
    """Words as the real parser reads them: quotation marks only mark words, backslash n is a new line."""
    return text.replace("\\n", "\n").replace('"', "")


def _template(nodes: tuple[Node, ...]) -> Iterator[tuple[bool, str]]:
    """A command's parts. An action binds all its entities, so a list in it has exactly one item."""
    for node in nodes:
        if isinstance(node, Text):
            yield True, node.text
        elif isinstance(node, Phrase):
            yield from node.parts
        elif isinstance(node, Each) and isinstance(node.item, Phrase):
            yield from node.item.parts
        else:
            raise DataError("Grammar has an action whose template calls a rule; only names can stand in a command")


def _phrase(expression: str) -> Phrase:
    """Every entity has a name, so `r.name or r.id` is its name; `indefinite` is always "a"."""

    def part(text: str) -> tuple[bool, str]:
        if text[0] in "'\"":
            return True, text[1:-1]
        variable, _, field = text.partition(".")
        return (True, "a") if field == "indefinite" else (False, variable)

    pieces = [p.strip(" ") for p in expression.split(" or ")[0].split("+")]
    return Phrase(tuple(part(p) for p in pieces))

"""Other names for tools: synonyms and styles, drawn by a seed, one for one and read back.

"Finish", which ends an episode in tool benchmarks, keeps its name. Two tools never get the same new
name, and no new name is another tool's old one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from agentexp.seeding import seed_for

NameStyle = Literal["snake", "camel", "dot", "word"]
STYLES: tuple[NameStyle, ...] = ("snake", "camel", "dot")
KEPT = frozenset({"Finish"})

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    key: tuple(others.split())
    for key, others in {
        "add": "append include insert",
        "authenticate": "login verify",
        "book": "reserve arrange",
        "buy": "purchase order",
        "calculate": "compute evaluate",
        "cancel": "abort revoke",
        "check": "inspect verify",
        "clean": "wash rinse",
        "close": "shut seal",
        "cool": "chill refrigerate",
        "create": "make build",
        "delete": "remove erase",
        "details": "info particulars",
        "display": "show present",
        "examine": "inspect study",
        "exchange": "swap trade",
        "fetch": "retrieve load",
        "file": "document record",
        "find": "search locate",
        "get": "fetch retrieve",
        "go": "walk travel",
        "heat": "warm cook",
        "inventory": "belongings carried",
        "list": "enumerate show",
        "look": "observe glance",
        "message": "note memo",
        "modify": "change edit",
        "move": "shift transfer",
        "open": "unlock unseal",
        "order": "purchase request",
        "post": "publish submit",
        "put": "place set",
        "return": "refund restore",
        "search": "find seek",
        "send": "deliver transmit",
        "set": "assign define",
        "slice": "cut carve",
        "take": "grab fetch",
        "transfer": "forward hand",
        "update": "change refresh",
        "use": "operate toggle",
        "user": "customer account",
        "help": "assist advise",
    }.items()
}
_PREFIXES = ("run", "call", "do", "perform", "execute")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_]+")


class Names:
    """New names of tools by their old ones. Grows by `learn` as tools are offered; what it once said
    stays. seed: equal seeds and equal tools in equal order give equal names."""

    def __init__(self, *, seed: int, styles: Sequence[NameStyle]) -> None:
        self.seed, self.styles = seed, styles
        self.new: dict[str, str] = {}
        self.old: dict[str, str] = {}

    def learn(self, names: Iterable[str]) -> None:
        """Name tools that have no new name yet."""
        fresh = [name for name in dict.fromkeys(names) if name not in self.new]
        taken = {*self.new, *self.old, *fresh}
        for name in fresh:
            chosen = name if name in KEPT else self._draw(name, taken)
            taken.add(chosen)
            self.new[name], self.old[chosen] = chosen, name

    def text(self, text: str) -> str:
        """The text with new names for old where a name can be nothing else: those of several words."""
        told = sorted((n for n in self.new if _compound(n)), key=len, reverse=True)
        if not told:
            return text
        found = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, told))})(?!\w)")
        return found.sub(lambda match: self.new[match.group()], text)

    def _draw(self, name: str, taken: set[str]) -> str:
        rng = random.Random(seed_for(self.seed, "name", name))
        parts = [p.lower() for p in _PARTS.findall(name)] or [name]
        for attempt in range(1000):
            words = [rng.choice(SYNONYMS[p]) if p in SYNONYMS else p for p in parts]
            if attempt >= 8:  # no synonym is free
                words = [rng.choice(_PREFIXES), *words]
            if attempt >= 24:
                words = [*words, str(attempt)]
            said = styled(words, rng.choice(list(self.styles)))
            if said not in taken:
                return said
        raise RuntimeError(f"no free name was found for the tool {name!r} beside {len(taken)} others")


def styled(words: Sequence[str], style: NameStyle) -> str:
    """Words as one name. word: for domains whose names are single words.

    >>> [styled(["get", "user", "info"], s) for s in ("snake", "camel", "dot", "word")]
    ['get_user_info', 'getUserInfo', 'get.user.info', 'getuserinfo']
    """
    match style:
        case "snake":
            return "_".join(words)
        case "camel":
            return words[0] + "".join(w[:1].upper() + w[1:] for w in words[1:])
        case "dot":
            return ".".join(words)
        case "word":
            return "".join(words)


def _compound(name: str) -> bool:
    return len(_PARTS.findall(name)) > 1

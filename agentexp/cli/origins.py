"""Who set a value: every file of the defaults list that does, with its line, then the command line.
The last one wins. Reads YAML marks; composes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Origin:
    """One setting of one key. line: 1-based, 0 for the command line."""

    key: str
    text: str
    place: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.place}:{self.line}" if self.line else self.place


@dataclass(frozen=True)
class Contribution:
    """A file of the defaults list and the package (dotted key) that its content lands under."""

    file: Path
    package: str


class Origins:
    """Settings of all keys, in the order in which they were applied."""

    def __init__(
        self,
        files: Sequence[Contribution],
        chosen: Iterable[tuple[str, str, str]],
        overrides: Iterable[tuple[str, str, str]],
    ) -> None:
        """chosen, overrides: (group or dotted key, value, the place)."""
        self._all: list[Origin] = [o for c in files for o in _settings(c)]
        self._all += [Origin(key, text, place) for key, text, place in overrides]
        self._chosen = {group: Origin(group, text, place) for group, text, place in chosen}

    def chosen(self, group: str) -> Origin | None:
        """Who chose a group's option."""
        return self._chosen.get(group)

    def of(self, key: str) -> list[Origin]:
        """Every setting of a key, or of a whole node above it by the command line; the last one wins."""
        return [o for o in self._all if o.key == key or (key.startswith(f"{o.key}.") and not o.line)]

    def where(self, key: str) -> str:
        """The place that set a key; of what lies above it, where nothing set it itself."""
        while key:
            found = self.of(key)
            if found:
                return str(found[-1])
            inside = [o for o in self._all if o.key.startswith(f"{key}.")]
            if inside:
                return inside[0].place
            key = key.rpartition(".")[0]
        return "conf/config.yaml"


def _settings(contribution: Contribution) -> list[Origin]:
    text = contribution.file.read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    place = short(contribution.file)
    found: list[Origin] = []

    def walk(node: yaml.Node, key: str) -> None:
        line = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                child = f"{key}.{name.value}" if key else name.value
                if child == "defaults" or (name.value == "defaults" and key == contribution.package):
                    continue
                if isinstance(value, yaml.MappingNode):
                    found.append(Origin(child, "{…}", place, name.start_mark.line + 1))
                walk(value, child)
        elif key:
            shown = (
                node.value if isinstance(node, yaml.ScalarNode) else text[node.start_mark.index : node.end_mark.index]
            )
            found.append(Origin(key, str(shown), place, line))

    if root is not None:
        walk(root, contribution.package)
    return found


def short(file: Path) -> str:
    """A file as a user names it: relative to where the user stands, or from the last conf/ on."""
    if file.is_relative_to(Path.cwd()):
        return str(file.relative_to(Path.cwd()))
    return str(file)

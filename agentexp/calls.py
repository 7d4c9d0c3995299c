"""Calls of tools, and the one text in which a command says them. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """One call of a tool: the decision, whatever text it was written in. `arguments` holds JSON values
    only.

    >>> ToolCall(name="ls", arguments={"a": True, "path": "."}).canonical
    '{"arguments":{"a":true,"path":"."},"name":"ls"}'
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def canonical(self) -> str:
        """One text for equal calls: JSON, keys sorted, no spaces. Raises ValueError for NaN and
        infinities, which JSON does not have."""
        call = {"name": self.name, "arguments": self.arguments}
        return json.dumps(call, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def command_of(calls: Sequence[ToolCall]) -> str:
    r"""The one text of these calls: their canonical texts, one a line.

    >>> command_of([ToolCall(name="ls"), ToolCall(name="pwd")])
    '{"arguments":{},"name":"ls"}\n{"arguments":{},"name":"pwd"}'
    """
    return "\n".join(c.canonical for c in calls)


def calls_of(command: str) -> tuple[ToolCall, ...]:
    r"""The calls that a command says, the inverse of `command_of`. Nothing where it is a message to the user.

    >>> [c.name for c in calls_of('{"arguments":{},"name":"ls"}\n{"arguments":{},"name":"pwd"}')]
    ['ls', 'pwd']
    >>> calls_of("Is there anything else?"), calls_of('{"name": "ls"}'), calls_of('{"arguments":{},"name":"ls"}\nSo.')
    ((), (), ())
    """
    calls = []
    for line in command.split("\n"):
        try:
            said = json.loads(line) if line.startswith("{") else None
        except (ValueError, RecursionError):
            return ()
        if not isinstance(said, dict) or said.keys() != {"name", "arguments"}:
            return ()
        if not isinstance(said["name"], str) or not isinstance(said["arguments"], dict):
            return ()
        calls.append(ToolCall(name=said["name"], arguments=said["arguments"]))
    return tuple(calls)

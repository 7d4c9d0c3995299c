"""Actions made by hand, as an agent with tools would read them."""

from __future__ import annotations

import json
from typing import Any

from agentexp.types import Action, ToolCall


def says(command: str) -> Action:
    """A command as an action: lines of canonical calls are calls, anything else is words."""
    try:
        calls = tuple(ToolCall(**json.loads(line)) for line in command.split("\n"))
    except (ValueError, TypeError):
        calls = ()
    return Action(text=command, command=command, calls=calls)


def calls(*each: tuple[str, dict[str, Any]]) -> Action:
    """The action that makes these calls."""
    made = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in each)
    return Action(text="", command="\n".join(call.canonical for call in made), calls=made)

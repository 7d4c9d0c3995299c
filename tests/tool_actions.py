"""Actions made by hand, as an agent with tools would read them."""

from __future__ import annotations

from typing import Any

from agentexp.calls import calls_of, command_of
from agentexp.types import Action, ToolCall


def says(command: str) -> Action:
    """A command as an action: lines of canonical calls are calls, anything else is words."""
    return Action(text=command, command=command, calls=calls_of(command))


def calls(*each: tuple[str, dict[str, Any]]) -> Action:
    """The action that makes these calls."""
    made = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in each)
    return Action(text="", command=command_of(made), calls=made)

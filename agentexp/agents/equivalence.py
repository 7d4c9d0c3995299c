"""Whether two actions decide the same, whatever text they were written in. The one place that says so."""

from __future__ import annotations

from typing import Literal

from agentexp.types import Action

Equivalence = Literal["latent", "tool_name"]


def equivalent(a: Action, b: Action, by: Equivalence) -> bool:
    """latent: the same calls with the same arguments in the same order, or the same command; any two
    thoughts. tool_name (Agentic-DPO's released code): the names of the tools alone; of a command
    without calls, its first word. What could not be read is equivalent to nothing.

    >>> take, other = (Action(text=t, command=t) for t in ("take mug 1", "take mug 2"))
    >>> equivalent(take, other, "latent"), equivalent(take, other, "tool_name")
    (False, True)
    """
    if a.error is not None or b.error is not None:
        return False
    return _latent(a) == _latent(b) if by == "latent" else _names(a) == _names(b)


def _latent(action: Action) -> tuple[str, ...]:
    if action.calls:
        return ("calls", *(c.canonical for c in action.calls))
    return ("thought",) if action.command is None else ("command", action.command)


def _names(action: Action) -> tuple[str, ...]:
    if action.calls:
        return ("calls", *(c.name for c in action.calls))
    return ("thought",) if action.command is None else ("command", action.command.partition(" ")[0])

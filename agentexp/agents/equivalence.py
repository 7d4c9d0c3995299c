"""Whether two actions decide the same, in whatever words. Knows actions; no token."""

from __future__ import annotations

from typing import Literal

from agentexp.types import Action

Equivalence = Literal["latent", "tool_name"]


def equivalent(one: Action, other: Action, how: Equivalence) -> bool:
    """Whether two actions decide the same. latent: the same calls with the same arguments, or the same
    command, however written; any two thoughts. tool_name (the official code's): the names of the tools alone; of a
    command without calls, its first word. What could not be read is equivalent to nothing.

    >>> take, other = (Action(text=t, command=t) for t in ("take mug 1", "take mug 2"))
    >>> equivalent(take, other, "latent"), equivalent(take, other, "tool_name")
    (False, True)
    """
    if one.error is not None or other.error is not None:
        return False
    if how == "latent":
        return _latent(one) == _latent(other)
    return _names(one) == _names(other)


def _latent(action: Action) -> tuple[str, ...]:
    if action.calls:
        return ("calls", *(c.canonical for c in action.calls))
    return ("thought",) if action.command is None else ("command", action.command)


def _names(action: Action) -> tuple[str, ...]:
    if action.calls:
        return tuple(c.name for c in action.calls)
    return ("thought",) if action.command is None else ("command", action.command.partition(" ")[0])

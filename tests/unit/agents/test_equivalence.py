"""The same decision in other words, and another decision in like words."""

from __future__ import annotations

from typing import Any

from agentexp.agents.equivalence import equivalent
from agentexp.types import Action, ToolCall


def test_equivalence_by_latent_action_and_by_name() -> None:
    def call(name: str, **arguments: Any) -> Action:
        c = ToolCall(name=name, arguments=arguments)
        return Action(text="any", command=c.canonical, calls=(c,))

    assert equivalent(call("ls", a=1, b=2), call("ls", b=2, a=1), "latent")
    assert not equivalent(call("ls", a=1), call("ls", a=2), "latent")
    assert equivalent(call("ls", a=1), call("ls", a=2), "tool_name")
    assert not equivalent(call("ls"), call("cd"), "tool_name")
    broken = Action(text="", command=None, error="no call")
    assert not equivalent(broken, broken, "latent")
    assert not equivalent(broken, broken, "tool_name")

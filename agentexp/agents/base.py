"""What an agent is: words in, words out. Knows messages and actions; no token, no tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentexp.types import Action, Message, Step, Task, Turn


class Agent(Protocol):
    """Renders what is new, reads and writes actions."""

    def render(self, task: Task, turns: Sequence[Turn], step: Step) -> list[Message]:
        """The messages that are new since the last turn: the first call (no turns) includes the
        system prompt and the task; later calls only the latest observation."""
        ...

    def parse(self, text: str) -> Action:
        """Read an action in generated text. A failure is an Action with `error`, never raised."""
        ...

    def write(self, command: str) -> str:
        """The text that `parse` reads as `command` (used for demonstrations)."""
        ...

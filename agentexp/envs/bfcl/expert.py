"""The leaderboard's right calls, played."""

from __future__ import annotations

import math
import random
from typing import Any

from agentexp.envs.bfcl.conversation import Conversation
from agentexp.seeding import seed_for
from agentexp.types import Step, Task, ToolCall

DONE = "Done."
CANNOT = "I cannot do that yet: a function or a detail is missing."


class GroundTruth:
    """Plays the right calls one a step, then ends the user's turn with a short message: `Done.`, or
    `CANNOT` where the right answer is no call. The command of a step is the canonical text of its
    calls, a line each; there are several only in a turn of more right calls than steps (two turns of
    34 in long_context).

    A random move (chance `noise`) calls a tool that needs no argument; the plan goes on after it.
    """

    def __init__(self, conversation: Conversation, *, task: Task, seed: int, noise: float, max_steps: int) -> None:
        self._plan = [command for turn in conversation.gold for command in commands(turn, max_steps)]
        self._rng = random.Random(seed_for("bfcl expert", task.id, seed))
        self._noise = noise
        self._tools: tuple[dict[str, Any], ...] = ()

    def act(self, step: Step) -> tuple[str, bool]:
        """(command, deliberate) after an observation."""
        self._tools = step.info.get("tools", self._tools)
        if self._rng.random() < self._noise:
            free = [t["function"]["name"] for t in self._tools if not t["function"]["parameters"].get("required")]
            if free:
                return ToolCall(name=self._rng.choice(free)).canonical, False
        return self._plan.pop(0), True


def commands(turn: tuple[ToolCall, ...], max_steps: int) -> list[str]:
    """What is said in a turn with these right calls, in at most `max_steps` steps and a message.

    >>> commands((), 20)
    ['I cannot do that yet: a function or a detail is missing.']
    """
    if not turn:
        return [CANNOT]
    at_once = math.ceil(len(turn) / max_steps)
    groups = [turn[i : i + at_once] for i in range(0, len(turn), at_once)]
    return [*("\n".join(call.canonical for call in group) for group in groups), DONE]

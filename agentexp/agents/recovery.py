"""Recovery contexts (Agentic-DPO, arXiv 2607.10601, App. D): before an expert's action stands a wrong call
and its error; the action itself is unchanged, after a thought that says so.

The wrong call and its answer are read, never trained: the agent that renders them hands them over as
messages. Never the expert's own call, so nothing right is shown to fail.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from agentexp.agents.base import Agent
from agentexp.agents.commands import Commands
from agentexp.agents.schemas import name_of
from agentexp.agents.tools import ToolAgent
from agentexp.agents.views import View
from agentexp.calls import calls_of, command_of
from agentexp.errors import ConfigError
from agentexp.seeding import seed_for
from agentexp.types import Action, Message, Role, Step, Task, ToolCall, Turn


class RecoveryView:
    """A view in which some of the expert's actions follow a mistake.

    view: the view that words it all (None: as the agent does). share: how many of the actions. error:
    what the environment says of the mistake; {name} is the tool. thought: said before the action
    (None: nothing). commands: as of `views.CommandView`, for text environments (None: tools).
    """

    def __init__(
        self,
        *,
        name: str,
        view: View | None,
        share: float,
        error: str,
        thought: str | None,
        commands: Mapping[str, str] | None,
    ) -> None:
        if not 0.0 <= share <= 1.0:
            raise ConfigError(f"the view {name!r} has share {share}; allowed is 0 to 1")
        self.name, self.view, self.share, self.error, self.thought = name, view, share, error, thought
        self.commands = None if commands is None else Commands(commands)

    def through(self, agent: Agent, key: str, decided: Sequence[str | None]) -> Agent:
        role = agent.results if isinstance(agent, ToolAgent) else "user"
        worded = agent if self.view is None else self.view.through(agent, key, decided)
        return Recovering(worded, self, decided, seed=seed_for(0, "recovery", key), role=role)


class Recovering:
    """An agent that shows mistakes before some of the expert's actions."""

    def __init__(
        self, agent: Agent, view: RecoveryView, decided: Sequence[str | None], *, seed: int, role: str
    ) -> None:
        self.agent, self.view, self.decided, self.seed = agent, view, decided, seed
        self.role: Role = "tool" if role == "tool" else "user"
        self._tools: list[str] = []
        self._corrects: str | None = None  # the action that follows the mistake shown last

    def render(self, task: Task, turns: Sequence[Turn], step: Step) -> list[Message]:
        self._tools = [name_of(t) for t in step.info.get("tools", ())] or self._tools
        messages = self.agent.render(task, turns, step)
        mistake = self._mistake(len(turns))
        self._corrects = None if mistake is None else self.decided[len(turns)]
        if mistake is None:
            return messages
        name, command = mistake
        answer = self.view.error.replace("{name}", name)
        wrong = Message(role="assistant", content=self.agent.write(command))
        return [*messages, wrong, Message(role=self.role, content=answer)]

    def parse(self, text: str) -> Action:
        return self.agent.parse(text)

    def write(self, command: str) -> str:
        said = self.agent.write(command)
        return f"{self.view.thought}\n{said}" if self.view.thought and command == self._corrects else said

    def _mistake(self, turn: int) -> tuple[str, str] | None:
        """(tool, command) of the mistake before this turn's action: another tool with the same arguments;
        None where there is none."""
        rng = random.Random(seed_for(self.seed, turn))
        command = self.decided[turn] if turn < len(self.decided) else None
        if command is None or rng.random() >= self.view.share:
            return None
        if self.view.commands is None:
            calls = calls_of(command)
            others = [t for t in self._tools if t != calls[0].name] if calls else []
            if not others:
                return None
            name = rng.choice(others)
            return name, command_of([ToolCall(name=name, arguments=calls[0].arguments)])
        call = self.view.commands.read(command)
        if call is None:
            return None
        fields = len(call.arguments)
        alike = [t for t in self.view.commands.templates.values() if len(t.fields) == fields and t.tool != call.name]
        if not alike:
            return None
        other = rng.choice(alike)
        arguments = dict(zip(other.fields, call.arguments.values(), strict=True))
        return other.tool, self.view.commands.write(ToolCall(name=other.tool, arguments=arguments))

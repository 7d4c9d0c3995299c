"""The agent of environments with tools: schemas and results in, calls or words out. Knows no token."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Literal

from agentexp.agents.parsing import strip_hidden
from agentexp.agents.renderings import RENDERINGS
from agentexp.agents.schemas import Schema, listed, name_of, written
from agentexp.calls import calls_of, command_of
from agentexp.errors import ConfigError
from agentexp.types import Action, Message, Step, Task, Turn

Format = Literal["react", "json", "hermes", "python"]


class ToolAgent:
    r"""Shows the tools once and every answer of the environment; reads calls of tools, or words.

    format: how calls are written (`renderings.py`). schemas: how tools are shown, by the model's chat
      template, or in the system message as lines of JSON or as signatures. Tools that come later
      are told in the message that brings them, so nothing that was said is rendered anew.
    results: the role of tool results; "tool" needs a chat template that knows it.
    words: an answer without a call is a message to the user; otherwise it is an error.
    compact: write calls without spaces that mean nothing.
    system_prompt: shown first, once; None for no words of its own.

    >>> agent = ToolAgent(format="python", schemas="text", results="user", words=True, compact=False,
    ...                   system_prompt=None)
    >>> agent.parse('[ls(path="[1]")]').calls
    (ToolCall(name='ls', arguments={'path': '[1]'}),)
    >>> agent.parse("Which folder?").command, agent.parse("[ls(1)]").command
    ('Which folder?', None)
    """

    def __init__(
        self,
        *,
        format: Format,  # the key of the YAML
        schemas: Literal["template", "json", "text"],
        results: Literal["tool", "user"],
        words: bool,
        compact: bool,
        system_prompt: str | None,
    ) -> None:
        if format not in RENDERINGS:
            raise ConfigError(f"agent.format is {format!r}; allowed are {', '.join(RENDERINGS)}")
        self.format, self.schemas, self.results = format, schemas, results
        self.words, self.compact, self.system_prompt = words, compact, system_prompt
        self.rendering = RENDERINGS[format]

    def in_format(self, format: Format) -> ToolAgent:
        """The same agent, calls written in another format."""
        if self.schemas == "template" and format != self.format:
            raise ConfigError(
                f"agent.schemas is template, and the template itself says how calls are written ({self.format}); a "
                f"view in {format} needs agent.schemas=json or text"
            )
        other = copy.copy(self)
        other.format, other.rendering = format, RENDERINGS[format]
        return other

    def render(self, task: Task, turns: Sequence[Turn], step: Step) -> list[Message]:
        """The system message and the first observation, then one observation a call."""
        tools: tuple[Schema, ...] = tuple(step.info.get("tools", ()))
        if turns:
            parts = [step.observation, *self._news(turns, tools)]
            role: Literal["tool", "user"] = self.results if turns[-1].action.calls else "user"
            return [Message(role=role, content="\n\n".join(p for p in parts if p))]
        in_template = self.schemas == "template"
        parts = [self.system_prompt or ""]
        if task.instruction not in step.observation:
            parts.append(task.instruction)
        if not (in_template and self.format == "hermes" and tools):  # else the template says it
            parts.append(self.rendering.how)
        if self.words:
            parts.append("An answer without a call is said to the user.")
        if tools and not in_template:
            parts.append(f"Tools:\n{listed(tools, self._style)}")
        system = Message(role="system", content="\n\n".join(p for p in parts if p), tools=tools if in_template else ())
        return [system, Message(role="user", content=step.observation)]

    def parse(self, text: str) -> Action:
        """Read the calls, the message or what is wrong with the text."""
        seen = strip_hidden(text).strip()
        reading = self.rendering.read(seen)
        if reading.error is not None:
            return Action(text=text, command=None, error=reading.error)
        if reading.calls:
            return Action(text=text, command=command_of(reading.calls), calls=reading.calls)
        if not seen:
            return Action(text=text, command=None, error=f"the answer is empty. {self.rendering.how}")
        if not self.words:
            return Action(text=text, command=None, error=f"found no call. {self.rendering.how}")
        return Action(text=text, command=seen)

    def write(self, command: str) -> str:
        """The text of a demonstrated command: its calls in the agent's format, or a message as it is.
        ConfigError for a message that would be read as anything else."""
        calls = calls_of(command)
        text = self.rendering.say(calls, compact=self.compact) if calls else command
        read = self.parse(text)
        if (read.calls or read.command) != (calls or command.strip()):
            raise ConfigError(
                f"the command {command!r} cannot be said in format {self.format}: it would be read as {read}; choose "
                "another agent.format"
            )
        return text

    @property
    def _style(self) -> Literal["json", "text"]:
        return "text" if self.schemas == "text" else "json"

    def _news(self, turns: Sequence[Turn], tools: Sequence[Schema]) -> list[str]:
        """What a change of the tools adds to a message; nothing where they do not change."""
        if not tools:
            return []
        earlier = [m for turn in turns for m in turn.messages]
        shown = [tool for m in earlier for tool in m.tools]
        told = "".join(f"\n{m.content}\n" for m in earlier)
        new = [t for t in tools if t not in shown and f"\n{written(t, self._style)}\n" not in told]
        names = ", ".join(name_of(t) for t in tools)
        return [*([f"New tools:\n{listed(new, self._style)}"] if new else []), f"Tools from now on: {names}."]

"""Views: the same state, tools and decision in other words (Agentic-DPO, arXiv 2607.10601, PPA).

A view turns an agent into one that shows states, writes actions and reads them in the view's words.
What it reads is the latent action: tool names and format are undone, so that a right action in any view
equals the expert's (`equivalence.py`). The agent it gives belongs to one episode, whose key seeds its
names: equal keys give equal words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol

from agentexp.agents.base import Agent
from agentexp.agents.commands import Commands
from agentexp.agents.naming import STYLES, Names
from agentexp.agents.parsing import strip_hidden
from agentexp.agents.renderings import RENDERINGS
from agentexp.agents.schemas import Schema, name_of, with_function
from agentexp.agents.tools import Format, ToolAgent
from agentexp.calls import calls_of, command_of
from agentexp.errors import ConfigError
from agentexp.seeding import seed_for
from agentexp.types import Action, Message, Step, Task, ToolCall, Turn


class View(Protocol):
    """One member phi of the family Phi: the same decisions in other words."""

    name: str

    def through(self, agent: Agent, key: str, decided: Sequence[str | None]) -> Agent:
        """The agent that shows, writes and reads in this view. `key` names the episode, for a view that
        words each episode differently: equal keys give equal words. decided: the commands that the
        episode's expert chose, one a turn (None: a thought)."""
        ...


# -- environments with tools -----------------------------------------------------------------------


class ToolView:
    """A view for a `ToolAgent`. format: how calls are written (None: as the agent does). rename: tools
    have other names, drawn for each episode; descriptions and parameters stay."""

    def __init__(self, *, name: str, format: Format | None, rename: bool) -> None:
        self.name, self.format, self.rename = name, format, rename

    def through(self, agent: Agent, key: str, decided: Sequence[str | None]) -> Agent:
        if not isinstance(agent, ToolAgent):
            raise ConfigError(
                f"the view {self.name!r} needs agentexp.agents.tools.ToolAgent, not {type(agent).__name__}; for "
                "commands of a text environment use agentexp.agents.views.CommandView"
            )
        worded = agent if self.format is None else agent.in_format(self.format)
        return Renamed(worded, seed=seed_for(0, "names", key)) if self.rename else worded


class Renamed:
    """An agent that knows the tools by other names. It learns them from the tools it is shown, so it
    belongs to one episode. Messages to the user stay as they are."""

    def __init__(self, agent: Agent, *, seed: int) -> None:
        self.agent = agent
        self.names = Names(seed=seed, styles=STYLES)

    def render(self, task: Task, turns: Sequence[Turn], step: Step) -> list[Message]:
        tools: tuple[Schema, ...] = tuple(step.info.get("tools", ()))
        self.names.learn(map(name_of, tools))
        info = dict(step.info)
        if tools:
            info["tools"] = tuple(self._schema(tool) for tool in tools)
        shown = replace(step, observation=self.names.text(step.observation), info=info)
        return self.agent.render(replace(task, instruction=self.names.text(task.instruction)), turns, shown)

    def parse(self, text: str) -> Action:
        action = self.agent.parse(text)
        if not action.calls:
            return action
        unknown = [c.name for c in action.calls if c.name not in self.names.old and c.name in self.names.new]
        if unknown:  # the old name of a tool: right elsewhere, here nobody knows it
            error = f"there is no tool {unknown[0]!r}; call a tool that was shown, by the name it was shown with"
            return Action(text=text, command=None, error=error)
        calls = tuple(replace(c, name=self.names.old.get(c.name, c.name)) for c in action.calls)
        return Action(text=text, command=command_of(calls), calls=calls)

    def write(self, command: str) -> str:
        calls = calls_of(command)
        if not calls:
            return self.agent.write(command)
        return self.agent.write(command_of([replace(c, name=self.names.new.get(c.name, c.name)) for c in calls]))

    def _schema(self, tool: Schema) -> Schema:
        inner = with_function(tool, name=self.names.new[name_of(tool)])
        described = tool.get("function", tool).get("description")
        return inner if described is None else with_function(inner, description=self.names.text(str(described)))


# -- text environments -----------------------------------------------------------------------------


class CommandView:
    """A view for an agent whose actions are commands of a text environment.

    format: the command as it is ("command"), or as a call in a format of `renderings.py`. rename: other
    verbs, drawn for each episode. commands: verb to the words of its command, such as
    `agentexp.envs.alfworld.commands.templates`. shows: what the first message says of the view: how
    to write and all kinds of commands ("all"), the new verbs beside the old ones ("renamed"), each
    with the view's name, or nothing. compact: calls without spaces that mean nothing, for a model
    of words (`learning/words.py`).
    """

    def __init__(
        self,
        *,
        name: str,
        format: Literal["command"] | Format,
        rename: bool,
        commands: Mapping[str, str],
        shows: Literal["all", "renamed", "nothing"],
        compact: bool,
    ) -> None:
        self.name, self.format, self.rename, self.shows, self.compact = name, format, rename, shows, compact
        self.commands = Commands(commands)

    def through(self, agent: Agent, key: str, decided: Sequence[str | None]) -> Agent:
        if isinstance(agent, ToolAgent):
            raise ConfigError(
                f"the view {self.name!r} is for commands; for ToolAgent use agentexp.agents.views.ToolView"
            )
        names = None
        if self.rename:
            names = Names(seed=seed_for(0, "names", key), styles=("word",))
            names.learn(self.commands.templates)
        return Commanded(agent, self, names)


class Commanded:
    """An agent of commands, seen through a `CommandView`."""

    def __init__(self, agent: Agent, view: CommandView, names: Names | None) -> None:
        self.agent, self.view, self.commands, self.names = agent, view, view.commands, names

    def render(self, task: Task, turns: Sequence[Turn], step: Step) -> list[Message]:
        info = dict(step.info)
        if "admissible" in info:
            info["admissible"] = tuple(self._said(command) or command for command in info["admissible"])
        messages = self.agent.render(task, turns, replace(step, info=info))
        if turns or not (told := self._told()):
            return messages
        if messages[0].role == "system":
            return [replace(messages[0], content=f"{messages[0].content}\n\n{told}"), *messages[1:]]
        return [replace(messages[0], content=f"{told}\n{messages[0].content}"), *messages[1:]]

    def parse(self, text: str) -> Action:
        if self.view.format == "command":
            action = self.agent.parse(text)
            if action.command is None or self.names is None:
                return action
            old = self.commands.renamed(action.command, self.names.old)
            return self._wrong(text, action.command) if old is None else replace(action, command=old)
        reading = RENDERINGS[self.view.format].read(strip_hidden(text).strip())
        if reading.error is not None or len(reading.calls) != 1:
            found = reading.error or f"found {len(reading.calls)} calls where one is needed"
            how = "" if reading.error else f". {RENDERINGS[self.view.format].how}"
            return Action(text=text, command=None, error=f"{found}{how}")
        call = reading.calls[0]
        if self.names is not None:
            if call.name not in self.names.old:
                return self._wrong(text, call.name)
            call = replace(call, name=self.names.old[call.name])
        try:
            command = self.commands.write(call)
        except ValueError as error:
            return Action(text=text, command=None, error=str(error))
        return replace(self.agent.parse(self.agent.write(command)), text=text)  # the agent's own cleaning

    def write(self, command: str) -> str:
        said = self._said(command)
        if said is None:
            raise ConfigError(
                f"the view {self.view.name!r} has no words for the command {command!r}; its kinds of commands are "
                f"{', '.join(self.commands.templates)}"
            )
        return self.agent.write(said) if self.view.format == "command" else said

    def _said(self, command: str) -> str | None:
        """A command in the view's words; None where it is none."""
        call = self.commands.read(command)
        if call is None:
            return None
        if self.view.format == "command":
            return command if self.names is None else self.commands.renamed(command, self.names.new)
        if self.names is not None:
            call = ToolCall(name=self.names.new[call.name], arguments=call.arguments)
        return RENDERINGS[self.view.format].say([call], compact=self.view.compact)

    def _told(self) -> str:
        view = self.view
        if view.shows == "all":
            how = [] if view.format == "command" else [RENDERINGS[view.format].how]
            return "\n".join([*how, "Commands:", self.commands.listed(self.names, as_calls=view.format != "command")])
        if view.shows == "renamed":
            pairs = {} if self.names is None else self.names.new
            return "\n".join([view.format, *(f"{old} {new}" for old, new in pairs.items())])
        return ""

    def _wrong(self, text: str, name: str) -> Action:
        assert self.names is not None
        error = f"there is no command {name.partition(' ')[0]!r}; there are {', '.join(self.names.old)}"
        return Action(text=text, command=None, error=error)

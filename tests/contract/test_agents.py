"""What every agent must keep. Every option of conf/agent and every kind of view has to pass all of it."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentexp.agents.base import Agent
from agentexp.agents.react import ReActAgent
from agentexp.agents.recovery import RecoveryView
from agentexp.agents.renderings import RENDERINGS
from agentexp.agents.tools import ToolAgent
from agentexp.agents.views import CommandView, ToolView
from agentexp.calls import command_of
from agentexp.cli.compose import compose_config
from agentexp.cli.train import prepare
from agentexp.cli.tree import tree
from agentexp.envs.alfworld.commands import templates
from agentexp.types import Action, Completion, Step, Task, ToolCall, Turn
from tests.toys import tool_schema

TASK = Task(id="t", env="e", split="train", instruction="Find the mug; f helps.")
TOOLS = (tool_schema("f", "Does.", {"x": "string"}), tool_schema("find_all", "Finds.", {}))
FIRST = Step(observation="Hello there.", info={"tools": TOOLS, "admissible": ("look",)})
CALLS = [
    command_of([ToolCall(name="f", arguments={"x": "]"})]),
    command_of([ToolCall(name="find_all"), ToolCall(name="f", arguments={"x": [None, "1", 1, "é\n"]})]),
    "Is there anything else?",
]
COMMANDS = ["look", "take mug 1 from desk 2", "put mug 1 in/on desk 2", "move mug 1 to desk 2", "go to desk 2"]


def option(name: str) -> Agent:
    node = dict(prepare(compose_config([f"agent={name}"])).config["agent"])
    kind = {"ToolAgent": ToolAgent, "ReActAgent": ReActAgent}[node.pop("_target_").rpartition(".")[2]]
    agent: Agent = kind(**node)
    return agent


def through(view: Any, agent: str, commands: list[str]) -> Agent:
    found: Agent = view.through(option(agent), "k", commands)
    return found


def command_view(format: Any, rename: bool) -> CommandView:
    return CommandView(name="v", format=format, rename=rename, commands=templates(), shows="all", compact=True)


def recovery(view: Any, commands: Any, thought: str | None) -> RecoveryView:
    return RecoveryView(name="v", view=view, share=1.0, error="no {name}", thought=thought, commands=commands)


def tool_view(format: Any, rename: bool) -> ToolView:
    return ToolView(name="v", format=format, rename=rename)


AGENTS: dict[str, tuple[Callable[[], Agent], list[str]]] = {
    name: (partial(option, name), CALLS if name.startswith("tools") else COMMANDS) for name in tree().options("agent")
}
for new_names in (False, True):
    for kind in ("command", *RENDERINGS):
        made_by = partial(through, command_view(kind, new_names), "react", COMMANDS)
        AGENTS[f"commands as {kind}, renamed {new_names}"] = (made_by, COMMANDS)
    for kind in RENDERINGS:
        made_by = partial(through, tool_view(kind, new_names), "tools", CALLS)
        AGENTS[f"tools as {kind}, renamed {new_names}"] = (made_by, CALLS)
with_tools = recovery(tool_view("json", True), None, "So.")
with_commands = recovery(command_view("hermes", True), templates(), None)
AGENTS["recovery with tools"] = (partial(through, with_tools, "tools", CALLS), CALLS)
AGENTS["recovery with commands"] = (partial(through, with_commands, "react_plain", COMMANDS), COMMANDS)


@pytest.fixture(params=list(AGENTS))
def made(request: pytest.FixtureRequest) -> tuple[Agent, list[str]]:
    make, commands = AGENTS[request.param]
    return make(), commands


def turn(agent: Agent, text: str, messages: list[Any], step: Step) -> Turn:
    completion = Completion(ids=(1,), logprobs=(-1.0,), text=text, finish="stop", policy_version=0)
    return Turn(prompt_ids=(1,), completion=completion, action=agent.parse(text), step=step, messages=tuple(messages))


def test_the_task_and_every_observation_are_shown_once_and_in_order(made: tuple[Agent, list[str]]) -> None:
    agent, commands = made
    turns: list[Turn] = []
    step, shown = FIRST, []
    for n, command in enumerate(commands):
        messages = agent.render(TASK, turns, step)
        assert messages
        assert messages[0].role != "assistant"
        assert not any(m.tools for m in messages[1:])
        shown.append(messages)
        turns.append(turn(agent, agent.write(command), messages, step))
        step = Step(observation=f"Seen {n}.")
    text = ["\n".join(m.content for m in messages) for messages in shown]
    assert "Hello there." in text[0]
    assert TASK.instruction.partition(";")[0] in text[0]
    for n in range(len(commands) - 1):
        assert [f"Seen {n}." in t for t in text] == [k == n + 1 for k in range(len(text))]


def test_what_it_writes_it_reads_as_the_same_decision(made: tuple[Agent, list[str]]) -> None:
    agent, commands = made
    agent.render(TASK, [], FIRST)
    for command in commands:
        action = agent.parse(agent.write(command))
        assert (action.command, action.error) == (command, None)
        assert (action.calls != ()) == (command[0] == "{")
        assert action.text == agent.write(command)
    texts = [agent.write(command) for command in commands]
    assert len(set(texts)) == len(texts)


def test_garbage_is_an_action_that_can_be_stored(made: tuple[Agent, list[str]]) -> None:
    agent, commands = made
    agent.render(TASK, [], FIRST)
    rng = random.Random(0)
    good = [agent.write(c) for c in commands]
    junk = ["", " ", "\x00", "[" * 5000, "{" * 5000, "<tool_call>", "Action:", "<think>", "[f(", "думать", "a" * 10_000]
    for _ in range(200):
        text = list(rng.choice(good))
        for _ in range(rng.randrange(1, 8)):
            del text[rng.randrange(len(text)) :][: rng.randrange(3)]
            text.insert(rng.randrange(len(text) + 1), rng.choice("[]{}\"'\\,:()<>=\n x1"))
        junk.append("".join(text))
    for text in junk:
        action = agent.parse(text)
        assert action.text == text
        assert pickle.loads(pickle.dumps(action)) == action
        assert not (action.error is not None and (action.command is not None or action.calls))
        assert isinstance(action, Action)


def test_every_option_of_conf_is_here() -> None:
    assert {p.stem for p in (Path("conf") / "agent").glob("*.yaml")} <= set(AGENTS)

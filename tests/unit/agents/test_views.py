"""Views: other words for the same decision. A right action in any view is never a negative."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentexp.agents.base import Agent
from agentexp.agents.commands import Commands
from agentexp.agents.equivalence import equivalent
from agentexp.agents.naming import KEPT, STYLES, Names
from agentexp.agents.recovery import RecoveryView
from agentexp.agents.renderings import RENDERINGS
from agentexp.agents.tools import ToolAgent
from agentexp.agents.views import CommandView, ToolView
from agentexp.calls import command_of
from agentexp.envs.alfworld.commands import templates
from agentexp.envs.alfworld.environment import GeneratedAlfWorld
from agentexp.errors import ConfigError
from agentexp.types import Action, Completion, Message, Step, Task, ToolCall, Turn
from tests.toys import react, tool_schema
from tests.unit.agents.test_renderings import values

TASK = Task(id="t", env="shop", split="train", instruction="Use get_user first. A user has a name.")
TOOLS = (
    tool_schema("get_user", "Finds a user; before cancel_order.", {"name": "string"}),
    tool_schema("cancel_order", "Cancels.", {"order_id": "string"}),
    tool_schema("find_user", "Finds.", {"name": "string"}),
    tool_schema("ls", "Lists.", {"a": "boolean"}),
    tool_schema("Finish", "Ends.", {"answer": "string"}),
)
FIRST = Step(observation="Hi, please get_user me.", info={"tools": TOOLS})
OFFERED = ["get_user", "getUser", "get.user", "fetch_user", "retrieve_account", "a", "A", "ls", "run_ls", "Finish"]
names = st.sampled_from([t["function"]["name"] for t in TOOLS])
call = st.builds(lambda n, a: ToolCall(name=n, arguments=a), names, st.dictionaries(st.text(max_size=6), values))
VIEWS = [ToolView(name=f"{f} {r}", format=f, rename=r) for f in (None, *RENDERINGS) for r in (False, True)]  # type: ignore[arg-type]


def base() -> ToolAgent:
    return ToolAgent(format="react", schemas="text", results="user", words=True, compact=False, system_prompt=None)


def opened(view: ToolView, key: str = "t#0") -> Agent:
    agent = view.through(base(), key, [])
    agent.render(TASK, [], FIRST)
    return agent


def said(calls: list[ToolCall]) -> Action:
    return Action(text="…", command=command_of(calls), calls=tuple(calls))


@pytest.mark.parametrize("view", VIEWS, ids=lambda v: v.name)
def test_a_right_action_in_any_view_is_never_a_negative(view: ToolView) -> None:
    """The property that the released code breaks: it reads no tool in its own JSON."""
    agent = opened(view)

    @settings(max_examples=40, deadline=None)
    @given(st.lists(call, min_size=1, max_size=2), st.lists(call, min_size=1, max_size=2))
    def holds(expert: list[ToolCall], other: list[ToolCall]) -> None:
        read = agent.parse(agent.write(command_of(expert)))
        for by in ("latent", "tool_name"):
            assert equivalent(read, said(expert), by)  # type: ignore[arg-type]
        wrong = agent.parse(agent.write(command_of(other)))
        assert equivalent(wrong, said(expert), "latent") == (command_of(other) == command_of(expert))
        assert equivalent(wrong, said(expert), "tool_name") == ([c.name for c in other] == [c.name for c in expert])

    holds()


@pytest.mark.parametrize("view", VIEWS, ids=lambda v: v.name)
def test_messages_and_malformed_text_in_every_view(view: ToolView) -> None:
    agent = opened(view)
    message = agent.parse(agent.write("Is there anything else?"))
    assert equivalent(message, Action(text="", command="Is there anything else?"), "latent")
    assert not equivalent(message, said([ToolCall(name="ls")]), "tool_name")
    broken = agent.parse('Action: ls\n[{"name": <tool_call> [ls(')
    assert not equivalent(broken, broken, "latent")  # what could not be read equals nothing


def test_equivalence_by_hand() -> None:
    one, two = (said([ToolCall(name="ls", arguments={"a": a})]) for a in (True, 1))
    assert not equivalent(one, two, "latent")  # true is not 1, though Python says so
    assert equivalent(one, two, "tool_name")
    assert equivalent(one, replace(one, text="[ls(a=True)]"), "latent")
    thought = Action(text="hm", command=None)
    assert equivalent(thought, replace(thought, text="so"), "latent")
    assert not equivalent(thought, one, "tool_name")
    assert not equivalent(Action(text="", command="ls"), said([ToolCall(name="ls")]), "tool_name")  # a word, not a call


def test_renamed_tools() -> None:
    agent = opened(ToolView(name="rename", format="json", rename=True))
    system, user = agent.render(TASK, [], FIRST)
    shown = agent.names.new  # type: ignore[attr-defined]
    assert shown["Finish"] == "Finish"
    assert all(new != old for old, new in shown.items() if old not in KEPT)
    for old in ("get_user", "cancel_order", "find_user"):  # nowhere, not even within words of the environment
        assert old not in system.content + user.content
    assert f"Use {shown['get_user']} first. A user has a name." in system.content
    assert f"Finds a user; before {shown['cancel_order']}." in system.content  # descriptions are kept
    assert user.content == f"Hi, please {shown['get_user']} me."
    text = agent.write(command_of([ToolCall(name="ls", arguments={"a": True})]))
    assert text == f'[{{"name": "{shown["ls"]}", "arguments": {{"a": true}}}}]'
    assert agent.parse('[{"name": "get_user"}]').error is not None  # its old name is no tool here
    assert agent.parse('[{"name": "nowhere"}]').calls == (ToolCall(name="nowhere"),)


def test_names_are_those_of_the_episode() -> None:
    view = ToolView(name="rename", format=None, rename=True)
    one, again, other = (opened(view, key) for key in ("t#0", "t#0", "t#1"))
    assert one.names.new == again.names.new  # type: ignore[attr-defined]
    assert one.names.new != other.names.new  # type: ignore[attr-defined]


@settings(deadline=None)
@given(st.lists(st.sampled_from(OFFERED), unique=True), st.integers(0, 1000))
def test_new_names_are_one_for_one_and_nobody_s_old_name(tools: list[str], seed: int) -> None:
    drawn = Names(seed=seed, styles=STYLES)
    drawn.learn(tools[: len(tools) // 2])
    before = dict(drawn.new)
    drawn.learn(tools)
    assert {k: drawn.new[k] for k in before} == before  # what was once said stays
    assert len(set(drawn.new.values())) == len(tools)
    assert all(drawn.old[new] == old for old, new in drawn.new.items())
    assert all(new == "Finish" or new not in tools for old, new in drawn.new.items() if old in tools[len(tools) // 2 :])


def test_a_view_of_another_kind_of_agent_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"needs .*ToolAgent"):
        ToolView(name="json", format="json", rename=False).through(react(), "k", [])
    with pytest.raises(ConfigError, match="is for commands"):
        command_view("json", False).through(base(), "k", [])


# -- text environments


def command_view(format: Any, rename: bool, **changes: Any) -> CommandView:
    options: dict[str, Any] = {"commands": templates(), "shows": "all", "compact": True}
    return CommandView(name=f"{format} {rename}", format=format, rename=rename, **{**options, **changes})


@pytest.fixture(scope="module")
def real_commands() -> list[str]:
    """Every command that was admissible in random walks through generated games, and the other grammar's."""
    environment = GeneratedAlfWorld(engine="pure", admissible=True, explore=0.0, train_games=60, valid_games=1)
    rng, seen = random.Random(0), {"help"}
    for task in environment.tasks("train")[:60]:
        session = environment.start(task, 0)
        step = session.first
        for _ in range(25):
            seen |= set(step.info["admissible"])
            step = session.step(Action(text="", command=rng.choice(step.info["admissible"])))
            if step.done:
                break
        session.close()
    seen |= {c.replace("put ", "move ", 1).replace(" in/on ", " to ", 1) for c in seen if c.startswith("put ")}
    return sorted(seen)


def test_commands_are_calls_and_back(real_commands: list[str]) -> None:
    commands = Commands(templates())
    kinds = {c.partition(" ")[0] for c in real_commands}
    assert kinds >= {"look", "inventory", "go", "open", "close", "examine", "take", "put", "move", "use", "help"}
    calls = [commands.read(c) for c in real_commands]
    assert all(calls)
    assert [commands.write(c) for c in calls if c] == real_commands
    assert commands.read("put apple 1 in/on table 2") == ToolCall(
        name="put", arguments={"object": "apple 1", "receptacle": "table 2"}
    )
    for garbage in ("", "fly", "put apple 1", "go to", "look up", "take a", "goto drawer 1"):
        assert commands.read(garbage) is None


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("fly", {}, "there is no tool 'fly'"),
        ("go", {}, "takes the arguments"),
        ("go", {"receptacle": 3}, "must be a text"),
        ("take", {"object": "a from b", "receptacle": "c"}, "is no command"),
    ],
)
def test_calls_that_are_no_command(name: str, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Commands(templates()).write(ToolCall(name=name, arguments=arguments))


@pytest.mark.parametrize("rename", [False, True])
@pytest.mark.parametrize("format", ["command", *RENDERINGS])
@pytest.mark.parametrize("inner", ["plain", "react"])
def test_every_real_command_in_every_view(format: Any, rename: bool, inner: str, real_commands: list[str]) -> None:
    agent = command_view(format, rename).through(react(format=inner), "k", [])
    texts = {c: agent.write(c) for c in real_commands}
    assert len(set(texts.values())) == len(texts)
    for command, text in texts.items():
        read = agent.parse(text)
        assert equivalent(read, Action(text="", command=command), "latent"), (command, text, read)
        assert read.calls == ()  # the environment is given its own text
    assert (texts["look"] != "look") == (rename or format != "command" or inner == "react")


def test_renamed_commands_by_hand() -> None:
    agent = command_view("json", True).through(react(admissible=True), "k", [])
    new = agent.names.new  # type: ignore[attr-defined]
    step = Step(observation="A wall.", info={"admissible": ("look", "take mug 1 from desk 2")})
    (message,) = agent.render(TASK, [], step)
    mug = f'{{"name":"{new["take"]}","arguments":{{"object":"mug 1","receptacle":"desk 2"}}}}'
    assert f"{new['take']}(object, receptacle)" in message.content
    assert message.content.endswith(f'You can: [{{"name":"{new["look"]}","arguments":{{}}}}], [{mug}]')
    assert agent.parse(f"[{mug}]").command == "take mug 1 from desk 2"
    assert agent.parse(f"[{mug},{mug}]").error is not None
    assert "there is no command 'take'" in str(agent.parse(f"[{mug}]".replace(new["take"], "take")).error)
    assert "found 0 calls" in str(agent.parse("take mug 1 from desk 2").error)
    words = command_view("command", True, shows="renamed").through(react(), "k", [])
    assert words.write("take mug 1 from desk 2") == f"{new['take']} mug 1 from desk 2"
    assert words.parse("take mug 1 from desk 2").error is not None
    assert f"take {new['take']}\n" in words.render(TASK, [], Step(observation="A wall."))[0].content
    with pytest.raises(ConfigError, match="has no words for"):
        agent.write("fly home")


# -- recovery contexts


def replayed(agent: Agent, steps: list[Step], commands: list[str]) -> list[list[Message]]:
    turns: list[Turn] = []
    shown = []
    for step, command in zip(steps, commands, strict=True):
        messages = agent.render(TASK, turns, step)
        text = agent.write(command)
        completion = Completion(ids=(1,), logprobs=(-1.0,), text=text, finish="stop", policy_version=0)
        action = agent.parse(text)
        turns.append(Turn(prompt_ids=(1,), completion=completion, action=action, step=None, messages=tuple(messages)))
        shown.append([*messages, Message(role="assistant", content=text)])
    return shown


def recovery(**changes: Any) -> RecoveryView:
    options: dict[str, Any] = {
        "name": "recovery", "view": None, "share": 1.0, "error": "Error: {name} failed.", "commands": None,
        "thought": "Thought: that was the wrong tool.",
    }  # fmt: skip
    return RecoveryView(**{**options, **changes})


@pytest.mark.parametrize("inner", [None, *VIEWS], ids=lambda v: "none" if v is None else v.name)
def test_a_mistake_its_error_a_thought_and_the_same_action(inner: ToolView | None) -> None:
    calls = [ToolCall(name="get_user", arguments={"name": "Ann"}), ToolCall(name="ls", arguments={"a": True})]
    commands = [command_of([c]) for c in calls]
    agent = recovery(view=inner).through(base(), "k", commands)
    plain = base() if inner is None else inner.through(base(), "k", [])
    steps = [FIRST, Step(observation="Found.")]
    with_mistakes, without = replayed(agent, steps, commands), replayed(plain, steps, commands)
    for turn, (long, short) in enumerate(zip(with_mistakes, without, strict=True)):
        assert long[: len(short) - 1] == short[:-1]
        wrong, error, answer = long[-3:]
        assert (wrong.role, error.role) == ("assistant", "user")
        mistake = plain.parse(wrong.content)
        assert not equivalent(mistake, said([calls[turn]]), "tool_name")  # never the expert's own
        assert mistake.calls[0].arguments == calls[turn].arguments
        assert error.content == f"Error: {mistake.calls[0].name} failed."
        assert answer.content == f"Thought: that was the wrong tool.\n{short[-1].content}"
        assert equivalent(plain.parse(answer.content), said([calls[turn]]), "latent")


def test_a_mistake_is_never_the_expert_s_own_call() -> None:
    command = command_of([ToolCall(name="ls", arguments={"a": True})])
    made = set()
    for key in map(str, range(40)):
        messages = recovery().through(base(), key, [command]).render(TASK, [], FIRST)
        made |= {c.name for c in base().parse(messages[-2].content).calls}
    assert made == {t["function"]["name"] for t in TOOLS} - {"ls"}


def test_no_mistakes_at_share_0_and_before_messages() -> None:
    commands = [command_of([ToolCall(name="ls", arguments={})]), "Which folder?"]
    steps = [FIRST, Step(observation="Found.")]
    assert replayed(recovery(share=0.0).through(base(), "k", commands), steps, commands) == replayed(
        base(), steps, commands
    )
    shown = replayed(recovery().through(base(), "k", commands), steps, commands)
    assert [len(messages) for messages in shown] == [5, 2]
    with pytest.raises(ConfigError, match="share 2"):
        recovery(share=2)


def test_mistakes_in_a_text_environment() -> None:
    view = recovery(view=command_view("json", True), commands=templates(), error="Nothing happens.", thought=None)
    agent = view.through(react(), "k", ["take mug 1 from desk 2", "look"])
    steps = [Step(observation="A."), Step(observation="B.")]
    first, second = replayed(agent, steps, ["take mug 1 from desk 2", "look"])
    wrong = agent.parse(first[-3].content).command
    assert wrong is not None
    assert "mug 1" in wrong
    assert "desk 2" in wrong
    assert not wrong.startswith("take")
    assert first[-2].content == "Nothing happens."
    assert agent.parse(second[-3].content).command in {"inventory", "help"}

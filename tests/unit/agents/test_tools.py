"""The agent with tools: what it shows, when it says that tools changed, what it reads and writes."""

from __future__ import annotations

from typing import Any

import pytest

from agentexp.agents.renderings import RENDERINGS
from agentexp.agents.schemas import written
from agentexp.agents.tools import ToolAgent
from agentexp.calls import command_of
from agentexp.errors import ConfigError
from agentexp.policies.chat import Chat
from agentexp.types import Action, Completion, Message, Step, Task, ToolCall, Turn
from tests.toys import CHATML, FORGETTING, bytes_tokenizer, tool_schema

TASK = Task(id="t", env="shop", split="train", instruction="Serve by the policy: get_user first.")
GET = tool_schema("get_user", "Finds a user.", {"name": "string"})
CANCEL = tool_schema("cancel_order", "Cancels an order.", {"order_id": "string", "why": "string"})
# What tool templates such as Hermes's and Qwen's do: the schemas in the system turn, results in a turn of their own.
WITH_TOOLS = (
    "{% if tools %}{{ '<|im_start|>system\n' + (messages[0].content if messages[0].role == 'system' else '') }}"
    "{% for tool in tools %}{{ '\n' + (tool | tojson) }}{% endfor %}{{ '<|im_end|>\n' }}{% endif %}"
    "{% for message in messages %}{% if not (loop.first and tools and message.role == 'system') %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
NO_TOOL_ROLE = CHATML.replace(
    "{{ '<|im_start|>' +", "{% if message['role'] == 'tool' %}{{ raise_exception('no') }}{% endif %}{{ '<|im_start|>' +"
)


def agent(**changes: Any) -> ToolAgent:
    options: dict[str, Any] = {
        "format": "json", "schemas": "text", "results": "user", "words": True, "compact": False, "system_prompt": None,
    }  # fmt: skip
    return ToolAgent(**{**options, **changes})


def turn(said: Action, messages: list[Message]) -> Turn:
    completion = Completion(ids=(1,), logprobs=(-1.0,), text=said.text, finish="stop", policy_version=0)
    return Turn(prompt_ids=(1,), completion=completion, action=said, step=None, messages=tuple(messages))


def called() -> Action:
    calls = (ToolCall(name="get_user", arguments={"name": "Ann"}),)
    return Action(text="…", command=command_of(calls), calls=calls)


def test_first_call_shows_prompt_task_format_and_tools() -> None:
    system, user = agent(system_prompt="Be brief.").render(TASK, [], Step(observation="Hi.", info={"tools": (GET,)}))
    assert (system.role, user.role, user.content, system.tools) == ("system", "user", "Hi.", ())
    assert system.content == (
        "Be brief.\n\nServe by the policy: get_user first.\n\n"
        'To call tools, write one JSON list: [{"name": <tool>, "arguments": {<name>: <value>}}]\n\n'
        "An answer without a call is said to the user.\n\n"
        "Tools:\nget_user(name: string): Finds a user.\n  name: the name"
    )
    in_json = agent(schemas="json").render(TASK, [], Step(observation="Hi.", info={"tools": (GET,)}))[0].content
    assert in_json.endswith(f"Tools:\n{written(GET, 'json')}")
    (system, _) = agent().render(TASK, [], Step(observation=TASK.instruction, info={"tools": (GET,)}))
    assert TASK.instruction not in system.content  # the user says it


def test_the_template_shows_the_tools_and_its_own_format() -> None:
    through = agent(schemas="template", format="hermes")
    messages = through.render(TASK, [], Step(observation="Hi.", info={"tools": (GET,)}))
    assert messages[0].tools == (GET,)
    assert "Finds a user" not in messages[0].content
    assert "<tool_call>" not in messages[0].content
    chat = Chat(tokenizer=bytes_tokenizer(WITH_TOOLS))
    text = chat.tokenizer.decode(chat.open().extend(messages))
    assert text.count("Finds a user.") == 1
    assert text.index("Finds a user.") < text.index("Hi.")
    with pytest.raises(ConfigError, match=r"agent\.schemas to json or text"):  # a template without words for tools
        Chat(tokenizer=bytes_tokenizer(CHATML)).open().extend(messages)


@pytest.mark.parametrize("schemas", ["template", "json", "text"])
@pytest.mark.parametrize("template", [WITH_TOOLS, CHATML, FORGETTING])
def test_new_tools_are_told_once_in_the_message_that_brings_them(schemas: str, template: str) -> None:
    """BFCL's missed functions: append only, nothing that was said is rendered anew."""
    if schemas == "template" and template != WITH_TOOLS:
        return
    one, chat = agent(schemas=schemas, format="hermes", results="tool"), Chat(tokenizer=bytes_tokenizer(template))
    conversation, turns = chat.open(), []
    steps = [
        Step(observation="Hi.", info={"tools": (GET,)}),
        Step(observation="Found.", info={}),
        Step(observation="Now.", info={"tools": (GET, CANCEL)}),
        Step(observation="Again.", info={"tools": (GET, CANCEL)}),
        Step(observation="Less.", info={"tools": (CANCEL,)}),
    ]
    said = []
    for step in steps:
        messages = one.render(TASK, turns, step)
        conversation.extend(messages)
        completion = chat.scripted(one.write(called().command or ""))
        conversation.adopt(completion)
        turns.append(turn(called(), messages))
        said.append(messages[-1])
    assert conversation.breaks == 0
    assert [m.role for m in said] == ["user", "tool", "tool", "tool", "tool"]
    style: Any = "text" if schemas == "text" else "json"
    assert said[1].content == "Found."
    assert said[2].content == (
        f"Now.\n\nNew tools:\n{written(CANCEL, style)}\n\nTools from now on: get_user, cancel_order."
    )
    assert said[3].content == "Again.\n\nTools from now on: get_user, cancel_order."
    assert said[4].content == "Less.\n\nTools from now on: cancel_order."
    assert not any(m.tools for m in said)


def test_tools_in_a_later_message_are_refused() -> None:
    conversation = Chat(tokenizer=bytes_tokenizer(WITH_TOOLS)).open()
    conversation.extend([Message(role="user", content="Hi.")])
    conversation.adopt(Completion(ids=(5,), logprobs=(-1.0,), text="x", finish="stop", policy_version=0))
    with pytest.raises(ValueError, match="must be told in words"):
        conversation.extend([Message(role="user", content="Hi.", tools=(GET,))])


def test_results_have_a_role_of_their_own_where_the_template_knows_it() -> None:
    step = Step(observation="Found.")
    assert agent(results="tool").render(TASK, [turn(called(), [])], step)[0].role == "tool"
    assert agent(results="user").render(TASK, [turn(called(), [])], step)[0].role == "user"
    words = Action(text="Which?", command="Which?")
    assert agent(results="tool").render(TASK, [turn(words, [])], step)[0].role == "user"  # the user answers
    assert Chat(tokenizer=bytes_tokenizer(CHATML)).tool_frame is not None
    without = Chat(tokenizer=bytes_tokenizer(NO_TOOL_ROLE))
    assert without.tool_frame is None
    conversation = without.open()
    conversation.extend([Message(role="user", content="Hi.")])
    conversation.adopt(Completion(ids=(5,), logprobs=(-1.0,), text="x", finish="stop", policy_version=0))
    with pytest.raises(ConfigError, match=r"agent\.results=user"):
        conversation.extend([Message(role="tool", content="Found.")])


def test_the_frames_of_both_roles_and_full_rendering_agree() -> None:
    fast, slow = Chat(tokenizer=bytes_tokenizer(CHATML)), Chat(tokenizer=bytes_tokenizer(CHATML))
    slow.frame = slow.tool_frame = None
    one, two = fast.open(), slow.open()
    assert one.extend([Message(role="user", content="a")]) == two.extend([Message(role="user", content="a")])
    for n in range(12):
        answer = fast.scripted("look")
        one.adopt(answer)
        two.adopt(answer)
        message = Message(role="tool" if n % 3 else "user", content=f" {n}\n")
        assert one.extend([message]) == two.extend([message])
    assert one.ids == two.ids
    # A template whose words depend on the tools has no frame: the slow path reads it.
    odd = CHATML.replace("{{ '<|im_start|>' +", "{% if tools and loop.index > 2 %}!{% endif %}{{ '<|im_start|>' +")
    assert Chat(tokenizer=bytes_tokenizer(odd)).frame is None


@pytest.mark.parametrize("format", list(RENDERINGS))
def test_what_it_writes_it_reads(format: str) -> None:
    one = agent(format=format)
    calls = [ToolCall(name="f", arguments={"x": "</think>]", "n": 1}), ToolCall(name="g")]
    for said in (calls[:1], calls):
        for command in (command_of(said), "\n".join(c.canonical for c in said)):
            action = one.parse(one.write(command))
            assert (action.command, action.calls) == (command_of(said), tuple(said))
    message = one.parse(one.write("Is there anything else?"))
    assert (message.command, message.calls, message.error) == ("Is there anything else?", (), None)
    hidden = one.parse(f"<think>[{{f(a=1)}}] Action: x <tool_call></think>{one.write(command_of(calls))}")
    assert hidden.calls == tuple(calls)


@pytest.mark.parametrize(
    ("format", "message"),
    [("json", "[sic] it is"), ("react", "Action: none"), ("hermes", "a </tool_call>"), ("python", "")],
)
def test_a_message_that_would_be_read_as_something_else_is_refused(format: str, message: str) -> None:
    with pytest.raises(ConfigError, match="cannot be said"):
        agent(format=format).write(message)


def test_words_are_an_error_where_nobody_listens() -> None:
    assert agent(words=False).parse("Which order?").error == f"found no call. {RENDERINGS['json'].how}"
    assert agent().parse(" \n").error == f"the answer is empty. {RENDERINGS['json'].how}"


def test_a_template_fixes_the_format() -> None:
    with pytest.raises(ConfigError, match=r"needs agent\.schemas=json or text"):
        agent(schemas="template", format="hermes").in_format("json")

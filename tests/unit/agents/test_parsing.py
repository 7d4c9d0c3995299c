"""Reading actions: every text gives one of command, thought, error; nothing raises or evaluates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.agents.parsing import labelled_commands, strip_hidden
from tests.toys import react

ANY_TEXT = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(
            [
                "ACTION:",
                "action : ",
                "REASON: ",
                "<think>",
                "</think>",
                "think:",
                "\n",
                " ",
                "**",
                "`",
                "look",
                "é",
                "\x00",
            ]
        ),
        max_size=12,
    ).map("".join),
)


@given(
    text=ANY_TEXT,
    format=st.sampled_from(["plain", "react"]),
    several=st.sampled_from(["first", "last", "error"]),
    think=st.booleans(),
    keep=st.sampled_from([None, "abcdefghijklmnopqrstuvwxyz 0123456789/"]),
)
def test_any_text_is_read_as_exactly_one_kind(
    text: str, format: str, several: str, think: bool, keep: str | None
) -> None:
    action = react(format=format, several=several, think=think, keep=keep).parse(text)
    assert action.text == text
    assert [action.command is not None, action.error is not None, action.is_thought].count(True) == 1
    if action.command is not None:
        assert action.command
        assert action.command == " ".join(action.command.split())
    if not think:
        assert not action.is_thought


@given(command=st.from_regex(r"[a-z]+( [a-z0-9/]+){0,4}", fullmatch=True), format=st.sampled_from(["plain", "react"]))
def test_what_a_demonstrator_writes_is_read_back(command: str, format: str) -> None:
    agent = react(format=format)
    assert agent.parse(agent.write(command)).command == command


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("REASON: cold.\nACTION: open fridge 1", ["open fridge 1"]),
        ("ACTION:open fridge 1", ["open fridge 1"]),
        ("**Action:** `open fridge 1`", ["open fridge 1"]),
        ("> action 2 : open fridge 1  ", ["open fridge 1"]),
        ("ACTION:\n\n  open fridge 1\nREASON: after", ["open fridge 1"]),
        ("ACTION:\nREASON: none", [""]),
        ("ACTION: look\nACTION: inventory", ["look", "inventory"]),
        ("my ACTION is: look", []),  # not a label
        ("reaction: look", []),
    ],
)
def test_labels(text: str, commands: list[str]) -> None:
    assert labelled_commands(text) == commands


@pytest.mark.parametrize(("several", "command"), [("first", "look"), ("last", "inventory"), ("error", None)])
def test_several_actions_follow_the_named_rule(several: str, command: str | None) -> None:
    action = react(format="react", several=several).parse("ACTION: look\nACTION: inventory")
    assert action.command == command
    assert (action.error is not None) == (command is None)


def test_errors_say_what_to_do() -> None:
    agent = react(format="react")
    assert agent.parse("I will open it").error == "found no ACTION line; write `ACTION: <command>`"
    assert agent.parse("ACTION: \n").error == "the ACTION line is empty; write `ACTION: <command>`"
    assert react().parse(" \n").error == "the action is empty; write a command"
    assert react(keep="abc").parse("xyz").error == "the action is empty; write a command"


def test_nothing_is_evaluated() -> None:
    text = "__import__('os').abort()"
    assert react(lower=False).parse(text).command == text


def test_hidden_thoughts_hold_no_action() -> None:
    agent = react(format="react", several="error")
    assert agent.parse("<think>ACTION: look</think>ACTION: open fridge 1").command == "open fridge 1"
    assert agent.parse("<think>ACTION: look").error is not None  # cut while thinking
    assert strip_hidden("a</think>b<think>c") == "b"


def test_thoughts_only_where_they_are_allowed() -> None:
    assert react(think=True).parse("think: where is the key?").is_thought
    assert react(think=False).parse("think: where is the key?").command == "think: where is the key?"
    assert react(think=True, format="react").parse("ACTION: think: hm").is_thought
    assert react(think=True).parse("think of doors").command == "think of doors"


def test_cleaning_is_configured() -> None:
    assert react().parse("Open Door 1.").command == "open door 1."
    assert react(lower=False).parse("Open Door 1.").command == "Open Door 1."
    assert react(keep="abcdefghijklmnopqrstuvwxyz0123456789 /").parse("Open Door 1.").command == "open door 1"

"""The scripted customer."""

from __future__ import annotations

import pytest

from agentexp.envs.tau.case import Case, Customer
from agentexp.envs.tau.expert import ASK_WHO, GOODBYE, HANDED_OVER
from agentexp.envs.tau.users import ENDS, STOP, TRANSFERRED, ScriptedUsers, first_person
from agentexp.errors import ConfigError


def case(*, email: str | None = None) -> Case:
    customer = Customer(user_id="ada", first_name="Ada", last_name="Byron", zip="10001", email=email)
    return Case(
        id="1", customer=customer, request="You want your mug.", manner="You are brief.", gold=(), outputs=(), basis=(),
        unjudged=0,
    )  # fmt: skip


def test_who_they_are_is_what_they_were_told() -> None:
    forgetful = ScriptedUsers(patience=0).open(case(), 0)
    assert forgetful.first == "Hi. I want my mug."
    assert forgetful.answer(ASK_WHO) == "My name is Ada Byron and my zip code is 10001. I do not remember my email."
    knowing = ScriptedUsers(patience=0).open(case(email="ada@example.com"), 0)
    assert "My email is ada@example.com." in knowing.answer("Please confirm your identity.")


@pytest.mark.parametrize(
    "message",
    [
        "I will cancel #W1. Do you confirm (yes/no)?",
        "Shall I do that?",
        "Your new address, zip 10001, is this. Would you like me to proceed?",
    ],
)
def test_they_say_yes_to_a_confirmation(message: str) -> None:
    assert ScriptedUsers(patience=0).open(case(), 0).answer(message) == "Yes, please go ahead."


def test_they_end_the_conversation() -> None:
    user = ScriptedUsers(patience=0).open(case(), 0)
    assert STOP in user.answer(GOODBYE)
    assert user.answer(HANDED_OVER) == TRANSFERRED
    assert not any(end in user.answer("Shall I?") for end in ENDS)  # control


def test_their_patience_ends() -> None:
    user = ScriptedUsers(patience=2).open(case(), 0)
    told = "I want my mug.\nI am brief."
    assert [user.answer("Hm."), user.answer("Well.")] == [told, told]
    assert STOP in user.answer("Well, well.")
    with pytest.raises(ConfigError, match="patience is -1"):
        ScriptedUsers(patience=-1)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("You're Ada; you were late.", "I'm Ada; I was late."),
        ("Ask them to tell you what is yours.", "Ask them to tell me what is mine."),
        ("Order #W2378156 in 19122", "Order #W2378156 in 19122"),
        ("The youth of your city", "The youth of my city"),
    ],
)
def test_first_person(told: str, said: str) -> None:
    assert first_person(told) == said

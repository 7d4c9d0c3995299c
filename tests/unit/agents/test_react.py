"""What the agent shows: new messages only, each thing once."""

from __future__ import annotations

from agentexp.types import Action, Completion, Step, Task, Turn
from tests.toys import react

TASK = Task(id="t", env="doors", split="train", instruction="find the key")
STEP = Step(observation="A wall.", info={"inventory": "a coin", "admissible": ("look", "open door 1")})
TURN = Turn(
    prompt_ids=(1,),
    completion=Completion(ids=(2,), logprobs=(-1.0,), text="look", finish="stop", policy_version=0),
    action=Action(text="look", command="look"),
    step=STEP,
)


def test_first_call_shows_system_prompt_and_task_later_calls_the_observation_only() -> None:
    agent = react(system_prompt="Be brief.")
    first = agent.render(TASK, [], STEP)
    assert [(m.role, m.content) for m in first] == [
        ("system", "Be brief."),
        ("user", "A wall.\nYour task: find the key"),
    ]
    later = agent.render(TASK, [TURN], STEP)
    assert [(m.role, m.content) for m in later] == [("user", "A wall.")]


def test_the_task_is_not_said_twice() -> None:
    step = Step(observation="Three doors. Your task is to: find the key")
    (message,) = react(reminder=True).render(TASK, [], step)
    assert message.content.count("find the key") == 1


def test_parts_are_shown_when_asked_for() -> None:
    (message,) = react(reminder=True, inventory=True, admissible=True).render(TASK, [TURN], STEP)
    assert message.content == "A wall.\nYour task: find the key\nYou hold: a coin\nYou can: look, open door 1"
    (message,) = react(inventory=True, admissible=True).render(TASK, [TURN], Step(observation="A wall."))
    assert message.content == "A wall."  # an environment that tells neither

"""Conversations over the made-up release: scoring, withheld functions, limits."""

from __future__ import annotations

import random
from typing import Any

import pytest

from agentexp.envs.bfcl.session import NOTHING, OVER, BfclSession
from agentexp.types import Action, Step, Task, ToolCall
from tests.tool_actions import calls, says
from tests.toy_bfcl import OPTIONS, ToyBfcl


def env(**changes: Any) -> ToyBfcl:
    return ToyBfcl(**{**OPTIONS, **changes})


def task_of(environment: ToyBfcl, name: str) -> Task:
    return next(task for task in environment.tasks("all") if task.id == name)


def play(environment: ToyBfcl, name: str, *actions: Action) -> tuple[BfclSession, list[Step]]:
    session = environment.start(task_of(environment, name), 0)
    return session, [session.first, *(session.step(action) for action in actions)]


def right_plan(environment: ToyBfcl, name: str) -> list[str]:
    task = task_of(environment, name)
    expert = environment.expert(task, 0, 0.0)
    session = environment.start(task, 0)
    step, plan = session.first, []
    while not step.done:
        plan.append(expert.act(step)[0])
        step = session.step(says(plan[-1]))
    return plan


def names(step: Step) -> list[str]:
    return [tool["function"]["name"] for tool in step.info["tools"]]


DESK = calls(("light", {"lamp": "desk"}))
LIST = calls(("list_lamps", {}))
SAY = says("Done.")


def test_a_whole_conversation() -> None:
    """base_0: light('desk'), then list_lamps(); two turns, so one passed turn is a share of 1/2."""
    session, steps = play(env(), "base_0", DESK, SAY)
    assert [step.observation for step in steps] == ["Light the desk lamp.", "None", "Which lamps are there?"]
    assert [step.reward for step in steps] == [0.0, 0.0, 1.0]
    assert session.outcome().metrics["turns_passed"] == 0.5
    assert not session.outcome().success
    answer = session.step(LIST)
    assert answer.observation == '{"lamps": ["bed", "desk"]}'
    last = session.step(SAY)
    assert (last.observation, last.reward, last.done) == (OVER, 1.0, True)
    assert session.outcome().reward == 1.0
    assert session.outcome().metrics["calls"] == 2.0


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        ((SAY, LIST, SAY), "an empty turn"),
        ((calls(("light", {"lamp": "bed"})), SAY, LIST, SAY), "another state"),
        ((DESK, SAY, DESK, SAY), "right state, but the answer of list_lamps was never seen"),
        ((DESK, SAY, SAY), "the last call is missing"),
    ],
)
def test_what_fails(actions: tuple[Action, ...], why: str) -> None:
    session, steps = play(env(), "base_0", *actions)
    assert steps[-1].done
    assert session.outcome().reward == 0.0, why
    assert session.outcome().metrics["success_upstream"] == 0.0


def test_more_calls_and_other_orders_pass_where_state_and_answers_are_right() -> None:
    """An answer of an earlier turn counts; a detour that comes back does not hurt."""
    detour = (calls(("light", {"lamp": "bed"})), calls(("light", {"lamp": "bed", "lit": False})))
    session, _ = play(env(), "base_0", LIST, *detour, DESK, SAY, DESK, SAY)
    assert session.outcome().success


def test_several_calls_in_one_step_are_run_in_order_and_answered_together() -> None:
    both = calls(("dim", {"lamp": "sofa", "level": 2}), ("label", {"lamp": "sofa", "tags": ["warm", "low"]}))
    _, steps = play(env(), "base_1", both, SAY)
    assert steps[1].observation == '{"lamp": "sofa", "level": 2}\nwarm, low'
    assert steps[2].reward == 1.0


def test_tools_are_shown_at_first_and_when_they_change() -> None:
    """miss_func_0: `light` is withheld in turn 0 and arrives in turn 1, in which the user has nothing
    of their own to say."""
    session, steps = play(env(), "miss_func_0", says("There is no function for it."))
    assert names(steps[0]) == ["list_lamps", "dim", "label"]
    assert steps[1].observation == "There are more functions now."
    assert names(steps[1]) == ["list_lamps", "dim", "label", "light"]
    assert steps[1].reward == 1.0  # nothing was called
    arrived = session.step(DESK)
    assert "tools" not in arrived.info
    assert "tools" not in session.step(SAY).info
    _, unchanged = play(env(), "base_0", DESK, SAY)
    assert names(unchanged[0]) == ["list_lamps", "light", "dim", "label"]
    assert all("tools" not in step.info for step in unchanged[1:])


def test_what_is_withheld_or_excluded_or_undocumented_does_not_run() -> None:
    session, steps = play(env(), "miss_func_0", DESK)
    assert steps[1].info["refused"] is True
    assert "no function 'light'" in steps[1].observation
    assert session.step(SAY).reward == 0.0  # it called in a turn whose right answer is no call
    for name in ("burn", "_load_scenario", "__init__", "lamps", "__class__", ""):
        session, steps = play(env(), "base_0", calls((name, {})))
        assert steps[1].info["refused"] is True
        assert len(session._mine.apis["LampAPI"].lamps) == 2
    _, steps = play(env(), "base_2", calls(("power", {"base": 2, "exponent": 2})))  # base_2 excludes it
    assert "no function 'power'" in steps[1].observation
    _, steps = play(env(), "base_3", calls(("power", {"base": 2, "exponent": 3})))  # control: 2^3 = 8
    assert steps[1].observation == '{"result": 8}'


def test_empty_turns_unchecked_is_the_releases_own_scoring() -> None:
    """miss_param_0 opens with a turn whose right answer is no call. A call there fails by our rule; by
    upstream's the conversation passes, if the state is right afterwards."""
    actions = (LIST, SAY, DESK, SAY, LIST, SAY)
    strict, _ = play(env(), "miss_param_0", *actions)
    assert strict.outcome().reward == 0.0
    assert strict.outcome().metrics["success_upstream"] == 1.0
    assert strict.outcome().metrics["turns_passed"] == pytest.approx(2 / 3)
    loose, _ = play(env(empty_turns="unchecked"), "miss_param_0", *actions)
    assert loose.outcome().reward == 1.0


def test_more_steps_than_the_limit_end_the_episode_failed() -> None:
    """Upstream counts to 20 and stops after the step that goes beyond; here the limit is 2."""
    session, steps = play(env(max_steps_per_turn=2), "base_0", DESK, LIST)
    assert not steps[-1].done
    last = session.step(DESK)
    assert last.done
    assert session.outcome().metrics["forced_end"] == 1.0
    assert not session.outcome().success
    with pytest.raises(RuntimeError, match="ended"):
        session.step(SAY)
    # control: the limit counts within a turn
    session, _ = play(env(max_steps_per_turn=2), "base_0", DESK, LIST, SAY, LIST, LIST, SAY)
    assert session.outcome().success


def test_unreadable_actions_are_answered_and_count_as_steps_but_not_as_calls() -> None:
    unreadable = Action(text="<tool", command=None, error="no closing tag")
    session, steps = play(env(), "miss_param_0", unreadable)
    assert (steps[1].observation, steps[1].info["refused"]) == ("no closing tag", True)
    assert session.step(Action(text="hm", command=None)).observation == NOTHING
    assert session.step(SAY).reward == 1.0
    session, steps = play(env(max_steps_per_turn=1), "base_0", unreadable, unreadable)
    assert steps[-1].done
    assert session.outcome().metrics["forced_end"] == 1.0


def test_a_bad_argument_becomes_an_observation_worded_as_upstream() -> None:
    for arguments, part in (
        ({"lamp": "desk"}, "missing 1 required positional argument: 'level'"),
        ({"lamp": "desk", "level": 1, "colour": 2}, "unexpected keyword argument 'colour'"),
        ({"lamp": "desk", "level": "x"}, "unsupported operand"),
        ({"lamp": ["desk"], "level": 1}, "unhashable"),
    ):
        _, steps = play(env(), "base_0", calls(("dim", arguments)))
        assert steps[1].observation.startswith("Error during execution: ")
        assert part in steps[1].observation
        assert steps[1].info["refused"] is True


def test_an_api_that_keeps_its_arguments_does_not_share_them_with_the_action() -> None:
    tags = ["warm"]
    session, _ = play(env(), "base_1", Action(
        text="", command="x", calls=(ToolCall(name="label", arguments={"lamp": "sofa", "tags": tags}),)
    ))  # fmt: skip
    session._mine.apis["LampAPI"].lamps["sofa"]["tags"].append("low")
    assert tags == ["warm"]


def test_what_an_api_module_hands_out_is_not_shared_between_sessions() -> None:
    """In long contexts the toy gives out an object of its module, as upstream does with credit cards."""
    environment = env()
    spare = calls(("light", {"lamp": "spare"}))
    one, _ = play(environment, "long_context_0", spare)
    two, _ = play(environment, "long_context_0")
    assert one._mine.apis["LampAPI"].lamps["spare"]["lit"] is True
    assert two._mine.apis["LampAPI"].lamps["spare"]["lit"] is False
    assert one._gold.apis["LampAPI"].lamps["spare"]["lit"] is False


def test_dropping_any_one_right_call_never_gains() -> None:
    """For every task: the full plan wins; without its last call it loses; silence loses."""
    environment = env()
    for task in environment.tasks("all"):
        plan = right_plan(environment, task.id)
        session, _ = play(environment, task.id, *(says(c) for c in plan))
        assert session.outcome().success
        last = max(i for i, c in enumerate(plan) if c.startswith("{"))
        session, _ = play(environment, task.id, *(says(c) for i, c in enumerate(plan) if i != last))
        assert session.outcome().reward == 0.0
        session, _ = play(environment, task.id, *(says(c) for c in plan if not c.startswith("{")))
        assert session.outcome().reward == 0.0


def test_outcome_share_is_the_mean_of_step_rewards() -> None:
    """A property over random play: the share of passed turns is the sum of Step.reward over the turns."""
    environment, rng = env(), random.Random(0)
    seen = set()
    for task in environment.tasks("all"):
        plan = [c for c in right_plan(environment, task.id) if not c.startswith("{") or rng.random() < 0.7]
        session, steps = play(environment, task.id, *(says(c) for c in plan))
        turns = sum(not c.startswith("{") for c in plan)
        assert session.outcome().metrics["turns_passed"] == pytest.approx(sum(s.reward for s in steps) / turns)
        seen.add(session.outcome().success)
    assert seen == {True, False}

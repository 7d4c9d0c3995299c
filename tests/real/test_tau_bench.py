"""The retail domain of τ-bench v1. Its package is on no registry, so CI does not require it: these tests
run where `tau_bench` was installed from its repository, and have not been run by us.
"""

from __future__ import annotations

import pytest

from agentexp.envs.tau.environment import TauRetail
from agentexp.envs.tau.users import ScriptedUsers
from agentexp.errors import ConfigError
from tests.tool_actions import says

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def env() -> TauRetail:
    try:
        return TauRetail(release="tau_bench", user=ScriptedUsers(patience=3))
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("split", "size", "floor"), [("test", 115, 7), ("train", 500, 5), ("dev", 20, 1)])
def test_the_clerk_wins_every_task_and_doing_nothing_a_few(env: TauRetail, split: str, size: int, floor: int) -> None:
    tasks = env.tasks(split)
    assert len(tasks) == size
    assert env.floor(tasks) == floor / size
    lost = []
    for task in tasks:
        session, expert = env.start(task, 0), env.expert(task, 0, 0.0)
        step, turns = session.first, 0
        while not step.done and turns < 60:
            step = session.step(says(expert.act(step)[0]))
            turns += 1
        if session.outcome().reward != 1.0:
            lost.append(task.id)
    assert not lost


def test_official_splits_share_customers(env: TauRetail) -> None:
    train, test = ({t.scenario for t in env.tasks(split)} for split in ("train", "test"))
    assert len(train & test) == 43
    assert len(env._release.tools) == 16

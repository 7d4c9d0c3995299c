"""Several environments behind one: each split goes to its owner."""

from __future__ import annotations

import pickle

import pytest

from agentexp.envs.alfworld.environment import GeneratedAlfWorld
from agentexp.envs.base import Teaches
from agentexp.envs.several import Several
from agentexp.errors import ConfigError
from tests.toy_run import ToyWorld
from tests.toy_tau import ToyTau


def both(**splits: str) -> Several:
    rooms = GeneratedAlfWorld(engine="pure", admissible=False, explore=0.0, train_games=6, valid_games=6)
    return Several(environments={"rooms": rooms, "coins": ToyWorld()}, splits=splits)  # type: ignore[dict-item]


def test_each_split_is_its_owners() -> None:
    one = both(train="rooms", valid="coins")
    assert [t.env for t in one.tasks("train")] == ["alfworld_generated"] * 6
    assert {t.env for t in one.tasks("valid")} == {"toy"}
    task = one.tasks("train")[0]
    assert "Your task is to" in one.start(task, 0).first.observation
    with pytest.raises(NotImplementedError, match="toy"):  # the coins' own `start` is asked
        one.start(one.tasks("valid")[0], 0)
    assert isinstance(one, Teaches)
    assert one.expert(task, 0, 0.0).act(one.start(task, 0).first)[1] is True
    assert pickle.loads(pickle.dumps(task)) == task


def test_what_is_recorded_names_both() -> None:
    version = both(train="rooms", valid="coins").version()
    assert version["environment"] == "alfworld_generated+toy"
    assert version["rooms.engine"] == "pure"
    assert version["label"] == "train: generated games, not ALFWorld scores; valid: toy games, not real ones"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="belongs to 'room', which is none of the environments rooms, coins"):
        both(train="room")
    with pytest.raises(ConfigError, match="at least one"):
        both()
    with pytest.raises(ConfigError, match="No split 'test'; allowed: train, valid"):
        both(train="rooms", valid="coins").tasks("test")
    one = both(train="rooms", valid="coins")
    with pytest.raises(ConfigError, match="brings no expert"):
        one.expert(one.tasks("valid")[0], 0, 0.0)


def test_a_floor_needs_the_floors_of_all() -> None:
    one = Several(
        environments={"v1": ToyTau(release="tau_bench"), "v2": ToyTau(release="tau2"), "coins": ToyWorld()},  # type: ignore[dict-item]
        splits={"dev": "v1", "test": "v2", "valid": "coins"},
    )
    # the one dev task needs a write, the one test task of v2 does not: (0 + 1) / 2
    assert one.floor([*one.tasks("dev"), *one.tasks("test")]) == 0.5
    assert one.floor(one.tasks("test")) == 1.0
    assert one.floor([*one.tasks("test"), *one.tasks("valid")]) is None

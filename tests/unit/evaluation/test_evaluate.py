"""Which games are measured, and what counts as a success."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from agentexp.errors import ConfigError, DataError, RolloutError
from agentexp.evaluation.evaluate import Evaluation, frozen_order, ids_hash, same_games
from agentexp.evaluation.metrics import evaluated, success_rate
from agentexp.rollouts.collect import Collection
from agentexp.stats import wilson
from agentexp.types import Group, StopReason, Task, Trajectory
from tests.toy_run import ToyRollouts, ToyWorld, episode


def task(i: int, **changes: Any) -> Task:
    return Task(**{"id": f"t/{i}", "env": "toy", "split": "valid", "instruction": "", "kind": "ab"[i % 2], **changes})


def failed(t: Task) -> Trajectory:
    return replace(episode(t, 0, 0, False), outcome=None, stop=StopReason.ENV_ERROR, error="boom")


def sum_up(groups: Sequence[Group], trials: int = 1) -> Any:
    return evaluated(groups, split="valid", temperature=1.0, trials=trials, floor=None, wall_s=0.0)


def test_an_environment_error_stays_in_the_denominator() -> None:
    tasks = [task(i) for i in range(4)]
    members = [
        episode(tasks[0], 0, 0, True),
        episode(tasks[1], 0, 0, True),
        episode(tasks[2], 0, 0, False),
        failed(tasks[3]),
    ]
    e = sum_up([Group(task=t, trajectories=(m,)) for t, m in zip(tasks, members, strict=True)])
    # 2 of 4, not 2 of 3
    assert e.success == wilson(2, 4)
    assert e.stops == {"done": 3, "env_error": 1}
    assert e.by_type == {"a": wilson(1, 2), "b": wilson(1, 2)}
    assert e.reward == 0.5
    # one command of four was refused by the toy, as it lost; the failed episode copied a lost one
    assert e.refused_rate == 0.5


def test_trials_are_clustered_by_task_and_tasks_by_scenario() -> None:
    tasks = [task(i) for i in range(10)]
    trials = [[episode(t, k, 0, i % 2 == 0) for k in range(4)] for i, t in enumerate(tasks)]
    groups = [Group(task=t, trajectories=tuple(m)) for t, m in zip(tasks, trials, strict=True)]
    e = sum_up(groups, trials=4)
    assert e.success.method == "cluster bootstrap"
    assert e.success.n == 40
    assert e.success.high - e.success.low > 0.5  # ten coins, not forty: Wilson on 40 would be .29 wide
    assert e.pass_hat == {1: 0.5, 2: 0.5, 3: 0.5, 4: 0.5}
    pairs = [episode(task(i, scenario=f"room {i // 2}"), 0, 0, i % 4 < 2) for i in range(40)]
    assert success_rate(pairs, trials=1).method == "cluster bootstrap"
    assert success_rate([episode(task(i), 0, 0, True) for i in range(40)], trials=1).method == "wilson"


def test_pass_hat_k_by_hand() -> None:
    # game 0: 2 of 2, game 1: 1 of 2 → pass^1 = (1 + .5)/2 = .75, pass^2 = (1 + 0)/2 = .5
    members = [[True, True], [True, False]]
    groups = [
        Group(task=task(i), trajectories=tuple(episode(task(i), k, 0, w) for k, w in enumerate(m)))
        for i, m in enumerate(members)
    ]
    assert sum_up(groups, trials=2).pass_hat == {1: 0.75, 2: 0.5}


class Forgiving(ToyWorld):
    """A world where doing nothing is right in every fourth game."""

    def floor(self, tasks: Sequence[Task]) -> float:
        return sum(int(t.id.rpartition("/")[2]) % 4 == 0 for t in tasks) / len(tasks)


def test_the_floor_is_that_of_the_games_played() -> None:
    evaluation = make(environment=Forgiving(), tasks=6)
    played = [int(t.id.rpartition("/")[2]) for t in evaluation.tasks]
    found = evaluation.measure(evaluation.tasks, 1.0, lambda *_: None)
    assert found.floor == sum(n % 4 == 0 for n in played) / 6
    assert found.to_json()["floor"] == found.row()["floor"] == found.floor
    silent = make(tasks=6)  # control: an environment that does not say has no floor, not a floor of 0
    found = silent.measure(silent.tasks, 1.0, lambda *_: None)
    assert found.floor is None
    assert found.to_json()["floor"] is None
    assert "floor" not in found.row()


def make(rollouts: Any = None, **changes: Any) -> Evaluation:
    arguments: dict[str, Any] = {
        "environment": ToyWorld(),
        "rollouts": rollouts or ToyRollouts(torch.nn.Parameter(torch.tensor([0.0, 1.0]))),
        "seed": 0,
        "split": "valid",
        "tasks": 20,
        "curve_tasks": 5,
        "trials": 1,
        "temperature": 1.0,
        "greedy": True,
        "best_of": [],
        "also": None,
    }
    return Evaluation(**{**arguments, **changes})


def ids(evaluation: Evaluation) -> list[str]:
    return [t.id for t in evaluation.tasks]


def test_games_are_frozen_whatever_the_seed_and_the_order() -> None:
    class Reversed(ToyWorld):
        def tasks(self, split: str) -> Sequence[Task]:
            return list(reversed(super().tasks(split)))

    assert ids(make(seed=1)) == ids(make(seed=2)) == ids(make(environment=Reversed()))
    assert ids(make(tasks=5)) == ids(make())[:5] == [t.id for t in make().curve_tasks]
    assert ids(make()) != sorted(ids(make()))
    # golden: a change of the order would silently change every result
    assert ids_hash(ids(make())) == "29998c4b2d1baf8877934170a6aec288abdd537c874cde51a4029dc4d8f75625"


def test_measures_sampled_and_greedy() -> None:
    seen: list[tuple[str, int, int]] = []
    found = make().full(lambda *what: seen.append(what))
    assert found["greedy"].success.value == 1.0
    assert 0.4 < found["success"].success.value < 1.0
    assert seen[-1] == ("evaluate greedy", 20, 20)
    assert make().curve(lambda *_: None).games == 5


def test_the_same_policy_measures_the_same_twice_and_another_seed_differs() -> None:
    def outcomes(seed: int) -> list[bool]:
        return [bool(t.outcome and t.outcome.success) for t in make(seed=seed).curve(lambda *_: None).trajectories]

    assert outcomes(0) == outcomes(0)
    assert any(outcomes(0) != outcomes(seed) for seed in range(1, 6))


def test_greedy_temperature_is_measured_once() -> None:
    found = make(temperature=0.0).full(lambda *_: None)
    assert list(found) == ["success"]
    assert found["success"].decoding == "greedy"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tasks": 41}, "evaluation.tasks is 41, but split 'valid' has 40 games"),
        ({"curve_tasks": 0}, "evaluation.curve_tasks is 0"),
        ({"trials": 0}, "evaluation.trials is 0"),
        ({"temperature": float("nan")}, "evaluation.temperature is nan"),
    ],
)
def test_bad_numbers_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make(**changes)


def test_a_cut_evaluation_is_refused() -> None:
    class Cutting(ToyRollouts):
        def collect(self, tasks: Sequence[Task], **options: Any) -> Collection:
            return Collection(groups=super().collect(tasks, **options).groups[:-1], stats={})

    with pytest.raises(RolloutError, match="evaluation never cuts"):
        make(Cutting(torch.nn.Parameter(torch.zeros(2)))).curve(lambda *_: None)


def test_ids_that_repeat_and_empty_splits_are_refused() -> None:
    with pytest.raises(DataError, match="more than once, first 't/1'"):
        frozen_order([task(1), task(2), task(1)], "valid")
    with pytest.raises(DataError, match="has no games"):
        frozen_order([], "valid")


def test_changed_games_are_refused() -> None:
    manifest = make().manifest()
    same_games(manifest, make().manifest())
    with pytest.raises(DataError, match="sha256 was"):
        same_games(manifest, make(tasks=19).manifest())
    with pytest.raises(DataError, match="environment was"):
        same_games(manifest, make(environment=ToyWorld(label="newer")).manifest())

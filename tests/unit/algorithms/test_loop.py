"""LOOP's bookkeeping: which groups count, whose advantage, what is dropped, when it stops."""

import copy
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pytest

from agentexp.algorithms.loop import Loop, outcomes
from agentexp.errors import ConfigError
from agentexp.learning.learner import Learner
from agentexp.losses.ppo import ClippedPolicyLoss
from agentexp.rollouts.collect import Enough
from agentexp.types import Action, Completion, Group, Outcome, Step, StopReason, Task, Trajectory, Turn
from tests.unit.learning.conftest import small_model
from tests.unit.learning.test_learner import learner as make_learner


class Environment:
    name = "toy"

    def tasks(self, split: str) -> list[Task]:
        return [Task(id=f"{split}/{n}", env="toy", split=split, instruction="go") for n in range(8)]


@dataclasses.dataclass
class Played:
    groups: Sequence[Group]
    stats: dict[str, float]


class Rollouts:
    """Answers with groups whose rewards are given."""

    def __init__(self, rewards: list[list[float | None]]) -> None:
        self.rewards = rewards

    def collect(self, tasks: Sequence[Task], **_: Any) -> Played:
        return Played([group(t, r) for t, r in zip(tasks, self.rewards, strict=True)], {"env_steps": 1.0})


class Policy:
    version = 0
    refreshed = 0

    def refresh(self) -> None:
        self.version += 1
        self.refreshed += 1


def trajectory(task: Task, k: int, reward: float | None) -> Trajectory:
    done = Completion(ids=(7 + k, 1), logprobs=(-1.0, -0.5), text="x", finish="stop", policy_version=0)
    turn = Turn(prompt_ids=(5, 6), completion=done, action=Action(text="x", command="x"), step=Step(observation="o"))
    if reward is None:
        return Trajectory(task=task, sample=k, seed=k, turns=(turn,), outcome=None, stop=StopReason.CANCELLED)
    return Trajectory(
        task=task,
        sample=k,
        seed=k,
        turns=(turn,),
        outcome=Outcome(reward=reward, success=reward == 1.0),
        stop=StopReason.DONE,
    )


def group(task: Task, rewards: Sequence[float | None]) -> Group:
    return Group(task=task, trajectories=tuple(trajectory(task, k, r) for k, r in enumerate(rewards)))


def loop(rewards: list[list[float | None]], **changes: Any) -> Loop:
    model = small_model()
    settings: dict[str, Any] = {
        "environment": Environment(), "rollouts": Rollouts(rewards), "policy": Policy(),
        "learner": make_learner(model), "seed": 0, "split": "train",
        "loss": ClippedPolicyLoss(level="token", epsilon=0.2, interval="one_plus_minus", kl_coefficient=0.0),
        "tasks_per_iteration": len(rewards), "rollouts_per_task": 4, "temperature": 1.0, "enough": None,
        "advantage": "leave_one_out", "min_abs_advantage": 0.01, "weighting": "rollout", "epochs": 2, "minibatch": 3,
        "max_kl": None, "old_logps": "learner", "shuffle_advantages": False,
    }  # fmt: skip
    return Loop(**{**settings, **changes})


def test_group_size_is_the_collected_one() -> None:
    one = loop([[1.0, None, 0.0, 0.0]])
    judged, counts = one.judge(one.rollouts.collect(one.tasks.next(1)).groups, 0)  # type: ignore[call-arg]
    assert [a for _, a in judged] == [1.0, -0.5, -0.5]  # over three, not over the nominal four
    assert counts["trained"] == 3


def test_a_nan_member_is_excluded_and_counted() -> None:
    one = loop([[1.0, math.nan, 0.0, 0.0]])
    judged, counts = one.judge(one.rollouts.collect(one.tasks.next(1)).groups, 0)  # type: ignore[call-arg]
    assert [(t.sample, a) for t, a in judged] == [(0, 1.0), (2, -0.5), (3, -0.5)]
    assert counts["not_finite"] == 1


def test_flat_and_refused_groups_are_counted_and_skip_the_step() -> None:
    one = loop([[1.0] * 4, [0.0, None, None, None]])
    before = one.learner.model.weights()
    metrics = one.iterate(0).metrics
    assert metrics["group/flat"] == 1
    assert metrics["group/refused"] == 1
    assert metrics["train/skipped_iteration"] == 1.0
    assert all((before[k] == v).all() for k, v in one.learner.model.weights().items())


def test_small_advantages_are_pruned() -> None:
    # eq. 3: .005 apart gives |A| = .005 for both
    one = loop([[0.5, 0.505], [1.0, 0.0]])
    _, counts = one.judge(one.rollouts.collect(one.tasks.next(2)).groups, 0)  # type: ignore[call-arg]
    assert counts["pruned"] == 2
    assert counts["trained"] == 2


def test_minibatches_of_an_iteration() -> None:
    metrics = loop([[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]]).iterate(0).metrics
    assert metrics["train/steps"] == 6  # 8 rows in minibatches of 3, two epochs: 2 x ceil(8 / 3)
    assert metrics["train/first_ratio"] == pytest.approx(1.0, abs=1e-5)  # old log-probs are the learner's own
    assert metrics["rollout/success"] == pytest.approx(3 / 8)


def test_sampler_log_probs_are_used_when_asked() -> None:
    metrics = loop([[1.0, 0.0, 0.0, 1.0]], old_logps="sampler").iterate(0).metrics
    assert metrics["train/first_ratio"] != pytest.approx(1.0, abs=1e-2)  # the stored ones here are made up


def test_high_kl_stops_the_iteration() -> None:
    metrics = loop([[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]], max_kl=1e-9, epochs=5).iterate(0).metrics
    assert metrics["train/stopped_on_kl"] == 1.0
    assert metrics["train/steps"] < 15


def test_shuffled_advantages_keep_the_values_and_lose_their_owners() -> None:
    rewards: list[list[float | None]] = [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]] * 8
    control, honest = loop(rewards, shuffle_advantages=True), loop(rewards)
    control_judged, _ = control.judge(control.rollouts.collect(control.tasks.next(8)).groups, 0)  # type: ignore[call-arg]
    honest_judged, _ = honest.judge(honest.rollouts.collect(honest.tasks.next(8)).groups, 0)  # type: ignore[call-arg]
    assert sorted(a for _, a in control_judged) == sorted(a for _, a in honest_judged)
    assert [a for _, a in control_judged] != [a for _, a in honest_judged]


def test_a_group_of_one_is_a_configuration_error_with_both_ways_out() -> None:
    with pytest.raises(ConfigError, match=r"2 or more rollouts, or algorithm=reinforce"):
        loop([[1.0]], rollouts_per_task=1)


def test_two_temperatures_are_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="temperature"):
        loop([[1.0, 0.0]], temperature=0.7)


def test_resume_continues_bit_for_bit() -> None:
    rewards: list[list[float | None]] = [[1.0, 0.0, 0.0, 1.0]]
    straight = loop(rewards)
    for i in range(4):
        straight.iterate(i)
    first, second = loop(rewards), loop(rewards)
    for i in range(2):
        first.iterate(i)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    for i in range(2, 4):
        second.iterate(i)
    want, got = straight.learner.model.weights(), second.learner.model.weights()
    assert all((want[k] == v).all() for k, v in got.items())
    assert second.policy.version == straight.policy.version
    assert isinstance(second.learner, Learner)


def test_kl_is_to_the_start_and_survives_a_resume() -> None:
    rewards: list[list[float | None]] = [[1.0, 0.0, 0.0, 1.0]]
    changes = {
        "loss": ClippedPolicyLoss(level="token", epsilon=0.2, interval="one_plus_minus", kl_coefficient=0.1),
        "epochs": 1,
    }
    first = loop(rewards, **changes)
    assert first.iterate(0).metrics["train/kl_reference"] >= 0.0
    second = loop(rewards, **changes)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    want, got = first.iterate(1).metrics, second.iterate(1).metrics
    assert want["train/kl_reference"] > 1e-6
    assert got == want


def test_outcomes_leave_cancelled_rollouts_out() -> None:
    task = Environment().tasks("train")[0]
    assert outcomes([trajectory(task, 0, 1.0), trajectory(task, 1, None)]) == {"reward": 1.0, "success": 1.0}


@pytest.mark.parametrize(
    "change",
    [
        {"minibatch": 0},
        {"epochs": 0},
        {"tasks_per_iteration": 0},
        {"enough": Enough(total=0.9, per_task=7)},
        {"min_abs_advantage": math.nan},
        {"max_kl": -1.0},
    ],
)
def test_what_could_learn_nothing_is_a_configuration_error_before_anything_is_played(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        loop([[1.0, 0.0]], **change)

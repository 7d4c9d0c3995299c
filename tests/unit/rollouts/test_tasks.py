"""The order of tasks: whole passes, no repeats within a batch, the same after a resume."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.errors import ConfigError, DataError
from agentexp.rollouts.tasks import TaskSampler
from tests.doors import Doors

TASKS = Doors(games=10).tasks("train")


def ids(sampler: TaskSampler, n: int) -> list[str]:
    return [task.id for task in sampler.next(n)]


def test_each_pass_is_the_whole_list_in_its_own_order() -> None:
    sampler = TaskSampler(tasks=TASKS, seed=0)
    first, second = ids(sampler, 10), ids(sampler, 10)
    assert sorted(first) == sorted(second) == sorted(t.id for t in TASKS)
    assert first != second
    assert first != [t.id for t in TASKS]
    assert ids(TaskSampler(tasks=TASKS, seed=0), 10) == first
    assert ids(TaskSampler(tasks=TASKS, seed=1), 10) != first


@given(sizes=st.lists(st.integers(1, 25), min_size=1, max_size=12), seed=st.integers(0, 5))
def test_batches_repeat_nothing_and_passes_lose_nothing(sizes: list[int], seed: int) -> None:
    sampler = TaskSampler(tasks=TASKS, seed=seed)
    seen: list[str] = []
    for n in sizes:
        batch = ids(sampler, n)
        assert len(batch) == n
        if n <= len(TASKS):
            assert len(set(batch)) == n
        seen += batch
    for at in range(0, len(seen) - 9, 10):
        assert len(set(seen[at : at + 10])) == 10


@given(before=st.lists(st.integers(1, 15), max_size=8), after=st.lists(st.integers(1, 15), min_size=1, max_size=8))
def test_a_resume_goes_on_in_the_same_order(before: list[int], after: list[int]) -> None:
    sampler = TaskSampler(tasks=TASKS, seed=3)
    for n in before:
        sampler.next(n)
    resumed = TaskSampler(tasks=TASKS, seed=3)
    resumed.load_state_dict(json.loads(json.dumps(sampler.state_dict())))
    assert [ids(resumed, n) for n in after] == [ids(sampler, n) for n in after]


def test_global_randomness_plays_no_part() -> None:
    random.seed(1)
    one = ids(TaskSampler(tasks=TASKS, seed=0), 25)
    random.seed(2)
    assert ids(TaskSampler(tasks=TASKS, seed=0), 25) == one


def test_another_list_of_tasks_is_refused() -> None:
    state = TaskSampler(tasks=TASKS, seed=0).state_dict()
    with pytest.raises(DataError, match="made with 10 tasks, there are 4 now"):
        TaskSampler(tasks=TASKS[:4], seed=0).load_state_dict(state)
    with pytest.raises(ConfigError, match="no tasks to sample from"):
        TaskSampler(tasks=[], seed=0)


def test_a_batch_larger_than_the_list_is_refused_by_key() -> None:
    sampler = TaskSampler(tasks=TASKS, seed=0)
    sampler.check(10, "algorithm.tasks_per_iteration")
    with pytest.raises(ConfigError, match=r"algorithm.tasks_per_iteration is 11, but there are 10 tasks"):
        sampler.check(11, "algorithm.tasks_per_iteration")

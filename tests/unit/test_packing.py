"""Trajectories to rows: sampled ids travel untouched, everything read is masked."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentexp.packing import Row, buckets, collate, to_samples, token_weights
from agentexp.types import Action, Completion, Outcome, Sample, Step, StopReason, Task, Trajectory, Turn

TASK = Task(id="a", env="toy", split="train", instruction="go")


def turn(
    prompt: tuple[int, ...], ids: tuple[int, ...], *, segment: int = 0, deliberate: bool = True, scripted: bool = False
) -> Turn:
    logps = (math.nan,) * len(ids) if scripted else tuple(-0.5 - i for i in range(len(ids)))
    done = Completion(ids=ids, logprobs=logps, text="x", finish="scripted" if scripted else "stop", policy_version=0)
    return Turn(
        prompt_ids=prompt,
        completion=done,
        action=Action(text="x", command="x"),
        step=Step(observation="o"),
        segment=segment,
        deliberate=deliberate,
    )


def trajectory(*turns: Turn) -> Trajectory:
    return Trajectory(
        task=TASK, sample=2, seed=0, turns=turns, outcome=Outcome(reward=1.0, success=True), stop=StopReason.DONE
    )


def test_one_row_golden() -> None:
    (row,) = to_samples(trajectory(turn((7, 8), (5, 1)), turn((9,), (6, 1))), 0.5)
    assert row.ids == (7, 8, 5, 1, 9, 6, 1)
    assert row.mask == (False, False, True, True, False, True, True)
    assert row.turn == (-1, -1, 0, 0, -1, 1, 1)
    assert row.old_logps == (0, 0, -0.5, -1.5, 0, -0.5, -1.5)
    assert row.advantage == (0, 0, 0.5, 0.5, 0, 0.5, 0.5)


def test_a_rewritten_history_starts_a_new_row() -> None:
    first, second = to_samples(trajectory(turn((7,), (5,)), turn((7, 8, 9), (6,), segment=1)), 1.0)
    assert first.ids == (7, 5)
    assert second.ids == (7, 8, 9, 6)
    assert second.turn == (-1, -1, -1, 1)


def test_random_moves_and_scripted_tokens() -> None:
    (row,) = to_samples(
        trajectory(turn((7,), (5,), scripted=True), turn((8,), (6,), scripted=True, deliberate=False)), 0.0
    )
    assert row.mask == (False, True, False, False)
    assert row.old_logps == (0.0, 0.0, 0.0, 0.0)


def flat(ids: list[int], mask: list[bool], turns: list[int]) -> Sample:
    n = len(ids)
    return Sample(
        ids=tuple(ids), mask=tuple(mask), turn=tuple(turns), old_logps=(0.0,) * n, advantage=(0.0,) * n, origin="o"
    )


def test_weights_golden() -> None:
    long = flat([1, 2, 3, 4, 5], [False, True, True, True, True], [-1, 0, 0, 0, 1])
    short = flat([1, 2], [False, True], [-1, 0])
    assert token_weights([long, short], "rollout") == [(0, 1 / 8, 1 / 8, 1 / 8, 1 / 8), (0, 1 / 2)]
    assert token_weights([long, short], "token") == [(0, 0.2, 0.2, 0.2, 0.2), (0, 0.2)]
    assert token_weights([long, short], "turn")[0] == pytest.approx((0, 1 / 12, 1 / 12, 1 / 12, 1 / 4))


@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=5),
    st.sampled_from(["rollout", "turn", "token"]),
)
def test_weights_sum_to_one(masks: list[list[bool]], how: str) -> None:
    samples = [
        flat([1] * (len(m) + 1), [False, *m], [-1, *[i // 2 if b else -1 for i, b in enumerate(m)]]) for m in masks
    ]
    total = sum(sum(w) for w in token_weights(samples, how))  # type: ignore[arg-type]
    assert total == pytest.approx(1.0 if any(map(any, masks)) else 0.0)


def test_padding_is_known_by_length_not_by_id() -> None:
    # id 0 is a real token here and the end-of-turn id 1 stands in the padding's place: neither is lost
    real = flat([3, 0, 1], [False, True, True], [-1, 0, 0])
    long = flat([3, 4, 5, 6, 1, 1], [False, True, True, True, True, True], [-1, 0, 0, 0, 0, 0])
    batch = collate(
        [Row(sample=s, weight=w) for s, w in zip([real, long], token_weights([real, long], "token"), strict=True)]
    )
    assert batch.lengths.tolist() == [3, 6]
    assert batch.mask[0].tolist() == [False, True, True, False, False, False]
    assert batch.weight[0, 3:].tolist() == [0.0, 0.0, 0.0]
    assert torch.isclose(batch.weight.sum(), torch.tensor(1.0))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(10, 120))
def test_buckets_keep_every_row_once_within_budget(lengths: list[int], budget: int) -> None:
    groups = buckets(lengths, budget)
    assert sorted(i for g in groups for i in g) == list(range(len(lengths)))
    assert all(len(g) == 1 or len(g) * max(lengths[i] for i in g) <= budget for g in groups)

"""Trajectories and metrics come back as they were written, or not at all."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentexp.calls import command_of
from agentexp.errors import DataError, StorageError
from agentexp.store import MetricsLog, from_text, read_metrics, read_trajectories, task_ids, to_text, write_trajectories
from agentexp.types import Action, Completion, Message, Outcome, Step, StopReason, Task, ToolCall, Trajectory, Turn
from tests.toy_run import episode


def trajectories() -> list[Trajectory]:
    """One of every kind: scored, thought, unreadable, scripted, cut, failed, without turns."""
    task = Task(
        id="t/1",
        env="e",
        split="train",
        instruction="put “a” é in b\n",
        scenario="s",
        kind="pick",
        difficulty=3,
        data={"path": Path("/games/1"), "number": 2**60, "nested": [(1, None), {"x": (0.1,)}], "keys": {4: "four"}},
    )
    sampled = Turn(
        prompt_ids=(0, 5, 2_000_000_000),
        completion=Completion(ids=(7, 0), logprobs=(-0.1, -1e-300), text="go ✓", finish="length", policy_version=12),
        action=Action(text="go", command="go"),
        step=Step(observation="", reward=-0.25, done=False, info={"admissible": ("look", "go"), "refused": True}),
        messages=(Message(role="system", content="Be."), Message(role="user", content="See.")),
    )
    calls = (ToolCall(name="f", arguments={"x": [1, {"é": None}], "y": "1"}), ToolCall(name="g"))
    schema = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "required": ["x"]}}}
    called = Turn(
        prompt_ids=(1,),
        completion=Completion(ids=(7,), logprobs=(-0.1,), text="f", finish="stop", policy_version=0),
        action=Action(text="f", command=command_of(calls), calls=calls),
        step=Step(observation="1", info={"tools": (schema,)}),
        messages=(Message(role="system", content="", tools=(schema,)), Message(role="tool", content="r")),
    )
    thought = Turn(
        prompt_ids=(1,),
        completion=Completion(ids=(), logprobs=(), text="", finish="stop", policy_version=0),
        action=Action(text="think: …", command=None),
        step=Step(observation="OK."),
        segment=1,
    )
    scripted = Turn(
        prompt_ids=(1,),
        completion=Completion(
            ids=(9, 9), logprobs=(math.nan, math.nan), text="x", finish="scripted", policy_version=-1
        ),
        action=Action(text="x", command=None, error="cannot be read"),
        step=None,
        deliberate=False,
    )
    outcome = Outcome(reward=0.5, success=False, metrics={"goals": 0.1 + 0.2})
    return [
        Trajectory(
            task=task, sample=0, seed=2**62 + 1, turns=(sampled, thought, called), outcome=outcome,
            stop=StopReason.MAX_TURNS, segments=2, truncated="drop",
        ),
        Trajectory(task=task, sample=1, seed=0, turns=(scripted,), outcome=None, stop=StopReason.CANCELLED),
        Trajectory(task=task, sample=2, seed=0, turns=(), outcome=None, stop=StopReason.ENV_ERROR, error="boom"),
        Trajectory(
            task=Task(id="t/2", env="e", split="train", instruction=""), sample=0, seed=1, turns=(),
            outcome=Outcome(reward=1.0, success=True), stop=StopReason.DONE,
        ),
    ]  # fmt: skip


def test_round_trip_of_every_kind(tmp_path: Path) -> None:
    before = trajectories()
    write_trajectories(tmp_path / "a.parquet", before)
    after = read_trajectories(tmp_path / "a.parquet")
    assert repr(after) == repr(before)  # repr: a NaN does not equal another NaN
    assert after[0] == before[0]
    assert math.isnan(after[1].turns[0].completion.logprobs[0])


def test_read_by_task_id(tmp_path: Path) -> None:
    write_trajectories(tmp_path / "a.parquet", trajectories())
    assert [t.sample for t in read_trajectories(tmp_path / "a.parquet", task_id="t/1")] == [0, 1, 2]
    assert read_trajectories(tmp_path / "a.parquet", task_id="nobody") == []
    assert task_ids(tmp_path / "a.parquet") == ["t/1", "t/1", "t/1", "t/2"]


finite = st.floats(allow_nan=False, allow_infinity=False)
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.sampled_from(["!tuple", "!dict"]), inner)
    ),
    max_leaves=20,
)


@given(plain_values)
def test_free_form_fields_round_trip(value: Any) -> None:
    back = from_text(to_text(value, "test"))
    assert back == value
    assert repr(back) == repr(value)  # a list is not a tuple, True is not 1


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.floats(max_value=0.0, allow_infinity=False, allow_nan=False), max_size=50), st.text())
def test_logprobs_and_text_round_trip_exactly(tmp_path: Path, logprobs: list[float], text: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    completion = Completion(
        ids=tuple(range(len(logprobs))), logprobs=tuple(logprobs), text=text, finish="stop", policy_version=0
    )
    turn = Turn(prompt_ids=(), completion=completion, action=Action(text=text, command=None), step=None)
    task = Task(id="t", env="e", split="s", instruction=text)
    one = Trajectory(task=task, sample=0, seed=0, turns=(turn,), outcome=None, stop=StopReason.CANCELLED)
    write_trajectories(tmp_path / "h.parquet", [one])
    assert read_trajectories(tmp_path / "h.parquet") == [one]


def test_what_cannot_be_stored_is_named() -> None:
    with pytest.raises(DataError, match=r"Step.info of t/1 holds a builtins.set"):
        to_text({"admissible": {"look"}}, "Step.info of t/1")


def test_a_cut_file_is_not_taken_for_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_trajectories(path, trajectories())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="not a whole trajectory file"):
        read_trajectories(path)


def test_full_disk_leaves_the_old_file_and_no_half_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    write_trajectories(path, trajectories()[:1])
    old = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("agentexp.files.os.fsync", full)
    with pytest.raises(StorageError, match=r"The disk is full.*a\.parquet"):
        write_trajectories(path, trajectories())
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


# -- metrics.jsonl -----------------------------------------------------------------------------


def _log(path: Path, rows: int) -> MetricsLog:
    log = MetricsLog(path)
    for i in range(rows):
        log.append({"step": i, "loss": 1 / (i + 1)})
    return log


def test_rows_come_back(tmp_path: Path) -> None:
    log = _log(tmp_path / "m.jsonl", 3)
    assert log.rows == 3
    assert list(read_metrics(tmp_path / "m.jsonl")) == [{"step": i, "loss": 1 / (i + 1)} for i in range(3)]


def test_nan_becomes_null_so_that_every_reader_can_read(tmp_path: Path) -> None:
    MetricsLog(tmp_path / "m.jsonl").append({"a": math.nan, "b": [math.inf, 1.0]})
    assert (tmp_path / "m.jsonl").read_text() == '{"a": null, "b": [null, 1.0]}\n'


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_half_written_last_line_is_dropped_and_counted(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "m.jsonl"
    _log(path, 3)
    path.write_bytes(path.read_bytes()[:-cut])
    log = MetricsLog(path)
    assert (log.rows, log.dropped) == (2, 1)
    log.append({"step": 2})
    assert [r["step"] for r in read_metrics(path)] == [0, 1, 2]


def test_truncate_drops_what_is_younger_than_the_checkpoint(tmp_path: Path) -> None:
    log = _log(tmp_path / "m.jsonl", 5)
    assert log.truncate(3) == 2
    log.append({"step": 3})
    assert [r["step"] for r in read_metrics(tmp_path / "m.jsonl")] == [0, 1, 2, 3]
    assert MetricsLog(tmp_path / "m.jsonl").truncate(4) == 0


def test_missing_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has 2 rows, but the checkpoint was made after row 4"):
        _log(tmp_path / "m.jsonl", 2).truncate(4)


def test_garbage_in_the_middle_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"step": 0}\nrubbish\n{"step": 2}\n')
    with pytest.raises(DataError, match=r"line 2 is not JSON"):
        MetricsLog(path)


def test_full_disk_cuts_the_half_line_off_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.jsonl"
    log = _log(path, 2)
    old = path.read_bytes()
    calls = iter([True])

    def full_once(handle: int) -> None:
        if next(calls, False):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("agentexp.store.os.fsync", full_once)
    with pytest.raises(StorageError, match="The disk is full"):
        log.append({"step": 2})
    assert path.read_bytes() == old
    log.append({"step": 2})
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_file_size_of_a_typical_iteration(tmp_path: Path) -> None:
    task = Task(id="t", env="e", split="s", instruction="")
    many = [episode(task, k, k, k % 2 == 0) for k in range(96)]
    write_trajectories(tmp_path / "a.parquet", many)
    assert (tmp_path / "a.parquet").stat().st_size < 20_000

"""What a run leaves behind of its play and its numbers: trajectories in Parquet, metrics in JSONL.

A trajectory read back equals the one written, NaN log-probs, thoughts and cut turns included. One
row is one trajectory; its turns are a nested list, so any Parquet reader can query them. Knows no
tensor and no run.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentexp.errors import DataError
from agentexp.files import storing, write_whole
from agentexp.types import Action, Completion, Message, Outcome, Step, StopReason, Task, ToolCall, Trajectory, Turn

# -- trajectories ------------------------------------------------------------------------------


def write_trajectories(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """Write trajectories to one Parquet file, whole or not at all."""
    import pyarrow as pa  # noqa: PLC0415  late: half a second that reading metrics does not need
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pa.Table.from_pylist([_row(t) for t in trajectories], schema=_schema())
    write_whole(path, lambda file: pq.write_table(table, file, compression="zstd"))


def read_trajectories(path: Path, *, task_id: str | None = None) -> list[Trajectory]:
    """Read the trajectories of a file, all or those of one task, in the order they were written."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    filters = None if task_id is None else [("task_id", "=", task_id)]
    try:
        rows = pq.read_table(path, filters=filters).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is not a whole trajectory file: {error}") from error
    return [_trajectory(row) for row in rows]


def task_ids(path: Path) -> list[str]:
    """The task id of every trajectory in a file, without reading the turns."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        column: list[str] = pq.read_table(path, columns=["task_id"])["task_id"].to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is not a whole trajectory file: {error}") from error
    return column


def _schema() -> Any:
    import pyarrow as pa  # noqa: PLC0415

    ids, text = pa.list_(pa.int32()), pa.string()
    step = [("observation", text), ("reward", pa.float64()), ("done", pa.bool_()), ("info", text)]
    turn = [
        ("prompt_ids", ids),
        ("ids", ids),
        ("logprobs", pa.list_(pa.float64())),
        ("text", text),
        ("finish", text),
        ("policy_version", pa.int64()),
        ("action", text),
        ("command", text),
        ("action_error", text),
        ("calls", text),
        ("step", pa.struct(step)),
        ("segment", pa.int32()),
        ("messages", pa.list_(pa.struct([("role", text), ("content", text), ("tools", text)]))),
        ("deliberate", pa.bool_()),
    ]
    return pa.schema(
        [
            ("task_id", text),
            ("env", text),
            ("split", text),
            ("instruction", text),
            ("scenario", text),
            ("kind", text),
            ("difficulty", pa.int64()),
            ("data", text),
            ("sample", pa.int32()),
            ("seed", pa.int64()),
            ("stop", text),
            ("error", text),
            ("segments", pa.int32()),
            ("truncated", text),
            ("reward", pa.float64()),
            ("success", pa.bool_()),
            ("outcome_metrics", text),
            ("turns", pa.list_(pa.struct(turn))),
        ]
    )


def _row(trajectory: Trajectory) -> dict[str, Any]:
    task, outcome = trajectory.task, trajectory.outcome
    return {
        "task_id": task.id,
        "env": task.env,
        "split": task.split,
        "instruction": task.instruction,
        "scenario": task.scenario,
        "kind": task.kind,
        "difficulty": task.difficulty,
        "data": to_text(task.data, f"Task.data of {task.id}"),
        "sample": trajectory.sample,
        "seed": trajectory.seed,
        "stop": trajectory.stop.value,
        "error": trajectory.error,
        "segments": trajectory.segments,
        "truncated": trajectory.truncated,
        "reward": None if outcome is None else outcome.reward,
        "success": None if outcome is None else outcome.success,
        "outcome_metrics": None if outcome is None else to_text(outcome.metrics, f"Outcome.metrics of {task.id}"),
        "turns": [_turn_row(turn, task.id) for turn in trajectory.turns],
    }


def _turn_row(turn: Turn, task_id: str) -> dict[str, Any]:
    step = turn.step
    return {
        "prompt_ids": turn.prompt_ids,
        "ids": turn.completion.ids,
        "logprobs": turn.completion.logprobs,
        "text": turn.completion.text,
        "finish": turn.completion.finish,
        "policy_version": turn.completion.policy_version,
        "action": turn.action.text,
        "command": turn.action.command,
        "action_error": turn.action.error,
        "calls": to_text([[c.name, c.arguments] for c in turn.action.calls], f"Action.calls of {task_id}"),
        "step": None
        if step is None
        else {
            "observation": step.observation,
            "reward": step.reward,
            "done": step.done,
            "info": to_text(step.info, f"Step.info of {task_id}"),
        },
        "segment": turn.segment,
        "messages": [
            {"role": m.role, "content": m.content, "tools": to_text(m.tools, f"Message.tools of {task_id}")}
            for m in turn.messages
        ],
        "deliberate": turn.deliberate,
    }


def _trajectory(row: Mapping[str, Any]) -> Trajectory:
    outcome = None
    if row["outcome_metrics"] is not None:
        outcome = Outcome(reward=row["reward"], success=row["success"], metrics=from_text(row["outcome_metrics"]))
    return Trajectory(
        task=Task(
            id=row["task_id"],
            env=row["env"],
            split=row["split"],
            instruction=row["instruction"],
            scenario=row["scenario"],
            kind=row["kind"],
            difficulty=row["difficulty"],
            data=from_text(row["data"]),
        ),
        sample=row["sample"],
        seed=row["seed"],
        turns=tuple(_turn(turn) for turn in row["turns"]),
        outcome=outcome,
        stop=StopReason(row["stop"]),
        error=row["error"],
        segments=row["segments"],
        truncated=row["truncated"],
    )


def _turn(row: Mapping[str, Any]) -> Turn:
    step = row["step"]
    return Turn(
        prompt_ids=tuple(row["prompt_ids"]),
        completion=Completion(
            ids=tuple(row["ids"]),
            logprobs=tuple(row["logprobs"]),
            text=row["text"],
            finish=row["finish"],
            policy_version=row["policy_version"],
        ),
        action=Action(
            text=row["action"],
            command=row["command"],
            error=row["action_error"],
            calls=tuple(ToolCall(name=n, arguments=a) for n, a in from_text(row.get("calls") or "[]")),
        ),
        step=None
        if step is None
        else Step(
            observation=step["observation"],
            reward=step["reward"],
            done=step["done"],
            info=from_text(step["info"]),
        ),
        segment=row["segment"],
        messages=tuple(
            Message(role=m["role"], content=m["content"], tools=from_text(m.get("tools") or '{"!tuple":[]}'))
            for m in row["messages"]
        ),
        deliberate=row["deliberate"],
    )


# -- free-form fields: JSON that keeps what JSON loses ------------------------------------------


def to_text(value: Any, where: str) -> str:
    """JSON that reads back equal: tuples, paths and keys that are not text are tagged.

    >>> to_text({"admissible": ("look", "go to desk 1")}, "doc")
    '{"admissible":{"!tuple":["look","go to desk 1"]}}'
    >>> from_text(to_text({1: (2, None)}, "doc"))
    {1: (2, None)}
    """
    return json.dumps(_tag(value, where), separators=(",", ":"), ensure_ascii=False)


def from_text(text: str) -> Any:
    """The value that `to_text` wrote."""
    return _untag(json.loads(text))


def _tag(value: Any, where: str) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [_tag(v, where) for v in value]
    if kind is tuple:
        return {"!tuple": [_tag(v, where) for v in value]}
    if isinstance(value, Path):
        return {"!path": str(value)}
    if isinstance(value, Mapping):
        if all(type(k) is str and not k.startswith("!") for k in value):
            return {k: _tag(v, where) for k, v in value.items()}
        return {"!dict": [[_tag(k, where), _tag(v, where)] for k, v in value.items()]}
    raise DataError(
        f"{where} holds a {kind.__module__}.{kind.__qualname__}, which cannot be stored. Allowed are None, bool, int, "
        "float, str, pathlib.Path, list, tuple and mappings of these; convert it in the environment."
    )


def _untag(value: Any) -> Any:
    if isinstance(value, list):
        return [_untag(v) for v in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"!tuple": items}:
            return tuple(_untag(v) for v in items)
        case {"!path": path}:
            return Path(path)
        case {"!dict": pairs}:
            return {_untag(k): _untag(v) for k, v in pairs}
    return {k: _untag(v) for k, v in value.items()}


# -- metrics -----------------------------------------------------------------------------------


class MetricsLog:
    """metrics.jsonl: one JSON object a line, appended, flushed at once.

    Opening it drops a half-written last line (a killed process leaves one) and counts it in
    `dropped`. A line in the middle that is not JSON is another matter: DataError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dropped = 0
        self.rows = 0
        self._ends: list[int] = [0]  # byte offset after each row
        if path.exists():
            self._scan()

    def _scan(self) -> None:
        with storing(self.path, "reading"):
            data = self.path.read_bytes()
        for line in data.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                self.dropped = 1
                break
            try:
                json.loads(line)
            except ValueError as error:
                raise DataError(f"{self.path}, line {self.rows + 1} is not JSON ({error}): {line[:80]!r}") from error
            self.rows += 1
            self._ends.append(self._ends[-1] + len(line))
        if self.dropped:
            self._cut(self._ends[-1])

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row. NaN and infinities, which JSON lacks, become null. If the disk refuses, what
        was written of the line is cut off again and StorageError is raised.
        """
        line = json.dumps(plain(row), allow_nan=False).encode() + b"\n"
        try:
            with storing(self.path, "appending to"), self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except Exception:
            if self.path.exists():
                self._cut(self._ends[-1])
            raise
        self.rows += 1
        self._ends.append(self._ends[-1] + len(line))

    def truncate(self, rows: int) -> int:
        """Keep the first `rows` rows; how many were dropped. Resume uses it: rows that are younger
        than the checkpoint will be made again.
        """
        if rows > self.rows:
            raise DataError(
                f"{self.path} has {self.rows} rows, but the checkpoint was made after row {rows}: the file was cut or "
                "replaced. Restore it, or give a new output_dir."
            )
        gone = self.rows - rows
        if gone:
            self._cut(self._ends[rows])
            del self._ends[rows + 1 :]
            self.rows = rows
        return gone

    def _cut(self, size: int) -> None:
        with storing(self.path, "truncating"), self.path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a metrics.jsonl; a half-written last line is left out."""
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if line.endswith(b"\n"):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise DataError(f"{path} line {number} is not JSON: {error}") from error


def plain(value: Any) -> Any:
    """The value with NaN and infinities as None and mappings and sequences as dict and list.

    >>> plain({"loss": float("nan"), "ids": (1, 2)})
    {'loss': None, 'ids': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Iterable):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value

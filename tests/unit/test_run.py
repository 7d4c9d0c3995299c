"""The outer loop with toy parts: what it leaves behind, refuses, and says."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import tests.toy_run as toy
from agentexp import checkpoints, files, folder
from agentexp.console import last_line
from agentexp.errors import ConfigError, DataError, StorageError
from agentexp.evaluation.evaluate import Evaluation, same_games
from agentexp.folder import RunFolder
from agentexp.plan import plan
from agentexp.store import read_metrics
from tests.toy_run import toy_run


def test_plan_saves_after_the_curve_and_around_the_full_measurements() -> None:
    moves = plan(iterations=4, warm_start_iterations=3, evaluate_before=True, evaluate_every=2, checkpoint_every=2)
    assert [f"{m.kind} {m.part} {m.iteration}{' save' if m.save else ''}" for m in moves] == [
        "iterate warm_start 1",
        "iterate warm_start 2 save",
        "iterate warm_start 3 save",
        "before warm_start 0 save",
        "iterate algorithm 1",
        "iterate algorithm 2",
        "curve algorithm 2 save",
        "iterate algorithm 3",
        "iterate algorithm 4 save",
        "after algorithm 4 save",
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of the toy, uninterrupted."""
    return toy_run(str(tmp_path_factory.mktemp("whole") / "run"))


def test_a_run_leaves_everything_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = toy_run(str(tmp_path / "run"))
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "checkpoints", "config.yaml", "games.json", "metrics.jsonl", "provenance.json", "report.png", "result.json",
        "run.lock", "trajectories",
    ]  # fmt: skip
    stored = json.loads((tmp_path / "run" / "result.json").read_text())
    assert stored == json.loads(json.dumps(result))
    assert {"name", "seed", "split", "games", "decoding", "before", "after", "curve", "wall_s", "by_type"} <= set(
        stored
    )
    assert set(stored["before"]) == set(stored["after"]) == {"success", "greedy"}
    assert {"value", "low", "high", "n"} <= set(stored["after"]["success"])
    assert [p["iteration"] for p in stored["curve"]] == [0, 2, 4, 6]
    assert set(stored["by_type"]) == {"even", "odd"}
    assert (tmp_path / "run" / "report.png").read_bytes().startswith(b"\x89PNG")
    rows = list(read_metrics(tmp_path / "run" / "metrics.jsonl"))
    assert [r["step"] for r in rows] == [1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8]
    games = json.loads((tmp_path / "run" / "games.json").read_text())
    assert (games["games"], games["of"], len(games["ids"])) == (30, 40, 30)
    provenance = json.loads((tmp_path / "run" / "provenance.json").read_text())
    assert {"git", "packages", "hardware", "config_sha256", "environment", "command"} <= set(provenance)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("before → after: success sampled at temperature 1 rose from ")
    assert "on 30 games of valid; the 95 % intervals " in last
    assert last.endswith("Toy games, not real ones.")


def test_a_finished_run_says_so_and_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = toy_run(str(tmp_path / "run"))
    stamp = (tmp_path / "run" / "metrics.jsonl").stat().st_mtime_ns
    capsys.readouterr()
    again = toy_run(str(tmp_path / "run"))
    assert again["after"] == json.loads(json.dumps(first["after"]))
    assert (tmp_path / "run" / "metrics.jsonl").stat().st_mtime_ns == stamp
    said = capsys.readouterr().out.splitlines()
    assert said == [f"{tmp_path}/run is done.", last_line(again)]


def test_another_configuration_in_the_folder_is_refused_by_key(tmp_path: Path) -> None:
    toy_run(str(tmp_path / "run"), iterations=1, warm_start_iterations=0)
    with pytest.raises(ConfigError, match=r"(?s)algorithm\.lr: 0\.1 in the folder, 0\.2 now.*name="):
        toy_run(str(tmp_path / "run"), iterations=1, warm_start_iterations=0, lr=0.2)
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert RunFolder(tmp_path / "run").finished(config) is not None  # the control: its own configuration
    with pytest.raises(ConfigError, match=r"extra: '\(absent\)' in the folder, 1 now"):
        RunFolder(tmp_path / "run").finished({**config, "extra": 1})


def test_without_warm_start_curve_and_before(tmp_path: Path) -> None:
    result = toy_run(
        str(tmp_path / "run"), iterations=2, warm_start_iterations=0, evaluate_before=False, evaluate_every=0
    )
    assert result["before"] is None
    assert len(result["curve"]) == 1
    assert "intervals" not in last_line(result)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iterations": 0}, "run.iterations is 0; at least 1"),
        ({"checkpoint_every": 0}, "run.checkpoint_every is 0"),
        ({"keep_checkpoints": 0}, "run.keep_checkpoints is 0"),
        ({"name": ".hidden"}, "name is '.hidden'"),
    ],
)
def test_impossible_cadences_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        toy_run(str(tmp_path / "run"), **changes)


def test_games_that_changed_are_refused_on_resume(tmp_path: Path) -> None:
    toy_run(str(tmp_path / "run"), iterations=1)
    (tmp_path / "run" / "result.json").unlink()
    with pytest.raises(DataError, match="environment was"):
        toy_run(str(tmp_path / "run"), iterations=1, label="another world")


def test_lost_metrics_are_refused_on_resume(tmp_path: Path) -> None:
    toy_run(str(tmp_path / "run"), iterations=1)
    (tmp_path / "run" / "result.json").unlink()
    (tmp_path / "run" / "metrics.jsonl").write_text("")
    with pytest.raises(DataError, match=r"metrics.jsonl has 0 rows, but the checkpoint was made after row"):
        toy_run(str(tmp_path / "run"), iterations=1)


# -- the disk ----------------------------------------------------------------------------------


def test_output_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for path in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(StorageError, match=r"is a file, not a folder"):
            toy_run(str(path))
    assert (tmp_path / "taken").read_text() == "a file"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be refused by a read-only mount made here")
def test_read_only_output_on_a_real_mount(tmp_path: Path) -> None:
    with Mounted(tmp_path / "ro", "ro"), pytest.raises(StorageError, match=r"(?s)refused.*Read-only.*output_dir"):
        toy_run(str(tmp_path / "ro" / "run"))


def test_unwritable_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *args: Any, **kwargs: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageError, match=r"was refused \(Permission denied\).*output_dir=FOLDER"):
        toy_run(str(tmp_path / "run"))


class Mounted:
    """A tiny tmpfs for the length of a block; skips where mounting is not allowed."""

    def __init__(self, path: Path, options: str) -> None:
        self.path, self.options = path, options

    def __enter__(self) -> Path:
        self.path.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", self.options, "tmpfs", str(self.path)], capture_output=True, check=False
        )
        if done.returncode:
            pytest.skip(f"mounting is not allowed here: {done.stderr.decode().strip()}")
        return self.path

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", str(self.path)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a tiny disk")
def test_a_really_full_disk_then_room_then_resume(tmp_path: Path, whole: dict[str, Any]) -> None:
    with Mounted(tmp_path / "disk", "size=180k") as disk:
        with pytest.raises(StorageError, match="The disk is full"):
            toy_run(str(disk / "run"))
        assert not (disk / "run" / "result.json").exists()
        found = checkpoints.Checkpoints(disk / "run" / "checkpoints", keep=2)
        assert found.latest() is not None
        assert found.notices == []
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        assert _untimed(toy_run(str(disk / "run"))) == _untimed(whole)


@pytest.mark.parametrize("nth", [1, 4, 12, 20, 30])
def test_a_full_disk_at_any_write_then_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int, whole: dict[str, Any]
) -> None:
    count = iter(range(10_000))
    real = os.fsync

    def full(handle: int) -> None:
        if next(count) >= nth:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    for module in (files, checkpoints):
        monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(StorageError, match="The disk is full"):
        toy_run(str(tmp_path / "run"))
    monkeypatch.undo()
    assert not (tmp_path / "run" / "result.json").exists()
    assert _untimed(toy_run(str(tmp_path / "run"))) == _untimed(whole)


def _untimed(value: Any) -> Any:
    """The value without wall times."""
    if isinstance(value, dict):
        return {k: _untimed(v) for k, v in value.items() if not (k.endswith("_s") or k.startswith("time/"))}
    return [_untimed(v) for v in value] if isinstance(value, list | tuple) else value


# -- two processes -----------------------------------------------------------------------------


HOLD = """
import sys, time, pathlib
from agentexp.evaluation.evaluate import Evaluation, same_games
from agentexp.folder import RunFolder
with RunFolder(pathlib.Path(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Any:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "run")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with process.stdout:
        yield process
    process.kill()
    process.wait()


def test_two_processes_in_one_folder_are_refused(tmp_path: Path, holder: subprocess.Popen[bytes]) -> None:
    started = time.monotonic()
    with pytest.raises(StorageError, match=f"in use by process {holder.pid} on "):
        toy_run(str(tmp_path / "run"))
    assert time.monotonic() - started < 5


def test_the_lock_of_a_dead_process_is_taken_over(
    tmp_path: Path, holder: subprocess.Popen[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    holder.kill()
    holder.wait()
    toy_run(str(tmp_path / "run"), iterations=1, warm_start_iterations=0)
    assert f"note: took over the folder from process {holder.pid}" in capsys.readouterr().out
    assert RunFolder(tmp_path / "run").lock.read_text() == ""


# -- what it says ------------------------------------------------------------------------------


def _result(before: tuple[float, float, float], after: tuple[float, float, float], **more: Any) -> dict[str, Any]:
    def e(x: tuple[float, float, float]) -> dict[str, Any]:
        return {"success": {"value": x[0], "low": x[1], "high": x[2], "n": 500, "method": "wilson"}}

    return {
        "before": e(before),
        "after": e(after),
        "games": 500,
        "split": "valid",
        "decoding": "sampled at temperature 1",
        **more,
    }


SAYINGS: list[tuple[Callable[[], dict[str, Any]], str]] = [
    (
        lambda: _result((0.42, 0.38, 0.46), (0.54, 0.5, 0.58), label="generated games, not ALFWorld scores"),
        "before → after: success sampled at temperature 1 rose from .420 [.380, .460] to .540 [.500, .580] on 500 "
        "games of valid; the 95 % intervals do not overlap. Generated games, not ALFWorld scores.",
    ),
    (
        lambda: _result((0.42, 0.38, 0.46), (0.40, 0.36, 0.44)),
        "before → after: success sampled at temperature 1 fell from .420 [.380, .460] to .400 [.360, .440] on 500 "
        "games of valid; the 95 % intervals overlap.",
    ),
    (
        lambda: _result((0.42, 0.38, 0.46), (0.42, 0.38, 0.46), leaked_games=3, env_errors=2),
        "before → after: success sampled at temperature 1 stayed at .420 [.380, .460] on 500 games of valid; the 95 % "
        "intervals overlap. Beware: 3 of the evaluated games were also trained on. 2 episodes ended in an environment "
        "error and count as failures.",
    ),
    (
        lambda: _result((0.1, 0.0, 0.2), (0.3, 0.2, 0.4), trials=2, pass_hat={"1": 0.3, "2": 0.125}, floor=7 / 114),
        "before → after: success sampled at temperature 1 rose from .100 [.000, .200] to .300 [.200, .400] on 500 "
        "games of valid; the 95 % intervals overlap; pass^2 .125; doing nothing scores .061.",  # 7/114 = .0614
    ),
]


@pytest.mark.parametrize(("result", "words"), SAYINGS)
def test_last_line(result: Callable[[], dict[str, Any]], words: str) -> None:
    assert last_line(result()) == words


def test_leaked_games_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Cheating(toy.ToyWorld):
        def tasks(self, split: str) -> Any:
            return super().tasks("train")

    monkeypatch.setattr(toy, "ToyWorld", Cheating)
    assert toy_run(str(tmp_path / "run"), iterations=1, warm_start_iterations=0)["leaked_games"] > 0


def test_importing_run_imports_no_torch() -> None:
    heavy = "{'torch', 'matplotlib', 'pyarrow', 'rich'}"
    code = f"import agentexp.run, agentexp.show, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_differences_tell_true_from_one() -> None:
    assert folder.differences({"a": True}, {"a": 1}) == [("a", True, 1)]
    assert folder.differences({"a": 1}, {}) == [("a", 1, "(absent)")]


def test_a_second_evaluation_is_made_on_every_occasion_and_kept_apart(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {
        "environment": toy.ToyWorld(), "rollouts": toy.ToyRollouts(torch.nn.Parameter(torch.tensor([0.0, 9.0]))),
        "seed": 5, "tasks": 12, "curve_tasks": 3, "trials": 2, "temperature": 1.0, "greedy": False, "best_of": [],
    }  # fmt: skip
    alone = toy_run(str(tmp_path / "alone"))
    also = Evaluation(split="test", also=None, **arguments)
    found = toy_run(str(tmp_path / "run"), also=also)
    assert found["after"] == alone["after"]  # the first is what it was
    assert found["curve"][-1]["won"] == alone["curve"][-1]["won"]
    assert (found["also"]["split"], found["also"]["games"]) == ("test", 12)
    assert [p["iteration"] for p in found["also"]["curve"]] == [p["iteration"] for p in found["curve"]]
    assert [len(p["won"]) for p in found["also"]["curve"]] == [12, 3, 3, 12]
    assert found["also"]["after"]["success"]["value"] > 0.9 > found["before"]["success"]["value"]  # its own policy
    names = {p.stem for p in (tmp_path / "run" / "trajectories").iterdir()}
    assert {"before-sampled", "also-before-sampled", "also-curve-00002", "also-after-sampled"} <= names
    rows = list(read_metrics(tmp_path / "run" / "metrics.jsonl"))
    assert rows[-1]["also/evaluation/sampled/success"] == found["also"]["after"]["success"]["value"]
    with pytest.raises(DataError, match="split was"):
        same_games({"split": "a", "also": {"split": "test"}}, {"split": "a", "also": {"split": "valid"}})
    with pytest.raises(ConfigError, match="two evaluations"):
        Evaluation(split="test", also=Evaluation(split="valid", also=also, **arguments), **arguments)

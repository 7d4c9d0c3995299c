"""kill −9 in an iteration, the same command again: every later number and the weights are equal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from agentexp.checkpoints import Checkpoints
from agentexp.store import read_metrics, read_trajectories

ROOT = Path(__file__).parents[2]


def command(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, str(ROOT / "tests" / "toy_run.py"), str(folder), *options]
    return subprocess.run(arguments, capture_output=True, text=True, env=environment, check=False, timeout=600)


def untimed(value: Any) -> Any:
    """The value without wall times: names that end in _s or start with time/."""
    if isinstance(value, dict):
        return {k: untimed(v) for k, v in value.items() if not (k.endswith("_s") or k.startswith("time/"))}
    return [untimed(v) for v in value] if isinstance(value, list) else value


def rows(folder: Path) -> list[dict[str, Any]]:
    return [untimed(row) for row in read_metrics(folder / "metrics.jsonl")]


def final_state(folder: Path) -> dict[str, Any]:
    checkpoint = Checkpoints(folder / "checkpoints", keep=2).latest()
    assert checkpoint is not None
    return checkpoint.load()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    done = command(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def corpse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed") / "run"
    died = command(folder, "--die-at", "3")
    assert died.returncode == -signal.SIGKILL
    assert not (folder / "result.json").exists()
    return folder


@pytest.fixture
def killed(tmp_path: Path, corpse: Path) -> Path:
    return Path(shutil.copytree(corpse, tmp_path / "run"))


def test_kill_9_in_iteration_3_then_the_same_command(whole: Path, killed: Path) -> None:
    before = rows(killed)
    again = command(killed)
    assert again.returncode == 0, again.stderr
    assert "note: resuming after algorithm iteration 2" in again.stdout
    assert rows(killed)[: len(before)] == before
    assert rows(killed) == rows(whole)
    mine, other = final_state(killed), final_state(whole)
    assert torch.equal(mine["state"]["weights"], other["state"]["weights"])
    for name, value in mine["state"]["optimizer"]["state"][0].items():
        assert torch.equal(value, other["state"]["optimizer"]["state"][0][name])
    assert torch.equal(mine["random"]["torch"], other["random"]["torch"])
    results = [untimed(json.loads((folder / "result.json").read_text())) for folder in (killed, whole)]
    assert results[0] == results[1]
    for file in sorted((whole / "trajectories").iterdir()):
        assert read_trajectories(killed / "trajectories" / file.name) == read_trajectories(file)
    provenance = json.loads((killed / "provenance.json").read_text())
    assert [entry["changed"] for entry in provenance["resumed"]] == [[]]


def test_a_half_written_row_and_a_cut_checkpoint_do_no_harm(whole: Path, killed: Path) -> None:
    with (killed / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "rollout/succ')
    (killed / "checkpoints" / ".tmp-1-000099").mkdir()
    newest = max((killed / "checkpoints").glob("0*"))
    (newest / "state.pt").write_bytes((newest / "state.pt").read_bytes()[:100])
    again = command(killed)
    assert again.returncode == 0, again.stderr
    assert "is not whole (state.pt has 100 bytes of" in again.stdout
    assert "half-written" in again.stdout
    assert rows(killed) == rows(whole)
    assert torch.equal(final_state(killed)["state"]["weights"], final_state(whole)["state"]["weights"])


def test_killed_before_the_first_checkpoint(whole: Path, killed: Path) -> None:
    for folder in (killed / "checkpoints").glob("0*"):
        (folder / "manifest.json").unlink()
    again = command(killed)
    assert again.returncode == 0, again.stderr
    assert "no whole checkpoint: the run starts over" in again.stdout
    assert rows(killed) == rows(whole)


@pytest.mark.parametrize("forgotten", ["random", "optimizer"])
def test_negative_control_a_resume_that_forgets_is_seen(whole: Path, killed: Path, forgotten: str) -> None:
    again = command(killed, "--forget", forgotten)
    assert again.returncode == 0, again.stderr
    assert rows(killed) != rows(whole)

"""The commands one after another on real, small runs: train, its repetition, evaluate, show, a sweep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SMALL = [
    "model.weights=null", "model.layers=1", "model.hidden_size=32", "run.iterations=1", "run.warm_start_iterations=1",
    "run.evaluate_every=0", "warm_start.demonstrations=20", "warm_start.steps_per_iteration=2", "evaluation.tasks=6",
    "evaluation.curve_tasks=2", "algorithm.tasks_per_iteration=2", "rollout.max_turns=3", "hardware.threads=1",
]  # fmt: skip


def agentexp(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "agentexp", *arguments]
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_train_evaluate_show(tmp_path: Path) -> None:
    first = agentexp(tmp_path, "train", "name=t", *SMALL)
    assert first.returncode == 0, first.stderr
    assert first.stderr == ""  # no library's progress bars or warnings
    run = tmp_path / "runs" / "t" / "0"
    for part in (
        "config.yaml",
        "provenance.json",
        "metrics.jsonl",
        "trajectories",
        "checkpoints",
        "result.json",
        "model",
    ):
        assert (run / part).exists(), part
    again = agentexp(tmp_path, "train", "name=t", *SMALL)
    assert "is done" in again.stdout
    other = agentexp(tmp_path, "train", "name=t", *SMALL, "algorithm.epochs=7")
    assert other.returncode == 2
    assert "algorithm.epochs" in other.stderr

    measured = agentexp(tmp_path, "evaluate", "runs/t/0", "evaluation.tasks=4", "evaluation.split=test")
    assert measured.returncode == 0, measured.stderr
    (file,) = (run / "evaluations").rglob("result.json")
    result = json.loads(file.read_text())
    assert (result["split"], result["games"], result["success"]["n"]) == ("test", 4, 4)
    size = ["model.hidden_size=32", "model.layers=1"]  # that of the saved model, else it is refused
    saved = agentexp(tmp_path, "evaluate", "model.weights=runs/t/0", *size, "evaluation.tasks=4", "rollout.max_turns=3")
    assert saved.returncode == 0, saved.stderr
    shown = agentexp(tmp_path, "show", "runs/t/0")
    assert shown.returncode == 0, shown.stderr
    assert "turn 0" in shown.stdout
    none = agentexp(tmp_path, "evaluate", "runs/t/0", "--checkpoint", "99")
    assert none.returncode == 2
    assert "There are:" in none.stderr


def test_a_sweep_trains_its_members_and_a_failing_one_is_shown(tmp_path: Path) -> None:
    swept = ["seed=0,1", "algorithm.rollouts_per_task=4,1", "name=s", *SMALL]  # a group of one is refused when built
    done = agentexp(tmp_path, "train", "-m", *swept)
    assert done.returncode == 1, done.stdout + done.stderr
    finished = sorted(
        str(f.parent.relative_to(tmp_path / "runs" / "s")) for f in (tmp_path / "runs").rglob("result.json")
    )
    assert finished == ["algorithm.rollouts_per_task=4/0", "algorithm.rollouts_per_task=4/1"]
    summary = done.stdout.rpartition("success before → after")[2]
    assert summary.count("done") == 2
    assert summary.count("failed (exit 2)") == 4
    assert "rollouts_per_task" in summary.rpartition("It last said")[2]

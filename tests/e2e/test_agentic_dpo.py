"""Agentic-DPO and ETO from the command line, small: what a run leaves behind, and that a run killed with SIGKILL ends
as one that nobody disturbed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tests.e2e.test_loop_resume import rows

SMALL = [
    "run.iterations=3", "run.evaluate_every=0", "run.checkpoint_every=1", "evaluation.tasks=6",
    "evaluation.curve_tasks=6", "evaluation.greedy=false", "rollout.max_turns=6", "hardware.threads=1",
    "algorithm.pool.demonstrations=12", "algorithm.pool.max_turns=20",
]  # fmt: skip
PAIRS = ["algorithm.visits_per_round=32", "algorithm.learner.total_steps=2"]
CHOSEN = ["algorithm=agentic_dpo_chosen", *PAIRS, "algorithm.choice.games=6"]


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agentexp", "train", f"output_dir={folder}", *SMALL, *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(folder: Path, *more: str) -> None:
    process = start(folder, *more)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["agentic_dpo", "kto", "step_dpo", "dft"])
def test_a_run_warms_up_then_contrasts(algorithm: str, tmp_path: Path) -> None:
    finish(tmp_path / "run", f"algorithm={algorithm}", *PAIRS)
    found = [row for row in rows(tmp_path / "run") if "train/loss" in row]
    assert [row["pool/visits"] >= 32 for row in found] == [True] * 3
    assert "negatives/sampled" not in found[0]
    assert all(("negatives/sampled" in row) == (algorithm != "dft") for row in found[1:])
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()


@pytest.mark.slow
def test_eto_pairs_trajectories(tmp_path: Path) -> None:
    finish(tmp_path / "run", "algorithm=eto", "algorithm.tasks_per_iteration=8")
    found = [row for row in rows(tmp_path / "run") if "rollout/pairs" in row]
    assert len(found) == 3
    assert sum(row["rollout/pairs"] for row in found) > 0
    assert json.loads((tmp_path / "run" / "result.json").read_text())["after"]["success"]["n"] == 6


@pytest.mark.slow
def test_killed_in_the_last_round_and_resumed(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    finish(whole, *CHOSEN)
    process = start(broken, *CHOSEN)
    deadline = time.monotonic() + 300
    while '"iteration": 2' not in (
        (broken / "metrics.jsonl").read_text() if (broken / "metrics.jsonl").exists() else ""
    ):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (broken / "result.json").exists()
    finish(broken, *CHOSEN)
    assert rows(broken) == rows(whole)
    want, got = (load_file(f / "model" / "model.safetensors") for f in (whole, broken))
    assert want.keys() == got.keys()
    assert all((want[k] == got[k]).all() for k in want)
    best = [row["choice/best_round"] for row in rows(whole) if "choice/best_round" in row]
    assert len(best) == 3

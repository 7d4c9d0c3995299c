"""LOOP from the command line, killed with SIGKILL in iteration 3: the same command makes every later
metric and the final weights equal to those of a run that nobody disturbed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

SMALL = [
    "run.iterations=5", "run.evaluate_every=2", "run.checkpoint_every=1",
    "algorithm.tasks_per_iteration=6", "algorithm.rollouts_per_task=4",
    "algorithm.enough.per_task=3", "algorithm.minibatch=8",
    "evaluation.tasks=12", "evaluation.curve_tasks=6", "rollout.max_turns=12",
]  # fmt: skip


def start(folder: Path, seed: int = 5) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "agentexp", "train", f"output_dir={folder}", f"seed={seed}", *SMALL]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ))


def finish(folder: Path, seed: int = 5) -> None:
    process = start(folder, seed)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output


def rows(folder: Path) -> list[dict[str, Any]]:
    """metrics.jsonl without what a clock wrote."""
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if not (k.endswith("_s") or k.startswith("time/"))} for row in found]


def kill_in_iteration(folder: Path, iteration: int) -> None:
    """SIGKILL as soon as the iteration before is in the metrics, that is while this one runs."""
    process = start(folder)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and process.poll() is None:
        metrics = folder / "metrics.jsonl"
        if metrics.exists() and f'"iteration": {iteration - 1}' in metrics.read_text():
            time.sleep(0.3)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return
        time.sleep(0.02)
    output, _ = process.communicate(timeout=10)
    raise AssertionError(f"the run never reached iteration {iteration}:\n{output}")


@pytest.mark.slow
def test_killed_in_iteration_three_and_resumed(tmp_path: Path) -> None:
    whole, broken, other = tmp_path / "whole", tmp_path / "broken", tmp_path / "other"
    finish(whole)
    kill_in_iteration(broken, 3)
    assert not (broken / "result.json").exists()
    finish(broken)
    assert rows(broken) == rows(whole)
    want, got = load_file(whole / "model" / "model.safetensors"), load_file(broken / "model" / "model.safetensors")
    assert want.keys() == got.keys()
    assert all((want[k] == got[k]).all() for k in want)
    finish(other, seed=6)
    assert rows(other) != rows(whole)  # negative control: the comparison sees another seed

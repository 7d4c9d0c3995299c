"""LOOP learns, and with advantages shuffled within the group it does not. The seed was fixed before
the first look; the intervals decide."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = ["seed=21", "run.evaluate_every=0", "evaluation.greedy=false"]


def train(folder: Path, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "agentexp", "train", f"output_dir={folder}", *ARGUMENTS, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2400)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


@pytest.mark.learning
def test_loop_raises_the_success_of_the_training_policy(tmp_path: Path) -> None:
    result = train(tmp_path / "run")
    assert result["after"]["success"]["low"] > result["before"]["success"]["high"], result


@pytest.mark.learning
def test_shuffled_advantages_do_not(tmp_path: Path) -> None:
    result = train(tmp_path / "run", "algorithm.shuffle_advantages=true")
    assert result["after"]["success"]["value"] <= result["before"]["success"]["high"], result

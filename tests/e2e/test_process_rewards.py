"""AgentPRM and InversePRM from the command line, small: what a run leaves behind, and what can be done with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SMALL = [
    "run.iterations=2", "run.evaluate_every=1", "run.checkpoint_every=1", "evaluation.tasks=6",
    "evaluation.curve_tasks=6", "evaluation.greedy=false", "evaluation.best_of=[1,2]", "rollout.max_turns=5",
    "algorithm.tasks_per_iteration=4", "algorithm.rollouts_per_task=2", "algorithm.improvement.steps=2",
    "algorithm.improvement.trunks_per_step=2", "hardware.threads=1",
]  # fmt: skip


def agentexp(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "agentexp", *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["agent_prm", "inverse_prm"])
def test_a_run_measures_best_of_n_and_keeps_its_reward_model(algorithm: str, tmp_path: Path) -> None:
    more = ["algorithm.demonstrations=6"] if algorithm == "inverse_prm" else []
    agentexp("train", f"algorithm={algorithm}", f"output_dir={tmp_path}/run", *SMALL, *more)
    found = result(tmp_path / "run")
    assert list(found["beside"]) == ["BoN(pi_0,Q_0)", "BoN(pi_1,Q_0)", "BoN(pi_2,Q_1)"]
    assert list(found["beside"]["BoN(pi_0,Q_0)"]) == ["1", "2"]
    # one candidate is the policy itself, on the same games and random numbers
    assert found["beside"]["BoN(pi_0,Q_0)"]["1"]["success"] == found["before"]["success"]
    assert found["beside"]["BoN(pi_2,Q_1)"]["1"]["success"] == found["after"]["success"]
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert any("prm/loss" in row and "dpo/pairs" in row for row in rows)
    agentexp(
        "evaluate", "policy=best_of_n", "policy.n=2", f"model.weights={tmp_path}/run",
        f"reward_model.weights={tmp_path}/run", f"output_dir={tmp_path}/bon", "evaluation.tasks=6",
        "evaluation.greedy=false", "rollout.max_turns=5", "hardware.threads=1",
    )  # fmt: skip
    measured = result(tmp_path / "bon")["success"]
    assert measured["n"] == 6
    assert measured["value"] == found["beside"]["BoN(pi_2,Q_1)"]["2"]["success"]["value"]


@pytest.mark.slow
def test_a_monitor_looks_at_other_games(tmp_path: Path) -> None:
    agentexp(
        "train", "algorithm=agent_prm_monitored", f"output_dir={tmp_path}/run", *SMALL, "evaluation.best_of=[]",
        "algorithm.monitor.games=5", "algorithm.monitor.every=1",
    )  # fmt: skip
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    (first,) = [row for row in rows if row.get("iteration") == 1 and "monitor/best_rounds" in row]
    assert first["monitor/kl_0"] == 0.0
    assert {"monitor/success_0", "monitor/success_1", "monitor/success_2", "monitor/process_reward_2"} <= first.keys()


@pytest.mark.slow
def test_a_sweep_of_seeds_ends_with_its_table(tmp_path: Path) -> None:
    """Two members at a time, each line with its member; then one table of both, also by `report`."""
    arguments = ["algorithm=agent_prm", f"output_root={tmp_path}", "name=s", *SMALL, "run.iterations=1"]
    said = agentexp("train", "-m", "--jobs", "2", "seed=0,1", *arguments)
    assert "2 members, 2 at a time" in said
    assert "[1] before: success on 6 games" in said
    assert "[2] before: success on 6 games" in said
    table = said.rpartition("success before → after")[2]
    assert "success on 6 games of valid, 2 seeds" in table
    for row in ("pi_0", "BoN(pi_0,Q_0) n=2", "pi_1", "BoN(pi_1,Q_0) n=2"):
        assert f"\n{row} " in table
    assert agentexp("report", str(tmp_path / "s")).strip() in said

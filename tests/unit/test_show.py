"""`agentexp show` and `agentexp evaluate` on toy folders."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from agentexp.errors import ConfigError, DataError
from agentexp.evaluation.evaluate import Evaluation
from agentexp.evaluation.standalone import evaluate_only
from agentexp.show import show
from agentexp.stats import short
from agentexp.store import write_trajectories
from agentexp.types import Completion
from tests.toy_run import ToyRollouts, ToyWorld, episode, toy_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("show") / "run"
    toy_run(str(path), iterations=3, warm_start_iterations=0)
    return path


def said(capsys: pytest.CaptureFixture[str], path: Path, **options: Any) -> str:
    show(path, **{"task": None, "iteration": None, "sample": None, "decode": None, **options})
    return capsys.readouterr().out


def test_shows_the_newest_by_default(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, run)
    assert text.startswith("before → after:")
    assert "after-sampled.parquet" in text
    for part in ("goal: win game", "user: Call it.", "> heads", "7·-0.", "1·-0.25", "2 read, 2 sampled", "You "):
        assert part in text


def test_shows_a_task_of_an_iteration_with_decoded_tokens(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, run, task="train/3", iteration=1, sample=2, decode=lambda i: f"<{i}>")
    assert "train/3 #2" in text
    assert "iteration-00001.parquet" in text
    assert "<3><4>" in text  # read
    assert "<1>·-0.25" in text  # sampled


def test_shows_what_was_not_sampled(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("{}")
    one = episode(ToyWorld().tasks("train")[0], 0, 0, True)
    scripted = Completion(ids=(7,), logprobs=(math.nan,), text="heads", finish="scripted", policy_version=0)
    turn = replace(one.turns[0], completion=scripted, deliberate=False, step=None)
    (tmp_path / "trajectories").mkdir()
    write_trajectories(tmp_path / "trajectories" / "iteration-00001.parquet", [replace(one, turns=(turn,))])
    text = said(capsys, tmp_path)
    assert "is not finished: before its first iteration" in text
    assert "scripted, not sampled · random move, not imitated · never answered" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task": "train/33", "iteration": 1}, r"No task 'train/33' in .* Did you mean 'train/3'\?"),
        ({"iteration": 9}, "No trajectories of 'iteration-00009'; there are: after-greedy,"),
        ({"iteration": "before-sampeld"}, r"Did you mean 'before-sampled'\?"),
        ({"sample": 5}, r"No sample 5 of task .*there are \[0\]"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(
    run: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        said(capsys, run, **options)


def test_a_folder_without_a_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match="is not a run folder"):
        said(capsys, tmp_path)


@pytest.mark.parametrize("text", ["{}", '{"games": 3}'])
def test_a_result_that_is_none_is_said(run: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (run / "result.json").write_text(text)
    with pytest.raises(DataError, match="is no result: it lacks"):
        said(capsys, run)


def test_evaluate_only_writes_its_own_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def measure() -> dict[str, Any]:
        return evaluate_only(
            name="eval",
            seed=0,
            output_dir=str(tmp_path / "eval"),
            evaluation=Evaluation(
                environment=ToyWorld(),
                rollouts=ToyRollouts(torch.nn.Parameter(torch.tensor([0.0, 1.0]))),  # type: ignore[arg-type]
                seed=0,
                split="valid",
                tasks=10,
                curve_tasks=None,
                trials=3,
                temperature=1.0,
                greedy=True,
                best_of=[],
                also=None,
            ),
            config={"evaluation": {"split": "valid"}},
            what="the toy",
        )

    result = measure()
    assert json.loads((tmp_path / "eval" / "result.json").read_text()) == json.loads(json.dumps(result))
    assert (result["trials"], result["success"]["n"], result["games"]) == (3, 30, 10)
    assert result["greedy"]["value"] == 1.0
    assert set(result["details"]["success"]["pass_hat"]) == {"1", "2", "3"}
    assert sorted(p.name for p in (tmp_path / "eval" / "trajectories").iterdir()) == [
        "evaluation-greedy.parquet",
        "evaluation-sampled.parquet",
    ]
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("the toy: success sampled at temperature 1 .")
    all_three = result["pass_hat"]["3"]
    assert line.endswith(f"on 10 games of valid; pass^3 {short(all_three)}. Toy games, not real ones.")
    assert 0 < all_three < result["pass_hat"]["1"] == pytest.approx(result["success"]["value"])
    assert measure()["success"] == json.loads(json.dumps(result["success"]))
    assert "the toy" in said(capsys, tmp_path / "eval")

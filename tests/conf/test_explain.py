"""`train --explain KEY`: the value and every file that sets it, the last one winning."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentexp.cli.main import main

CONF = Path(__file__).resolve().parents[2] / "conf"


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["train", "--explain", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def line_of(file: str, text: str) -> int:
    return next(
        n for n, line in enumerate((CONF / file).read_text().splitlines(), start=1) if line.strip().startswith(text)
    )


def test_file_and_line_of_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(capsys, "algorithm.epochs", "experiment=loop/rloo", "algorithm.epochs=3")
    assert found[0] == "algorithm.epochs = 3"
    places = [line.split()[0] for line in found[1:4]]
    wanted = ("algorithm/loop.yaml", "algorithm/rloo.yaml", "experiment/loop/rloo.yaml")
    for place, file in zip(places, wanted, strict=True):
        assert place.endswith(f"conf/{file}:{line_of(file, 'epochs:')}")
    assert found[4].split() == ["command", "line:", "algorithm.epochs=3", "3", "<-", "wins"]
    assert "wins" not in "".join(found[:4])


def test_who_chose_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, "environment")[0].endswith("conf/config.yaml")
    assert explained(capsys, "model", "experiment=loop/rloo")[0].endswith("conf/scale/paper/loop.yaml")
    assert explained(capsys, "algorithm", "algorithm=rloo")[0].endswith("command line: algorithm=rloo")
    assert explained(capsys, "warm_start")[0].startswith("algorithm@warm_start=sft")


def test_unknown_key_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--explain", "algorithm.lr"]) == 2
    assert "algorithm.learner.lr" in capsys.readouterr().err

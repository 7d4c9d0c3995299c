"""The command line as a user meets it: quick help, places of runs, sweeps that check before they start."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentexp.cli.compose import compose_config
from agentexp.cli.main import main
from agentexp.cli.places import run_folder
from agentexp.cli.sweep import members
from agentexp.errors import ConfigError


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["evaluate", "--help"], ["show", "-h"]])
def test_help_imports_neither_torch_nor_hydra(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from agentexp.cli.main import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'torch', 'transformers', 'hydra', 'pydantic', 'numpy'} & sys.modules.keys()\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "agentexp" in done.stdout
    assert time.monotonic() - started < 10  # 0.1 s on an idle machine


def test_train_help_lists_groups_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = capsys.readouterr().out
    for word in ("algorithm:", "rloo", "environment:", "alfworld_generated", "experiment:", "loop/rloo"):
        assert word in shown


def folder(*arguments: str) -> str:
    return str(run_folder(compose_config(list(arguments))))


def test_a_run_folder_tells_what_was_overridden_and_has_no_time_in_it() -> None:
    assert folder() == "runs/default/0"
    assert folder("seed=3") == "runs/default/3"
    assert folder("algorithm=rloo", "seed=1") == folder("seed=1", "algorithm=rloo") == "runs/default/algorithm=rloo/1"
    assert folder("name=mine", "algorithm=rloo") == "runs/mine/0"
    assert folder("experiment=loop/rloo") == "runs/loop-table1-rloo/0"
    assert folder("output_root=/x") == "/x/default/0"
    assert folder("output_dir=/x/y", "seed=2") == "/x/y"


def test_long_overrides_are_shortened_and_stay_apart() -> None:
    many = [f"algorithm.learner.lr={n}e-5" for n in range(1, 3)]
    rest = [
        "algorithm.learner.weight_decay=0.0123456789",
        "algorithm.learner.beta1=0.91",
        "rollout.max_turns=31",
        "run.iterations=7",
    ]
    first, second = (folder(lr, *rest) for lr in many)
    assert first != second
    assert len(Path(first).parent.name) <= 110


def test_sweep_is_the_product_and_every_member_has_its_folder() -> None:
    found = members(["seed=0,1", "algorithm=loop,rloo", "run.iterations=2", "name=s"])
    assert [m.title for m in found] == [
        "seed=0 algorithm=loop", "seed=0 algorithm=rloo", "seed=1 algorithm=loop", "seed=1 algorithm=rloo"
    ]  # fmt: skip
    assert [str(m.folder) for m in found[:2]] == ["runs/s/algorithm=loop/0", "runs/s/algorithm=rloo/0"]
    assert [m.title for m in members(["seed=range(0,3)"])] == ["seed=0", "seed=1", "seed=2"]
    assert [m.title for m in members(["algorithm=glob(grpo*)"])] == ["algorithm=grpo", "algorithm=grpo_no_kl"]


def test_a_sweep_with_one_wrong_member_starts_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["train", "-m", f"output_root={tmp_path}", "algorithm.epochs=1,x"]) == 2
    said = capsys.readouterr()
    assert "algorithm.epochs is 'x'" in said.err
    assert not list(tmp_path.iterdir())


def test_a_sweep_refuses_shared_folders_and_nothing_to_sweep() -> None:
    with pytest.raises(ConfigError, match="would share"):
        members(["seed=0,1", "output_dir=/x"])
    with pytest.raises(ConfigError, match="nothing is swept"):
        members(["seed=0"])


def test_failing_members_leave_the_others_alone_and_are_shown(tmp_path: Path) -> None:
    command = [
        "train",
        "-m",
        f"output_root={tmp_path}",
        "seed=0,1",
        "environment=alfworld",
        "environment.data=/no/such",
    ]
    done = subprocess.run([sys.executable, "-m", "agentexp", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "[2/2] seed=1" in done.stdout  # the second was still tried
    assert done.stdout.count("failed (exit 2)") == 4  # in the table, and each with its last lines
    assert "/no/such" in done.stdout.rpartition("It last said")[2]
    assert "Traceback" not in done.stderr


def test_unwritable_output_is_said_before_torch_is_imported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert main(["train", f"output_root={blocked}"]) == 2
    assert str(blocked) in capsys.readouterr().err

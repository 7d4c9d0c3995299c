"""The floors of the house hold, and a broken one would be noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; sys.argv = ['lint-imports', '--no-cache']\n"
        "from importlinter.cli import lint_imports_command; lint_imports_command()"
    )
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def test_floors_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("types.py", "import agentexp.run"),
        ("envs/base.py", "import torch"),
        ("rollouts/collect.py", "import agentexp.learning.learner"),
        ("algorithms/loop.py", "import agentexp.evaluation.evaluate"),
        ("run.py", "import hydra"),
        ("new_module.py", "import agentexp.types"),
    ],
)
def test_a_broken_floor_is_noticed(tmp_path: Path, file: str, line: str) -> None:
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for source in (ROOT / "agentexp").rglob("*.py"):
        copy = tmp_path / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(source.read_text())
    broken = tmp_path / "agentexp" / file
    broken.write_text((broken.read_text() if broken.exists() else "") + f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout


def test_no_file_outgrows_its_reader() -> None:
    long = {str(f): n for f in (ROOT / "agentexp").rglob("*.py") if (n := len(f.read_text().splitlines())) > 400}
    assert not long

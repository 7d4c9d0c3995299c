"""docs/plugins.md is run as it is printed: a package outside the tree, chosen by plugins=, environment= and
algorithm=, each file under 60 lines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin import PAGE, ROOT, commands, write_plugin


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A printed `agentexp …` line, in the folder that holds the package."""
    program, *arguments = command.split()
    assert program == "agentexp"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([".", str(ROOT)]), "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "agentexp", *arguments]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_files_are_short_and_commands_that_only_check_pass(tmp_path: Path) -> None:
    files = write_plugin(tmp_path)
    assert {f.suffix for f in files} == {".py", ".yaml"}
    assert len(files) == 7
    assert all(len(f.read_text().splitlines()) < 60 for f in files)
    printed = [c for c in commands(PAGE.read_text()) if c.startswith("agentexp")]
    checking = [c for c in printed if "--check" in c or "--explain" in c]
    assert len(printed) == 3
    assert len(checking) == 2
    for command in checking:
        done = run(command, tmp_path)
        assert done.returncode == 0, done.stderr
    assert "lights/conf/algorithm/expert_iteration.yaml" in done.stdout


def test_errors_name_the_plug_in_s_own_files(tmp_path: Path) -> None:
    write_plugin(tmp_path)
    wrong = run("agentexp train plugins=[lights] environment=lights environment.colors=[red]", tmp_path)
    assert wrong.returncode == 2
    assert "lights/conf/environment/lights.yaml" in wrong.stderr
    assert "Did you mean 'colours'" in wrong.stderr
    untrusted = run("agentexp train environment._target_=lights.environment.Lights", tmp_path)
    assert untrusted.returncode == 2
    assert "plugins=[lights]" in untrusted.stderr


@pytest.mark.slow
def test_the_printed_run_learns(tmp_path: Path) -> None:
    write_plugin(tmp_path)
    (command,) = [c for c in commands(PAGE.read_text()) if "--" not in c and c.startswith("agentexp")]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "runs" / "lights" / "0" / "result.json").read_text())
    assert result["after"]["success"]["low"] > result["before"]["success"]["high"]
    again = run(command, tmp_path)
    assert again.returncode == 0
    assert "is done" in again.stdout

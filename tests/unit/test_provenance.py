"""What is recorded about where a result came from."""

from __future__ import annotations

import copy
import subprocess
from pathlib import Path

from agentexp.provenance import changes, config_hash, git_state, provenance


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_commit_diff_and_untracked_files(tmp_path: Path) -> None:
    git(tmp_path, "init", "-b", "main")
    (tmp_path / "a.py").write_text("x = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    clean = git_state(tmp_path)
    assert (clean["dirty"], clean["diff"], clean["branch"]) == (False, "", "main")
    (tmp_path / "a.py").write_text("x = 2\n")
    (tmp_path / "new.py").write_text("")
    dirty = git_state(tmp_path)
    assert dirty["commit"] == clean["commit"]
    assert "-x = 1\n+x = 2" in dirty["diff"]
    assert dirty["untracked"] == ["new.py"]
    assert dirty["diff_sha256"] != clean["diff_sha256"]


def test_without_git_it_says_why(tmp_path: Path) -> None:
    state = git_state(tmp_path)
    assert state["commit"] is None
    assert "not in a git repository" in state["why"]


def test_everything_is_there_and_changes_are_named() -> None:
    now = provenance({"a": 1}, {"engine": "toy 1"})
    assert now["environment"] == {"engine": "toy 1"}
    assert "torch" in now["packages"]
    assert now["hardware"]["cores"] >= 1
    assert changes(now, now) == []
    other = copy.deepcopy(now)
    other["packages"]["torch"] = "0.1"
    other["git"]["commit"] = "0" * 40
    other["hardware"]["cpu"] = "another"
    assert changes(now, other) == ["git commit", "package torch", "cpu"]


def test_config_hash_sees_values_not_order() -> None:
    assert config_hash({"a": 1, "b": [1]}) == config_hash({"b": [1], "a": 1})
    assert config_hash({"a": 1}) != config_hash({"a": 2})

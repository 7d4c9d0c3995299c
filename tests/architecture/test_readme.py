"""Every command that the README and the docs print exists."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest

from agentexp.cli.main import main
from tests.plugin import PAGE, ROOT, commands

PAGES = [p for p in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))) if p != PAGE]
PRINTED = [(p.name, c) for p in PAGES if p.exists() for c in commands(p.read_text(encoding="utf-8"))]
TARGETS = set(re.findall(r"^([a-z0-9]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def printed(program: str) -> list[tuple[str, str]]:
    return [(page, command) for page, command in PRINTED if command.startswith(f"{program} ")]


def test_readme_has_the_two_commands() -> None:
    names = {command for _, command in PRINTED}
    assert {"make demo", "make test"} <= names


@pytest.mark.parametrize(("page", "command"), printed("make"))
def test_make_targets_exist(page: str, command: str) -> None:
    target = command.split()[1]
    assert target in TARGETS, page


@pytest.mark.parametrize(("page", "command"), printed("agentexp"))
def test_train_commands_compose_and_bind(page: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = shlex.split(command)[1:]
    if arguments[0] != "train" or "…" in command:
        assert arguments[0] in {"train", "evaluate", "show", "report", "data", "--help"}, page
        return
    if "-m" in arguments or "--multirun" in arguments:
        from agentexp.cli.sweep import members  # noqa: PLC0415

        assert members([a for a in arguments[1:] if not a.startswith("-")])
        return
    assert main([arguments[0], "--check", *[a for a in arguments[1:] if a != "--check"]]) == 0, capsys.readouterr().err


def test_every_script_and_file_named_in_the_readme_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in re.findall(r"\]\(([A-Za-z0-9_./-]+)\)", text) + re.findall(r"`(benchmarks/[a-z_]+\.py)`", text):
        assert (ROOT / name).exists(), name


def test_console_script_and_python_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"agentexp": "agentexp.__main__:main"}
    assert project["requires-python"] == ">=3.11,<3.14"

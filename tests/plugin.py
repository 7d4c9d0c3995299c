"""The plug-in package of docs/plugins.md, written out as the page prints it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "plugins.md"
_FILE = re.compile(r"^`(lights/\S+)`\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def write_plugin(folder: Path) -> list[Path]:
    """The files that the page shows, below `folder`."""
    written = []
    for name, body in _FILE.findall(PAGE.read_text(encoding="utf-8")):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body, encoding="utf-8")
        written.append(file)
    return written


def commands(text: str) -> list[str]:
    """The command lines of all shell blocks of a page, without comments."""
    blocks = [body for language, body in _FENCE.findall(text) if language in {"", "bash", "sh"}]
    lines = [re.split(r"\s+#\s", line)[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]

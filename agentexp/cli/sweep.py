"""`train -m`: the members of a sweep, one after another, each in its own process and folder. All are
composed and bound before the first starts; one that fails leaves the others alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import IO, Any

from hydra.core.override_parser.types import Glob, Override

from agentexp.cli.assemble import bind
from agentexp.cli.compose import compose_config, parse, plugin_names
from agentexp.cli.places import refuse_sharing, run_folder
from agentexp.cli.tree import tree
from agentexp.errors import ConfigError

TAIL = 3  # lines of a failed member's errors in the summary


@dataclass
class Member:
    """One combination of the swept values."""

    title: str
    arguments: tuple[str, ...]
    folder: Path
    status: str = "not started"
    seconds: float = 0.0
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL))

    @property
    def failed(self) -> bool:
        return self.status != "done"


def members(arguments: Sequence[str]) -> list[Member]:
    """Every combination, in the order in which the keys were typed; each composed and bound."""
    overrides = parse(arguments)
    swept = {o.get_key_element() for o in overrides if o.is_sweep_override()}
    if not swept:
        raise ConfigError("nothing is swept; give some key several values, such as seed=0,1,2 or algorithm=loop,rloo")
    found = []
    for combination in product(*(_values(o, overrides) for o in overrides)):
        composed = compose_config(combination)
        folder = run_folder(composed, swept)
        bind(composed, folder)
        title = " ".join(str(o.input_line) for o in composed.overrides if o.get_key_element() in swept)
        found.append(Member(title=title, arguments=combination, folder=folder))
    refuse_sharing([m.folder for m in found])
    return found


def sweep(arguments: Sequence[str]) -> int:
    """Run all members; 0 if all are done, 1 if one failed, 130 if interrupted."""
    todo = members(arguments)
    print(f"{len(todo)} members, one after another; repeating the command resumes those that are not done.")
    interrupted = False
    for n, member in enumerate(todo, start=1):
        print(f"\n[{n}/{len(todo)}] {member.title} → {member.folder}", flush=True)
        try:
            _play(member)
        except KeyboardInterrupt:
            member.status, interrupted = "interrupted", True
            break
    _summary(todo)
    return 130 if interrupted else int(any(m.failed for m in todo))


def _values(override: Override, overrides: Sequence[Override]) -> list[str]:
    if not override.is_sweep_override():
        return [str(override.input_line)]
    key = override.get_key_element()
    glob: Any = override.value()
    if isinstance(glob, Glob):
        options = tree(plugin_names(overrides)).options(override.key_or_group)
        chosen = [o for o in options if any(fnmatchcase(o, g) for g in glob.include)]
        chosen = [o for o in chosen if not any(fnmatchcase(o, g) for g in glob.exclude)]
        return [f"{key}={option}" for option in chosen]
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def _play(member: Member) -> None:
    place = str(member.folder).replace("\\", "\\\\").replace("'", "\\'")
    command = [sys.executable, "-m", "agentexp", "train", *member.arguments, f"output_dir='{place}'"]
    started = time.monotonic()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, bufsize=1) as child:
        assert child.stderr is not None
        echo = threading.Thread(target=_echo, args=(child.stderr, member.tail), daemon=True)
        echo.start()
        code = child.wait()
        echo.join()
    member.seconds = time.monotonic() - started
    member.status = "done" if code == 0 else f"failed ({f'signal {-code}' if code < 0 else f'exit {code}'})"


def _echo(lines: IO[str], tail: deque[str]) -> None:
    for line in lines:
        sys.stderr.write(line)
        sys.stderr.flush()
        if line.strip():
            tail.append(line.rstrip())


def _summary(todo: Sequence[Member]) -> None:
    titles, states = [max(len(getattr(m, name)) for m in todo) for name in ("title", "status")]
    print("\nmember, status, time, success before → after (95 % interval):")
    for m in todo:
        result = _result(m)
        ends = " → ".join(_interval(result.get(when)) for when in ("before", "after"))
        print(f"  {m.title:<{titles}}  {m.status:<{states}}  {m.seconds:5.0f} s  {ends}")
    for m in todo:
        if m.failed and m.tail:
            print(f"\n{m.title}: {m.status}. It last said:", *(f"  {line}" for line in m.tail), sep="\n")


def _result(member: Member) -> dict[str, Any]:
    file = member.folder / "result.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() and not member.failed else {}
    return found


def _interval(end: Any) -> str:
    if not end:
        return "–"
    success = end["success"]
    return f"{success['value']:.3f} [{success['low']:.3f}, {success['high']:.3f}]"

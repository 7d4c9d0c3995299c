"""`train -m`: the members of a sweep, `jobs` at a time, each in its own process and folder. All are
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import IO, Any

from hydra.core.override_parser.types import Glob, Override

from agentexp.cli.assemble import bind
from agentexp.cli.compose import compose_config, parse, plugin_names
from agentexp.cli.places import refuse_sharing, run_folder
from agentexp.cli.report import report
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


def sweep(arguments: Sequence[str], jobs: int) -> int:
    """Run all members; 0 if all are done, 1 if one failed, 130 if interrupted."""
    if jobs < 1:
        raise ConfigError(f"--jobs is {jobs}; at least 1 is needed")
    todo = members(arguments)
    how = "one after another" if jobs == 1 else f"{jobs} at a time"
    print(f"{len(todo)} members, {how}; repeating the command resumes those that are not done.")
    stopped = threading.Event()

    def play(n: int, member: Member) -> None:
        if not stopped.is_set():
            print(f"\n[{n}/{len(todo)}] {member.title} → {member.folder}", flush=True)
            _play(member, prefix="" if jobs == 1 else f"[{n}] ")

    with ThreadPoolExecutor(jobs) as pool:
        playing = [pool.submit(play, n, member) for n, member in enumerate(todo, start=1)]
        try:
            for one in playing:
                one.result()
        except KeyboardInterrupt:  # the members were interrupted too, and save nothing more
            stopped.set()
    if stopped.is_set():
        for member in todo:
            if member.failed and member.seconds:
                member.status = "interrupted"
    _summary(todo)
    return 130 if stopped.is_set() else int(any(m.failed for m in todo))


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


def _play(member: Member, prefix: str) -> None:
    place = str(member.folder).replace("\\", "\\\\").replace("'", "\\'")
    command = [sys.executable, "-m", "agentexp", "train", *member.arguments, f"output_dir='{place}'"]
    started = time.monotonic()
    said = subprocess.PIPE if prefix else None  # alone, a member has the terminal to itself
    with subprocess.Popen(command, stdout=said, stderr=subprocess.PIPE, text=True, bufsize=1) as child:
        assert child.stderr is not None
        echoes = [threading.Thread(target=_echo, args=(child.stderr, sys.stderr, prefix, member.tail), daemon=True)]
        if child.stdout is not None:
            echoes.append(threading.Thread(target=_echo, args=(child.stdout, sys.stdout, prefix, None), daemon=True))
        for echo in echoes:
            echo.start()
        code = child.wait()
        for echo in echoes:
            echo.join()
    member.seconds = time.monotonic() - started
    member.status = "done" if code == 0 else f"failed ({f'signal {-code}' if code < 0 else f'exit {code}'})"


def _echo(lines: IO[str], to: IO[str], prefix: str, tail: deque[str] | None) -> None:
    for line in lines:
        to.write(prefix + line)
        to.flush()
        if tail is not None and line.strip():
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
    done = [m.folder for m in todo if not m.failed]
    if done and any(_result(m).get("beside") for m in todo):
        report(done)


def _result(member: Member) -> dict[str, Any]:
    file = member.folder / "result.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() and not member.failed else {}
    return found


def _interval(end: Any) -> str:
    if not end:
        return "–"
    success = end["success"]
    return f"{success['value']:.3f} [{success['low']:.3f}, {success['high']:.3f}]"

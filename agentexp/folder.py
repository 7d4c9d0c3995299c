"""The folder of one run: where things lie, who may write, and whether it is the same run as before.
Knows files and configurations; no algorithm, no tensor.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from agentexp.errors import ConfigError, DataError, StorageError
from agentexp.files import make_folder, storing, sweep, write_whole
from agentexp.store import plain

ABSENT = "(absent)"


class RunFolder:
    """Names the files of a run folder and guards them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.provenance = path / "provenance.json"
        self.metrics = path / "metrics.jsonl"
        self.manifest = path / "games.json"
        self.checkpoints = path / "checkpoints"
        self.trajectories = path / "trajectories"
        self.result = path / "result.json"
        self.report = path / "report.png"
        self.lock = path / "run.lock"

    def finished(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result, if this very run is done; None if it is still to do. Another run's folder: ConfigError."""
        self.refuse_other_config(config)
        return self.read_result() if self.result.exists() else None

    def read_result(self) -> dict[str, Any]:
        """What stands in result.json. Raises DataError where it is not what a run or an evaluation writes."""
        found = read_json(self.result)
        missing = {"games", "split", "decoding"} - found.keys()
        if missing:
            raise DataError(
                f"{self.result} is no result: it lacks {', '.join(sorted(missing))}. Delete it; the run's own command "
                "makes it again"
            )
        return found

    def refuse_other_config(self, config: Mapping[str, Any]) -> None:
        """Raise ConfigError, naming the keys, if the folder holds a run of another configuration."""
        try:
            with storing(self.config, "reading"):
                if not self.config.exists():
                    return
                before = yaml.safe_load(self.config.read_text()) or {}
        except yaml.YAMLError as error:
            raise DataError(f"{self.config} is not YAML any more: {error}") from error
        differing = differences(before, plain(config))
        if differing:
            shown = "\n".join(f"  {key}: {old!r} in the folder, {new!r} now" for key, old, new in differing[:20])
            more = f"\n  … and {len(differing) - 20} more" if len(differing) > 20 else ""
            raise ConfigError(
                f"{self.path} holds a run of another configuration. Keys that differ:\n{shown}{more}\n"
                "Give the new run another name (name=…), or delete that folder, or repeat its own command to resume it."
            )

    def prepare(self, config: Mapping[str, Any]) -> None:
        """Write config.yaml on the first start; clear what a killed process left half-written."""
        sweep(self.path)
        sweep(self.trajectories)
        sweep(self.checkpoints)
        if not self.config.exists():
            write_whole(self.config, yaml.safe_dump(plain(config), sort_keys=False, allow_unicode=True))

    @contextmanager
    def locked(self) -> Iterator[str | None]:
        """Hold the folder for this process. Yields a notice if a dead process's lock was taken over."""
        make_folder(self.path)
        with storing(self.lock, "opening"):
            file = self.lock.open("a+")
        with file:
            try:
                # a POSIX lock belongs to this process alone and dies with it: no child inherits it, no pid misleads
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                file.seek(0)
                raise StorageError(
                    f"{self.path} is in use by {file.read().strip() or 'another process'}. Two processes in one folder "
                    "would spoil it: wait for it, stop it, or give this run another name (name=…)."
                ) from error
            file.seek(0)
            left = file.read().strip()
            _rewrite(file.fileno(), f"process {os.getpid()} on {socket.gethostname()}\n")
            try:
                yield f"took over the folder from {left}, which ended without finishing" if left else None
            finally:
                _rewrite(file.fileno(), "")


def _rewrite(handle: int, text: str) -> None:
    """Replace a lock file's text. A full disk is no reason not to hold or free a lock."""
    try:
        os.ftruncate(handle, 0)
        os.write(handle, text.encode())
    except OSError:
        return


def differences(before: Any, now: Any, key: str = "") -> list[tuple[str, Any, Any]]:
    """(dotted key, old value, new value) wherever two configurations differ.

    >>> differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2})
    [('a.b', 1, 3)]
    """
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        keys = [*before, *(k for k in now if k not in before)]
        return [
            found
            for k in keys
            for found in differences(before.get(k, ABSENT), now.get(k, ABSENT), f"{key}.{k}" if key else str(k))
        ]
    return [] if before == now and isinstance(before, bool) == isinstance(now, bool) else [(key, before, now)]


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; DataError if it is none."""
    try:
        with storing(path, "reading"):
            value: dict[str, Any] = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no JSON object")
    return value


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object, whole or not at all."""
    write_whole(path, json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n")

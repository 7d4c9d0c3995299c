"""Checkpoints that are whole or not there. A checkpoint is a folder `NNNNNN` with `state.pt` and
`manifest.json` (size and SHA-256 of the state, what was done, a score); it is written aside, flushed
and renamed, and checked before it is believed. Knows no model and no run: a state is nested plain
data and tensors.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, Protocol, cast

from agentexp.errors import DataError, StorageError
from agentexp.files import TEMPORARY, make_folder, storage_error, storing, sweep, sync_folder
from agentexp.seeding import seed_for

FORMAT = 1


class Stateful(Protocol):
    """Whatever can be saved and put back."""

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any], /) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A checkpoint that was found whole. `number` orders checkpoints of a run; `about` is free."""

    path: Path
    number: int
    score: float | None
    about: Mapping[str, Any]

    def load(self) -> dict[str, Any]:
        """The state, on the CPU. Only plain data and tensors are unpickled."""
        import torch  # noqa: PLC0415  late: 1.4 s that listing checkpoints does not need

        try:
            state: dict[str, Any] = torch.load(self.path / "state.pt", map_location="cpu", weights_only=True)
        except Exception as error:  # the named boundary: whatever an unpickler raises
            raise DataError(f"{self.path}/state.pt cannot be read: {error}") from error
        return state


class Checkpoints:
    """The checkpoints of one run: the last `keep` of them, and the best by score."""

    def __init__(self, folder: Path, *, keep: int) -> None:
        if keep < 1:
            raise DataError(f"keep_checkpoints is {keep}; at least 1 is needed, or nothing could be resumed")
        self.folder = folder
        self.keep = keep
        self.notices: list[str] = []  # what was not whole, in words, for whoever prints

    def save(self, number: int, state: Mapping[str, Any], *, score: float | None, about: Mapping[str, Any]) -> Path:
        """Save a state under a number, then delete what is neither among the last nor the best."""
        problem = _unstorable(state, "state")
        if problem:
            raise DataError(f"The checkpoint cannot be saved: {problem}")
        make_folder(self.folder)
        final = self.folder / f"{number:06d}"
        aside = self.folder / f"{TEMPORARY}{os.getpid()}-{final.name}"
        try:
            with storing(final, "saving the checkpoint"):
                aside.mkdir()
                sha256, size = _write_state(aside / "state.pt", state, final)
                manifest = {"format": FORMAT, "number": number, "score": score, "about": dict(about)}
                _write(aside / "manifest.json", manifest | {"files": {"state.pt": {"size": size, "sha256": sha256}}})
                sync_folder(aside)
                if final.exists():
                    shutil.rmtree(final)
                aside.rename(final)
                sync_folder(self.folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self._prune()
        return final

    def all(self) -> list[Checkpoint]:
        """Every checkpoint whose manifest and sizes fit, oldest first. Cheap: reads no state."""
        found = [self._look(path, deep=False) for path in self._folders()]
        return [c for c in found if c is not None]

    def latest(self) -> Checkpoint | None:
        """The newest whole checkpoint (hash checked); one that is not whole is said and passed by."""
        for path in reversed(self._folders()):
            checkpoint = self._look(path, deep=True)
            if checkpoint is not None:
                return checkpoint
        return None

    def numbered(self, number: int) -> Checkpoint | None:
        """The checkpoint of that number, if it is there and whole (hash checked)."""
        path = self.folder / f"{number:06d}"
        return self._look(path, deep=True) if path.is_dir() else None

    def best(self) -> Checkpoint | None:
        """The whole checkpoint with the highest score, the earliest of equals; None without scores.
        Chosen on the evaluated games, so its score there flatters it.
        """
        scored = sorted((c for c in self.all() if c.score is not None), key=lambda c: (-_score(c), c.number))
        for checkpoint in scored:
            if self._look(checkpoint.path, deep=True) is not None:
                return checkpoint
        return None

    def drop_after(self, number: int) -> None:
        """Delete checkpoints younger than `number` (not whole, or the run would resume from them)."""
        for path in self._folders():
            if int(path.name) > number:
                shutil.rmtree(path)

    def sweep(self) -> int:
        """Delete half-written leftovers of a killed process; how many."""
        return sweep(self.folder)

    def _folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted((p for p in self.folder.iterdir() if p.is_dir() and p.name.isdigit()), key=lambda p: int(p.name))

    def _look(self, path: Path, *, deep: bool) -> Checkpoint | None:
        problem = _problem(path, deep=deep)
        if problem:
            notice = f"checkpoint {path} is not whole ({problem}); it is not used"
            if notice not in self.notices:
                self.notices.append(notice)
            return None
        manifest = json.loads((path / "manifest.json").read_bytes())
        return Checkpoint(path=path, number=manifest["number"], score=manifest["score"], about=manifest["about"])

    def _prune(self) -> None:
        whole = self.all()
        spared = {c.number for c in whole[-self.keep :]}
        scored = [c for c in whole if c.score is not None]
        if scored:
            spared.add(min(scored, key=lambda c: (-_score(c), c.number)).number)
        for checkpoint in whole:
            if checkpoint.number not in spared:
                shutil.rmtree(checkpoint.path)


def restore(
    folder: Path, parts: Mapping[str, Stateful | None], *, which: Literal["latest", "best"] | int
) -> Checkpoint:
    """Load a run's checkpoint into the part that was being trained ("warm_start" or "algorithm")."""
    store = Checkpoints(folder, keep=1)
    if which == "latest":
        checkpoint = store.latest()
    elif which == "best":
        checkpoint = store.best()
    else:
        checkpoint = store.numbered(which)
    if checkpoint is None:
        numbers = [c.number for c in store.all()]
        raise DataError(
            f"{folder} has no whole checkpoint {which!r}. There are: {numbers or 'none'}. " + " ".join(store.notices)
        )
    state = checkpoint.load()
    part = parts.get(state["part"])
    if part is None:
        raise DataError(f"{checkpoint.path} holds the state of {state['part']!r}, which this configuration lacks")
    part.load_state_dict(state["state"])
    return checkpoint


def seed_random_state(seed: int) -> None:
    """Seed the global generators, for parts that use them in spite of `seed_for`."""
    import torch  # noqa: PLC0415

    torch.manual_seed(seed_for(seed, "torch"))
    random.seed(seed_for(seed, "python"))
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed_for(seed, "numpy") % 2**32)


def random_state() -> dict[str, Any]:
    """The state of every global random generator in use (torch on CPU and GPUs, python, numpy)."""
    import torch  # noqa: PLC0415

    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state(legacy=True)
        state["numpy"] = (str(kind), [int(k) for k in keys], int(rest[0]), int(rest[1]), float(rest[2]))
    return state


def set_random_state(state: Mapping[str, Any]) -> None:
    """Put the global random generators back to what `random_state` saw."""
    import numpy as np  # noqa: PLC0415
    import torch  # noqa: PLC0415

    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        kind, keys, position, has_gauss, gauss = state["numpy"]
        np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, gauss))


class _Hashing:
    """A file to write to that hashes what passes and remembers what the disk said."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.hash, self.size = file, hashlib.sha256(), 0
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            self.file.write(data)
        except OSError as error:
            self.error = error
            raise
        self.hash.update(data)
        self.size += memoryview(data).nbytes
        return memoryview(data).nbytes

    def flush(self) -> None:
        self.file.flush()


def _write_state(path: Path, state: Mapping[str, Any], final: Path) -> tuple[str, int]:
    import torch  # noqa: PLC0415

    with path.open("wb") as file:
        sink = _Hashing(file)
        try:
            torch.save(dict(state), cast(IO[bytes], sink))
        except Exception as error:  # the named boundary: torch hides the OSError in a RuntimeError of its own
            if sink.error is not None:
                raise storage_error(sink.error, final, "saving the checkpoint") from error
            raise
        file.flush()
        os.fsync(file.fileno())
    if path.stat().st_size != sink.size:
        raise StorageError(f"{path} has {path.stat().st_size} bytes after writing {sink.size}; the disk lost some")
    return sink.hash.hexdigest(), sink.size


def _write(path: Path, data: Mapping[str, Any]) -> None:
    with path.open("w") as file:
        json.dump(data, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def _problem(path: Path, *, deep: bool) -> str | None:
    """Why a checkpoint folder is not whole, or None."""
    try:
        manifest = json.loads((path / "manifest.json").read_bytes())
        if manifest["format"] != FORMAT:
            return f"format {manifest['format']}, this version reads {FORMAT}"
        for name, expected in manifest["files"].items():
            size = (path / name).stat().st_size
            if size != expected["size"]:
                return f"{name} has {size} bytes of {expected['size']}"
            if deep:
                with (path / name).open("rb") as file:
                    if hashlib.file_digest(file, "sha256").hexdigest() != expected["sha256"]:
                        return f"{name} does not have the SHA-256 that was recorded"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _score(checkpoint: Checkpoint) -> float:
    return float("-inf") if checkpoint.score is None else checkpoint.score


def _unstorable(value: Any, where: str) -> str | None:
    """Where a state holds something that could not be loaded again as plain data, or None."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str, bytes):
        return None
    if kind in (dict, OrderedDict):
        for key, item in value.items():
            if type(key) not in (str, int):
                return f"{where} has the key {key!r}; keys are str or int"
            problem = _unstorable(item, f"{where}.{key}")
            if problem:
                return problem
        return None
    if kind in (list, tuple):
        return next((p for i, item in enumerate(value) if (p := _unstorable(item, f"{where}[{i}]"))), None)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return None
    return f"{where} is a {kind.__module__}.{kind.__qualname__}; allowed are tensors, numbers, text, lists and dicts"

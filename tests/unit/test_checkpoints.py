"""A checkpoint is whole or not there."""

from __future__ import annotations

import errno
import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agentexp import checkpoints as module
from agentexp.checkpoints import Checkpoints, random_state, restore, set_random_state
from agentexp.errors import DataError, StorageError


def state(value: float) -> dict[str, Any]:
    return {"part": "algorithm", "state": {"w": torch.full((50,), value), "steps": 3, "nested": [(1, None), {0: 2.5}]}}


def save(store: Checkpoints, number: int, score: float | None = None) -> None:
    store.save(number, state(float(number)), score=score, about={"iteration": number})


def test_round_trip(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", keep=2)
    save(store, 1)
    found = store.latest()
    assert found is not None
    assert (found.number, found.about) == (1, {"iteration": 1})
    loaded = found.load()
    assert torch.equal(loaded["state"]["w"], torch.full((50,), 1.0))
    assert loaded["state"]["nested"] == [(1, None), {0: 2.5}]


def test_keeps_the_last_two_and_the_best(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", keep=2)
    for number, score in enumerate([0.2, 0.9, 0.9, None, 0.5, 0.4], start=1):
        save(store, number, score)
    assert [c.number for c in store.all()] == [2, 5, 6]  # the earlier of the two best
    best, latest = store.best(), store.latest()
    assert best is not None
    assert latest is not None
    assert (best.number, latest.number) == (2, 6)


def _cut_state(path: Path) -> None:
    (path / "state.pt").write_bytes((path / "state.pt").read_bytes()[:-1])


def _flip_a_bit(path: Path) -> None:
    data = bytearray((path / "state.pt").read_bytes())
    data[len(data) // 2] ^= 1
    (path / "state.pt").write_bytes(bytes(data))


SPOILERS: dict[str, Callable[[Path], object]] = {
    "cut state": _cut_state,
    "flipped bit": _flip_a_bit,
    "no state": lambda path: (path / "state.pt").unlink(),
    "no manifest": lambda path: (path / "manifest.json").unlink(),
    "cut manifest": lambda path: (path / "manifest.json").write_text('{"format": 1, "fil'),
    "empty manifest": lambda path: (path / "manifest.json").write_text("{}"),
    "manifest is a list": lambda path: (path / "manifest.json").write_text("[]"),
}


@pytest.mark.parametrize("how", SPOILERS)
def test_a_spoilt_checkpoint_is_passed_by_and_said(tmp_path: Path, how: str) -> None:
    store = Checkpoints(tmp_path / "c", keep=2)
    save(store, 1)
    save(store, 2)
    SPOILERS[how](tmp_path / "c" / "000002")
    found = store.latest()
    assert found is not None
    assert found.number == 1
    assert any("000002 is not whole" in notice for notice in store.notices)
    save(store, 2)  # made again
    again = Checkpoints(tmp_path / "c", keep=2).latest()
    assert again is not None
    assert again.number == 2


def test_a_half_written_folder_is_never_seen_and_is_swept(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", keep=2)
    save(store, 1)
    (tmp_path / "c" / ".tmp-99-000002").mkdir()
    assert [c.number for c in store.all()] == [1]
    assert store.sweep() == 1
    assert [p.name for p in (tmp_path / "c").iterdir()] == ["000001"]


@pytest.mark.parametrize("after_bytes", [0, 1000])
def test_full_disk_leaves_the_last_checkpoint_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after_bytes: int
) -> None:
    store = Checkpoints(tmp_path / "c", keep=1)
    save(store, 1)
    write = module._Hashing.write

    class Full:
        """A file on a disk with a little room left."""

        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, data: bytes) -> int:
            if self.file.tell() + len(data) > after_bytes:
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(self.file.write(data))

    def full(self: Any, data: bytes) -> int:
        if not isinstance(self.file, Full):
            self.file = Full(self.file)
        return write(self, data)

    monkeypatch.setattr(module._Hashing, "write", full)
    with pytest.raises(
        StorageError, match=r"The disk is full: saving the checkpoint .*000002.*last checkpoint is whole"
    ):
        save(store, 2)
    monkeypatch.undo()
    assert [p.name for p in (tmp_path / "c").iterdir()] == ["000001"]
    found = store.latest()
    assert found is not None
    assert torch.equal(found.load()["state"]["w"], torch.full((50,), 1.0))


def test_what_could_not_be_loaded_again_is_refused_at_save(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", keep=1)
    with pytest.raises(DataError, match=r"state\.a\[1\] is a numpy\.float64"):
        store.save(1, {"a": [1, np.float64(2)]}, score=None, about={})
    assert store.latest() is None


def test_only_plain_data_is_unpickled(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", keep=1)
    save(store, 1)
    path = tmp_path / "c" / "000001"
    torch.save({"evil": Path("x")}, path / "state.pt")
    manifest = json.loads((path / "manifest.json").read_text())
    data = (path / "state.pt").read_bytes()
    manifest["files"]["state.pt"] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (path / "manifest.json").write_text(json.dumps(manifest))
    found = store.latest()
    assert found is not None
    with pytest.raises(DataError, match="cannot be read"):
        found.load()


def test_random_state_round_trip() -> None:
    saved = random_state()
    first = (random.random(), float(torch.rand(())), float(np.random.rand()))
    assert (random.random(), float(torch.rand(())), float(np.random.rand())) != first  # the control
    set_random_state(saved)
    assert (random.random(), float(torch.rand(())), float(np.random.rand())) == first


def test_random_state_survives_the_disk(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", keep=1)
    store.save(1, {"random": random_state()}, score=None, about={})
    first = (random.random(), float(torch.rand(())), float(np.random.rand()))
    found = store.latest()
    assert found is not None
    set_random_state(found.load()["random"])
    assert (random.random(), float(torch.rand(())), float(np.random.rand())) == first


class Part:
    def __init__(self) -> None:
        self.loaded: Any = None

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any, /) -> None:
        self.loaded = state


def test_restore_loads_the_part_that_was_trained(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", keep=3)
    save(store, 1, 0.9)
    save(store, 2, 0.1)
    warm, algorithm = Part(), Part()
    assert restore(tmp_path / "c", {"warm_start": warm, "algorithm": algorithm}, which="best").number == 1
    assert warm.loaded is None
    assert float(algorithm.loaded["w"][0]) == 1.0
    restore(tmp_path / "c", {"algorithm": algorithm}, which="latest")
    assert float(algorithm.loaded["w"][0]) == 2.0
    with pytest.raises(DataError, match=r"no whole checkpoint 7. There are: \[1, 2\]"):
        restore(tmp_path / "c", {"algorithm": algorithm}, which=7)


def test_a_spoilt_checkpoint_is_not_taken_by_its_number_either(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "c", keep=3)
    save(store, 1)
    _flip_a_bit(tmp_path / "c" / "000001")
    assert store.numbered(1) is None
    assert store.numbered(2) is None
    assert "SHA-256" in store.notices[0]
    with pytest.raises(DataError, match="no whole checkpoint 1"):
        restore(tmp_path / "c", {"algorithm": Part()}, which=1)

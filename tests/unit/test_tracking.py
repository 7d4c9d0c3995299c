"""Trackers mirror; they can never stop a run."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentexp.store import read_metrics
from agentexp.tracking import Guarded, WandbTracker
from tests.toy_run import toy_run


class Broken:
    """A tracker of which every call raises."""

    def start(self, **_: Any) -> None:
        raise ConnectionError("no network")

    def log(self, row: Any, *, step: int) -> None:
        raise RuntimeError("wandb-core is gone")

    def finish(self, *, exit_code: int) -> None:
        raise OSError("and cannot say goodbye")


def test_a_broken_tracker_is_counted_and_changes_nothing(tmp_path: Path) -> None:
    good = toy_run(str(tmp_path / "good"), iterations=2)
    bad = toy_run(str(tmp_path / "bad"), iterations=2, tracker=Broken())
    # start, 2 warm-start rows, before, 2 iterations, after (a curve point at 2 of 2 is the "after"), finish
    assert bad["tracking_failures"] == 8
    assert good["tracking_failures"] == 0
    assert bad["after"] == good["after"]
    assert len(list(read_metrics(tmp_path / "bad" / "metrics.jsonl"))) == 6


def test_the_first_failure_is_kept_in_words() -> None:
    guarded = Guarded(Broken())
    guarded.log({}, step=1)
    guarded.log({}, step=2)
    assert (guarded.failures, guarded.first_failure) == (2, "log: RuntimeError: wandb-core is gone")


def test_a_keyboard_interrupt_is_not_swallowed() -> None:
    class Interrupted(Broken):
        def log(self, row: Any, *, step: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Guarded(Interrupted()).log({}, step=0)


class FakeWandb:
    """Records what a run of W&B would be told."""

    def __init__(self) -> None:
        self.inits: list[dict[str, Any]] = []
        self.rows: list[tuple[int, dict[str, Any]]] = []
        self.exit_codes: list[int] = []

    def Settings(self, **settings: Any) -> dict[str, Any]:
        return settings

    def init(self, **options: Any) -> Any:
        self.inits.append(options)
        return SimpleNamespace(
            log=self._log,
            finish=self._finish,
        )

    def _log(self, row: dict[str, Any], step: int) -> None:
        self.rows.append((step, row))

    def _finish(self, exit_code: int) -> None:
        self.exit_codes.append(exit_code)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeWandb:
    module = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def _wandb() -> WandbTracker:
    return WandbTracker(project="p", entity=None, mode="offline", group=None, tags=["t"])


def test_wandb_is_one_run_over_a_resume(tmp_path: Path, fake: FakeWandb) -> None:
    for step in (0, 3):
        tracker = _wandb()
        tracker.start(folder=tmp_path, name="n", config={"a": 1}, step=step)
        tracker.log({"part": "algorithm", "loss": 0.5, "missing": None}, step=step + 1)
        tracker.finish(exit_code=0)
    first, second = fake.inits
    assert first["id"] == second["id"] == (tmp_path / "wandb_id").read_text()
    assert (first["mode"], first["resume"], first["dir"]) == ("offline", "allow", str(tmp_path))
    assert first["settings"]["x_transaction_log_flush_interval"] == 1
    assert fake.rows == [(1, {"loss": 0.5}), (4, {"loss": 0.5})]
    assert fake.exit_codes == [0, 0]


def test_two_starts_in_one_second_do_not_collide(tmp_path: Path, fake: FakeWandb) -> None:
    (tmp_path / "wandb_id").write_text("abc")
    stamp = time.strftime("%Y%m%d_%H%M%S")
    for other in (stamp, time.strftime("%Y%m%d_%H%M%S", time.localtime(time.time() + 1))):
        (tmp_path / "wandb" / f"offline-run-{other}-abc").mkdir(parents=True)
    tracker = _wandb()
    started = time.monotonic()
    tracker.start(folder=tmp_path, name="n", config={}, step=0)
    assert time.monotonic() - started > 1


def test_without_wandb_installed_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    guarded = Guarded(_wandb())
    guarded.start(folder=tmp_path, name="n", config={}, step=0)
    assert guarded.first_failure is not None
    assert "ModuleNotFoundError" in guarded.first_failure

"""Mirrors of the metrics. The JSONL in the run folder is the truth; a tracker shows it elsewhere and
can never stop a run: every error of one is caught at `Guarded`, counted and said once. Knows no run.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from agentexp.files import write_whole

log = logging.getLogger(__name__)


class Tracker(Protocol):
    """Shows the rows of metrics.jsonl somewhere else."""

    def start(self, *, folder: Path, name: str, config: Mapping[str, Any], step: int) -> None:
        """A run starts, or resumes, at `step`."""
        ...

    def log(self, row: Mapping[str, Any], *, step: int) -> None:
        """A row of metrics; several rows may belong to one step."""
        ...

    def finish(self, *, exit_code: int) -> None: ...


class NoTracker:
    """Tracks nowhere: the run folder is enough."""

    def __init__(self) -> None:
        """Takes no options."""

    def start(self, *, folder: Path, name: str, config: Mapping[str, Any], step: int) -> None:
        """Nothing."""

    def log(self, row: Mapping[str, Any], *, step: int) -> None:
        """Nothing."""

    def finish(self, *, exit_code: int) -> None:
        """Nothing."""


class WandbTracker:
    """Mirrors to Weights & Biases (extra `wandb`); offline unless asked otherwise. The id of the run
    is kept in the run folder, so a resumed run is the same run there.
    """

    def __init__(
        self,
        *,
        project: str,
        entity: str | None,
        mode: Literal["offline", "online", "disabled"],
        group: str | None,
        tags: list[str],
    ) -> None:
        self.project, self.entity, self.mode, self.group, self.tags = project, entity, mode, group, tags
        self._run: Any = None

    def start(self, *, folder: Path, name: str, config: Mapping[str, Any], step: int) -> None:
        """Begin the W&B run, or go on with it under the same id."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # else it looks up a name on the network
        os.environ.setdefault("WANDB_SILENT", "true")
        import wandb  # noqa: PLC0415  late: 0.8 s, and an optional extra

        identity = self._identity(folder)
        self._wait_for_a_free_second(folder, identity)
        self._run = wandb.init(
            project=self.project,
            entity=self.entity,
            group=self.group,
            tags=self.tags,
            name=name,
            id=identity,
            resume="allow",
            mode=self.mode,
            dir=str(folder),
            config=dict(config),
            # the file is flushed every 15 s by default: a kill within that loses everything
            settings=wandb.Settings(x_transaction_log_flush_interval=1, init_timeout=30, console="off"),
        )

    def log(self, row: Mapping[str, Any], *, step: int) -> None:
        """Mirror the numbers of a row."""
        numbers = {k: v for k, v in row.items() if isinstance(v, int | float)}
        self._run.log(numbers, step=step)

    def finish(self, *, exit_code: int) -> None:
        """End the W&B run."""
        if self._run is not None:
            self._run.finish(exit_code=exit_code)

    def _identity(self, folder: Path) -> str:
        kept = folder / "wandb_id"
        if not kept.exists():
            write_whole(kept, uuid.uuid4().hex[:12])
        return kept.read_text().strip()

    def _wait_for_a_free_second(self, folder: Path, identity: str) -> None:
        """W&B names an offline folder by the second: two starts within one would collide."""
        stamp = time.strftime("%Y%m%d_%H%M%S")
        if (folder / "wandb" / f"offline-run-{stamp}-{identity}").exists():
            time.sleep(1.1)


class Guarded:
    """A tracker whose failures are counted instead of raised. The one place that may catch everything."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.failures = 0
        self.first_failure: str | None = None

    def start(self, *, folder: Path, name: str, config: Mapping[str, Any], step: int) -> None:
        """Start the tracker, if it can."""
        self._try("start", lambda: self.tracker.start(folder=folder, name=name, config=config, step=step))

    def log(self, row: Mapping[str, Any], *, step: int) -> None:
        """Log a row, if the tracker can."""
        self._try("log", lambda: self.tracker.log(row, step=step))

    def finish(self, *, exit_code: int) -> None:
        """Finish the tracker, if it can."""
        self._try("finish", lambda: self.tracker.finish(exit_code=exit_code))

    def _try(self, what: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # the named boundary: a mirror can never stop a run
            self.failures += 1
            if self.first_failure is None:
                self.first_failure = f"{what}: {type(error).__name__}: {error}"
                log.warning("The tracker failed (%s). The run goes on; metrics.jsonl is whole.", self.first_failure)

"""Runs environment calls off the main thread, each with a deadline.

A round of calls lies in one queue; a few threads empty it. That costs one hand-over per round and
thread, not per call, since a step of a pure-Python environment is shorter than waking a thread. A
thread whose call passes the deadline is abandoned (it cannot be killed; `SubprocessEnv` can) and
counted; the others finish the round.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Any

from agentexp.errors import ConfigError, DataError, EnvironmentFailure
from agentexp.rollouts.episode import EnvCall, Hung


class _Round:
    """One batch of calls: who takes which, what came back."""

    def __init__(self, calls: Sequence[EnvCall]) -> None:
        self.calls = calls
        self.results: list[Any] = [None] * len(calls)
        self.waiting = deque(range(len(calls)))
        self.open = len(calls)
        self.lock = threading.Lock()
        self.complete = threading.Event()

    def settle(self, count: int = 1) -> None:
        """Caller holds the lock."""
        self.open -= count
        if self.open == 0:
            self.complete.set()


class _Thread:
    """One worker: its inbox and the call it is at."""

    def __init__(self, number: int) -> None:
        self.inbox: SimpleQueue[_Round | None] = SimpleQueue()
        self.at: tuple[int, float] | None = None  # (index of the call, when it began)
        self.abandoned = False
        threading.Thread(target=self._work, name=f"env-{number}", daemon=True).start()

    def _work(self) -> None:
        while (batch := self.inbox.get()) is not None:
            while True:
                try:
                    index = batch.waiting.popleft()
                except IndexError:
                    break
                self.at = (index, monotonic())
                call = batch.calls[index]
                result = _run(call)
                with batch.lock:
                    if not self.abandoned:
                        batch.results[index] = result
                        self.at = None
                        batch.settle()
                if self.abandoned:
                    if call.late is not None:
                        _run(EnvCall(partial(call.late, result)))
                    return


def _run(call: EnvCall) -> Any:
    """The result of a call, or its error. The one place where anything is caught."""
    try:
        return call.run()
    except (EnvironmentFailure, ConfigError, DataError) as failure:  # the last two are for the user: a game is corrupt
        return failure
    except Exception as error:  # whatever an environment raises is its failure
        return EnvironmentFailure(f"the environment raised {type(error).__name__}: {error}")


class Workers:
    """`count` threads for environment calls of at most `timeout_s` seconds each.

    abandoned: how many threads were left behind in a call that hung.
    """

    def __init__(self, *, count: int, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.abandoned = 0
        self._started = 0
        self._threads = [self._thread() for _ in range(count)]

    def run(self, calls: Sequence[EnvCall]) -> list[Any]:
        """Results in the order of the calls; a failed call's result is its EnvironmentFailure."""
        if not calls:
            return []
        batch = _Round(calls)
        for thread in self._threads[: len(calls)]:
            thread.inbox.put(batch)
        while not batch.complete.wait(self._patience()):
            self._abandon_hung(batch)
        return batch.results

    def close(self) -> None:
        """Let idle threads end."""
        for thread in self._threads:
            thread.inbox.put(None)
        self._threads = []

    def _thread(self) -> _Thread:
        self._started += 1
        return _Thread(self._started)

    def _patience(self) -> float:
        """Seconds until the first running call can be late."""
        began = [at[1] for thread in self._threads if (at := thread.at) is not None]
        return max(0.001, min([*began, monotonic()]) + self.timeout_s - monotonic()) if began else 0.05

    def _abandon_hung(self, batch: _Round) -> None:
        for place, thread in enumerate(self._threads):
            with batch.lock:
                at = thread.at
                if at is None or monotonic() - at[1] < self.timeout_s:
                    continue
                thread.abandoned = True
                batch.results[at[0]] = Hung(
                    f"the environment did not answer within {self.timeout_s:g} s (step_timeout_s); "
                    "it was left behind in its thread"
                )
                batch.settle()
            self.abandoned += 1
            self._threads[place] = self._thread()
            self._threads[place].inbox.put(batch)

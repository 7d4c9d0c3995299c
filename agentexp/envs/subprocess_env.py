"""Any environment in killable child processes.

A thread that hangs cannot be ended; a process can. Each child hosts one session at a time and is
used again after a clean close. A child that hangs, dies or raises is killed with all that it
started, and the caller gets an EnvironmentFailure that says which. Children die with the parent.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agentexp.errors import AgentexpError, ConfigError, EnvironmentFailure
from agentexp.types import Action, Outcome, Step, Task

_LAST_WORDS = 600  # bytes of a dead child's output that its error quotes


class SubprocessEnv:
    """Hosts `factory(**arguments)` in child processes, behind the same contract.

    factory: `package.module.Name` of an Environment. arguments: its keyword arguments.
    step_timeout_s: deadline of a step or score. start_timeout_s: of opening an episode, which
    includes starting a process and loading its data. Both should be shorter than the rollouts'
    own step_timeout_s. python: the interpreter of the children, for suites whose requirements clash
    with the trainer's; None: this one. plugins: packages whose factories are built, beside agentexp.
    """

    def __init__(
        self,
        *,
        factory: str,
        arguments: dict[str, Any],
        step_timeout_s: float,
        start_timeout_s: float,
        python: str | None,
        plugins: list[str],
    ) -> None:
        if factory.split(".")[0] not in {"agentexp", *plugins}:
            raise ConfigError(
                f"factory {factory!r} is outside agentexp and the packages named in plugins ({plugins}); "
                "only these are built: add its package to plugins"
            )
        if min(step_timeout_s, start_timeout_s) <= 0:
            raise ConfigError(
                f"step_timeout_s is {step_timeout_s}, start_timeout_s is {start_timeout_s}; both must be above 0"
            )
        self.factory, self.arguments = factory, arguments
        self.step_timeout_s, self.start_timeout_s = step_timeout_s, start_timeout_s
        self.python = python
        self._idle: list[_Child] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _kill_all, self._idle, self._lock)  # also when the interpreter ends
        self._described: tuple[str, dict[str, str]] | None = None

    @property
    def name(self) -> str:
        """The hosted environment's name."""
        return self._describe()[0]

    def version(self) -> Mapping[str, str]:
        """The hosted environment's versions."""
        return self._describe()[1]

    def tasks(self, split: str) -> Sequence[Task]:
        """The hosted environment's tasks."""
        tasks: Sequence[Task] = self._ask_once("tasks", split)
        return tasks

    def floor(self, tasks: Sequence[Task]) -> float | None:
        """The hosted environment's floor, None where it has none."""
        floor: float | None = self._ask_once("floor", list(tasks))
        return floor

    def start(self, task: Task, seed: int) -> SubprocessSession:
        """Open an episode in a process of its own."""
        child = self._take()
        try:
            first = child.call("start", (task, seed), self.start_timeout_s, f"the start of {task.id}")
        except AgentexpError:
            child.kill()
            raise
        return SubprocessSession(self, child, task, first)

    def close(self) -> None:
        """End the idle children."""
        _kill_all(self._idle, self._lock)

    def give_back(self, child: _Child) -> None:
        """Keep a child whose session closed cleanly."""
        with self._lock:
            self._idle.append(child)

    def _take(self) -> _Child:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        child = _Child(self.python)
        try:
            child.call("open", (self.factory, self.arguments), self.start_timeout_s, f"the start of {self.factory}")
        except AgentexpError:
            child.kill()
            raise
        return child

    def _describe(self) -> tuple[str, dict[str, str]]:
        if self._described is None:
            self._described = self._ask_once("describe")
        return self._described

    def _ask_once(self, method: str, *arguments: Any) -> Any:
        child = self._take()
        try:
            answer = child.call(method, arguments, self.start_timeout_s, f"{self.factory}.{method}")
        except AgentexpError:
            child.kill()
            raise
        self.give_back(child)
        return answer


class SubprocessSession:
    """One episode in a child; for the contract see `envs.base.Session`."""

    def __init__(self, environment: SubprocessEnv, child: _Child, task: Task, first: Step) -> None:
        self._environment, self._task, self._first = environment, task, first
        self._child: _Child | None = child
        self._steps, self._done, self._broken = 0, first.done, False

    @property
    def first(self) -> Step:
        """The opening observation."""
        return self._first

    @property
    def pid(self) -> int | None:
        """The child's process id, None after close."""
        return self._child.process.pid if self._child is not None else None

    def step(self, action: Action) -> Step:
        """Play an action in the child."""
        if self._done:
            raise RuntimeError("step() after the episode ended; start a new session")
        self._steps += 1
        answer: Step = self._call("step", (action,), f"step {self._steps} of {self._task.id}")
        self._done = answer.done
        return answer

    def outcome(self) -> Outcome:
        """Score in the child."""
        outcome: Outcome = self._call("outcome", (), f"the scoring of {self._task.id}")
        return outcome

    def close(self) -> None:
        """Give the child back, or kill it if anything in it went wrong."""
        child, self._child = self._child, None
        if child is None:
            return
        if self._broken:
            child.kill()
            return
        try:
            child.call("close", (), self._environment.step_timeout_s, f"the closing of {self._task.id}")
        except AgentexpError:
            child.kill()
            raise
        self._environment.give_back(child)

    def _call(self, method: str, arguments: tuple[Any, ...], what: str) -> Any:
        if self._child is None:
            raise RuntimeError(f"{method}() after close; start a new session")
        try:
            return self._child.call(method, arguments, self._environment.step_timeout_s, what)
        except AgentexpError:
            self._broken = True
            raise


class _Child:
    """One process, the channel to it, and what it printed."""

    def __init__(self, python: str | None) -> None:
        ours, theirs = socket.socketpair()
        lifeline, self._lifeline = os.pipe()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the child
        root = str(Path(__file__).parents[2])
        path = [root] if python else [entry or str(Path.cwd()) for entry in sys.path]
        try:
            self.process = subprocess.Popen(  # our own module
                [python or sys.executable, "-m", "agentexp.envs.subprocess_child", str(theirs.fileno()), str(lifeline)],
                pass_fds=(theirs.fileno(), lifeline),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
                start_new_session=True,  # its own group, so that all it started can be killed
            )
        except OSError as error:
            os.close(self._lifeline)
            ours.close()
            self._output.close()
            raise EnvironmentFailure(
                f"the interpreter {python or sys.executable} cannot be started: {error}"
            ) from error
        finally:
            theirs.close()
            os.close(lifeline)
        self._channel = Connection(ours.detach())

    def call(self, method: str, arguments: tuple[Any, ...], timeout_s: float, what: str) -> Any:
        """The child's answer; hanging, dying and raising are told apart."""
        try:
            self._channel.send((method, arguments))
            if not self._channel.poll(timeout_s):
                self.kill()
                raise EnvironmentFailure(
                    f"the environment process {self.process.pid} hung in {what}: no answer within {timeout_s:g} s; "
                    "it was killed"
                )
            worked, answer = self._channel.recv()
        except (EOFError, OSError) as error:
            raise EnvironmentFailure(self._obituary(what)) from error
        if worked:
            return answer
        if isinstance(answer, AgentexpError):
            raise answer
        raise EnvironmentFailure(f"the environment raised in {what}: {answer}")

    def kill(self) -> None:
        """End the process and all that it started; a second call does nothing."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if not self._channel.closed:
            self._channel.close()
            os.close(self._lifeline)
            self._output.close()

    def _obituary(self, what: str) -> str:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1.0)
        said = f"; its last words: {words}" if (words := self._last_words()) else ""
        self.kill()
        status = self.process.returncode
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"the environment process {self.process.pid} {how} in {what}{said}"

    def _last_words(self) -> str:
        size = os.fstat(self._output.fileno()).st_size
        tail = os.pread(self._output.fileno(), _LAST_WORDS, max(0, size - _LAST_WORDS))
        return tail.decode(errors="replace").strip()


def _kill_all(children: list[_Child], lock: threading.Lock) -> None:
    with lock:
        while children:
            children.pop().kill()

"""The inner side of `SubprocessEnv`: hosts one environment and answers calls until it is killed.

Started as `python -m agentexp.envs.subprocess_child CHANNEL LIFELINE`, two inherited descriptors.
Light on purpose: nothing of the trainer is imported here.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from agentexp.envs.base import Environment, HasFloor, Session
from agentexp.errors import AgentexpError, ConfigError
from agentexp.types import Action, Task


class Host:
    """The environment and the one session that is open in it."""

    def __init__(self, factory: str, arguments: dict[str, Any]) -> None:
        self.environment: Environment = find(factory)(**arguments)
        self.session: Session | None = None

    def describe(self) -> tuple[str, dict[str, str]]:
        return self.environment.name, dict(self.environment.version())

    def tasks(self, split: str) -> list[Task]:
        return list(self.environment.tasks(split))

    def floor(self, tasks: Sequence[Task]) -> float | None:
        return self.environment.floor(tasks) if isinstance(self.environment, HasFloor) else None

    def start(self, task: Task, seed: int) -> Any:
        self.session = self.environment.start(task, seed)
        return self.session.first

    def step(self, action: Action) -> Any:
        return self.opened().step(action)

    def outcome(self) -> Any:
        return self.opened().outcome()

    def close(self) -> None:
        self.opened().close()
        self.session = None

    def opened(self) -> Session:
        if self.session is None:
            raise RuntimeError("no session is open in this process")
        return self.session


def find(factory: str) -> Any:
    """The class or function that `package.module.Name` names."""
    module, _, name = factory.replace(":", ".").rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"the environment factory {factory!r} cannot be imported ({error}); write package.module.Name"
        ) from error


def die_with_parent(lifeline: int) -> None:
    """End this process group once the parent's end of `lifeline` closes, as it does when the parent
    ends in whatever way. Linux does so while Python hangs in foreign code too; elsewhere a thread does.
    """
    try:
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    except OSError:
        threading.Thread(target=_wait_for_the_end, args=(lifeline,), daemon=True).start()


def _wait_for_the_end(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def serve(channel: Connection) -> None:
    """Answer (method, arguments) with (worked, result or error)."""
    host: Host | None = None
    while True:
        try:
            method, arguments = channel.recv()
        except EOFError:
            return
        try:
            if host is None:
                host, result = Host(*arguments), None
            else:
                result = getattr(host, method)(*arguments)
            channel.send((True, result))
        except AgentexpError as error:
            channel.send((False, error))
        except Exception as error:  # whatever an environment raises is told to the parent
            channel.send((False, f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    die_with_parent(int(sys.argv[2]))
    serve(Connection(int(sys.argv[1])))

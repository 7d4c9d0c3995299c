"""The errors that a user of agentexp meets. Each says what happened, the value, what is allowed
and what to do. Standard library only."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AgentexpError(Exception):
    """Base of every error that agentexp raises on purpose; the command line prints it without a
    traceback and exits with status 2."""


class ConfigError(AgentexpError):
    """A configuration that cannot be bound: names file, key, and the nearest valid key."""


class DataError(AgentexpError):
    """Games, checkpoints or run folders that are missing, corrupt or of another make."""


class StorageError(AgentexpError):
    """The disk refused: full, read-only, not a folder."""


class EnvironmentFailure(AgentexpError):  # noqa: N818  a failure of the environment, not an error of ours
    """An environment hung, raised or died. Recorded as StopReason.ENV_ERROR, never as reward 0."""


class RolloutError(AgentexpError):
    """Rollouts cannot go on: too many dead groups, or a broken contract."""


def nearest(word: str, known: Iterable[str]) -> str:
    """' Did you mean X?' for the closest known word, or the empty string.

    >>> nearest("enviroment", ["environment", "model"])
    " Did you mean 'environment'?"
    """
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""

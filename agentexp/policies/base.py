"""What a policy is: prompt ids in, sampled ids and log-probs out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentexp.types import Completion, Request


class Policy(Protocol):
    """Samples completions; keeps what it has read of live episodes."""

    version: int  # counts weight updates; stamped on every completion

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion per request, in order, sampled with the request's own seed. Requests of
        one call share each forward pass. At most one request per episode."""
        ...

    def release(self, episode: str) -> None:
        """Forget what is kept for an ended episode; unknown names are fine."""
        ...

    def refresh(self) -> None:
        """The weights changed: drop everything computed with the old ones, count a version."""
        ...

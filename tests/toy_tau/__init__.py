"""A made-up shop with twelve tasks, in packages of the shape of the two releases: `site/` holds a
`tau_bench`, a `tau2` and the `loguru` that the latter logs with. Written by hand for these tests.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from agentexp.envs.tau.environment import TauRetail
from agentexp.envs.tau.users import ScriptedUsers, Users

SITE = Path(__file__).parent / "site"
PACKAGES = ("tau_bench", "tau2", "loguru")


@contextmanager
def made_up() -> Iterator[None]:
    """The made-up packages instead of those that may be installed."""
    kept = _take_away()
    sys.path.insert(0, str(SITE))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(SITE))
        _take_away()
        sys.modules.update(kept)


def _take_away() -> dict[str, Any]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in PACKAGES}


class ToyTau(TauRetail):
    """The environment over a made-up release, with a scripted customer."""

    def __init__(self, *, release: Literal["tau2", "tau_bench"], user: Users | None = None) -> None:
        with made_up():
            super().__init__(release=release, user=user or ScriptedUsers(patience=2))

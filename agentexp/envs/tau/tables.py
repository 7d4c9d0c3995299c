"""A database that each session changes for itself, though all read the same records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any


class Table(dict[str, Any]):
    """Records by key. A record is copied when it is first asked for by its key, so changing it leaves the
    shared one alone; walking over `items()` or `values()` copies nothing.

    >>> shared = {"#1": {"status": "pending"}}
    >>> table = Table(shared)
    >>> table["#1"]["status"] = "cancelled"
    >>> shared["#1"]["status"], table["#1"]["status"]
    ('pending', 'cancelled')
    """

    def __init__(self, shared: Mapping[str, Any]) -> None:
        super().__init__(shared)
        self._shared = shared
        self._own: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        if key not in self._own:
            super().__setitem__(key, deepcopy(super().__getitem__(key)))
            self._own.add(key)
        return super().__getitem__(key)

    def __setitem__(self, key: str, record: Any) -> None:
        super().__setitem__(key, record)
        self._own.add(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The session's own copy of a record."""
        return self[key] if key in self else default  # noqa: SIM401  this is get

    def changes(self, plain: Callable[[Any], Any]) -> dict[str, Any]:
        """The records that differ from the shared ones, as `plain` data; None for those taken away."""
        changed: dict[str, Any] = dict.fromkeys(self._shared.keys() - self.keys())
        for key in self._own & self.keys():
            record = plain(self[key])
            if key not in self._shared or _text(record) != _text(plain(self._shared[key])):
                changed[key] = record
        return changed


def fingerprint(tables: Mapping[str, Table], plain: Callable[[Any], Any]) -> str:
    """A hash of what was changed: two sessions have equal hashes exactly where both releases would
    find their whole databases equal (1 and 1.0 are told apart there, too)."""
    return hashlib.sha256(_text({name: table.changes(plain) for name, table in tables.items()}).encode()).hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)

"""`agentexp report`: the table of finished runs that differ by their seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentexp.reports.pooled import find_runs, learned, tables, text


def report(places: Sequence[Path]) -> int:
    """Print one table for each recipe and split, then what was learned."""
    found = tables(find_runs(places))
    for table in found:
        print(f"\n{text(table)}")
    print()
    for table in found:
        if line := learned(table):
            print(line)
    return 0

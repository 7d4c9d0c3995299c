"""A session's own records over shared ones."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.envs.tau.tables import Table, fingerprint

SHARED = {"a": {"n": 1, "l": [1]}, "b": {"n": 2, "l": []}}


def plain(record: Any) -> Any:
    return record


def test_changes_stay_in_the_session() -> None:
    shared = deepcopy(SHARED)
    one, two = Table(shared), Table(shared)
    one["a"]["l"].append(5)
    one.get("b", {})["n"] = 7
    one["c"] = {"n": 3}
    assert shared == SHARED
    assert dict(two) == SHARED
    assert one["a"] is one["a"]
    assert one.changes(plain) == {"a": {"n": 1, "l": [1, 5]}, "b": {"n": 7, "l": []}, "c": {"n": 3}}
    assert two.changes(plain) == {}
    assert "z" not in two
    assert two.get("z") is None
    with pytest.raises(KeyError):
        two["z"]


def test_walking_reads_changes_and_copies_nothing() -> None:
    table = Table(SHARED)
    table["a"]["n"] = 9
    assert [record["n"] for record in table.values()] == [9, 2]
    assert dict(table.items())["b"] is SHARED["b"]


def test_a_record_taken_away_or_put_back_is_noticed() -> None:
    table = Table(SHARED)
    del table["a"]
    assert table.changes(plain) == {"a": None}
    table["a"] = deepcopy(SHARED["a"])
    assert table.changes(plain) == {}


def test_reading_changes_no_fingerprint_but_a_type_does() -> None:
    untouched, read, changed = Table(SHARED), Table(SHARED), Table(SHARED)
    assert read["a"]["n"] == 1
    assert fingerprint({"t": untouched}, plain) == fingerprint({"t": read}, plain)
    changed["a"]["n"] = 1.0  # the releases' hashes are of text, where 1.0 is not 1
    assert fingerprint({"t": untouched}, plain) != fingerprint({"t": changed}, plain)
    assert fingerprint({"t": changed}, plain) != fingerprint({"u": changed}, plain)


WRITES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=6)


@given(WRITES, WRITES)
def test_fingerprints_are_equal_exactly_where_databases_are(one: list[Any], two: list[Any]) -> None:
    tables = []
    for writes in (one, two):
        table = Table(SHARED)
        for key, value in writes:
            if key in table:
                table[key]["n"] = value
            else:
                table[key] = {"n": value}
        tables.append(table)
    same = {k: tables[0][k] for k in tables[0]} == {k: tables[1][k] for k in tables[1]}
    assert (fingerprint({"t": tables[0]}, plain) == fingerprint({"t": tables[1]}, plain)) == same

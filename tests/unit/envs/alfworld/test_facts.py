"""Relations behave as sets; queries as a brute-force join in the order of raw ids."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from agentexp.envs.alfworld.facts import Atom, Relation, holds, solve

ROW = st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"))


@given(st.sets(ROW), st.lists(st.tuples(st.booleans(), ROW)))
def test_a_relation_is_a_set_with_sorted_buckets(
    start: set[tuple[str, str]], edits: list[tuple[bool, tuple[str, str]]]
) -> None:
    relation, expected = Relation(start), set(start)
    before = relation.copy()
    for add, row in edits:
        (relation.add if add else relation.discard)(row)
        (expected.add if add else expected.discard)(row)
    assert relation.rows == expected
    for value in "abc":
        assert list(relation.where(0, value)) == sorted(r for r in expected if r[0] == value)
    for value in "xyz":
        assert list(relation.where(1, value)) == sorted(r for r in expected if r[1] == value)
    assert before.rows == start  # a copy shares nothing
    assert list(before.where(0, "a")) == sorted(r for r in start if r[0] == "a")


@given(st.sets(ROW), st.sets(ROW), st.booleans())
def test_solve_is_the_join_in_raw_order(left: set[tuple[str, str]], right: set[tuple[str, str]], bind: bool) -> None:
    facts = {"p": Relation(left), "q": Relation(right)}
    query = (Atom("p", ("u", "v")), Atom("q", ("w", "v")))
    bound = {"u": "a"} if bind else {}
    found = [(b["u"], b["v"], b["w"]) for b in solve(query, facts, bound)]
    brute = [
        (u, v, w) for (u, v), (w, v2) in product(sorted(left), sorted(right)) if v == v2 and (not bind or u == "a")
    ]
    assert found == brute
    assert holds(query, facts, bound) == bool(brute)


def test_an_unknown_predicate_has_no_rows() -> None:
    assert not holds((Atom("nowhere", ("x",)),), {}, {"x": "a"})
    assert list(solve((Atom("nowhere", ("x",)),), {}, {})) == []
    assert holds((), {}, {})

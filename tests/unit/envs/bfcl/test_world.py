"""Calls by name with plain values, and what is refused."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.envs.bfcl.world import Result, World, contained, same_state, too_much
from agentexp.types import ToolCall


class Api:
    def __init__(self) -> None:
        self.inside = self.most = 0
        self._private = 0
        self.state: Any = None

    def overlap(self) -> str:
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(0.005)
        self.inside -= 1
        return "x"

    def objects(self) -> dict[str, Any]:
        return {"o": {1, 2}}

    def deep(self) -> None:
        self.deep()


def world() -> World:
    return World({"Api": Api()}, {"Api": ("overlap", "objects", "deep")})


def test_answers_are_texts() -> None:
    assert world().call(ToolCall(name="objects")) == Result("{'o': {1, 2}}", worked=True)  # no JSON: as Python has it
    assert world().call(ToolCall(name="_private")).worked is False
    assert world().call(ToolCall(name="deep")).text.startswith("Error during execution: maximum recursion")


def test_calls_of_two_threads_do_not_overlap() -> None:
    """The APIs work through globals of their modules."""
    api = Api()
    worlds = [World({"Api": api}, {"Api": ("overlap",)}) for _ in range(4)]
    threads = [threading.Thread(target=w.call, args=(ToolCall(name="overlap"),)) for w in worlds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert api.most == 1


def test_states_are_compared_by_public_attributes() -> None:
    one, two = world(), world()
    two.apis["Api"]._private = 1
    assert same_state(one, two)
    two.apis["Api"].state = 1
    assert not same_state(one, two)
    del one.apis["Api"].state
    assert not same_state(one, two)


def test_a_state_that_contains_itself_is_not_the_right_one() -> None:
    one, two = world(), world()
    for w in (one, two):
        loop: list[Any] = []
        loop.append(loop)
        w.apis["Api"].state = loop
    assert not same_state(one, two)


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_contained_is_multiset_inclusion(wanted: list[str], seen: list[str]) -> None:
    left = list(seen)
    expected = True
    for item in wanted:  # the O(n^2) way
        if item in left:
            left.remove(item)
        else:
            expected = False
    assert contained(wanted, seen) == expected
    assert contained(wanted, wanted + seen)


@pytest.mark.parametrize(
    ("name", "arguments", "refused"),
    [
        ("power", {"base": 10, "exponent": 10**9}, True),
        ("power", {"base": 10, "exponent": 100}, False),  # 4 bits * 100
        ("power", {"base": 2.0, "exponent": 10**9}, False),  # a float overflows at once
        ("power", {"base": 3, "exponent": -(10**9)}, False),  # a float, at once
        ("logarithm", {"value": "1e999999999", "base": 2, "precision": 5}, True),
        ("logarithm", {"value": 8, "base": 2, "precision": 10**8}, True),
        ("logarithm", {"value": 8, "base": 2, "precision": 50}, False),
        ("square_root", {"number": 2, "precision": 10**9}, True),
        ("round_number", {"number": 2, "decimal_places": -(10**9)}, True),
        ("round_number", {"number": 2, "decimal_places": 2}, False),
        ("grep", {"pattern": "precision", "base": "x"}, False),
    ],
)
def test_arithmetic_that_would_take_minutes_is_refused(name: str, arguments: dict[str, Any], refused: bool) -> None:
    assert (too_much(ToolCall(name=name, arguments=arguments)) is not None) == refused

"""Right calls by comparison: one function, accepted values, types."""

from __future__ import annotations

from typing import Any

import pytest

from agentexp.envs.bfcl.matching import right_calls
from agentexp.types import ToolCall


def doc(kind: str, items: str | None = None) -> dict[str, Any]:
    node: dict[str, Any] = {"type": kind, **({"items": {"type": items}} if items else {})}
    return {
        "name": "geo.find",
        "description": "",
        "parameters": {"type": "dict", "properties": {"x": node, "y": {"type": "integer"}}, "required": ["x"]},
    }


def right(kind: str, accepted: list[Any], value: Any, items: str | None = None) -> bool:
    return right_calls(
        [ToolCall(name="geo_find", arguments={"x": value})],
        [doc(kind, items)],
        [{"geo.find": {"x": accepted, "y": [""]}}],
        language="python",
        read=None,
    )


@pytest.mark.parametrize(
    ("kind", "accepted", "value", "expected"),
    [
        ("string", ["New York, NY"], "new york NY", True),
        ("string", ["New York, NY"], "Boston", False),
        ("string", ["it's"], 'it"s', True),
        ("integer", [5], 5, True),
        ("integer", [5], 6, False),
        ("integer", [5], 5.0, False),
        ("integer", [1], True, False),  # True == 1 in Python, but is no integer
        ("boolean", [True], True, True),
        ("boolean", [True], 1, False),
        ("float", [2.0], 2, True),  # an int where a float is asked for
        ("float", [2.5], 2.4, False),
        ("integer", ["population"], "population", True),  # a variable's name
        ("integer", ["population"], "Population", False),
        ("integer", ["population"], 5, False),
        ("dict", [{"a": [1, 2], "b": ["", "Hi"]}], {"a": 2}, True),
        ("dict", [{"a": [1, 2], "b": ["", "Hi"]}], {"a": 2, "b": "hi"}, True),
        ("dict", [{"a": [1, 2], "b": ["", "Hi"]}], {"b": "Hi"}, False),
        ("dict", [{"a": [1]}], {"a": 1, "c": 1}, False),
        ("dict", ["", {"a": [1]}], {}, False),
    ],
)
def test_values(kind: str, accepted: list[Any], value: Any, expected: bool) -> None:
    assert right(kind, accepted, value) is expected


@pytest.mark.parametrize(
    ("items", "accepted", "value", "expected"),
    [
        ("string", [["A", "b-c"]], ["a", "BC"], True),
        ("string", [["A", "B"]], ["B", "A"], False),
        ("integer", [[1, 2]], [1, 2], True),
        ("integer", [[1, 2]], [1, 2.0], False),
        ("integer", [[1, 2], [3]], [3], True),
        ("dict", [[{"a": [1]}, {"a": [2]}]], [{"a": 1}, {"a": 2}], True),
        ("dict", [[{"a": [1]}, {"a": [2]}]], [{"a": 2}, {"a": 1}], False),
        ("dict", [[{"a": [1]}]], [{"a": 1}, {"a": 1}], False),
        ("string", [["A"]], "A", False),
    ],
)
def test_lists(items: str, accepted: list[Any], value: Any, expected: bool) -> None:
    assert right("array", accepted, value, items) is expected


def call(**arguments: Any) -> ToolCall:
    return ToolCall(name="geo_find", arguments=arguments)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([call(x="a")], True),
        ([call(x="a", y=3)], True),
        ([call(x="a", y=4)], False),
        ([call(y=3)], False),  # x is required
        ([call(x="a", z=1)], False),
        ([ToolCall(name="geo.find", arguments={"x": "a"})], False),  # its name has no dot where it is offered
        ([], False),
        ([call(x="a"), call(x="a")], False),
    ],
)
def test_parameters_and_counts(calls: list[ToolCall], expected: bool) -> None:
    answers = [{"geo.find": {"x": ["a"], "y": ["", 3]}}]
    assert right_calls(calls, [doc("string")], answers, language="python", read=None) is expected


def test_what_may_not_be_left_out() -> None:
    answers = [{"geo.find": {"x": ["a"], "y": [3]}}]  # optional in the schema, needed by the answer
    assert not right_calls([call(x="a")], [doc("string")], answers, language="python", read=None)


def test_parallel_calls_may_come_in_any_order_and_each_counts_once() -> None:
    answers = [{"geo.find": {"x": [x], "y": [""]}} for x in ("a", "b")]
    docs = [doc("string")]
    assert right_calls([call(x="b"), call(x="a")], docs, answers, language="python", read=None)
    assert not right_calls([call(x="a"), call(x="a")], docs, answers, language="python", read=None)


def test_several_documents_are_told_apart_by_name() -> None:
    other = {**doc("integer"), "name": "other"}
    answers = [{"other": {"x": [1], "y": [""]}}]
    docs = [doc("string"), other]
    assert right_calls([ToolCall(name="other", arguments={"x": 1})], docs, answers, language="python", read=None)
    assert not right_calls([call(x=1)], docs, answers, language="python", read=None)
    assert not right_calls(
        [ToolCall(name="other", arguments={"x": 1})], docs, [{"third": {"x": [1]}}], language="python", read=None
    )


def test_source_text_is_read_first_and_must_be_text() -> None:
    def read(text: str, kind: str, element: str | None) -> Any:
        return int(text) if text.isdigit() else text

    java = {**doc("integer"), "parameters": {**doc("integer")["parameters"]}}
    answers = [{"geo.find": {"x": [5], "y": [""]}}]
    for value, expected in (("5", True), ("6", False), ("five", False), (5, False), ("5" * 30_000, False)):
        assert right_calls([call(x=value)], [java], answers, language="java", read=read) is expected

"""`calculate` without `eval`: the same numbers, and nothing that runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.envs.tau.arithmetic import calculate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 2", "4.0"),
        ("8276.23", "8276.23"),
        ("(5.10 - 2.04) * 3", "9.18"),  # 3.06 · 3
        ("10 / 4 - -1", "3.5"),
        (" 7 // 2", "3.0"),
        ("2 ** 10", "1024.0"),
        ("1 / 3", "0.33"),
    ],
)
def test_values_by_hand(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')", "1 if 1 else 2", "a", "1,2", "", "()", "(1", "1 2", "1 / 0", "(0 - 8) ** .5", "1(2)",
        "9 ** 9 ** 9", "9 ** (0 - 9999)", "((9 ** 64) ** 64) ** 64", "(" * 400, "1" * 301, "-" * 299 + "x", "0 ** -1",
    ],
)  # fmt: skip
def test_what_is_refused_raises_value_error(expression: str) -> None:
    with pytest.raises(ValueError, match=r"[A-Z]"):
        calculate(expression)


@pytest.mark.parametrize("expression", [None, 7, ["1"], {"a": 1}])
def test_what_is_no_text_is_refused(expression: object) -> None:
    with pytest.raises(ValueError, match="Invalid characters"):
        calculate(expression)  # type: ignore[arg-type]


NUMBERS = st.one_of(st.integers(0, 999).map(str), st.decimals(0, 999, places=2).map(str))


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from(["+", "-", "*", " - ", " * "]), inner)
    return st.one_of(pairs.map("".join), inner.map("({})".format), inner.map("-{}".format))


@given(st.recursive(NUMBERS, grown, max_leaves=8))
def test_python_agrees(expression: str) -> None:
    # Python's own answer to a text that this test made; as the releases work it out
    wanted = str(round(float(eval(expression)), 2))
    if len(expression) <= 300:
        assert calculate(expression) == wanted


@given(st.text("0123456789+-*/(). ", max_size=40))
def test_any_text_is_a_value_or_a_value_error(expression: str) -> None:
    try:
        float(calculate(expression))
    except ValueError as error:
        assert str(error)  # noqa: PT017  either way is right

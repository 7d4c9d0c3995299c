"""Right calls are read from Python text, and the expert that plays them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.envs.bfcl.expert import CANNOT, DONE, commands
from agentexp.envs.bfcl.ground_truth import read_call
from agentexp.errors import DataError
from agentexp.types import ToolCall
from tests.tool_actions import says
from tests.toy_bfcl import OPTIONS, ToyBfcl

PARAMETERS = {"light": ["lamp", "lit"], "dim": ["lamp", "level"]}


def test_arguments_without_a_name_are_bound_in_the_schema_s_order() -> None:
    assert read_call("light('desk', True)", PARAMETERS) == ToolCall(
        name="light", arguments={"lamp": "desk", "lit": True}
    )
    assert read_call(" light('desk', lit=False)", PARAMETERS).arguments == {"lamp": "desk", "lit": False}
    assert read_call("dim(level=-2, lamp='a')", PARAMETERS).arguments == {"lamp": "a", "level": -2}


@pytest.mark.parametrize(
    "text",
    [
        "light(", "light", "burn('x')", "light('a', True, 3)", "light('a', lamp='b')", "light(**{'lamp': 'a'})",
        "__import__('os').system('x')", "light(__import__('os'))", "light({1, 2})", "light(1e999)", "a.light('x')",
    ],
)  # fmt: skip
def test_what_is_no_plain_call_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_call(text, PARAMETERS)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(values, values)
def test_a_call_written_as_python_is_read_back(lamp: object, lit: object) -> None:
    assert read_call(f"light({lamp!r}, lit={lit!r})", PARAMETERS).arguments == {"lamp": lamp, "lit": lit}


@given(st.integers(0, 60), st.integers(1, 25))
def test_a_turn_s_commands_fit_into_its_steps(count: int, steps: int) -> None:
    turn = tuple(ToolCall(name="dim", arguments={"level": i}) for i in range(count))
    said = commands(turn, steps)
    assert said[-1] == (DONE if count else CANNOT)
    assert len(said) - 1 <= steps
    assert [call for command in said[:-1] for call in says(command).calls] == list(turn)


def test_34_calls_in_20_steps_are_17_pairs_and_20_calls_come_alone() -> None:
    turn = tuple(ToolCall(name="dim", arguments={"level": i}) for i in range(34))
    assert [len(says(c).calls) for c in commands(turn, 20)] == [2] * 17 + [0]
    assert [len(says(c).calls) for c in commands(turn[:20], 20)] == [1] * 20 + [0]


def test_noise_makes_random_moves_that_are_marked() -> None:
    env = ToyBfcl(**OPTIONS)
    task = env.tasks("train")[0]

    def played(noise: float, seed: int) -> list[tuple[str, bool]]:
        session, expert = env.start(task, seed), env.expert(task, seed, noise)
        step, moves = session.first, []
        while not step.done and len(moves) < 50:
            moves.append(expert.act(step))
            step = session.step(says(moves[-1][0]))
        return moves

    assert all(deliberate for _, deliberate in played(0.0, 0))
    assert played(0.5, 3) == played(0.5, 3)
    noisy = [move for seed in range(20) for move in played(0.5, seed)]
    assert {deliberate for _, deliberate in noisy} == {True, False}
    assert {says(c).calls[0].name for c, deliberate in noisy if not deliberate} == {"list_lamps"}  # needs no argument

"""Qhat: returns to go averaged over visits (AgentPRM eq. 1; pitfall 8)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.errors import DataError
from agentexp.step_values import State, StepValue, held_out, preference_pairs, step_values, visit_counts
from agentexp.types import Action, Completion, Message, Outcome, Step, StopReason, Task, Trajectory, Turn


def turn(command: str, seen: str, *, deliberate: bool = True) -> Turn:
    number = sum(map(ord, command))
    return Turn(
        prompt_ids=tuple(map(ord, seen)) or (1,),
        completion=Completion(ids=(number, 1), logprobs=(-1.0, 0.0), text=command, finish="stop", policy_version=0),
        action=Action(text=command, command=command),
        step=Step(observation=f"after {command}", info={"inventory": "nothing"}),
        messages=(Message(role="user", content=seen),),
        deliberate=deliberate,
    )


def play(commands: Sequence[str], reward: float | None, *, task: str = "t", deliberate: bool = True) -> Trajectory:
    return Trajectory(
        task=Task(id=task, env="toy", split="train", instruction="go"),
        sample=0,
        seed=0,
        turns=tuple(turn(c, f"seen {n}", deliberate=deliberate) for n, c in enumerate(commands)),
        outcome=None if reward is None else Outcome(reward=reward, success=reward == 1.0),
        stop=StopReason.CANCELLED if reward is None else StopReason.DONE,
    )


def values(played: Sequence[Trajectory], *, gamma: float = 0.95, state: State = "history") -> list[StepValue]:
    return step_values(played, gamma=gamma, state=state, discount="to_go", reward_range=(0.0, 1.0))


def test_return_to_go_golden() -> None:
    # T = 10, gamma .95, terminal reward 1: the first step is worth .95^9 = .6302, the last 1
    found = values([play([f"c{n}" for n in range(10)], 1.0)])
    assert found[0].q == pytest.approx(0.6302, abs=5e-5)
    assert found[-1].q == 1.0
    assert [v.q for v in found] == pytest.approx([0.95 ** (9 - t) for t in range(10)])


def test_the_released_discount_from_the_start_is_another() -> None:
    """Negative control: gamma^t pays the first step most."""
    played = [play([f"c{n}" for n in range(10)], 1.0)]
    legacy = step_values(played, gamma=0.95, state="history", discount="from_start", reward_range=(0.0, 1.0))
    assert legacy[0].q == 1.0
    assert legacy[-1].q == pytest.approx(0.6302, abs=5e-5)


def test_visits_are_averaged_across_trajectories() -> None:
    # "a" is taken at the same state in all three; then "b" wins once and loses once, "c" loses
    found = values([play(["a", "b"], 1.0), play(["a", "b"], 0.0), play(["a", "c"], 0.0)], gamma=0.9)
    first = [v for v in found if v.turn == 0]
    assert [v.q for v in first] == pytest.approx([0.3] * 3)  # (.9 + 0 + 0) / 3
    assert [v.visits for v in first] == [3, 3, 3]
    assert [v.q for v in found if v.turn == 1] == pytest.approx([0.5, 0.5, 0.0])
    assert [v.return_to_go for v in first] == pytest.approx([0.9, 0.0, 0.0])


def test_visits_are_averaged_within_a_trajectory_where_a_state_is_what_is_seen() -> None:
    again = Trajectory(
        task=Task(id="t", env="toy", split="train", instruction="go"), sample=0, seed=0,
        turns=(turn("look", "x"), turn("look", "x"), turn("look", "x")),
        outcome=Outcome(reward=1.0, success=True), stop=StopReason.DONE,
    )  # fmt: skip
    found = values([again], gamma=0.5, state="observation")
    # turns 1 and 2 come after the same words: returns .5 and 1, mean .75; turn 0 after the opening words
    assert [v.visits for v in found] == [1, 2, 2]
    assert [v.q for v in found] == pytest.approx([0.25, 0.75, 0.75])
    assert [v.visits for v in values([again], gamma=0.5)] == [1, 1, 1]  # as histories all differ


def test_other_tasks_are_other_states() -> None:
    found = values([play(["a"], 1.0, task="t"), play(["a"], 0.0, task="u")], state="observation")
    assert [v.q for v in found] == [1.0, 0.0]


def test_what_gives_no_steps() -> None:
    played = [play(["a"], None), play(["a"], math.nan), play(["a"], 1.0, deliberate=False), play([], 1.0)]
    assert values(played) == []


def test_rewards_are_mapped_and_refused_outside() -> None:
    found = step_values([play(["a"], -1.0), play(["b"], 1.0)], gamma=1.0, state="history", discount="to_go",
                        reward_range=(-1.0, 1.0))  # fmt: skip
    assert [v.q for v in found] == [0.0, 1.0]
    with pytest.raises(DataError, match="reward_low"):
        values([play(["a"], 1.5)])


def test_pairs_of_one_state_with_a_gap() -> None:
    played = [play(["a"], 1.0), play(["b"], 0.0), play(["b"], 0.0), play(["c"], 0.0), play(["d"], 1.0, task="u")]
    pairs = preference_pairs(values(played), min_gap=0.03)
    assert [(better.q, worse.q) for better, worse in pairs] == [(1.0, 0.0), (1.0, 0.0)]  # a over b, a over c; b = c tie
    assert preference_pairs(values(played), min_gap=1.1) == []


def test_counts() -> None:
    counts = visit_counts(values([play(["a", "b"], 1.0), play(["a", "c"], 0.0)]))
    # states: the first, and the one after a; pairs: a, b, c, of which a is visited twice
    assert (counts["states"], counts["state_actions"], counts["max_visits"]) == (2.0, 3.0, 2.0)
    assert counts["visited_once"] == pytest.approx(2 / 3)
    assert visit_counts([])["states"] == 0.0


def test_games_are_held_out_whole() -> None:
    names = [f"g{n % 20}" for n in range(200)]
    apart = held_out(names, fraction=0.15, seed=0)
    assert len(apart) == 3
    assert apart == held_out(reversed(names), fraction=0.15, seed=0)
    assert apart != held_out(names, fraction=0.15, seed=1)


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), st.floats(0.0, 1.0)), min_size=1, max_size=8
    ),
    st.floats(0.5, 1.0),
)
def test_q_is_a_mean_of_returns_and_visits_add_up(played: list[tuple[list[str], float]], gamma: float) -> None:
    found = values([play(commands, reward) for commands, reward in played], gamma=gamma)
    assert len(found) == sum(len(commands) for commands, _ in played)
    assert math.fsum(v.q for v in found) == pytest.approx(math.fsum(v.return_to_go for v in found))
    assert all(0.0 <= v.q <= 1.0 for v in found)
    distinct = {(v.state, v.action): v.visits for v in found}
    assert sum(distinct.values()) == len(found)


def test_a_thought_leaves_the_observed_state_as_it_was() -> None:
    def thinking(first: str) -> Trajectory:
        thought = Turn(
            prompt_ids=(3,),
            completion=Completion(ids=(4, 1), logprobs=(-1.0, 0.0), text="think: x", finish="stop", policy_version=0),
            action=Action(text="think: x", command=None),
            step=Step(observation="OK.", info={"inventory": "nothing"}),
        )
        return Trajectory(
            task=Task(id="t", env="toy", split="train", instruction="go"), sample=0, seed=0,
            turns=(turn(first, "x"), thought, turn("look", "y")),
            outcome=Outcome(reward=1.0, success=True), stop=StopReason.DONE,
        )  # fmt: skip

    kitchen, bathroom = (values([thinking(first)], state="observation") for first in ("kitchen", "bathroom"))
    assert kitchen[1].state == kitchen[2].state
    assert kitchen[2].state != bathroom[2].state

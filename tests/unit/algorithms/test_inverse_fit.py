"""InversePRM's fit: which transitions there are, how next actions align, and that no reward is read."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from agentexp.algorithms.inverse_fit import InverseFit, Path, paths
from agentexp.learning.reward_learner import RewardLearner
from agentexp.learning.reward_model import reward_model, score
from agentexp.policies.hf import HfPolicy
from agentexp.types import Action, Completion, Outcome, Step, StopReason, Task, Trajectory, Tree, Turn
from tests.unit.learning.conftest import small_model


def trajectory(name: str, actions: list[int], stop: StopReason, reward: float = math.nan) -> Trajectory:
    """Each turn reads (5, 6) and says one word and the end of turn. The reward is poison."""
    turns = tuple(
        Turn(
            prompt_ids=(5, 6),
            completion=Completion(ids=(a, 1), logprobs=(-1.0, -0.1), text="x", finish="stop", policy_version=0),
            action=Action(text="x", command="x"),
            step=Step(observation="o", reward=math.nan),
        )
        for a in actions
    )
    task = Task(id=name, env="toy", split="train", instruction="go")
    return Trajectory(
        task=task, sample=0, seed=0, turns=turns, outcome=Outcome(reward=reward, success=False), stop=stop
    )


def made(**changes: Any) -> InverseFit:
    model = small_model()
    judge = reward_model(model=model, weights=None, lora=None, head_std=None, seed=0)
    settings: dict[str, Any] = {
        "reward_model": judge,
        "learner": RewardLearner(
            reward_model=judge, lr=3e-3, beta1=0.9, beta2=0.99, weight_decay=0.0, max_grad_norm=1.0, warmup_steps=0,
            schedule="constant", total_steps=None, final_lr_fraction=1.0, tokens_per_microbatch=256,
        ),
        "policy": HfPolicy(model=model, initial_cache_tokens=16, branch_tokens=4096),
        "seed": 0, "gamma": 0.9, "next_action": "policy", "unfinished": "drop", "balance": "sides", "q_penalty": 0.01,
        "temperature": 1.0, "max_new_tokens": 2, "epochs": 1, "rows_per_step": 4, "restart": False,
    }  # fmt: skip
    return InverseFit(**{**settings, **changes})


EXPERT = [p for n in range(6) for p in paths(trajectory(f"e{n}", [7, 8, 9], StopReason.DONE), expert=True)]
LEARNER = [
    p for n in range(4) for p in paths(trajectory(f"l{n}", [17, 18, 19, 20], StopReason.MAX_TURNS), expert=False)
]


def test_next_actions_align_over_two_trajectories_of_unequal_length() -> None:
    """The released code zips all transitions with those of non-terminal ones and slips after the first
    end: here transition t of each trajectory has the branch at its own decision t + 1."""
    first, second = made().transitions([EXPERT[0], LEARNER[0]], seed=3)
    assert first.decision == (0, 1, 2)  # ended by itself: the last is terminal
    assert first.branch == (0, 1, None)
    assert [b.at for b in first.tree.branches] == [d.start for d in first.tree.trunk.decisions[1:]]
    assert second.decision == (0, 1, 2)  # cut by a budget: the fourth has no next state and is no end
    assert second.branch == (0, 1, 2)
    assert [b.at for b in second.tree.branches] == [d.start for d in second.tree.trunk.decisions[1:]]
    assert [t.decision for t in made(unfinished="terminal").transitions([LEARNER[0]], seed=3)] == [(0, 1, 2, 3)]


def test_the_released_code_keeps_logged_next_actions_on_the_learners_side() -> None:
    expert, learner = made(next_action="released").transitions([EXPERT[0], LEARNER[0]], seed=3)
    assert expert.branch == (0, 1, None)
    assert learner.branch == (None,) * 3
    assert learner.logged == (True, True, True)
    assert not learner.tree.branches


def test_the_loss_by_hand() -> None:
    fit = made(q_penalty=0.0)
    rows = fit.transitions([EXPERT[0], LEARNER[0]], seed=3)
    total = 0.0
    for row, scores in zip(
        rows, score(fit.reward_model, [t.tree for t in rows], tokens_per_microbatch=256), strict=True
    ):
        for t, branch in zip(row.decision, row.branch, strict=True):
            delta = scores.decisions[t] - (0.0 if branch is None else 0.9 * scores.branches[branch])
            total += math.log1p(math.exp(-delta if row.expert else delta))
    assert fit.loss(rows, 6.0).total.item() == pytest.approx(total / 6.0, abs=1e-5)


def test_it_tells_the_sides_apart_reading_no_reward() -> None:
    """All rewards are NaN here, of steps and of outcomes: anything that read one would spoil the loss."""
    fit = made(epochs=30)
    metrics = fit.fit(EXPERT, LEARNER, iteration=0, progress=None)
    assert math.isfinite(metrics["loss"])
    found = score(fit.reward_model, [Tree(trunk=p.trunk) for p in (EXPERT[0], LEARNER[0])], tokens_per_microbatch=256)
    assert min(found[0].decisions) > max(found[1].decisions)


def test_an_imperfect_experts_random_moves_are_none_of_its_transitions() -> None:
    """Turn 1 of three was random: transitions 0 and 2 remain, and 0 still goes on to the state of turn 1."""
    played = trajectory("e", [7, 8, 9], StopReason.DONE)
    turns = tuple(replace(t, deliberate=n != 1) for n, t in enumerate(played.turns))
    (path,) = paths(replace(played, turns=turns), expert=True)
    assert path.deliberate == (True, False, True)
    (row,) = made().transitions([path], seed=3)
    assert row.decision == (0, 2)
    assert row.branch == (0, None)
    assert row.tree.branches[0].at == row.tree.trunk.decisions[1].start
    assert Path.from_plain(path.to_plain()) == path


def test_balance_by_name() -> None:
    both = made(balance="trajectories").balanced(EXPERT, LEARNER, 0)
    assert [sum(p.expert is side for p in both) for side in (True, False)] == [4, 4]
    assert len(made(balance="none").balanced(EXPERT, LEARNER, 0)) == 10


def test_a_path_ends_only_where_the_environment_ended_it() -> None:
    assert all(isinstance(p, Path) and p.ended for p in EXPERT)
    assert not any(p.ended for p in LEARNER)


def test_paths_survive_a_checkpoint() -> None:
    assert [Path.from_plain(p.to_plain()) for p in LEARNER] == LEARNER

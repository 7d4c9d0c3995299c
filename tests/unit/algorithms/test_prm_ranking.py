"""A reward model fitted on rollouts ranks (state, action) as the exact Q of a small MDP does."""

from __future__ import annotations

import random

import pytest
import torch

from agentexp.algorithms.q_fit import QFit
from agentexp.learning.reward_learner import RewardLearner
from agentexp.learning.reward_model import reward_model, score
from agentexp.types import Action, Branch, Completion, Outcome, Step, StopReason, Task, Trajectory, Tree, Trunk, Turn
from tests.unit.learning.conftest import small_model

# A line of seven places; the walker starts in the middle, "right" (id 21) or "left" (id 20) moves it with
# chance .8, otherwise it stays. Place 6 pays 1 and ends, place 0 pays 0 and ends, and so does the eighth move.
PLACES, MOVES, GAMMA, SURE = 7, 8, 0.9, 0.8
LEFT, RIGHT, END = 20, 21, 1
CHANCE_RIGHT = 0.6  # the policy's, everywhere


def exact_q(place: int, moved: int, action: int) -> float:
    """By recursion over all futures."""
    aim = place + (1 if action == RIGHT else -1)

    def after(here: int) -> float:
        if here == PLACES - 1:
            return 1.0
        if here == 0 or moved + 1 == MOVES:
            return 0.0
        value = CHANCE_RIGHT * exact_q(here, moved + 1, RIGHT) + (1 - CHANCE_RIGHT) * exact_q(here, moved + 1, LEFT)
        return GAMMA * value

    return SURE * after(aim) + (1 - SURE) * after(place)


def walk(rng: random.Random, n: int) -> Trajectory:
    place, turns, won = 3, [], False
    while len(turns) < MOVES:
        action = RIGHT if rng.random() < CHANCE_RIGHT else LEFT
        turns.append(
            Turn(
                prompt_ids=(10 + place,),
                completion=Completion(
                    ids=(action, END), logprobs=(-0.5, 0.0), text="x", finish="stop", policy_version=0
                ),
                action=Action(text="x", command=str(action)),
                step=Step(observation=""),
            )
        )
        if rng.random() < SURE:
            place += 1 if action == RIGHT else -1
        won = place == PLACES - 1
        if won or place == 0:
            break
    return Trajectory(
        task=Task(id=f"walk {n % 50}", env="mdp", split="train", instruction=""),
        sample=n, seed=n, turns=tuple(turns), outcome=Outcome(reward=float(won), success=won), stop=StopReason.DONE,
    )  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("target", ["absolute", pytest.param("relative", marks=pytest.mark.slow)])
def test_ranks_as_the_exact_q_does(seed: int, target: str) -> None:
    rng = random.Random(seed)
    played = [walk(rng, n) for n in range(3000 if target == "absolute" else 6000)]
    if target == "relative":  # one task, so that histories are met again and pairs exist
        one = played[0].task
        played = [
            Trajectory(task=one, sample=t.sample, seed=t.seed, turns=t.turns, outcome=t.outcome, stop=t.stop)
            for t in played
        ]
    judge = reward_model(model=small_model(seed), weights=None, lora=None, head_std=None, seed=seed)
    learner = RewardLearner(
        reward_model=judge, lr=3e-3, beta1=0.9, beta2=0.99, weight_decay=0.0, max_grad_norm=1.0, warmup_steps=0,
        schedule="linear", total_steps=280, final_lr_fraction=0.05, tokens_per_microbatch=4096,
    )  # fmt: skip
    fit = QFit(
        reward_model=judge, learner=learner, seed=seed, target=target, state="history", discount="to_go", gamma=GAMMA,
        reward_low=0.0, reward_high=1.0, min_gap=0.02, held_out=0.0, epochs=3 if target == "absolute" else 40,
        rows_per_step=32, restart=False,
    )  # type: ignore[arg-type]  # fmt: skip
    fit.fit(played, iteration=0, progress=None)
    exact, found = [], []
    for path in (seen := _states()):
        ids = (*(i for place, action in path[:-1] for i in (10 + place, action, END)), 10 + path[-1][0])
        tree = Tree(
            trunk=Trunk(ids=ids, decisions=(), origin="s"),
            branches=tuple(Branch(at=len(ids), ids=(a, END)) for a in (LEFT, RIGHT)),
        )
        exact += [exact_q(path[-1][0], len(path) - 1, a) for a in (LEFT, RIGHT)]
        found += score(judge, [tree], tokens_per_microbatch=999)[0].branches
    assert len(seen) == 21  # 1 + 4 + 16
    if target == "absolute":
        assert spearman(exact, found) > 0.95
    else:  # Bradley-Terry fixes differences within a state only
        gaps = torch.tensor(exact)[1::2] - torch.tensor(exact)[0::2]
        ours = torch.tensor(found)[1::2] - torch.tensor(found)[0::2]
        assert ((ours > 0) == (gaps > 0)).float().mean() > 0.95


def spearman(x: list[float], y: list[float]) -> float:
    """The correlation of ranks."""
    a, b = (torch.tensor(v).argsort().argsort().double() for v in (x, y))
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / (a.norm() * b.norm()))


def _states() -> list[list[tuple[int, int]]]:
    """Histories of up to two moves, as (place, action taken there); the last action is not taken yet."""
    found: list[list[tuple[int, int]]] = []
    frontier: list[list[tuple[int, int]]] = [[(3, 0)]]
    while frontier:
        path = frontier.pop()
        found.append(path)
        place = path[-1][0]
        if len(path) == 3:
            continue
        for action in (LEFT, RIGHT):
            aims = (place, place + (1 if action == RIGHT else -1))
            frontier += [[*path[:-1], (place, action), (there, 0)] for there in aims if 0 < there < PLACES - 1]
    return found

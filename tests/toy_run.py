"""A run with toy parts: a world of coin games, a two-weight torch policy, an algorithm that learns it.

    python tests/toy_run.py OUTPUT_DIR [--die-at N] [--iterations N]

`--die-at N` kills the process without any goodbye inside the N-th call of iterate.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from agentexp import run as run_module
from agentexp.evaluation.evaluate import Evaluation
from agentexp.rollouts.collect import Collection
from agentexp.run import Run
from agentexp.seeding import seed_for
from agentexp.tracking import NoTracker, Tracker
from agentexp.types import (
    Action,
    Completion,
    Group,
    Iteration,
    Message,
    Outcome,
    Step,
    StopReason,
    Task,
    Trajectory,
    Turn,
)


class ToyWorld:
    """Forty coin games in two kinds."""

    name = "toy"

    def __init__(self, *, label: str = "toy games, not real ones", games: int = 40) -> None:
        self.label, self.games = label, games

    def tasks(self, split: str) -> Sequence[Task]:
        return [
            Task(
                id=f"{split}/{i}", env="toy", split=split, instruction=f"win game {i}", kind="odd" if i % 2 else "even"
            )
            for i in range(self.games)
        ]

    def start(self, task: Task, seed: int) -> Any:
        raise NotImplementedError("toy games are played by ToyRollouts")

    def version(self) -> Mapping[str, str]:
        return {"engine": "toy 1", "label": self.label}


class ToyRollouts:
    """Plays one coin toss a game: won with the policy's probability, or the likelier side if greedy."""

    def __init__(self, weights: torch.nn.Parameter) -> None:
        self.weights = weights

    def collect(
        self,
        tasks: Sequence[Task],
        *,
        rollouts_per_task: int,
        temperature: float,
        seed: int,
        enough: object = None,
        progress: Callable[[int, int], None] | None = None,
        candidates: Sequence[int] | None = None,
    ) -> Collection:
        assert candidates is None
        chance = float(torch.softmax(self.weights.detach(), 0)[1])
        groups = []
        for n, task in enumerate(tasks):
            members = []
            for k in range(rollouts_per_task):
                stream = seed_for(seed, task.id, k)
                won = chance > 0.5 if temperature == 0 else random.Random(stream).random() < chance
                members.append(episode(task, k, stream, won, logprob=min(-1e-6, -abs(1 - chance))))
            groups.append(Group(task=task, trajectories=tuple(members)))
            if progress is not None:
                progress(n + 1, len(tasks))
        return Collection(groups=tuple(groups), stats={})


def episode(task: Task, sample: int, seed: int, won: bool, logprob: float = -0.5) -> Trajectory:
    """A one-turn episode."""
    turn = Turn(
        prompt_ids=(3, 4),
        completion=Completion(ids=(7, 1), logprobs=(logprob, -0.25), text="heads", finish="stop", policy_version=0),
        action=Action(text="heads", command="heads"),
        step=Step(
            observation="You win." if won else "You lose.", reward=float(won), done=True, info={"refused": not won}
        ),
        messages=(Message(role="user", content="Call it."),),
    )
    outcome = Outcome(reward=float(won), success=won)
    return Trajectory(task=task, sample=sample, seed=seed, turns=(turn,), outcome=outcome, stop=StopReason.DONE)


class ToyAlgorithm:
    """REINFORCE on two weights with Adam; every source of randomness and state that a real one has."""

    def __init__(self, weights: torch.nn.Parameter, *, seed: int, lr: float, die_at: int | None = None) -> None:
        self.rollouts, self.seed, self.die_at = ToyRollouts(weights), seed, die_at
        self.weights = weights
        self.optimizer = torch.optim.Adam([weights], lr=lr)
        self.cursor = 0
        self.progress: Callable[[str, int, int], None] | None = None

    def iterate(self, i: int) -> Iteration:
        tasks = [
            Task(id=f"train/{(self.cursor + n) % 97}", env="toy", split="train", instruction="win") for n in range(8)
        ]
        self.cursor += 8
        played = self.rollouts.collect(tasks, rollouts_per_task=4, temperature=1.0, seed=seed_for(self.seed, "toy", i))
        if self.die_at is not None and i + 1 == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        trajectories = [t for g in played.groups for t in g.trajectories]
        reward = sum(t.outcome.reward for t in trajectories if t.outcome) / len(trajectories)
        noise = torch.randn(()) * 0.01 + random.random() * 0.01  # global generators, which a resume must restore
        loss = -torch.log_softmax(self.weights, 0)[1] * (0.5 + reward + noise)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        metrics = {"rollout/success": reward, "train/loss": loss.item(), "time/collect_s": 0.0}
        return Iteration(metrics=metrics, trajectories=tuple(trajectories))

    def state_dict(self) -> dict[str, Any]:
        return {"weights": self.weights.detach(), "optimizer": self.optimizer.state_dict(), "cursor": self.cursor}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights.data.copy_(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.cursor = state["cursor"]


def toy_run(
    output_dir: str,
    *,
    iterations: int = 6,
    warm_start_iterations: int = 2,
    die_at: int | None = None,
    lr: float = 0.1,
    tracker: Tracker | None = None,
    label: str = "toy games, not real ones",
    also: Evaluation | None = None,
    **run: Any,
) -> dict[str, Any]:
    """Train the toy; `run` changes arguments of Run."""
    seed = 5
    weights = torch.nn.Parameter(torch.tensor([0.6, 0.0]))
    world = ToyWorld(label=label)
    arguments: dict[str, Any] = {
        "name": "toy",
        "seed": seed,
        "output_dir": output_dir,
        "iterations": iterations,
        "warm_start_iterations": warm_start_iterations,
        "evaluate_before": True,
        "evaluate_every": 2,
        "checkpoint_every": 1,
        "keep_checkpoints": 2,
        "keep_trajectories": "all",
        **run,
    }
    evaluation = Evaluation(
        environment=world,
        rollouts=ToyRollouts(weights),  # type: ignore[arg-type]
        seed=seed,
        split="valid",
        tasks=30,
        curve_tasks=10,
        trials=1,
        temperature=1.0,
        greedy=True,
        best_of=[],
        also=also,
    )
    config = {"run": {k: v for k, v in arguments.items() if k != "output_dir"}, "algorithm": {"lr": lr}}
    return Run(**arguments).train(
        algorithm=ToyAlgorithm(weights, seed=seed, lr=lr, die_at=die_at),
        evaluation=evaluation,
        tracker=tracker or NoTracker(),
        warm_start=ToyAlgorithm(weights, seed=seed + 1, lr=0.01) if arguments["warm_start_iterations"] else None,
        config=config,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("output_dir")
    parser.add_argument("--die-at", type=int)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--forget", choices=["random", "optimizer"])
    given = parser.parse_args()
    if given.forget == "optimizer":  # negative control: a resume that loses state must be seen
        ToyAlgorithm.load_state_dict = lambda self, state: self.weights.data.copy_(state["weights"])  # type: ignore[method-assign, assignment]
    if given.forget == "random":
        run_module.set_random_state = lambda state: None  # type: ignore[attr-defined]
    toy_run(given.output_dir, die_at=given.die_at, iterations=given.iterations)

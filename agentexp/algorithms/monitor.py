"""Watches for over-optimisation: a process reward that rises while success falls.

Between rounds of online DPO the policy plays validation games. Success tells the truth, the mean
score of its steps what the reward model believes, the KL how far it is from pi_{i-1}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from agentexp.envs.base import Environment
from agentexp.errors import ConfigError
from agentexp.learning.learner import Learner
from agentexp.learning.reward_model import RewardModel, score
from agentexp.packing import to_samples, trunks
from agentexp.policies.hf import HfPolicy
from agentexp.rollouts.collect import Rollouts
from agentexp.seeding import seed_for
from agentexp.types import Trajectory, Tree


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """One measurement after `rounds` rounds. process_reward: mean Q of the steps played; kl: mean over
    turns of the summed log pi - log pi_{i-1} of what pi itself said."""

    rounds: int
    success: float
    games: int
    process_reward: float
    kl: float


def parted(looks: Sequence[Look], *, tolerance: float) -> Look | None:
    """The best look, if some later one has a higher process reward and a success lower by more than
    `tolerance`: there the reward model and the truth part. None: they did not."""
    best = max(looks, key=lambda look: look.success, default=None)
    if best is None:
        return None
    later = [look for look in looks if look.rounds > best.rounds]
    apart = any(look.process_reward > best.process_reward and look.success < best.success - tolerance for look in later)
    return best if apart else None


class Monitor:
    """Plays `games` of `split` every `every` rounds, the same games each time.

    keep: "best" puts back the weights with the highest success when the iteration ends (the
    earliest of equals), "last" changes nothing. stop: end the rounds once reward and success
    have parted by more than `tolerance`.
    """

    def __init__(
        self,
        *,
        environment: Environment,
        rollouts: Rollouts,
        policy: HfPolicy,
        reward_model: RewardModel,
        seed: int,
        split: str,
        games: int,
        temperature: float,
        every: int,
        keep: Literal["best", "last"],
        stop: bool,
        tolerance: float,
    ) -> None:
        tasks = environment.tasks(split)
        if not 1 <= games <= len(tasks) or every < 1 or not tolerance >= 0.0:
            raise ConfigError(
                f"monitor: games is {games} (1 to {len(tasks)} of split {split!r}), every is {every} (at least 1), "
                f"tolerance is {tolerance} (0 or more)"
            )
        self.tasks = list(tasks[len(tasks) - games :])  # the last: evaluation takes a shuffled order, training another
        self.rollouts, self.policy, self.reward_model = rollouts, policy, reward_model
        self.seed, self.temperature, self.every, self.keep = seed, temperature, every, keep
        self.stop, self.tolerance = stop, tolerance
        self.looks: list[Look] = []
        self.learner: Learner  # of the iteration under way, given by `begin`
        self.reference: dict[str, Tensor] = {}
        self.best: dict[str, Tensor] = {}
        self.iteration = 0

    def begin(self, *, iteration: int, learner: Learner) -> None:
        """Before the first round of `learner`: what the policy is now is the reference, and the first
        candidate."""
        self.iteration, self.looks = iteration, []
        self.learner = learner
        self.reference = learner.model.weights()
        self.look(0)

    def watch(self, rounds: int) -> bool:
        """After a round: look when it is time; True ends the rounds."""
        if rounds % self.every:
            return False
        self.look(rounds)
        return self.stop and parted(self.looks, tolerance=self.tolerance) is not None

    def end(self) -> dict[str, float]:
        """Put the best back if asked to; what was seen."""
        best = max(self.looks, key=lambda look: look.success)  # the earliest of equals
        if self.keep == "best" and best is not self.looks[-1]:
            self.learner.model.load_weights(self.best)
            self.policy.refresh()
        apart = parted(self.looks, tolerance=self.tolerance)
        found = {
            "games": float(best.games),
            "best_rounds": float(best.rounds),
            "best_success": best.success,
            "last_success": self.looks[-1].success,
            "parted": float(apart is not None),
        }
        for look in self.looks:
            for name in ("success", "process_reward", "kl"):
                found[f"{name}_{look.rounds}"] = float(getattr(look, name))
        self.reference, self.best = {}, {}
        return found

    def look(self, rounds: int) -> None:
        """Play the games and keep the weights if they are the best so far."""
        played = self.rollouts.collect(
            self.tasks,
            rollouts_per_task=1,
            temperature=self.temperature,
            seed=seed_for(self.seed, "monitor", self.iteration),
        )
        trajectories = [t for g in played.groups for t in g.trajectories]
        found = Look(
            rounds=rounds,
            success=sum(t.outcome is not None and t.outcome.success for t in trajectories) / len(trajectories),
            games=len(trajectories),
            process_reward=self.process_reward(trajectories),
            kl=self.kl(trajectories),
        )
        if not self.looks or found.success > max(look.success for look in self.looks):
            self.best = self.learner.model.weights()
        self.looks.append(found)

    def process_reward(self, trajectories: Sequence[Trajectory]) -> float:
        """Mean Q of all steps played, as a probability."""
        trees = [Tree(trunk=trunk) for t in trajectories for trunk in trunks(t)]
        scores = score(self.reward_model, trees, tokens_per_microbatch=self.learner.tokens_per_microbatch)
        values = [1.0 / (1.0 + math.exp(-raw)) for s in scores for raw in s.decisions]
        return math.fsum(values) / len(values) if values else 0.0

    def kl(self, trajectories: Sequence[Trajectory]) -> float:
        """An estimate of KL(pi || pi_{i-1}) per turn, on what pi said."""
        samples = [s for t in trajectories for s in to_samples(t, 0.0)]
        now = self.learner.logps(samples)
        with self.learner.model.with_weights(self.reference):
            before = self.learner.logps(samples)
        turns = sum(len(t.turns) for t in trajectories)
        moved = math.fsum(a - b for p, q in zip(now, before, strict=True) for a, b in zip(p, q, strict=True))
        return moved / max(1, turns)

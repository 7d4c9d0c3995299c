"""Which round's policy is handed on: the one with the highest success on validation games."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from agentexp.envs.base import Environment
from agentexp.errors import ConfigError
from agentexp.learning.model import Model
from agentexp.rollouts.collect import Rollouts
from agentexp.seeding import seed_for


class RoundChoice:
    """Plays `games` of `split` after every round, the same games with the same random numbers.

    Between rounds the model is the best so far (the earliest of equals), so that is what is measured,
    saved and exported; the next round goes on from where the last one ended.
    """

    def __init__(
        self, *, environment: Environment, rollouts: Rollouts, seed: int, split: str, games: int, temperature: float
    ) -> None:
        tasks = environment.tasks(split)
        if not 1 <= games <= len(tasks) or not temperature >= 0.0:
            raise ConfigError(
                f"round choice: games is {games} (1 to {len(tasks)} of split {split!r}), temperature {temperature} "
                "(0 or more)"
            )
        self.tasks = list(tasks[len(tasks) - games :])  # the last: evaluation takes a shuffled order, training another
        self.rollouts, self.seed, self.temperature = rollouts, seed, temperature
        self.best_round, self.last_round, self.best_success = -1, -1, -1.0
        self.best: dict[str, Tensor] | None = None
        self.trained: dict[str, Tensor] | None = None

    def go_on(self, model: Model) -> bool:
        """Put back what the last round trained; whether that changed the model."""
        if self.trained is None or self.best_round == self.last_round:
            return False
        model.load_weights(self.trained)
        return True

    def look(self, model: Model, round: int) -> tuple[dict[str, float], bool]:
        """Play, remember, and leave the best in the model: what was seen, and whether the model changed."""
        played = self.rollouts.collect(
            self.tasks, rollouts_per_task=1, temperature=self.temperature, seed=seed_for(self.seed, "round choice")
        )
        trajectories = [t for g in played.groups for t in g.trajectories]
        success = sum(t.outcome is not None and t.outcome.success for t in trajectories) / len(trajectories)
        self.last_round = round
        if success > self.best_success:
            self.best_round, self.best_success, self.best = round, success, model.weights()
        self.trained = self.best if self.best_round == round else model.weights()
        seen = {
            "games": float(len(trajectories)),
            "success": success,
            "best_success": self.best_success,
            "best_round": float(self.best_round),
        }
        if self.best_round == round or self.best is None:
            return seen, False
        model.load_weights(self.best)
        return seen, True

    def state_dict(self) -> dict[str, Any]:
        return {
            "best_round": self.best_round,
            "last_round": self.last_round,
            "best_success": self.best_success,
            "best": self.best,
            "trained": self.trained,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best_round, self.last_round = int(state["best_round"]), int(state["last_round"])
        self.best_success = float(state["best_success"])
        self.best, self.trained = state["best"], state["trained"]

"""Supervised fine-tuning on an environment's own expert: the warm start, and a control for RL."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentexp.agents.base import Agent
from agentexp.envs.base import Environment
from agentexp.errors import ConfigError
from agentexp.learning.learner import Learner
from agentexp.learning.optimiser import mean_metrics
from agentexp.losses.imitation import negative_log_likelihood
from agentexp.packing import Row, to_samples
from agentexp.policies.base import Policy
from agentexp.policies.chat import Chat
from agentexp.rollouts.demonstrations import expert_play
from agentexp.seeding import seed_for
from agentexp.types import Iteration, Sample


class Sft:
    """Next-token likelihood on demonstrations.

    demonstrations: how many episodes the expert plays before the first step; noise: the chance of
    a random move at each of its turns (the knob that makes it imperfect); only_successes drops its
    failures; learn_random_moves: whether its random moves are imitated too. observation_weight: a
    language-model loss on what is read, per token, relative to the actions' (0: none).
    One iteration is steps_per_iteration optimiser steps of about tokens_per_step tokens.
    """

    def __init__(
        self,
        *,
        environment: Environment,
        agent: Agent,
        chat: Chat,
        learner: Learner,
        policy: Policy,
        seed: int,
        split: str,
        demonstrations: int,
        noise: float,
        only_successes: bool,
        learn_random_moves: bool,
        observation_weight: float,
        max_turns: int,
        steps_per_iteration: int,
        tokens_per_step: int,
    ) -> None:
        if min(demonstrations, steps_per_iteration, tokens_per_step, max_turns) < 1 or not 0.0 <= noise <= 1.0:
            raise ConfigError(
                f"sft: demonstrations {demonstrations}, steps_per_iteration {steps_per_iteration}, tokens_per_step "
                f"{tokens_per_step} and max_turns {max_turns} must be at least 1, noise {noise} between 0 and 1"
            )
        self.environment, self.agent, self.chat = environment, agent, chat
        self.learner, self.policy, self.seed, self.split = learner, policy, seed, split
        self.demonstrations, self.noise, self.max_turns = demonstrations, noise, max_turns
        self.only_successes, self.learn_random_moves = only_successes, learn_random_moves
        self.observation_weight = observation_weight
        self.steps_per_iteration, self.tokens_per_step = steps_per_iteration, tokens_per_step
        self.samples: list[Sample] = []
        self.facts: dict[str, float] = {}
        self.epoch, self.cursor = 0, 0
        self.batches: list[list[int]] = []

    def iterate(self, i: int) -> Iteration:
        """steps_per_iteration optimiser steps."""
        if not self.samples:
            self.samples = self.play_expert()
        history = [
            self.learner.step(rows(self.next_batch(), self.observation_weight), negative_log_likelihood)
            for _ in range(self.steps_per_iteration)
        ]
        self.policy.refresh()
        metrics = {**mean_metrics(history), "epoch": float(self.epoch), **self.facts}
        return Iteration(metrics={f"sft/{k}": v for k, v in metrics.items()})

    def play_expert(self) -> list[Sample]:
        """Demonstrations as training rows; deterministic, so a resume makes them again."""
        played = expert_play(
            environment=self.environment,
            agent=self.agent,
            chat=self.chat,
            split=self.split,
            count=self.demonstrations,
            noise=self.noise,
            max_turns=self.max_turns,
            seed=self.seed,
        )
        won = [t for t in played if t.outcome is not None and t.outcome.success]
        used = won if self.only_successes else [t for t in played if t.scored]
        if not used:
            raise ConfigError(
                f"none of {len(played)} demonstrations on split {self.split!r} can be used (noise {self.noise}, "
                f"only_successes {self.only_successes}); lower the noise or allow failures"
            )
        if self.learn_random_moves:
            used = [replace(t, turns=tuple(replace(turn, deliberate=True) for turn in t.turns)) for t in used]
        self.facts = {"demonstrations": float(len(used)), "expert_success": len(won) / len(played)}
        return [s for t in used for s in to_samples(t, 0.0) if any(s.mask)]

    def next_batch(self) -> list[Sample]:
        if self.cursor >= len(self.batches):
            self.epoch += 1
            self.batches, self.cursor = self.shuffled(self.epoch), 0
        self.cursor += 1
        return [self.samples[n] for n in self.batches[self.cursor - 1]]

    def shuffled(self, epoch: int) -> list[list[int]]:
        """One epoch's batches: shuffled, rows of like length together, within tokens_per_step."""
        rng = random.Random(seed_for(self.seed, "sft", "epoch", epoch))
        order = list(range(len(self.samples)))
        rng.shuffle(order)
        batches: list[list[int]] = []
        for at in range(0, len(order), 256):  # sort by length inside random chunks only
            batch: list[int] = []
            for n in sorted(order[at : at + 256], key=lambda k: len(self.samples[k].ids)):
                if batch and (len(batch) + 1) * len(self.samples[n].ids) > self.tokens_per_step:
                    batches.append(batch)
                    batch = []
                batch.append(n)
            batches.append(batch)
        rng.shuffle(batches)
        return batches

    def state_dict(self) -> dict[str, Any]:
        return {
            "learner": self.learner.state_dict(),
            "epoch": self.epoch,
            "cursor": self.cursor,
            "policy_version": self.policy.version,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state["learner"])
        self.samples = self.play_expert()
        self.epoch, self.cursor = int(state["epoch"]), int(state["cursor"])
        self.batches = self.shuffled(self.epoch) if self.epoch else []
        self.policy.refresh()
        self.policy.version = int(state["policy_version"])


def rows(samples: Sequence[Sample], observation_weight: float) -> list[Row]:
    """Mean over action tokens plus observation_weight times the mean over read tokens."""
    acts = sum(sum(s.mask) for s in samples)
    reads = sum(len(s.ids) - 1 - sum(s.mask) for s in samples)
    act, read = 1.0 / acts, observation_weight / max(1, reads)
    return [Row(sample=s, weight=(0.0, *(act if m else read for m in s.mask[1:]))) for s in samples]

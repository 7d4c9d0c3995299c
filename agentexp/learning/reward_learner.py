"""The learner of a reward model: the same optimiser steps, on the reward model's weights."""

from __future__ import annotations

from agentexp.learning.optimiser import Optimiser, Schedule
from agentexp.learning.reward_model import RewardModel


class RewardLearner(Optimiser):
    """AdamW on what learns in `reward_model`; the keys are those of Optimiser, and every fit is a span.
    `restart` goes back to the weights and the optimiser that it began with."""

    told_spans = True

    def __init__(
        self,
        *,
        reward_model: RewardModel,
        lr: float,
        beta1: float,
        beta2: float,
        weight_decay: float,
        max_grad_norm: float,
        warmup_steps: int,
        schedule: Schedule,
        total_steps: int | None,
        final_lr_fraction: float,
        tokens_per_microbatch: int,
    ) -> None:
        super().__init__(
            learns=reward_model,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            weight_decay=weight_decay,
            max_grad_norm=max_grad_norm,
            warmup_steps=warmup_steps,
            schedule=schedule,
            total_steps=total_steps,
            final_lr_fraction=final_lr_fraction,
            tokens_per_microbatch=tokens_per_microbatch,
        )
        self.reward_model = reward_model

    def restart(self) -> None:
        """Forget everything learnt; the schedule starts again too."""
        self.reward_model.restart()
        self.optimizer.state.clear()
        self.steps = 0

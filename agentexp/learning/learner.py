"""The policy's learner: rows and a loss in, one optimiser step out."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from agentexp.learning.logps import token_logps
from agentexp.learning.model import Model
from agentexp.learning.optimiser import Optimiser, Schedule
from agentexp.losses.base import Loss, LossFunction
from agentexp.packing import Row, buckets, collate
from agentexp.types import Sample


class Learner(Optimiser):
    """AdamW on what learns in `model`; keys as in Optimiser. temperature: that of the sampler, so that
    the ratio is 1 before the first step.
    """

    def __init__(
        self,
        *,
        model: Model,
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
        temperature: float,
    ) -> None:
        super().__init__(
            learns=model,
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
        self.model, self.temperature = model, temperature

    def step(self, rows: Sequence[Row], loss: LossFunction) -> dict[str, float]:
        """One optimiser step on all rows as one batch of a loss on tokens' log-probs."""

        def part(indices: list[int]) -> Loss:
            batch = collate([rows[i] for i in indices]).to(self.model.device)
            return loss(batch, token_logps(self.model, batch.ids, batch.weight != 0.0, self.temperature))

        return self.update([len(r.sample.ids) for r in rows], part)

    @torch.no_grad()
    def logps(self, samples: Sequence[Sample]) -> list[tuple[float, ...]]:
        """Log pi(ids[t] | ids[:t]) where the sample's mask is True, 0 elsewhere, per sample."""
        self.model.network.eval()
        found: dict[int, tuple[float, ...]] = {}
        for indices in buckets([len(s.ids) for s in samples], self.tokens_per_microbatch):
            rows = [Row(sample=samples[i], weight=(0.0,) * len(samples[i].ids)) for i in indices]
            batch = collate(rows).to(self.model.device)
            values = token_logps(self.model, batch.ids, batch.mask, self.temperature)
            for i, line in zip(indices, values.tolist(), strict=True):
                found[i] = tuple(line[: len(samples[i].ids)])
        return [found[i] for i in range(len(samples))]

"""The one that learns: rows and a loss in, one optimiser step out.

Holds the optimiser and the schedule, never a second copy of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from agentexp.errors import DataError
from agentexp.learning.logps import token_logps
from agentexp.learning.model import Model
from agentexp.losses.base import LossFunction
from agentexp.packing import Row, buckets, collate
from agentexp.types import Sample

Schedule = Literal["constant", "linear", "cosine"]


class Learner:
    """AdamW on what learns in `model`.

    lr: peak learning rate; warmup_steps: linear from 0; schedule: after the warm-up, down to
    final_lr_fraction of lr at total_steps (null: constant only). tokens_per_microbatch: rows x
    longest row of one forward pass. temperature: that of the sampler, so that the ratio is 1
    before the first step.
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
        if schedule != "constant" and total_steps is None:
            raise ValueError(f"schedule {schedule!r} needs total_steps, which is null; give it or use 'constant'")
        if not 0.0 <= lr < math.inf or not max_grad_norm > 0.0 or tokens_per_microbatch < 1:
            raise ValueError(
                f"lr is {lr}, max_grad_norm {max_grad_norm}, tokens_per_microbatch {tokens_per_microbatch}; lr must be "
                "finite and not negative, max_grad_norm above 0, tokens_per_microbatch at least 1"
            )
        if not 0.0 <= beta1 < 1.0 or not 0.0 <= beta2 < 1.0 or not 0.0 <= weight_decay < math.inf:
            raise ValueError(
                f"beta1 is {beta1}, beta2 {beta2}, weight_decay {weight_decay}; betas lie in [0, 1), "
                "weight_decay is finite and not negative"
            )
        if warmup_steps < 0 or (total_steps is not None and total_steps < 1):
            raise ValueError(f"warmup_steps is {warmup_steps}, total_steps {total_steps}; at least 0 and 1 are needed")
        self.model, self.lr, self.max_grad_norm = model, lr, max_grad_norm
        self.warmup_steps, self.schedule, self.total_steps = warmup_steps, schedule, total_steps
        self.final_lr_fraction = final_lr_fraction
        self.tokens_per_microbatch, self.temperature = tokens_per_microbatch, temperature
        self.steps = 0
        self.skipped = 0
        self.optimizer = torch.optim.AdamW(
            model.trainable().values(), lr=lr, betas=(beta1, beta2), weight_decay=weight_decay, fused=True
        )

    def current_lr(self) -> float:
        """The learning rate of the next step."""
        warm = min(1.0, (self.steps + 1) / self.warmup_steps) if self.warmup_steps else 1.0
        if self.schedule == "constant" or self.total_steps is None:
            return self.lr * warm
        done = min(1.0, self.steps / self.total_steps)
        left = 1.0 - done if self.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
        return self.lr * warm * (self.final_lr_fraction + (1.0 - self.final_lr_fraction) * left)

    def step(self, rows: Sequence[Row], loss: LossFunction) -> dict[str, float]:
        """One optimiser step on all rows as one batch; the loss does not depend on how they are
        split into micro-batches. A gradient that is not finite is counted and not applied."""
        self.model.network.train()
        sums: dict[str, float] = {"loss": 0.0}
        for indices in buckets([len(r.sample.ids) for r in rows], self.tokens_per_microbatch):
            batch = collate([rows[i] for i in indices]).to(self.model.device)
            logps = token_logps(self.model, batch.ids, batch.weight != 0.0, self.temperature)
            part = loss(batch, logps)
            part.total.backward()  # type: ignore[no-untyped-call]
            sums["loss"] += part.total.item()
            for name, value in part.metrics.items():
                sums[name] = sums.get(name, 0.0) + value.item()
        norm = torch.nn.utils.clip_grad_norm_(self.model.trainable().values(), self.max_grad_norm)
        lr = self.current_lr()
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        if bool(torch.isfinite(norm)):
            self.optimizer.step()
        else:
            self.skipped += 1
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        return {**sums, "grad_norm": norm.item(), "lr": lr, "skipped_steps": float(self.skipped)}

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

    def state_dict(self) -> dict[str, Any]:
        return {
            "weights": self.model.weights(),
            "optimizer": self.optimizer.state_dict(),
            "steps": self.steps,
            "skipped": self.skipped,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        missing = {"weights", "optimizer", "steps", "skipped"} - state.keys()
        if missing:
            raise DataError(f"the learner's state lacks {sorted(missing)}; it was not written by this version")
        weights: dict[str, Tensor] = state["weights"]
        self.model.load_weights(weights)
        self.optimizer.load_state_dict(state["optimizer"])
        self.steps, self.skipped = int(state["steps"]), int(state["skipped"])


def mean_metrics(history: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of every metric over optimiser steps."""
    return {name: math.fsum(h[name] for h in history) / len(history) for name in history[0]} if history else {}

"""Optimiser steps on what learns, whatever it is: a policy or a reward model.

Holds AdamW's state and the schedule, never a second copy of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from agentexp.errors import DataError
from agentexp.losses.base import Loss
from agentexp.packing import buckets

Schedule = Literal["constant", "linear", "cosine"]


class Learns(Protocol):
    """A network of which something learns."""

    @property
    def network(self) -> nn.Module: ...

    def trainable(self) -> dict[str, nn.Parameter]: ...

    def weights(self) -> dict[str, Tensor]: ...

    def load_weights(self, weights: dict[str, Tensor]) -> None: ...


class Optimiser:
    """AdamW with a gradient clip.

    lr: peak learning rate; warmup_steps: linear from 0; schedule: after the warm-up, down to
    final_lr_fraction of lr at total_steps (null: for a constant rate, or over each span that `begin`
    tells, where a learner's work has a beginning and an end). tokens_per_microbatch: rows x
    longest row of one forward pass.
    """

    told_spans: ClassVar[bool] = False  # whether whoever uses this learner calls `begin`

    def __init__(
        self,
        *,
        learns: Learns,
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
        if schedule != "constant" and total_steps is None and not self.told_spans:
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
        self.learns, self.lr, self.max_grad_norm = learns, lr, max_grad_norm
        self.warmup_steps, self.schedule, self.total_steps = warmup_steps, schedule, total_steps
        self.final_lr_fraction = final_lr_fraction
        self.tokens_per_microbatch = tokens_per_microbatch
        self.steps = 0
        self.span = total_steps
        self.skipped = 0
        self.optimizer = torch.optim.AdamW(
            learns.trainable().values(), lr=lr, betas=(beta1, beta2), weight_decay=weight_decay, fused=True
        )

    def begin(self, steps: int) -> None:
        """So many steps follow: a schedule that was not given total_steps runs over them, from its start."""
        if self.schedule != "constant" and self.total_steps is None:
            self.steps, self.span = 0, steps

    def current_lr(self) -> float:
        """The learning rate of the next step."""
        warm = min(1.0, (self.steps + 1) / self.warmup_steps) if self.warmup_steps else 1.0
        if self.schedule == "constant" or self.span is None:
            return self.lr * warm
        done = min(1.0, self.steps / self.span)
        left = 1.0 - done if self.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
        return self.lr * warm * (self.final_lr_fraction + (1.0 - self.final_lr_fraction) * left)

    def restart(self) -> None:
        """Forget AdamW's moments and begin the schedule again; the weights stay."""
        self.optimizer.state.clear()
        self.steps = 0

    def update(self, lengths: Sequence[int], part: Callable[[list[int]], Loss]) -> dict[str, float]:
        """One optimiser step on rows of these lengths; `part` gives the share in the loss of those that
        stand in one micro-batch, by their indices. Since shares add up, the step does not depend on
        the split. A gradient that is not finite is counted and not applied."""
        self.learns.network.train()
        sums: dict[str, float] = {"loss": 0.0}
        for indices in buckets(lengths, self.tokens_per_microbatch):
            share = part(indices)
            share.total.backward()  # type: ignore[no-untyped-call]
            sums["loss"] += share.total.item()
            for name, value in share.metrics.items():
                sums[name] = sums.get(name, 0.0) + value.item()
        norm = torch.nn.utils.clip_grad_norm_(self.learns.trainable().values(), self.max_grad_norm)
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

    def state_dict(self) -> dict[str, Any]:
        return {
            "weights": self.learns.weights(),
            "optimizer": self.optimizer.state_dict(),
            "steps": self.steps,
            "skipped": self.skipped,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        missing = {"weights", "optimizer", "steps", "skipped"} - state.keys()
        if missing:
            raise DataError(f"the learner's state lacks {sorted(missing)}; it was not written by this version")
        weights: dict[str, Tensor] = state["weights"]
        self.learns.load_weights(weights)
        self.optimizer.load_state_dict(state["optimizer"])
        self.steps, self.skipped = int(state["steps"]), int(state["skipped"])


def mean_metrics(history: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of every metric over optimiser steps."""
    return {name: math.fsum(h[name] for h in history) / len(history) for name in history[0]} if history else {}

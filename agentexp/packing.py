"""Trajectories to training rows, rows to tensors.

Legend: B rows, T tokens (the longest row of a batch), S turns. Knows no loss and no model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import torch
from torch import Tensor

from agentexp.types import Decision, Pair, Sample, Trajectory, Trunk

Weighting = Literal["rollout", "turn", "token"]


def to_samples(trajectory: Trajectory, advantage: float) -> list[Sample]:
    """One row per segment of the trajectory (one, unless the chat template rewrote history).

    Sampled ids and log-probs go into the row as they were sampled. Read ids, and ids that nobody
    sampled, are masked. Turns whose move was not deliberate are masked too.
    """
    samples = []
    numbered = list(enumerate(trajectory.turns))
    for segment, turns in groupby(numbered, key=lambda pair: pair[1].segment):
        ids: list[int] = []
        mask: list[bool] = []
        turn_index: list[int] = []
        old: list[float] = []
        for index, turn in turns:
            done, read = turn.completion, len(turn.prompt_ids)
            trained = turn.deliberate
            ids += [*turn.prompt_ids, *done.ids]
            mask += [False] * read + [trained] * len(done.ids)
            turn_index += [-1] * read + [index if trained else -1] * len(done.ids)
            old += [0.0] * read + [p if trained and not math.isnan(p) else 0.0 for p in done.logprobs]
        samples.append(
            Sample(
                ids=tuple(ids),
                mask=tuple(mask),
                turn=tuple(turn_index),
                old_logps=tuple(old),
                advantage=tuple(advantage if m else 0.0 for m in mask),
                origin=f"{trajectory.task.id}#{trajectory.sample}/{segment}",
            )
        )
    return samples


def trunks(trajectory: Trajectory) -> list[Trunk]:
    """One trunk per segment: the same ids as `to_samples`, and where every turn's completion stands."""
    found = []
    for segment, turns in groupby(enumerate(trajectory.turns), key=lambda pair: pair[1].segment):
        ids: list[int] = []
        decisions = []
        for index, turn in turns:
            start = len(ids) + len(turn.prompt_ids)
            ids += [*turn.prompt_ids, *turn.completion.ids]
            decisions.append(Decision(turn=index, start=start, end=len(ids)))
        origin = f"{trajectory.task.id}#{trajectory.sample}/{segment}"
        found.append(Trunk(ids=tuple(ids), decisions=tuple(decisions), origin=origin))
    return found


def pair_to_samples(pair: Pair, origin: str) -> tuple[Sample, Sample]:
    """(chosen, rejected) as rows over the same prompt ids; only the action is generated."""

    def row(action: tuple[int, ...], side: str) -> Sample:
        read, said = len(pair.prompt_ids), len(action)
        return Sample(
            ids=pair.prompt_ids + action,
            mask=(False,) * read + (True,) * said,
            turn=(-1,) * read + (0,) * said,
            old_logps=(0.0,) * (read + said),
            advantage=(0.0,) * (read + said),
            origin=f"{origin}/{side}",
        )

    return row(pair.chosen, "chosen"), row(pair.rejected, "rejected")


def token_weights(samples: Sequence[Sample], how: Weighting) -> list[tuple[float, ...]]:
    """The weight of every token in a loss over `samples` taken as one batch; all weights sum to 1.

    rollout: each row counts the same, its generated tokens share that (LOOP eq. 10: 1/|a(x)|).
    turn: each row the same, its turns share that, their tokens share their turn's.
    token: each generated token counts the same.
    Since a loss is a sum of weight times term, micro-batches, order and padding never change it.
    """
    trained = [s for s in samples if any(s.mask)]
    total = sum(sum(s.mask) for s in samples)
    weights = []
    for sample in samples:
        mine = sum(sample.mask)
        if mine == 0:
            weights.append((0.0,) * len(sample.ids))
        elif how == "rollout":
            weights.append(tuple(m / (mine * len(trained)) for m in sample.mask))
        elif how == "token":
            weights.append(tuple(m / total for m in sample.mask))
        else:
            sizes: dict[int, int] = {}
            for turn, m in zip(sample.turn, sample.mask, strict=True):
                if m:
                    sizes[turn] = sizes.get(turn, 0) + 1
            share = 1.0 / (len(trained) * len(sizes))
            weights.append(tuple(share / sizes[t] if m else 0.0 for t, m in zip(sample.turn, sample.mask, strict=True)))
    return weights


@dataclass(frozen=True, kw_only=True)
class Row:
    """A sample with its share of the loss, and the reference's log-probs where a KL needs them."""

    sample: Sample
    weight: tuple[float, ...]
    reference_logps: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.weight) != len(self.sample.ids):
            raise ValueError(f"Row {self.sample.origin} has {len(self.weight)} weights for {len(self.sample.ids)} ids")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rows side by side, padded on the right; every tensor is [B, T]. Padding has weight 0, mask
    False, turn -1; it is known by the rows' lengths, never by a token id."""

    ids: Tensor
    mask: Tensor
    turn: Tensor
    old_logps: Tensor
    advantage: Tensor
    weight: Tensor
    reference_logps: Tensor | None
    lengths: Tensor  # [B]

    def to(self, device: torch.device) -> Batch:
        move = {k: v.to(device) if isinstance(v, Tensor) else v for k, v in vars(self).items()}
        return Batch(**move)


def _padded(rows: Sequence[Sequence[float]], fill: float, dtype: torch.dtype) -> Tensor:
    longest = max(len(r) for r in rows)
    return torch.tensor([[*r, *[fill] * (longest - len(r))] for r in rows], dtype=dtype)


def collate(rows: Sequence[Row]) -> Batch:
    """Lay rows side by side."""
    samples = [r.sample for r in rows]
    references = [r.reference_logps for r in rows if r.reference_logps is not None]
    if references and len(references) != len(rows):
        raise ValueError(f"{len(references)} of {len(rows)} rows have reference log-probs; all or none must")
    return Batch(
        ids=_padded([s.ids for s in samples], 0, torch.long),
        mask=_padded([s.mask for s in samples], 0, torch.bool),
        turn=_padded([s.turn for s in samples], -1, torch.long),
        old_logps=_padded([s.old_logps for s in samples], 0.0, torch.float32),
        advantage=_padded([s.advantage for s in samples], 0.0, torch.float32),
        weight=_padded([r.weight for r in rows], 0.0, torch.float32),
        reference_logps=_padded(references, 0.0, torch.float32) if references else None,
        lengths=torch.tensor([len(s.ids) for s in samples]),
    )


def buckets(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices grouped so that rows x longest row of a group stays within `budget` tokens, rows of
    like length together. A row longer than the budget stands alone."""
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    groups: list[list[int]] = []
    for index in order:
        if groups and (len(groups[-1]) + 1) * lengths[index] <= budget:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups

"""Scores candidates of live episodes with a reward model; what an episode has read is read once."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from agentexp.learning.reward_model import RewardModel
from agentexp.policies.reader import Reader
from agentexp.types import Completion, Request


class CandidateScorer:
    """Keeps the reward model's own keys and values of every live episode."""

    def __init__(self, *, reward_model: RewardModel, initial_cache_tokens: int) -> None:
        self.reward_model = reward_model
        self.reader = Reader(
            decoder=reward_model.decoder,
            config=reward_model.causal_lm.config,
            dtype=reward_model.dtype,
            initial_cache_tokens=initial_cache_tokens,
        )
        self._width = 0
        self._distinct: dict[str, list[tuple[int, ...]]] = {}  # of each episode scored last, by column

    @torch.inference_mode()
    def score(self, requests: Sequence[Request], candidates: Sequence[Sequence[Completion]]) -> list[list[float]]:
        """Raw scores, higher is better: the head at the last id of each candidate. Candidates that say the
        same are read once."""
        self.reward_model.network.eval()
        new = self.reader.admit(requests)
        rows = [self.reader.row(r.episode) for r in requests]
        self.reader.read(rows, new)
        cache = self.reader.cache
        distinct = [list(dict.fromkeys(c.ids for c in said)) for said in candidates]
        self._width = max(map(len, distinct))
        self._distinct = {r.episode: ids for r, ids in zip(requests, distinct, strict=True)}
        levels = max(len(ids) for said in distinct for ids in said)
        ids = torch.zeros(cache.rows, levels, self._width, dtype=torch.long)
        spots: list[tuple[int, int, int]] = []  # row, level and column of each distinct candidate's last id
        for row, said in zip(rows, distinct, strict=True):
            for column, one in enumerate(said):
                ids[row, : len(one), column] = torch.tensor(one)
                spots.append((row, len(one) - 1, column))
        points = cache.lengths[:, None].expand(cache.rows, self._width).contiguous()
        columns = torch.arange(self._width, device=points.device).expand_as(points)
        states = self.reader.read_branches(ids.to(points.device), points, columns, of=self._width, start=0)
        where = torch.tensor(spots, device=points.device)
        picked = states[where[:, 0], where[:, 1], where[:, 2]]
        values = iter(self.reward_model.head(picked.to(self.reward_model.head.weight.dtype))[:, 0].float().tolist())
        worth = [{one: next(values) for one in said} for said in distinct]
        return [[found[c.ids] for c in said] for found, said in zip(worth, candidates, strict=True)]

    @torch.inference_mode()
    def keep(self, episode: str, completion: Completion) -> None:
        """The episode goes on with this one of the candidates scored last, which has been read already."""
        column = self._distinct[episode].index(completion.ids)
        self.reader.keep_branch(episode, column, of=self._width, ids=completion.ids[:-1])

    def release(self, episode: str) -> None:
        self.reader.release(episode)

    def refresh(self) -> None:
        self.reader.clear()

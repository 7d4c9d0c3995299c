"""Reads episodes with a decoder and remembers what it read: each token once. The policy samples with
one, a candidate scorer judges with another.

Legend: R rows (live episodes), L new tokens, P branches of a row, H hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from agentexp.learning.logps import cache_keyword
from agentexp.policies.kv_cache import RowCache
from agentexp.types import Request


class Reader:
    """Keys and values of all live episodes over one decoder.

    initial_cache_tokens: first capacity of a row. `read_tokens` counts prompt tokens read,
    `reread_tokens` those read a second time because a history was rewritten.
    """

    def __init__(self, *, decoder: nn.Module, config: Any, dtype: torch.dtype, initial_cache_tokens: int) -> None:
        self.decoder, self.config, self.dtype = decoder, config, dtype
        self.initial_cache_tokens = initial_cache_tokens
        self.read_tokens = 0
        self.reread_tokens = 0
        self._keyword = cache_keyword(decoder)
        self._row: dict[str, int] = {}  # episode -> row of the cache
        self._held: dict[str, list[int]] = {}  # episode -> ids whose keys and values are kept
        self._cache: RowCache | None = None

    @property
    def device(self) -> torch.device:
        return next(self.decoder.parameters()).device

    @property
    def cache(self) -> RowCache:
        if self._cache is None:
            self._cache = RowCache(self.config, device=self.device, dtype=self.dtype, tokens=self.initial_cache_tokens)
        return self._cache

    def row(self, episode: str) -> int:
        return self._row[episode]

    def release(self, episode: str) -> None:
        """Forget an episode; unknown names are fine."""
        self._row.pop(episode, None)
        self._held.pop(episode, None)

    def clear(self) -> None:
        """The weights changed: forget everything."""
        self._row, self._held, self._cache = {}, {}, None

    def admit(self, requests: Sequence[Request]) -> list[list[int]]:
        """Give every request a row; returns the ids each has not read yet, which now count as held."""
        names = [r.episode for r in requests]
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise ValueError(f"episode {twice!r} has two requests in one call; a conversation continues one at a time")
        newcomers = [n for n in names if n not in self._row]
        cache = self.cache
        used = set(self._row.values())
        free = [row for row in range(cache.rows) if row not in used]
        wanted = len(used) + len(newcomers)
        if len(free) < len(newcomers) or cache.rows > wanted + wanted // 3:  # grow, or stop carrying the dead
            keep = sorted(used)
            cache.resize(keep, wanted)
            moved = {old: row for row, old in enumerate(keep)}
            self._row = {name: moved[row] for name, row in self._row.items()}
            free = list(range(len(keep), wanted))
        for name, row in zip(newcomers, free, strict=False):
            self._row[name], self._held[name] = row, []
            cache.lengths[row] = 0
        fresh = []
        for request in requests:
            held, prompt = self._held[request.episode], list(request.prompt_ids)
            if len(held) >= len(prompt) or prompt[: len(held)] != held:  # history was rewritten
                same = next(
                    (i for i, (a, b) in enumerate(zip(held, prompt, strict=False)) if a != b),
                    min(len(held), len(prompt)),
                )
                same = min(same, len(prompt) - 1)
                self.reread_tokens += len(prompt) - same
                del held[same:]
                cache.lengths[self._row[request.episode]] = same
            fresh.append(prompt[len(held) :])
            held.extend(fresh[-1])
        self.read_tokens += sum(map(len, fresh))
        return fresh

    def hold(self, episode: str, ids: Sequence[int]) -> None:
        """Count ids as held that the next `read` will read, or a kept branch has read."""
        self._held[episode].extend(ids)

    def read(self, rows: list[int], new: list[list[int]]) -> Tensor:
        """Read `new[i]` into row `rows[i]`; states [len(rows), H] after the last real token. Rows with
        nothing new are carried along and change nothing."""
        cache = self.cache
        width = max(map(len, new))
        ids = torch.zeros(cache.rows, width, dtype=torch.long)
        counts = torch.zeros(cache.rows, dtype=torch.long)
        for row, tokens in zip(rows, new, strict=True):
            if tokens:
                ids[row, : len(tokens)] = torch.tensor(tokens)
                counts[row] = len(tokens)
        ids, counts = ids.to(self.device), counts.to(self.device)
        positions, mask = cache.begin(width)
        states = self._states(ids, positions, mask)
        cache.lengths += counts
        picked = torch.tensor(rows, device=ids.device)
        last = (counts[picked] - 1).clamp(min=0)
        return states[picked, last]

    def read_whole(self, new: list[list[int]]) -> Tensor:
        """Read `new[r]` into row r of a reader without episodes; states [R, L, H] of all of it."""
        cache = self.cache
        cache.resize([], len(new))
        width = max(map(len, new))
        ids = torch.tensor([[*tokens, *[0] * (width - len(tokens))] for tokens in new], device=self.device)
        positions, mask = cache.begin(width)
        states = self._states(ids, positions, mask)
        cache.lengths += torch.tensor([len(tokens) for tokens in new], device=self.device)
        return states

    def read_branches(self, ids: Tensor, points: Tensor, columns: Tensor, *, of: int, start: int) -> Tensor:
        """Read levels of branches, ids [R, levels, P], at points [R, P]; columns [R, P] says which of a
        row's `of` branches they are. States [R, levels, P, H]."""
        rows, levels, count = ids.shape
        positions, mask = self.cache.begin_branches(points, columns, of=of, start=start, levels=levels)
        states = self._states(ids.reshape(rows, levels * count), positions, mask)
        return states.reshape(rows, levels, count, -1)

    def keep_branch(self, episode: str, branch: int, *, of: int, ids: Sequence[int]) -> None:
        """The branch that read `ids` becomes the episode's continuation."""
        self.cache.keep_branch(self._row[episode], branch, of=of, tokens=len(ids))
        self.hold(episode, ids)

    def _states(self, ids: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        extra: dict[str, Any] = {self._keyword: self.cache}
        out = self.decoder(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, **extra)
        states: Tensor = out.last_hidden_state
        return states

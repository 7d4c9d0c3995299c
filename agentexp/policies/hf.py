"""The policy on transformers: one shared forward pass for all live episodes, keys and values kept
across turns. It samples with the learner's own network; there is no second copy.

Legend: R rows (live episodes), L new tokens, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agentexp.errors import RolloutError
from agentexp.learning.logps import cache_keyword
from agentexp.learning.model import Model
from agentexp.policies.kv_cache import RowCache
from agentexp.types import Completion, Request


class HfPolicy:
    """Samples from `model`.

    initial_cache_tokens: first capacity of a row; it grows by half when needed.
    `model_seconds` counts the time inside forward passes, `reread_tokens` the prompt tokens read a
    second time because an episode's history was rewritten or its cache was dropped.
    """

    def __init__(self, *, model: Model, initial_cache_tokens: int) -> None:
        self.model = model
        self.initial_cache_tokens = initial_cache_tokens
        self.version = 0
        self.model_seconds = 0.0
        self.read_tokens = 0
        self.reread_tokens = 0
        self._keyword = cache_keyword(model.decoder)
        self._eos = frozenset(_eos_ids(model))
        self._row: dict[str, int] = {}  # episode -> row of the cache
        self._held: dict[str, list[int]] = {}  # episode -> ids whose keys and values are kept
        self._cache: RowCache | None = None

    # ------------------------------------------------------------------ contract
    @torch.inference_mode()
    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """See policies.base. Log-probs are those of the distribution sampled from."""
        if not requests:
            return []
        self.model.network.eval()
        fresh = self._admit(requests)
        rows = [self._row[r.episode] for r in requests]
        longest = max(r.max_tokens for r in requests)
        uniforms = (
            np.stack([_uniforms(r, longest) for r in requests]) if any(r.temperature > 0 for r in requests) else None
        )
        ids: list[list[int]] = [[] for _ in requests]
        logps: list[list[float]] = [[] for _ in requests]
        going = list(range(len(requests)))
        new = fresh
        for k in range(longest):
            logits = self._forward(rows, new)
            tokens, chosen = self._sample(logits, requests, None if uniforms is None else uniforms[:, k])
            still = []
            for i in going:
                ids[i].append(tokens[i])
                logps[i].append(chosen[i])
                if tokens[i] not in self._eos and len(ids[i]) < requests[i].max_tokens:
                    still.append(i)
            going = still
            if not going:
                break
            new = [[] for _ in requests]
            for i in going:
                new[i] = [tokens[i]]
                self._held[requests[i].episode].append(tokens[i])
        return [
            Completion(
                ids=tuple(ids[i]),
                logprobs=tuple(logps[i]),
                text=self.model.tokenizer.decode([t for t in ids[i] if t not in self._eos]),
                finish="stop" if ids[i][-1] in self._eos else "length",
                policy_version=self.version,
            )
            for i in range(len(requests))
        ]

    def release(self, episode: str) -> None:
        self._row.pop(episode, None)
        self._held.pop(episode, None)

    def refresh(self) -> None:
        self.version += 1
        self._row, self._held, self._cache = {}, {}, None

    # ------------------------------------------------------------------ inside
    def _admit(self, requests: Sequence[Request]) -> list[list[int]]:
        """Give every request a row; returns the ids each has not read yet."""
        names = [r.episode for r in requests]
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise ValueError(f"episode {twice!r} has two requests in one call; a conversation continues one at a time")
        newcomers = [n for n in names if n not in self._row]
        cache = self._cache
        if cache is None:
            network = self.model.causal_lm
            cache = RowCache(
                network.config, device=self.model.device, dtype=network.dtype, tokens=self.initial_cache_tokens
            )
            self._cache = cache
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

    def _forward(self, rows: list[int], new: list[list[int]]) -> Tensor:
        """Read `new[i]` into row `rows[i]`; logits [len(rows), V] after the last real token. Rows
        with nothing new are carried along and change nothing."""
        start = time.perf_counter()
        cache = self._cache
        assert cache is not None
        width = max(map(len, new))
        ids = torch.zeros(cache.rows, width, dtype=torch.long)
        counts = torch.zeros(cache.rows, dtype=torch.long)
        for row, tokens in zip(rows, new, strict=True):
            if tokens:
                ids[row, : len(tokens)] = torch.tensor(tokens)
                counts[row] = len(tokens)
        ids, counts = ids.to(self.model.device), counts.to(self.model.device)
        positions, mask = cache.begin(width)
        extra: dict[str, Any] = {self._keyword: cache}
        states = self.model.decoder(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, **extra)
        cache.lengths += counts
        picked = torch.tensor(rows, device=ids.device)
        last = (counts[picked] - 1).clamp(min=0)
        logits: Tensor = self.model.head(states.last_hidden_state[picked, last])
        self.model_seconds += time.perf_counter() - start
        return logits

    def _sample(self, logits: Tensor, requests: Sequence[Request], uniforms: Any) -> tuple[list[int], list[float]]:
        """One token per row by inverse transform from the request's own random numbers."""
        heat = [r.temperature for r in requests]
        greedy = torch.tensor([t == 0.0 for t in heat], device=logits.device)
        scale = torch.tensor([t or 1.0 for t in heat], device=logits.device)
        logps = (logits.float() / scale[:, None]).log_softmax(-1)
        tokens = logps.argmax(-1)
        if uniforms is not None:
            cumulative = logps.exp().cumsum(-1)
            u = torch.from_numpy(uniforms).to(logits.device, torch.float32)[:, None] * cumulative[:, -1:]
            drawn = (cumulative <= u).sum(-1).clamp(max=logps.shape[-1] - 1)
            tokens = torch.where(greedy, tokens, drawn)
        chosen = logps.gather(1, tokens[:, None])[:, 0]
        if bool(chosen.isnan().any()):
            raise RolloutError(
                "the model's probabilities are not numbers: its weights diverged. Lower the learning rate "
                "(algorithm.learner.lr) and start again under another name"
            )
        return tokens.tolist(), chosen.tolist()


def _uniforms(request: Request, count: int) -> Any:
    """The request's first `count` random numbers, by a counter-based generator: the same whatever
    else is in the batch."""
    return np.random.Generator(np.random.Philox(request.seed)).random(count)


def _eos_ids(model: Model) -> list[int]:
    """End-of-turn ids: the tokenizer's, and those that the model's generation config adds."""
    configured: int | list[int] | None = getattr(model.causal_lm.generation_config, "eos_token_id", None)
    extra = [] if configured is None else [configured] if isinstance(configured, int) else list(configured)
    return sorted({model.tokenizer.eos_token_id, *extra})

"""The policy on transformers: one shared forward pass for all live episodes, keys and values kept
across turns. It samples with the learner's own network; there is no second copy.

Legend: R rows (live episodes), P branches of a row, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from agentexp.learning.model import Model
from agentexp.packing import buckets
from agentexp.policies.reader import Reader
from agentexp.policies.sampling import draw, uniforms
from agentexp.seeding import seed_for
from agentexp.types import Completion, Request


class HfPolicy:
    """Samples from `model`.

    initial_cache_tokens: first capacity of a row; it grows by half when needed.
    branch_tokens: rows x tokens of one batch of `branch`.
    `model_seconds` counts the time inside forward passes, `reread_tokens` the prompt tokens read a
    second time because an episode's history was rewritten or its cache was dropped.
    """

    def __init__(self, *, model: Model, initial_cache_tokens: int, branch_tokens: int) -> None:
        self.model, self.branch_tokens = model, branch_tokens
        self.version = 0
        self.model_seconds = 0.0
        self.reader = self._new_reader(initial_cache_tokens)
        self._eos = frozenset(_eos_ids(model))
        self._candidates: dict[
            str, tuple[int, list[Completion]]
        ] = {}  # episode -> branches of its row, and what they say

    @property
    def read_tokens(self) -> int:
        return self.reader.read_tokens

    @property
    def reread_tokens(self) -> int:
        return self.reader.reread_tokens

    # ------------------------------------------------------------------ contract
    @torch.inference_mode()
    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """See policies.base. Log-probs are those of the distribution sampled from."""
        if not requests:
            return []
        if any(r.candidates > 1 for r in requests):
            raise ValueError(
                f"a request asks for {max(r.candidates for r in requests)} candidates, but this policy cannot choose "
                "one; wrap it in best of n (policies.best_of_n), or ask for one"
            )
        self.model.network.eval()
        new = self.reader.admit(requests)
        rows = [self.reader.row(r.episode) for r in requests]
        longest = max(r.max_tokens for r in requests)
        heat = [r.temperature for r in requests]
        numbers = np.stack([uniforms(r.seed, longest) for r in requests]) if any(t > 0 for t in heat) else None
        ids: list[list[int]] = [[] for _ in requests]
        logps: list[list[float]] = [[] for _ in requests]
        going = list(range(len(requests)))
        for k in range(longest):
            logits = self._forward(rows, new)
            tokens, chosen = draw(logits, heat, None if numbers is None else numbers[:, k])
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
                self.reader.hold(requests[i].episode, [tokens[i]])
        return [self._completion(ids[i], logps[i]) for i in range(len(requests))]

    def release(self, episode: str) -> None:
        self.reader.release(episode)
        self._candidates.pop(episode, None)

    def refresh(self) -> None:
        self.version += 1
        self.reader.clear()
        self._candidates.clear()

    # ------------------------------------------------------------------ several at a state
    @torch.inference_mode()
    def candidates(self, requests: Sequence[Request]) -> list[list[Completion]]:
        """`candidates` completions of each request; the shared history is read once. The first has the
        request's own seed, so it is what `complete` gives; the first n of more are the n of n. Tell
        with `keep` which one goes on."""
        self.model.network.eval()
        new = self.reader.admit(requests)
        rows = [self.reader.row(r.episode) for r in requests]
        start = time.perf_counter()
        states = self.reader.read(rows, new)
        self.model_seconds += time.perf_counter() - start
        width = max(r.candidates for r in requests) + 1  # one for padding
        lengths = self.reader.cache.lengths.tolist()
        branches = [
            _Branch(
                row=row,
                column=j,
                point=lengths[row],
                state=states[i],
                seed=_candidate_seed(r.seed, j),
                heat=r.temperature,
                most=r.max_tokens,
            )
            for i, (r, row) in enumerate(zip(requests, rows, strict=True))
            for j in range(r.candidates)
        ]
        self._grow(self.reader, branches, of=width)
        said = iter([self._completion(b.ids, b.logps) for b in branches])
        found = [[next(said) for _ in range(r.candidates)] for r in requests]
        for r, completions in zip(requests, found, strict=True):
            self._candidates[r.episode] = (width, completions)
        return found

    @torch.inference_mode()
    def keep(self, episode: str, index: int) -> None:
        """The episode goes on with this one of its candidates; nothing of it is read again."""
        width, completions = self._candidates.pop(episode)
        self.reader.keep_branch(episode, index, of=width, ids=completions[index].ids[:-1])

    @torch.inference_mode()
    def branch(
        self,
        trunks: Sequence[Sequence[int]],
        points: Sequence[Sequence[int]],
        *,
        n: int,
        max_tokens: int,
        temperature: float,
        seeds: Sequence[Sequence[int]],
    ) -> list[list[list[Completion]]]:
        """`n` completions at every point of every trunk, one step ahead: `points[r]` says how many ids
        of `trunks[r]` each has read. A trunk is read once for all its points; live episodes are not
        touched. seeds: one a point; candidates as in `candidates`.
        """
        self.model.network.eval()
        found: list[list[list[Completion]]] = [[] for _ in trunks]
        wanted = [r for r in range(len(trunks)) if points[r]]
        sizes = [len(trunks[r]) + len(points[r]) * n * max_tokens for r in wanted]
        for batch in buckets(sizes, self.branch_tokens):
            chosen = [wanted[i] for i in batch]
            reader = self._new_reader(max(map(len, (trunks[r] for r in chosen))))
            start = time.perf_counter()
            states = reader.read_whole([list(trunks[r][: max(points[r])]) for r in chosen])
            self.model_seconds += time.perf_counter() - start
            branches = []
            for row, r in enumerate(chosen):
                for k, point in enumerate(points[r]):
                    branches += [
                        _Branch(
                            row=row,
                            column=k * n + j,
                            point=point,
                            state=states[row, point - 1],
                            seed=_candidate_seed(seeds[r][k], j),
                            heat=temperature,
                            most=max_tokens,
                        )
                        for j in range(n)
                    ]
            self._grow(reader, branches, of=max(len(points[r]) for r in chosen) * n + 1)
            said = iter([self._completion(b.ids, b.logps) for b in branches])
            for r in chosen:
                found[r] = [[next(said) for _ in range(n)] for _ in points[r]]
        return found

    # ------------------------------------------------------------------ inside
    def _new_reader(self, tokens: int) -> Reader:
        network = self.model.causal_lm
        return Reader(
            decoder=self.model.decoder, config=network.config, dtype=network.dtype, initial_cache_tokens=tokens
        )

    def _forward(self, rows: list[int], new: list[list[int]]) -> Tensor:
        """Read, and the logits [len(rows), V] of what comes next."""
        start = time.perf_counter()
        logits: Tensor = self.model.head(self.reader.read(rows, new))
        self.model_seconds += time.perf_counter() - start
        return logits

    def _grow(self, reader: Reader, branches: list[_Branch], *, of: int) -> None:
        """Sample every branch to its end, all of them together, level by level; those that have ended
        are read no more. `of`: branches of a row, the last of which is padding."""
        longest = max(b.most for b in branches)
        numbers = np.stack([uniforms(b.seed, longest) for b in branches])
        states = torch.stack([b.state for b in branches])
        going = list(range(len(branches)))
        for level in range(longest):
            start = time.perf_counter()
            logits = self.model.head(states)
            self.model_seconds += time.perf_counter() - start
            heat = [branches[i].heat for i in going]
            tokens, logps = draw(logits, heat, numbers[going, level] if any(t > 0 for t in heat) else None)
            still = []
            for i, token, logp in zip(going, tokens, logps, strict=True):
                branches[i].ids.append(token)
                branches[i].logps.append(logp)
                if token not in self._eos and len(branches[i].ids) < branches[i].most:
                    still.append(i)
            going = still
            if not going:
                return
            start = time.perf_counter()
            states = self._read_level(reader, [branches[i] for i in going], of=of, level=level)
            self.model_seconds += time.perf_counter() - start

    def _read_level(self, reader: Reader, branches: list[_Branch], *, of: int, level: int) -> Tensor:
        """Read the last token of these branches; their states [N, H]."""
        places = [0] * reader.cache.rows  # how many of a row's branches have been placed
        spots = []
        for branch in branches:
            spots.append((branch.row, places[branch.row]))
            places[branch.row] += 1
        ids = torch.zeros(len(places), 1, max(places), dtype=torch.long)
        points = torch.zeros(len(places), max(places), dtype=torch.long)
        columns = torch.full((len(places), max(places)), of - 1, dtype=torch.long)
        where = torch.tensor(spots)
        ids[where[:, 0], 0, where[:, 1]] = torch.tensor([b.ids[-1] for b in branches])
        points[where[:, 0], where[:, 1]] = torch.tensor([b.point for b in branches])
        columns[where[:, 0], where[:, 1]] = torch.tensor([b.column for b in branches])
        device = self.model.device
        read = reader.read_branches(ids.to(device), points.to(device), columns.to(device), of=of, start=level)
        where = where.to(device)
        return read[where[:, 0], 0, where[:, 1]]

    def _completion(self, ids: list[int], logps: list[float]) -> Completion:
        return Completion(
            ids=tuple(ids),
            logprobs=tuple(logps),
            text=self.model.tokenizer.decode([t for t in ids if t not in self._eos]),
            finish="stop" if ids[-1] in self._eos else "length",
            policy_version=self.version,
        )


class _Branch:
    """One completion that grows beside others: where it stands, and what it has said so far."""

    __slots__ = ("column", "heat", "ids", "logps", "most", "point", "row", "seed", "state")

    def __init__(self, *, row: int, column: int, point: int, state: Tensor, seed: int, heat: float, most: int) -> None:
        self.row, self.column, self.point, self.state = row, column, point, state
        self.seed, self.heat, self.most = seed, heat, most
        self.ids: list[int] = []
        self.logps: list[float] = []


def _candidate_seed(seed: int, index: int) -> int:
    return seed if index == 0 else seed_for(seed, "candidate", index)


def _eos_ids(model: Model) -> list[int]:
    """End-of-turn ids: the tokenizer's, and those that the model's generation config adds."""
    configured: int | list[int] | None = getattr(model.causal_lm.generation_config, "eos_token_id", None)
    extra = [] if configured is None else [configured] if isinstance(configured, int) else list(configured)
    return sorted({model.tokenizer.eos_token_id, *extra})

"""Best of n: each turn the policy says n things and the reward model chooses (arXiv 2502.10325)."""

from __future__ import annotations

from collections.abc import Sequence

from agentexp.errors import ConfigError
from agentexp.learning.reward_model import RewardModel
from agentexp.policies.hf import HfPolicy
from agentexp.policies.scoring import CandidateScorer
from agentexp.types import Completion, Request


class BestOfN:
    """A policy that plays the highest-scored of n candidates; the first of equals.

    n: candidates of a request that does not ask for a number itself. Any policy and any reward model
    that read the same tokens go together. turns, ties, same: turns played with more than one
    candidate, those whose best score was not alone, and those whose candidates were all one text.
    """

    def __init__(self, *, policy: HfPolicy, reward_model: RewardModel, n: int, initial_cache_tokens: int) -> None:
        if n < 1:
            raise ConfigError(f"best of n: n is {n}; at least 1 is needed")
        self.policy, self.n = policy, n
        self.scorer = CandidateScorer(reward_model=reward_model, initial_cache_tokens=initial_cache_tokens)
        self.turns = self.ties = self.same = 0

    @property
    def version(self) -> int:
        return self.policy.version

    @version.setter
    def version(self, value: int) -> None:
        self.policy.version = value

    @property
    def model_seconds(self) -> float:
        return self.policy.model_seconds

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """See policies.base; a request's `candidates` above 1 overrules n."""
        if not requests:
            return []
        asked = [r if r.candidates > 1 or self.n == 1 else _asking(r, self.n) for r in requests]
        return self.choose(asked)

    def choose(self, requests: Sequence[Request]) -> list[Completion]:
        """The best candidate of each request, as many as it asks for."""
        said = self.policy.candidates(requests)
        scores = self.scorer.score(requests, said)
        chosen = []
        for request, candidates, values in zip(requests, said, scores, strict=True):
            best = max(range(len(values)), key=values.__getitem__)  # the first of equals
            if len(candidates) > 1:
                self.turns += 1
                self.ties += (
                    sum(
                        v == values[best] and c.ids != candidates[best].ids
                        for c, v in zip(candidates, values, strict=True)
                    )
                    > 0
                )
                self.same += len({c.ids for c in candidates}) == 1
            self.policy.keep(request.episode, best)
            self.scorer.keep(request.episode, candidates[best])
            chosen.append(candidates[best])
        return chosen

    def release(self, episode: str) -> None:
        self.policy.release(episode)
        self.scorer.release(episode)

    def refresh(self) -> None:
        self.policy.refresh()
        self.scorer.refresh()


def _asking(request: Request, candidates: int) -> Request:
    return Request(
        episode=request.episode,
        prompt_ids=request.prompt_ids,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        seed=request.seed,
        candidates=candidates,
    )

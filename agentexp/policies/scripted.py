"""A policy that says what a function tells it to: for tests and never-trained baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agentexp.types import Completion, Request


class ScriptedPolicy:
    """Answers each request with `say(request)`, encoded without special tokens and ended with
    the tokenizer's end of sequence. A text of more than `max_tokens` ids is cut (finish "length").

    >>> policy = ScriptedPolicy(tokenizer=tokenizer, say=lambda request: "look")  # doctest: +SKIP
    """

    def __init__(self, *, tokenizer: Any, say: Callable[[Request], str]) -> None:
        self.version = 0
        self.live: set[str] = set()  # episodes that asked and were not released
        self._tokenizer = tokenizer
        self._say = say

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion per request, in order."""
        return [self._answer(request) for request in requests]

    def release(self, episode: str) -> None:
        """Forget an episode."""
        self.live.discard(episode)

    def refresh(self) -> None:
        """Count a version."""
        self.version += 1

    def _answer(self, request: Request) -> Completion:
        self.live.add(request.episode)
        text = self._say(request)
        whole = [*self._tokenizer.encode(text, add_special_tokens=False), self._tokenizer.eos_token_id]
        ids = tuple(whole[: request.max_tokens])
        return Completion(
            ids=ids,
            logprobs=(0.0,) * len(ids),
            text=text if len(ids) == len(whole) else self._tokenizer.decode(ids),
            finish="stop" if len(ids) == len(whole) else "length",
            policy_version=self.version,
        )

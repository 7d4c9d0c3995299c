"""One conversation with a customer, the shop's tools at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentexp.envs.tau.case import Case, Shop
from agentexp.envs.tau.reward import Referee
from agentexp.envs.tau.users import ENDS, User
from agentexp.types import Action, Outcome, Step

NOTHING = "Nothing was called and nothing was said. Call a tool, or say something to the customer."


class TauSession:
    """An action with calls runs them, in order; one without is a message to the customer. The
    conversation ends when the customer ends it, or at a tool that ends it (`ending`).

    The observation is the customer's words, or the tools' answers, one a line.
    """

    def __init__(
        self,
        case: Case,
        *,
        shop: Shop,
        user: User,
        referee: Referee,
        ending: frozenset[str],
        tools: Sequence[Mapping[str, Any]],
    ) -> None:
        self._case, self._shop, self._user, self._referee, self._ending = case, shop, user, referee, ending
        self._said: list[str] = []
        self._calls = self._refused = 0
        self._closed = False
        self._done = any(end in user.first for end in ENDS)
        self._first = Step(observation=user.first, done=self._done, info={"refused": False, "tools": tuple(tools)})

    @property
    def first(self) -> Step:
        """The customer's first words, and the tools."""
        return self._first

    def step(self, action: Action) -> Step:
        """Run the calls, or tell the customer; for the whole contract see `envs.base.Session`."""
        if self._done or self._closed:
            raise RuntimeError("step() after the episode ended; start a new session")
        if action.calls:
            return self._call(action)
        if action.command is None or not action.command.strip():
            return self._step(action.error or NOTHING, refused=True)
        self._said.append(action.command)
        words = self._user.answer(action.command)
        self._done = any(end in words for end in ENDS)
        return self._step(words, refused=False)

    def outcome(self) -> Outcome:
        """The score of what was done and said so far; 0 while the conversation goes on, as in the releases."""
        scored = self._referee.score(
            self._case, fingerprint=self._shop.fingerprint(), said=self._said, ended=self._done
        )
        counts = {"calls": float(self._calls), "messages": float(len(self._said)), "refused": float(self._refused)}
        return Outcome(reward=scored.reward, success=scored.success, metrics={**scored.metrics, **counts})

    def close(self) -> None:
        """End the session."""
        self._closed = True

    def _call(self, action: Action) -> Step:
        answers = []
        for call in action.calls:
            answers.append(self._shop.call(call))
            self._calls += 1
            if call.name in self._ending:
                self._done = True
                break
        text = "\n".join(answer.text for answer in answers)
        return self._step(text or "(no output)", refused=not any(answer.worked for answer in answers))

    def _step(self, observation: str, *, refused: bool) -> Step:
        self._refused += refused
        return Step(observation=observation, done=self._done, info={"refused": refused})

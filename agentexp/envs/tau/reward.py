"""What an episode is worth: is the database as the right calls leave it, and was all said that had to be?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentexp.envs.tau.case import Case, Release
from agentexp.types import Outcome


@dataclass(frozen=True, slots=True)
class Gold:
    """What the right calls make of the database. untouched: they change nothing."""

    fingerprint: str
    untouched: bool


class Referee:
    """Scores conversations of a release. The right calls of a task are played once, in a shop of
    their own, and their result is kept."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._untouched = release.open().fingerprint()
        self._gold: dict[str, Gold] = {}

    def gold(self, case: Case) -> Gold:
        """What is right for a task."""
        if case.id not in self._gold:
            shop = self._release.open()
            for call in case.gold:
                shop.call(call)
            found = shop.fingerprint()
            self._gold[case.id] = Gold(found, untouched=found == self._untouched)
        return self._gold[case.id]

    def score(self, case: Case, *, fingerprint: str, said: Sequence[str], ended: bool) -> Outcome:
        """Reward 1 if the conversation ended (as in the releases), the database is right, and every output
        was said, as far as the task's basis looks at these. Assertions in natural language need a judge: they are
        counted and not looked at.
        """
        database = fingerprint == self.gold(case).fingerprint
        told = all(was_said(output, said) for output in case.outputs)
        right = (database or "DB" not in case.basis) and (told or "COMMUNICATE" not in case.basis)
        success = ended and right
        return Outcome(
            reward=float(success),
            success=success,
            metrics={
                "database": float(database),
                "communicated": float(told),
                "ended": float(ended),
                "unjudged_assertions": float(case.unjudged),
            },
        )

    def right_untouched(self, case: Case) -> bool:
        """Whether ending the conversation at once, without a call or a word of use, is scored as right."""
        nothing = self.score(case, fingerprint=self._untouched, said=(), ended=True)
        return nothing.success


def was_said(output: str, said: Sequence[str]) -> bool:
    """The releases' own test: one message contains the output, whatever the case, commas of the message
    left out.

    >>> was_said("1093.34", ["The total is $1,093.34."])
    True
    """
    return any(output.lower() in message.lower().replace(",", "") for message in said)

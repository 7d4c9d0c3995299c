"""One conversation of the leaderboard's multi-turn categories, with its scoring."""

from __future__ import annotations

from typing import Any, Literal

from agentexp.envs.bfcl.conversation import Conversation
from agentexp.envs.bfcl.world import Result, World, contained, same_state
from agentexp.types import Action, Outcome, Step, ToolCall

EmptyTurns = Literal["no_call", "unchecked"]
NOTHING = "Nothing was called and nothing was said."
OVER = "The conversation is over."


class BfclSession:
    """An action with calls runs them; an action without is a message to the user, which ends the
    user's turn and is scored there: the turn passes if every public attribute of the APIs equals what
    the right calls make of them, the answers to the right calls are among all answers so far, and
    something was called. A turn whose right answer is no call passes if nothing was called
    (`empty_turns: unchecked`, the releases' own scoring: always). `Step.reward` is 1 at the end of a
    turn that passed; the episode's reward is 1 if all turns passed.

    More than `max_steps_per_turn` steps without a message end the episode, failed.
    """

    def __init__(
        self, conversation: Conversation, *, mine: World, gold: World, empty_turns: EmptyTurns, max_steps_per_turn: int
    ) -> None:
        self._talk, self._mine, self._gold = conversation, mine, gold
        self._empty_turns, self._max_steps = empty_turns, max_steps_per_turn
        self._turn = self._steps = self._calls = 0  # the last two of this turn
        self._passed: list[bool] = []
        self._passed_upstream: list[bool] = []
        self._seen: list[str] = []
        self._all_calls = self._refused = 0
        self._forced = self._closed = False
        self._first = self._opening(reward=0.0)

    @property
    def first(self) -> Step:
        """The user's first message and the tools."""
        return self._first

    @property
    def _done(self) -> bool:
        return self._forced or self._turn == len(self._talk.users)

    def step(self, action: Action) -> Step:
        """Run the calls, or end the user's turn; for the whole contract see `envs.base.Session`."""
        if self._done or self._closed:
            raise RuntimeError("step() after the episode ended; start a new session")
        if action.command is not None and not action.calls:
            return self._end_turn()
        results = [self._call(call) for call in action.calls]
        if not results:
            results = [Result(action.error or NOTHING, worked=False)]
        self._steps += 1
        self._forced = self._steps > self._max_steps  # upstream allows one more than its limit, too
        refused = not any(result.worked for result in results)
        self._refused += refused
        return Step(
            observation="\n".join(result.text for result in results) or "(no output)",
            done=self._done,
            info={"refused": refused},
        )

    def outcome(self) -> Outcome:
        """Success once every turn has passed."""
        turns = len(self._talk.users)
        success = self._turn == turns and all(self._passed)
        return Outcome(
            reward=float(success),
            success=success,
            metrics={
                "turns_passed": sum(self._passed) / turns,
                "success_upstream": float(self._turn == turns and all(self._passed_upstream)),
                "calls": float(self._all_calls),
                "refused": float(self._refused),
                "forced_end": float(self._forced),
            },
        )

    def close(self) -> None:
        """End the session."""
        self._closed = True

    def _call(self, call: ToolCall) -> Result:
        self._calls += 1
        self._all_calls += 1
        if call.name in self._talk.callable[self._turn]:
            result = self._mine.call(call)
        else:
            result = Result(f"Error during execution: there is no function {call.name!r}", worked=False)
        self._seen.append(result.text)
        return result

    def _end_turn(self) -> Step:
        gold = self._talk.gold[self._turn]
        wanted = [self._gold.call(call).text for call in gold]
        if gold:
            passed = upstream = self._calls > 0 and same_state(self._mine, self._gold) and contained(wanted, self._seen)
        else:
            passed, upstream = self._calls == 0 or self._empty_turns == "unchecked", True
        self._passed.append(passed)
        self._passed_upstream.append(upstream)
        self._turn += 1
        self._steps = self._calls = 0
        return self._opening(reward=float(passed))

    def _opening(self, *, reward: float) -> Step:
        if self._done:
            return Step(observation=OVER, reward=reward, done=True, info={"refused": False})
        info: dict[str, Any] = {"refused": False}
        tools = self._talk.tools[self._turn]
        if self._turn == 0 or tools != self._talk.tools[self._turn - 1]:
            info["tools"] = tools
        return Step(observation=self._talk.users[self._turn], reward=reward, info=info)

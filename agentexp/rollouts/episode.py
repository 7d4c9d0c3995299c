"""One episode as a generator: it yields what it needs and is sent the answer.

    Request  -> is sent a Completion          (who samples, and with whom it shares a pass: not its affair)
    EnvCall  -> is sent what the call returns (on which thread or process it runs: not its affair)

`throw(Cancelled())` ends it early with a partial trajectory; an `EnvironmentFailure` thrown at an
EnvCall ends it as StopReason.ENV_ERROR. Nothing that an environment does makes it raise.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from agentexp.agents.base import Agent
from agentexp.envs.base import Environment, Session
from agentexp.errors import EnvironmentFailure, RolloutError
from agentexp.policies.chat import Chat
from agentexp.seeding import seed_for
from agentexp.types import Completion, Outcome, Request, Step, StopReason, Task, Trajectory, Turn

Truncation = Literal["error", "drop", "mask", "keep"]


class Cancelled(Exception):  # noqa: N818  a signal, not an error
    """Thrown into an episode that is no longer wanted."""


class Hung(EnvironmentFailure):
    """A call passed its deadline and still runs: its session must not be touched from outside."""


@dataclass(frozen=True, slots=True)
class EnvCall:
    """A call of the environment. `late` frees what the call holds, on the thread where it ran,
    should it end after its deadline, when nobody wants the result (or failure) any more.
    """

    run: Callable[[], Any]
    late: Callable[[Any], None] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Budgets of one episode. truncation: what happens when `max_new_tokens` cuts a completion:

    "error": RolloutError. "drop": the episode ends unscored, as CANCELLED. "mask": it goes on, and
    the cut turn is not trained. "keep": it goes on, and the cut turn is trained as it was sampled.
    An episode whose next turn might not fit `max_context_tokens` ends before it, as MAX_TOKENS.
    """

    max_turns: int
    max_new_tokens: int
    max_context_tokens: int
    truncation: Truncation


Episode: TypeAlias = Generator[Request | EnvCall, Any, Trajectory]


def episode(
    *,
    task: Task,
    sample: int,
    seed: int,
    start_seed: int,
    environment: Environment,
    agent: Agent,
    chat: Chat,
    limits: Limits,
    temperature: float,
    candidates: int = 1,
) -> Episode:
    """Play `task` once. `start_seed` opens the session (the rollouts of a group share it, so that
    they start alike); turn t is sampled with `seed_for(seed, t)`. candidates: see types.Request.
    """
    name = episode_name(task, sample)
    conversation = chat.open()
    session: Session | None = None
    turns: list[Turn] = []
    unanswered: Callable[..., Turn] | None = None  # the turn that waits for the environment
    truncated: str | None = None

    def trajectory(stop: StopReason, outcome: Outcome | None = None, error: str | None = None) -> Trajectory:
        if unanswered is not None:
            turns.append(unanswered(step=None))
        return Trajectory(
            task=task,
            sample=sample,
            seed=seed,
            turns=tuple(turns),
            outcome=outcome,
            stop=stop,
            error=error,
            segments=conversation.segment + 1,
            truncated=truncated,
        )

    try:
        session, step = yield EnvCall(partial(_open, environment, task, start_seed), late=_close_opened)
        close_late = partial(_close_late, session)
        stop = None
        while stop is None:
            messages = agent.render(task, turns, step)
            prompt_ids = conversation.extend(messages)
            if len(conversation.ids) + limits.max_new_tokens > limits.max_context_tokens:
                stop = StopReason.MAX_TOKENS
                break
            completion: Completion = yield Request(
                episode=name,
                prompt_ids=tuple(conversation.ids),
                max_tokens=limits.max_new_tokens,
                temperature=temperature,
                seed=seed_for(seed, len(turns)),
                candidates=candidates,
            )
            conversation.adopt(completion)
            action = agent.parse(completion.text)
            unanswered = partial(
                Turn,
                prompt_ids=prompt_ids,
                completion=completion,
                action=action,
                segment=conversation.segment,
                messages=tuple(messages),
                deliberate=completion.finish != "length" or limits.truncation != "mask",
            )
            if completion.finish == "length":
                truncated = limits.truncation
                if truncated == "error":
                    raise RolloutError(cut_message(name, len(turns), limits))
                if truncated == "drop":
                    raise Cancelled
            if action.is_thought:
                step = _acknowledge(step)
            else:
                step = yield EnvCall(partial(session.step, action), late=close_late)
            turns.append(unanswered(step=step))
            unanswered = None
            if step.done:
                stop = StopReason.DONE
            elif len(turns) >= limits.max_turns:
                stop = StopReason.MAX_TURNS
        outcome = yield EnvCall(partial(_score, session), late=close_late)
        session = None
        return trajectory(stop, outcome)
    except Cancelled:
        yield from _close(session)
        session = None
        return trajectory(StopReason.CANCELLED)
    except Hung as failure:
        session = None  # closed by `late`, if the call ever returns
        return trajectory(StopReason.ENV_ERROR, error=f"{name}, turn {len(turns)}: {failure}")
    except EnvironmentFailure as failure:
        yield from _close(session)
        session = None
        return trajectory(StopReason.ENV_ERROR, error=f"{name}, turn {len(turns)}: {failure}")
    finally:
        if session is not None:  # the generator was dropped, or an error of ours goes up
            with suppress(Exception):
                session.close()


def episode_name(task: Task, sample: int) -> str:
    """The name under which a policy knows an episode."""
    return f"{task.id}#{sample}"


def cut_message(name: str, turn: int, limits: Limits) -> str:
    """What truncation "error" says."""
    return (
        f"turn {turn} of {name} was cut at max_new_tokens={limits.max_new_tokens}; raise max_new_tokens, "
        "or set truncation to drop, mask or keep"
    )


def _open(environment: Environment, task: Task, seed: int) -> tuple[Session, Step]:
    session = environment.start(task, seed)
    return session, session.first


def _score(session: Session) -> Outcome:
    outcome = session.outcome()
    session.close()
    return outcome


def _close(session: Session | None) -> Generator[Request | EnvCall, Any, None]:
    """Close a session whose episode is over; a failure to close changes nothing any more."""
    if session is not None:
        with suppress(EnvironmentFailure):
            yield EnvCall(session.close)


def _close_late(session: Session, _: object) -> None:
    session.close()


def _close_opened(opened: tuple[Session, Step] | Exception) -> None:
    if not isinstance(opened, Exception):
        opened[0].close()


def _acknowledge(step: Step) -> Step:
    """The answer to a thought: the world stands still."""
    kept = {key: value for key, value in step.info.items() if key in {"admissible", "inventory"}}
    return Step(observation="OK.", info=kept)

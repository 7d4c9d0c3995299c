"""Demonstrations look like rollouts, but nobody sampled them."""

from __future__ import annotations

import math

import pytest

from agentexp.errors import ConfigError
from agentexp.policies.chat import Chat
from agentexp.rollouts.demonstrations import demonstrate
from agentexp.types import StopReason, Trajectory
from tests.doors import Doors
from tests.toys import react, words


def show(noise: float = 0.0, max_turns: int = 6, env: Doors | None = None) -> tuple[Trajectory, Chat]:
    chat = Chat(tokenizer=words())
    env = env or Doors()
    task = env.tasks("train")[0]
    trajectory = demonstrate(
        environment=env, agent=react(), chat=chat, task=task, sample=2, seed=5, noise=noise, max_turns=max_turns
    )
    assert all(session.closed for session in env.opened)
    return trajectory, chat


def test_the_expert_wins_and_its_words_are_scripted() -> None:
    trajectory, chat = show()
    assert (trajectory.stop, trajectory.sample, trajectory.seed) == (StopReason.DONE, 2, 5)
    assert trajectory.outcome is not None
    assert trajectory.outcome.success
    for turn in trajectory.turns:
        assert turn.completion.finish == "scripted"
        assert all(math.isnan(p) for p in turn.completion.logprobs)
        assert turn.completion.ids == (*chat.encode_text(str(turn.action.command)), chat.eos_ids[0])
        assert turn.deliberate
    ids = [i for turn in trajectory.turns for i in (*turn.prompt_ids, *turn.completion.ids)]
    assert chat.tokenizer.decode(ids).count("<eos>") == len(trajectory.turns)  # one end a turn, none twice


def test_random_moves_are_marked() -> None:
    trajectory, _ = show(noise=1.0, env=Doors(lucky=False))
    assert (trajectory.stop, len(trajectory.turns)) == (StopReason.MAX_TURNS, 6)
    assert not any(turn.deliberate for turn in trajectory.turns)


def test_an_environment_without_an_expert_is_refused() -> None:
    class Silent:
        name = "silent"

    with pytest.raises(ConfigError, match="'silent' brings no expert"):
        demonstrate(
            environment=Silent(), agent=react(), chat=Chat(tokenizer=words()), task=Doors().tasks("train")[0],  # type: ignore[arg-type]
            sample=0, seed=0, noise=0.0, max_turns=3,
        )  # fmt: skip

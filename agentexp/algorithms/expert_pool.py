"""The states of expert trajectories, each shown in a view: what Agentic-DPO (arXiv 2607.10601) and its
baselines learn at. Everything is played when the pool is filled; after that no environment runs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentexp.agents.base import Agent
from agentexp.agents.equivalence import equivalent
from agentexp.agents.views import View
from agentexp.envs.base import Environment
from agentexp.errors import ConfigError
from agentexp.packing import trunks
from agentexp.policies.chat import Chat
from agentexp.rollouts.demonstrations import expert_play
from agentexp.seeding import seed_for
from agentexp.types import Action, Step, Trajectory, Trunk, Turn


class AsShown:
    """The view without a change."""

    name = "as_shown"

    def through(self, agent: Agent, key: str, decided: Sequence[str | None]) -> Agent:
        return agent


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """An expert's state in a view: the trunk's first `at` ids. said: the expert's action in that view,
    as ids; action: what it decided, whatever the view; agent: reads what is said in that view;
    order: (demonstration, turn)."""

    trunk: Trunk
    at: int
    said: tuple[int, ...]
    action: Action
    agent: Agent
    order: tuple[int, int]

    @property
    def key(self) -> str:
        return f"{self.trunk.origin}@{self.at}"


class ExpertPool:
    """Demonstrations and their states.

    split, demonstrations, noise, max_turns: the expert's play, the same episodes that `sft` with the same
    keys and seed imitates; demonstrations_seed: another seed for them (null: the run's).
    only_successes drops its failures; random moves are no expert states. views: one is drawn for each
    visit, by view_weights (null: all alike). max_context_tokens: a state whose longest action might
    not fit is left out and counted; nothing is ever cut.
    """

    def __init__(
        self,
        *,
        environment: Environment,
        agent: Agent,
        chat: Chat,
        seed: int,
        split: str,
        demonstrations: int,
        demonstrations_seed: int | None,
        noise: float,
        only_successes: bool,
        max_turns: int,
        views: Sequence[View],
        view_weights: list[float] | None,
        max_context_tokens: int,
    ) -> None:
        if min(demonstrations, max_turns, max_context_tokens) < 1 or not 0.0 <= noise <= 1.0 or not views:
            raise ConfigError(
                f"expert pool: demonstrations {demonstrations}, max_turns {max_turns} and max_context_tokens "
                f"{max_context_tokens} must be at least 1, noise {noise} between 0 and 1, and views "
                f"({len(views)}) at least one"
            )
        if len({v.name for v in views}) < len(views):
            raise ConfigError(f"expert pool: the views {[v.name for v in views]} have a name twice; name each once")
        if view_weights is not None and (
            len(view_weights) != len(views) or min(view_weights) < 0.0 or not 0.0 < sum(view_weights) < math.inf
        ):
            raise ConfigError(
                f"expert pool: view_weights are {view_weights} for {len(views)} views; give each a number of 0 or "
                "more, not all 0, or null"
            )
        self.environment, self.agent, self.chat, self.seed, self.split = environment, agent, chat, seed, split
        self.demonstrations, self.noise, self.only_successes = demonstrations, noise, only_successes
        self.demonstrations_seed = seed if demonstrations_seed is None else demonstrations_seed
        self.max_turns, self.max_context_tokens = max_turns, max_context_tokens
        self.views, self.view_weights = list(views), view_weights
        self.played: list[Trajectory] = []
        self.states: list[tuple[int, int]] = []  # (demonstration, turn)
        self._firsts: list[Step] = []
        self._shown: dict[tuple[int, str], tuple[Agent, dict[int, tuple[Trunk, int, int]]]] = {}

    def fill(self) -> None:
        """Play the expert; deterministic, so a resume does it again. A second call does nothing."""
        if self.states:
            return
        played = expert_play(
            environment=self.environment,
            agent=self.agent,
            chat=self.chat,
            split=self.split,
            count=self.demonstrations,
            noise=self.noise,
            max_turns=self.max_turns,
            seed=self.demonstrations_seed,
        )
        self.played = [
            t for t in played if t.outcome is not None and (t.outcome.success or not self.only_successes) and t.turns
        ]
        self.states = [(n, k) for n, t in enumerate(self.played) for k, turn in enumerate(t.turns) if turn.deliberate]
        if not self.states:
            raise ConfigError(
                f"none of {len(played)} demonstrations on split {self.split!r} can be used (noise {self.noise}, "
                f"only_successes {self.only_successes}); lower the noise or allow failures"
            )
        for t in self.played:
            session = self.environment.start(t.task, t.seed)  # for its first words, which no turn holds
            self._firsts.append(session.first)
            session.close()

    def visits(
        self, count: int | None, *, round: int, most_new_tokens: int, whole: bool
    ) -> tuple[list[Visit], dict[str, float]]:
        """`count` states (null: all) without replacement, each in a view of its own, and what was counted.
        whole: all states of a trajectory together, in one view, until there are enough."""
        self.fill()
        if count is not None and count > len(self.states):
            raise ConfigError(
                f"algorithm.visits_per_round is {count}, but the pool has {len(self.states)} states and a round visits "
                "none twice; lower it, set it to null for all, or play more demonstrations"
            )
        seed = seed_for(self.seed, "expert pool", round)
        order = self.in_order(seed, whole=whole)
        found: list[Visit] = []
        long = 0
        for n, k in order:
            if count is not None and len(found) >= count and not (whole and n == found[-1].order[0]):
                break
            (view,) = random.Random(seed_for(seed, "view", n, 0 if whole else k)).choices(self.views, self.view_weights)
            visit = self.visit(n, k, view)
            if visit.at + max(len(visit.said), most_new_tokens) > self.max_context_tokens:
                long += 1
            else:
                found.append(visit)
        if not found:
            raise ConfigError(
                f"none of {long} states fits max_context_tokens ({self.max_context_tokens}) with an action behind it; "
                "raise it: states are never cut"
            )
        return found, {"visits": float(len(found)), "over_long": float(long), "pool": float(len(self.states))}

    def in_order(self, seed: int, *, whole: bool) -> list[tuple[int, int]]:
        """The pool's states shuffled, or its trajectories shuffled and their states in order."""
        rng = random.Random(seed_for(seed, "order"))
        if not whole:
            return rng.sample(self.states, len(self.states))
        places = rng.sample(range(len(self.played)), len(self.played))
        rank = {n: at for at, n in enumerate(places)}
        return sorted(self.states, key=lambda state: (rank[state[0]], state[1]))

    def visit(self, n: int, k: int, view: View) -> Visit:
        """Turn k of demonstration n in a view."""
        if (n, view.name) not in self._shown:
            t = self.played[n]
            agent = view.through(self.agent, f"{t.task.id}#{t.sample}", [turn.action.command for turn in t.turns])
            seen = trunks(shown(t, self._firsts[n], agent, self.chat, view.name))
            places = {
                d.turn: (replace(trunk, origin=f"{trunk.origin} {view.name}"), d.start, d.end)
                for trunk in seen
                for d in trunk.decisions
            }
            self._shown[n, view.name] = (agent, places)
        agent, places = self._shown[n, view.name]
        trunk, start, end = places[k]
        return Visit(
            trunk=trunk,
            at=start,
            said=trunk.ids[start:end],
            action=self.played[n].turns[k].action,
            agent=agent,
            order=(n, k),
        )


def shown(trajectory: Trajectory, first: Step, agent: Agent, chat: Chat, view: str) -> Trajectory:
    """The same episode as another agent shows and writes it; what was decided stays. Raises ConfigError
    where the view cannot read its own words: then an equal action would pass for a wrong one."""
    conversation = chat.open()
    turns: list[Turn] = []
    step: Step | None = first
    for turn in trajectory.turns:
        assert step is not None  # a demonstration's environment always answered
        messages = agent.render(trajectory.task, turns, step)
        prompt_ids = conversation.extend(messages)
        decided = turn.action
        text = decided.text if decided.command is None else agent.write(decided.command)
        if not equivalent(read := agent.parse(text), decided, "latent"):
            raise ConfigError(f"the view {view!r} writes {decided.command!r} as {text!r} and reads that as {read}")
        completion = chat.scripted(text)
        conversation.adopt(completion)
        turns.append(
            replace(
                turn,
                prompt_ids=prompt_ids,
                completion=completion,
                segment=conversation.segment,
                messages=tuple(messages),
            )
        )
        step = turn.step
    return replace(trajectory, turns=tuple(turns), segments=conversation.segment + 1)

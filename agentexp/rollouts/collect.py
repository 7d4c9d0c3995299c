"""Plays K rollouts of each task. All live episodes share the policy's passes, round by round.

A round: every environment call that waits is run, ended episodes hand their slot to the next in
the queue, until all live episodes wait for the policy; then the policy answers all of them at
once. The order is fixed, so the same seed gives the same trajectories.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from agentexp.agents.base import Agent
from agentexp.envs.base import Environment
from agentexp.errors import ConfigError, RolloutError
from agentexp.policies.base import Policy
from agentexp.policies.chat import Chat
from agentexp.rollouts.counts import count
from agentexp.rollouts.episode import Cancelled, EnvCall, Episode, Limits, Truncation, episode, episode_name
from agentexp.rollouts.workers import Workers
from agentexp.seeding import seed_for
from agentexp.types import Group, Request, StopReason, Task, Trajectory


@dataclass(frozen=True, kw_only=True, slots=True)
class Enough:
    """LOOP's early stop: when `total` of all rollouts and `per_task` of each task's are scored,
    the rest is cancelled.

    >>> Enough(total=0.9, per_task=4).per_task
    4
    """

    total: float
    per_task: int

    def __post_init__(self) -> None:
        if not 0.0 < self.total <= 1.0:
            raise ConfigError(f"enough.total is {self.total}; a fraction above 0 and at most 1 is needed")
        if self.per_task < 1:
            raise ConfigError(f"enough.per_task is {self.per_task}; at least 1 is needed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Collection:
    """Groups in the order of the tasks, each as large as what was played; and `stats`, counted."""

    groups: tuple[Group, ...]
    stats: Mapping[str, float]


class Rollouts:
    """Collects trajectories of one agent and policy in one environment.

    slots: episodes alive at once. workers: threads for environment calls (1 is fastest for pure
    Python). step_timeout_s: deadline of each call. retries: new attempts of an episode whose
    environment failed. max_dead_groups: how many groups may lose all but one member to such
    failures before a collection is given up. truncation: see `episode.Limits`.
    """

    def __init__(
        self,
        *,
        environment: Environment,
        agent: Agent,
        chat: Chat,
        policy: Policy,
        max_turns: int,
        max_new_tokens: int,
        max_context_tokens: int,
        slots: int,
        workers: int,
        step_timeout_s: float,
        retries: int,
        max_dead_groups: int,
        truncation: Truncation,
    ) -> None:
        at_least_one = {
            "max_turns": max_turns,
            "max_new_tokens": max_new_tokens,
            "slots": slots,
            "workers": workers,
            "max_dead_groups": max_dead_groups,
        }
        for key, value in at_least_one.items():
            if value < 1:
                raise ConfigError(f"rollouts.{key} is {value}; at least 1 is needed")
        if retries < 0 or step_timeout_s <= 0:
            raise ConfigError(
                f"rollouts.retries is {retries} and step_timeout_s {step_timeout_s}; "
                "retries must be 0 or more, the deadline above 0"
            )
        if max_context_tokens <= max_new_tokens:
            raise ConfigError(
                f"rollouts.max_context_tokens is {max_context_tokens}, no more than max_new_tokens ({max_new_tokens}); "
                "the context holds prompt and completion, so raise it"
            )
        self.environment, self.agent, self.chat, self.policy = environment, agent, chat, policy
        self.limits = Limits(
            max_turns=max_turns,
            max_new_tokens=max_new_tokens,
            max_context_tokens=max_context_tokens,
            truncation=truncation,
        )
        self.slots, self.workers, self.step_timeout_s = slots, workers, step_timeout_s
        self.retries, self.max_dead_groups = retries, max_dead_groups

    def playing(self, policy: Policy) -> Rollouts:
        """The same, with another policy."""
        other = copy.copy(self)
        other.policy = policy
        return other

    def collect(
        self,
        tasks: Sequence[Task],
        *,
        rollouts_per_task: int,
        temperature: float,
        seed: int,
        enough: Enough | None = None,
        progress: Callable[[int, int], None] | None = None,
        candidates: Sequence[int] | None = None,
    ) -> Collection:
        """Play every task `rollouts_per_task` times; rollout k of a task has the seed
        `seed_for(seed, task.id, k)`. Without `enough` nothing is cut.

        candidates: rollout k asks the policy to choose one of candidates[k] at every turn; then all
        rollouts of a task have the seed of rollout 0, so that at the same state the fewer candidates
        are the first of the more.
        """
        alike = None if candidates is None else tuple(candidates)
        order = _Order(tuple(tasks), rollouts_per_task, temperature, seed, enough, progress, alike)
        order.check()
        began, forward = perf_counter(), _model_seconds(self.policy)
        play = _Play(self, order)
        play.run()
        groups = tuple(
            Group(task=task, trajectories=tuple(played[k] for k in sorted(played)))
            for task, played in zip(order.tasks, play.played, strict=True)
        )
        stats = count([t for group in groups for t in group.trajectories])
        stats.update(
            seconds=perf_counter() - began,
            policy_seconds=play.policy_seconds,
            model_seconds=play.policy_seconds if forward is None else (_model_seconds(self.policy) or 0.0) - forward,
            rounds=float(play.rounds),
            retries=float(play.retries),
            unstarted=float(play.unstarted),
            dead_groups=float(len(play.dead)),
            abandoned_threads=float(play.threads.abandoned),
        )
        return Collection(groups=groups, stats=stats)


@dataclass(frozen=True, slots=True)
class _Order:
    """What one call of `collect` asked for."""

    tasks: tuple[Task, ...]
    rollouts_per_task: int
    temperature: float
    seed: int
    enough: Enough | None
    progress: Callable[[int, int], None] | None
    candidates: tuple[int, ...] | None

    def check(self) -> None:
        if self.candidates is not None and len(self.candidates) != self.rollouts_per_task:
            raise ConfigError(
                f"{len(self.candidates)} numbers of candidates for {self.rollouts_per_task} rollouts of each task; "
                "one for each is needed"
            )
        if self.rollouts_per_task < 1:
            raise ConfigError(f"rollouts_per_task is {self.rollouts_per_task}; at least 1 is needed")
        if self.enough is not None and self.enough.per_task > self.rollouts_per_task:
            raise ConfigError(
                f"enough.per_task is {self.enough.per_task}, but only {self.rollouts_per_task} rollouts are played of "
                "each task; lower it, or raise rollouts_per_task"
            )
        twice = [task_id for task_id, times in Counter(task.id for task in self.tasks).items() if times > 1]
        if twice:
            raise ConfigError(
                f"{len(twice)} tasks occur more than once in one collection, {twice[0]!r} first; "
                "take fewer tasks at a time, or more rollouts of each"
            )


def _model_seconds(policy: Policy) -> float | None:
    """The clock of a policy that times its own forward passes."""
    return getattr(policy, "model_seconds", None)


@dataclass(slots=True)
class _Slot:
    """A place for one live episode: whose it is, its generator, and what that waits for."""

    group: int = 0
    sample: int = 0
    attempt: int = 0
    steps: Episode | None = None
    wants: Request | EnvCall | None = None


class _Play:
    """One collection under way."""

    def __init__(self, rollouts: Rollouts, order: _Order) -> None:
        self.rollouts, self.order, self.policy = rollouts, order, rollouts.policy
        self.threads = Workers(count=rollouts.workers, timeout_s=rollouts.step_timeout_s)
        self.queue = deque((g, k) for g in range(len(order.tasks)) for k in range(order.rollouts_per_task))
        self.total = len(self.queue)
        self.slots: list[_Slot] = []
        self.played: list[dict[int, Trajectory]] = [{} for _ in order.tasks]
        self.scored = [0] * len(order.tasks)
        self.dead: list[str] = []  # what the environment said, one for each dead group
        self.done = self.rounds = self.retries = self.unstarted = 0
        self.over = False
        self.policy_seconds = 0.0

    def run(self) -> None:
        try:
            self.slots = [_Slot() for _ in range(min(self.rollouts.slots, self.total))]
            for slot in self.slots:
                self.refill(slot)
            self.settle()
            while self.slots and not self.over:
                self.ask()
                self.settle()
            for slot in self.slots:
                self.advance(slot, Cancelled())
            self.settle()
        finally:
            for slot in self.slots:  # only after an error: frees the sessions
                if slot.steps is not None:
                    slot.steps.close()
                    self.policy.release(self.name(slot))
            self.threads.close()

    def settle(self) -> None:
        """Run environment calls until every live episode waits for the policy."""
        while waiting := [(slot, call) for slot in self.slots if isinstance(call := slot.wants, EnvCall)]:
            for (slot, _), answer in zip(waiting, self.threads.run([call for _, call in waiting]), strict=True):
                self.advance(slot, answer)
        self.slots = [slot for slot in self.slots if slot.steps is not None]

    def ask(self) -> None:
        """One pass of the policy over all live episodes."""
        requests = [slot.wants for slot in self.slots if isinstance(slot.wants, Request)]
        began = perf_counter()
        completions = self.policy.complete(requests)
        self.policy_seconds += perf_counter() - began
        self.rounds += 1
        if len(completions) != len(self.slots):
            raise RolloutError(f"the policy gave {len(completions)} completions for {len(self.slots)} requests")
        for slot, completion in zip(self.slots, completions, strict=True):
            self.advance(slot, completion)

    def advance(self, slot: _Slot, answer: object) -> None:
        """Send (or throw) an answer into an episode; take what it wants next, or its trajectory."""
        assert slot.steps is not None
        try:
            slot.wants = slot.steps.throw(answer) if isinstance(answer, Exception) else slot.steps.send(answer)
        except StopIteration as end:
            self.policy.release(self.name(slot))
            self.end(slot, end.value)

    def end(self, slot: _Slot, trajectory: Trajectory) -> None:
        """Record an episode, or try it once more; then the slot takes the next."""
        if trajectory.stop is StopReason.ENV_ERROR and slot.attempt < self.rollouts.retries:
            self.retries += 1
            self.start(slot, slot.group, slot.sample, slot.attempt + 1)
            return
        self.record(slot.group, trajectory)
        self.refill(slot)

    def record(self, group: int, trajectory: Trajectory) -> None:
        played = self.played[group]
        played[trajectory.sample] = trajectory
        self.scored[group] += trajectory.scored
        self.done += 1
        if len(played) == self.order.rollouts_per_task:
            self.bury(group)
        if self.order.progress is not None:
            self.order.progress(self.done, self.total)
        if not self.over and self.enough():
            self.over = True
            self.unstarted = len(self.queue)
            self.queue.clear()

    def bury(self, group: int) -> None:
        """Count a group that the environment killed; too many end the collection."""
        needed = min(2, self.order.rollouts_per_task)
        errors = [t.error for t in self.played[group].values() if t.stop is StopReason.ENV_ERROR]
        if self.scored[group] >= needed or not errors:
            return
        self.dead.append(str(errors[-1]))
        # Single rollouts (an evaluation) cannot be compared within a group: their failures stay in
        # the denominator, and only an environment that never once worked ends the collection.
        if len(self.dead) >= self.rollouts.max_dead_groups and (needed == 2 or not any(self.scored)):
            raise RolloutError(
                f"{len(self.dead)} groups have fewer than {needed} scored rollouts because the environment failed "
                f"(max_dead_groups={self.rollouts.max_dead_groups}). It said last: {self.dead[-1]}"
            )

    def enough(self) -> bool:
        rule = self.order.enough
        if rule is None or self.done == self.total:
            return False
        return sum(self.scored) >= rule.total * self.total and min(self.scored) >= rule.per_task

    def refill(self, slot: _Slot) -> None:
        slot.steps = slot.wants = None
        if self.queue:
            self.start(slot, *self.queue.popleft(), attempt=0)

    def start(self, slot: _Slot, group: int, sample: int, attempt: int) -> None:
        """A new attempt has the seeds of the old one: a failure that passes leaves no trace."""
        rollouts, task = self.rollouts, self.order.tasks[group]
        slot.group, slot.sample, slot.attempt = group, sample, attempt
        slot.steps = episode(
            task=task,
            sample=sample,
            seed=seed_for(self.order.seed, task.id, sample if self.order.candidates is None else 0),
            start_seed=seed_for(self.order.seed, task.id),
            environment=rollouts.environment,
            agent=rollouts.agent,
            chat=rollouts.chat,
            limits=rollouts.limits,
            temperature=self.order.temperature,
            candidates=1 if self.order.candidates is None else self.order.candidates[sample],
        )
        slot.wants = next(slot.steps)

    def name(self, slot: _Slot) -> str:
        return episode_name(self.order.tasks[slot.group], slot.sample)

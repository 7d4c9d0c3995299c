"""The data that walks through agentexp, from a task to a training row.

Task -> Turn -> Trajectory -> Group -> Sample (or Tree, Pair). Standard library only: this
file knows no tensor, no tokenizer, no environment. Everything is frozen; a field is written once,
by its maker. Token ids are plain ints; log-probs are natural logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from agentexp.calls import ToolCall as ToolCall  # a type like those below; whoever reads these finds it here

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "length", "scripted"]


class StopReason(StrEnum):
    """Why an episode ended.

    DONE: the environment said so. MAX_TURNS, MAX_TOKENS: a budget of the rollout ran out; the
    final state is still scored. CANCELLED: cut by early stop, or dropped
    by a truncation policy. ENV_ERROR: the environment failed;
    never scored, never a reward of 0.
    """

    DONE = "done"
    MAX_TURNS = "max_turns"
    MAX_TOKENS = "max_tokens"
    CANCELLED = "cancelled"
    ENV_ERROR = "env_error"


SCORED = frozenset({StopReason.DONE, StopReason.MAX_TURNS, StopReason.MAX_TOKENS})


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What is to be achieved. Picklable; `data` holds what the environment needs to open it.

    >>> Task(id="valid/7", env="alfworld", split="valid", instruction="put a mug in the fridge").scenario
    'valid/7'
    """

    id: str
    env: str
    split: str
    instruction: str
    scenario: str = ""  # tasks that share a scenario are resampled together; empty: its own id
    kind: str = ""  # task type, for results by type
    difficulty: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("Task.id is empty; give each task a unique id")
        if not self.scenario:
            object.__setattr__(self, "scenario", self.id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One chat message as the agent renders it. tools: schemas that the chat template is to show; a
    conversation's first message may hold some, whatever its role.

    >>> Message(role="user", content="You see a drawer 1.").role
    'user'
    """

    role: Role
    content: str
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One call to a policy: continue `prompt_ids` by at most `max_tokens` sampled tokens.

    `episode` names the conversation, so that a policy may keep what it has already read;
    `prompt_ids` is always the whole prompt, so that no policy must. Temperature 0 is greedy.
    `candidates` are sampled and the policy returns one of them; only a policy that can choose
    (best of n) accepts more than 1.

    >>> Request(episode="t/0", prompt_ids=(5, 6), max_tokens=8, temperature=1.0, seed=3).max_tokens
    8
    """

    episode: str
    prompt_ids: tuple[int, ...]
    max_tokens: int
    temperature: float
    seed: int
    candidates: int = 1

    def __post_init__(self) -> None:
        if not self.prompt_ids:
            raise ValueError(f"Request of episode {self.episode!r} has no prompt ids")
        if self.candidates < 1:
            raise ValueError(f"Request.candidates is {self.candidates}; at least 1 is needed")
        if self.max_tokens < 1:
            raise ValueError(f"Request.max_tokens is {self.max_tokens}; at least 1 is needed")
        if not self.temperature >= 0.0:
            raise ValueError(f"Request.temperature is {self.temperature}; 0 or more is allowed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What a policy sampled: these ids and log-probs are never re-made from text.

    `logprobs[i]` is log p(ids[i] | everything before) at the temperature of the request; NaN for
    ids that nobody sampled (finish "scripted"). `ids` includes the end-of-turn token when it was
    sampled (finish "stop").

    >>> Completion(ids=(7, 1), logprobs=(-0.5, -0.1), text="look", finish="stop", policy_version=0).ids
    (7, 1)
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish: Finish
    policy_version: int

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.logprobs):
            raise ValueError(f"Completion has {len(self.ids)} ids but {len(self.logprobs)} log-probs")
        if any(p > 1e-4 for p in self.logprobs):
            raise ValueError(f"Completion has a positive log-prob: {max(self.logprobs)}")
        if self.finish != "scripted" and any(math.isnan(p) for p in self.logprobs):
            raise ValueError("Completion of a sampled turn has a NaN log-prob")


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """What the agent read in a completion.

    command: text for the environment. error: the parse failure, which the environment answers.
    Neither: a thought; the environment is not stepped. calls: the tools to call, in order, where
    the environment has tools; then `command` is `command_of(calls)`, and a command without calls is
    a message to the user.

    >>> Action(text="think: where?", command=None, error=None).is_thought
    True
    """

    text: str
    command: str | None
    error: str | None = None
    calls: tuple[ToolCall, ...] = ()

    def __post_init__(self) -> None:
        if self.command is not None and self.error is not None:
            raise ValueError(f"Action has both a command {self.command!r} and an error {self.error!r}")
        if self.calls and self.command is None:
            raise ValueError(f"Action has calls {[c.name for c in self.calls]} but no command, their canonical text")

    @property
    def is_thought(self) -> bool:
        return self.command is None and self.error is None


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """The environment's answer. `info` may hold `admissible` (tuple of commands), `inventory`
    (str, what is held), `refused` (bool, the command changed nothing because it was not allowed),
    `tools` (tuple of tool schemas in OpenAI's form: all that may be called from now on; in the first
    step and wherever they change).

    >>> Step(observation="Nothing happens.", reward=0.0, done=False).done
    False
    """

    observation: str
    reward: float = 0.0
    done: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The score of a finished episode; `reward` in the environment's own unit.

    >>> Outcome(reward=1.0, success=True).success
    True
    """

    reward: float
    success: bool
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One exchange. `prompt_ids` are the ids newly read before the completion (never trained);
    in the first turn of a segment they are the whole prompt. `step` is None when the
    environment's answer never came. `deliberate` is False for a random move of an imperfect
    expert."""

    prompt_ids: tuple[int, ...]
    completion: Completion
    action: Action
    step: Step | None
    segment: int = 0
    messages: tuple[Message, ...] = ()
    deliberate: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectory:
    """One episode, whole or cut. `outcome` exists exactly when the stop reason is scored."""

    task: Task
    sample: int  # which of the group's rollouts, 0-based
    seed: int
    turns: tuple[Turn, ...]
    outcome: Outcome | None
    stop: StopReason
    error: str | None = None  # the environment's own message when stop is ENV_ERROR
    segments: int = 1  # 1 + the number of times the chat template rewrote history
    truncated: str | None = None  # what a truncation policy did, by name

    def __post_init__(self) -> None:
        if (self.stop in SCORED) != (self.outcome is not None):
            raise ValueError(
                f"Trajectory {self.task.id}#{self.sample} stopped by {self.stop} with outcome {self.outcome}; "
                f"an outcome belongs to exactly {sorted(SCORED)}"
            )

    @property
    def scored(self) -> bool:
        return self.outcome is not None

    @property
    def generated_tokens(self) -> int:
        return sum(len(t.completion.ids) for t in self.turns)


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The rollouts of one task, in sample order. Its size is what was collected, never the
    nominal K."""

    task: Task
    trajectories: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        strangers = [t.task.id for t in self.trajectories if t.task.id != self.task.id]
        if strangers:
            raise ValueError(f"Group of {self.task.id} holds trajectories of {strangers}")

    @property
    def scored(self) -> tuple[Trajectory, ...]:
        return tuple(t for t in self.trajectories if t.outcome is not None)

    @property
    def rewards(self) -> tuple[float, ...]:
        """Rewards of the scored members, in order."""
        return tuple(t.outcome.reward for t in self.trajectories if t.outcome is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One training row; every tuple has length T.

    mask[t] is True where ids[t] was generated by the policy (and may be trained); turn[t] is the
    turn a generated id belongs to, -1 elsewhere; old_logps[t] is log pi_old(ids[t] | ids[:t]),
    0 elsewhere; advantage[t] is 0 elsewhere.
    """

    ids: tuple[int, ...]
    mask: tuple[bool, ...]
    turn: tuple[int, ...]
    old_logps: tuple[float, ...]
    advantage: tuple[float, ...]
    origin: str  # task id # sample / segment

    def __post_init__(self) -> None:
        sizes = {
            "ids": len(self.ids),
            "mask": len(self.mask),
            "turn": len(self.turn),
            "old_logps": len(self.old_logps),
            "advantage": len(self.advantage),
        }
        if len(set(sizes.values())) != 1:
            raise ValueError(f"Sample {self.origin} has fields of unequal length: {sizes}")
        if self.mask and self.mask[0]:
            raise ValueError(f"Sample {self.origin} trains its first token, which nothing precedes")


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Where one turn's completion stands in a trunk: `ids[start:end]`. The state is what precedes."""

    turn: int  # index into the trajectory's turns
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Trunk:
    """One segment of a trajectory as the model read it, and where its decisions stand.

    >>> Trunk(ids=(5, 6, 7), decisions=(Decision(turn=0, start=1, end=3),), origin="t#0/0").origin
    't#0/0'
    """

    ids: tuple[int, ...]
    decisions: tuple[Decision, ...]
    origin: str  # task id # sample / segment

    def __post_init__(self) -> None:
        for d in self.decisions:
            if not 0 < d.start < d.end <= len(self.ids):
                raise ValueError(
                    f"Trunk {self.origin} has {len(self.ids)} ids, but its turn {d.turn} claims {d.start}:{d.end}"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """An action that could have been taken: it reads the trunk's first `at` ids, then its own."""

    at: int
    ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A trunk and alternatives along it. The shared history stands once."""

    trunk: Trunk
    branches: tuple[Branch, ...] = ()

    def __post_init__(self) -> None:
        for b in self.branches:
            if not b.ids or not 0 < b.at <= len(self.trunk.ids):
                raise ValueError(
                    f"Tree {self.trunk.origin} has a branch of {len(b.ids)} ids at {b.at} of {len(self.trunk.ids)}; "
                    "it needs ids, and a place within the trunk"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two actions at the same state. The prompt's ids stand once, so both sides share them exactly;
    each action's ids were made without the prompt, so no token straddles the border.

    >>> Pair(prompt_ids=(5, 6), chosen=(7, 1), rejected=(8, 9, 1)).weight
    1.0
    """

    prompt_ids: tuple[int, ...]
    chosen: tuple[int, ...]
    rejected: tuple[int, ...]
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not (self.prompt_ids and self.chosen and self.rejected):
            raise ValueError("Pair has an empty side; prompt, chosen and rejected all need ids")
        if self.chosen == self.rejected:
            raise ValueError("Pair's chosen and rejected ids are equal; a tie forms no pair")


@dataclass(frozen=True, kw_only=True, slots=True)
class Iteration:
    """What one iteration of an algorithm reports to `run`."""

    metrics: Mapping[str, float]
    trajectories: tuple[Trajectory, ...] = ()

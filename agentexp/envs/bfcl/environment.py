"""The Berkeley function calling leaderboard's multi-turn categories as an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from agentexp.envs.bfcl.conversation import Conversation, read_conversation
from agentexp.envs.bfcl.expert import GroundTruth
from agentexp.envs.bfcl.release import MULTI_TURN, RELEASES, Release, Suite
from agentexp.envs.bfcl.session import BfclSession, EmptyTurns
from agentexp.envs.bfcl.splits import leaks, scenario_of
from agentexp.envs.bfcl.tools import openai_tool
from agentexp.envs.bfcl.world import build_worlds
from agentexp.errors import ConfigError, DataError, nearest
from agentexp.types import Task

LABEL = "our own split by scenario; after training on it, results are not leaderboard results"


def open_release(name: str, releases: Mapping[str, Release]) -> Suite:
    """The installed release of that name."""
    if name not in releases:
        raise ConfigError(f"release is {name!r}; allowed: {', '.join(releases)}.{nearest(name, releases)}")
    return Suite(releases[name])


class Bfcl:
    """Conversations with a scripted user over made-up APIs. Splits: train (150 scenarios) and test
    (50), each scenario in up to four variants, and all (both: the leaderboard's own set).

    release: "v3" or "v4". variants: of base, miss_func, miss_param, long_context. responses: show the
    schema of what tools return. empty_turns: "no_call", a turn whose right answer is no call passes
    only without one; "unchecked", it always passes, as both releases' scoring has it.
    max_steps_per_turn: steps that may come before a message.
    """

    name = "bfcl"
    releases: ClassVar[Mapping[str, Release]] = RELEASES

    def __init__(
        self,
        *,
        release: str,
        variants: Sequence[str],
        responses: bool,
        empty_turns: EmptyTurns,
        max_steps_per_turn: int,
    ) -> None:
        if not variants or len(set(variants)) != len(variants) or set(variants) - set(MULTI_TURN):
            raise ConfigError(f"variants are {list(variants)}; allowed: some of {', '.join(MULTI_TURN)}, each once")
        if empty_turns not in {"no_call", "unchecked"}:
            raise ConfigError(f"empty_turns is {empty_turns!r}; allowed: no_call, unchecked")
        if max_steps_per_turn < 1:
            raise ConfigError(f"max_steps_per_turn is {max_steps_per_turn}; at least 1 is needed")
        self.suite = open_release(release, self.releases)
        self.release, self.variants, self.responses = release, tuple(variants), responses
        self.empty_turns, self.max_steps_per_turn = empty_turns, max_steps_per_turn
        if leaked := leaks(self._scenarios("train"), self._scenarios("test")):
            raise DataError(f"BFCL: {self.suite.release.manifest} has scenarios in train and in test: {leaked}")

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split. The first tasks are all of different scenarios, the variants in turn."""
        scenarios, variants = self._scenarios(split), self.variants
        return [
            self._task(split, scenario, variants[(place + lap) % len(variants)])
            for lap in range(len(variants))
            for place, scenario in enumerate(scenarios)
        ]

    def start(self, task: Task, seed: int) -> BfclSession:
        """Open a conversation. It has no chance in it, so `seed` changes nothing."""
        talk = self.conversation(task)
        mine, gold = build_worlds(self.suite, talk.config, talk.apis, long_context=talk.long_context, count=2)
        return BfclSession(
            talk, mine=mine, gold=gold, empty_turns=self.empty_turns, max_steps_per_turn=self.max_steps_per_turn
        )

    def expert(self, task: Task, seed: int, noise: float) -> GroundTruth:
        """The right calls of a task."""
        return GroundTruth(
            self.conversation(task), task=task, seed=seed, noise=noise, max_steps=self.max_steps_per_turn
        )

    def floor(self, tasks: Sequence[Task]) -> float:
        """The share of conversations in which no turn asks for a call: an agent that only talks passes those."""
        return sum(not any(self._rows[t.data["row"]][1]["ground_truth"]) for t in tasks) / len(tasks)

    def version(self) -> Mapping[str, str]:
        """What a result must record."""
        return {
            "environment": self.name,
            "release": self.release,
            "package": str(self.suite.manifest["made_from"]),
            "manifest": self.suite.digest,
            "variants": ", ".join(self.variants),
            "empty_turns": self.empty_turns,
            "max_steps_per_turn": str(self.max_steps_per_turn),
            "label": LABEL,
        }

    def conversation(self, task: Task) -> Conversation:
        """What is played in a task."""
        row, answer = self._rows[task.data["row"]]
        return read_conversation(self.suite, row, answer, self._tools)

    def _scenarios(self, split: str) -> list[int]:
        manifest = self.suite.manifest
        splits = {
            "train": manifest["train"],
            "test": manifest["test"],
            "all": sorted([*manifest["train"], *manifest["test"]]),
        }
        if split not in splits:
            raise ConfigError(f"No split {split!r} of BFCL; allowed: {', '.join(splits)}.{nearest(split, splits)}")
        return list(splits[split])

    def _task(self, split: str, scenario: int, variant: str) -> Task:
        row = f"multi_turn_{variant}_{scenario}"
        return Task(
            id=f"{variant}_{scenario}",
            env=self.name,
            split=split,
            instruction="\n\n".join(message["content"] for message in self._rows[row][0]["question"][0]),
            scenario=f"scenario_{scenario}",
            kind=variant,
            data={"row": row},
        )

    @cached_property
    def _tools(self) -> dict[str, dict[str, dict[str, Any]]]:
        return {
            api: {
                doc["name"]: openai_tool(doc, language="python", responses=self.responses)
                for doc in self.suite.documents(api)
            }
            for api in self.suite.release.apis
        }

    @cached_property
    def _rows(self) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        rows: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        known = {*self._scenarios("all")}
        for variant in self.variants:
            questions, answers = (
                {row["id"]: row for row in found}
                for found in (
                    self.suite.questions(f"multi_turn_{variant}"),
                    self.suite.answers(f"multi_turn_{variant}"),
                )
            )
            if questions.keys() != answers.keys() or {scenario_of(row) for row in questions} != known:
                raise DataError(f"BFCL: the questions of {variant}, their answers and the manifest name unlike rows")
            rows |= {key: (row, answers[key]) for key, row in questions.items()}
        return rows

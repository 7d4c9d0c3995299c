"""The leaderboard's single-turn categories as an environment: one question, one answer. Only for
measuring; there is no train split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agentexp.envs.bfcl.environment import open_release
from agentexp.envs.bfcl.matching import right_calls
from agentexp.envs.bfcl.release import RELEASES, UNANSWERED, Release
from agentexp.envs.bfcl.tools import Language, openai_tool
from agentexp.errors import ConfigError, nearest
from agentexp.types import Action, Outcome, Step, Task

OVER = "The conversation is over."
RELEVANCE = "live_relevance"  # has no answers either; there any call is right


class BfclSingleTurn:
    """Each category is a split: simple, multiple, parallel, parallel_multiple, irrelevance, java,
    javascript, and live_ ones of user questions. The first action ends the episode.

    release: "v3" or "v4". responses: show the schema of what tools return.
    """

    name = "bfcl_single_turn"
    releases: ClassVar[Mapping[str, Release]] = RELEASES

    def __init__(self, *, release: str, responses: bool) -> None:
        self.suite = open_release(release, self.releases)
        self.release, self.responses = release, responses
        self._rows: dict[str, list[tuple[dict[str, Any], list[dict[str, Any]] | None]]] = {}

    def tasks(self, split: str) -> Sequence[Task]:
        """All questions of a category, in the release's order."""
        return [
            Task(
                id=question["id"],
                env=self.name,
                split=split,
                instruction=dialogue(question["question"][0]),
                kind=split,
                data={"number": number},
            )
            for number, (question, _) in enumerate(self._category(split))
        ]

    def start(self, task: Task, seed: int) -> SingleTurnSession:
        """Open a question. It has no chance in it, so `seed` changes nothing."""
        question, answers = self._category(task.split)[int(task.data["number"])]
        return SingleTurnSession(self, task, question["function"], answers)

    def floor(self, tasks: Sequence[Task]) -> float:
        """The share of questions to which no call is the right answer."""
        silent = [self._category(t.split)[int(t.data["number"])][1] is None and t.split != RELEVANCE for t in tasks]
        return sum(silent) / len(tasks)

    def version(self) -> Mapping[str, str]:
        """What a result must record."""
        return {
            "environment": self.name,
            "release": self.release,
            "package": str(self.suite.manifest["made_from"]),
            "manifest": self.suite.digest,
        }

    def _category(self, split: str) -> list[tuple[dict[str, Any], list[dict[str, Any]] | None]]:
        known = self.suite.release.categories
        if split not in known:
            raise ConfigError(
                f"No split {split!r} of BFCL's single-turn categories; allowed: {', '.join(known)}."
                f"{nearest(split, known)}"
            )
        if split not in self._rows:
            questions = self.suite.questions(split)
            answers: list[Any] = [None] * len(questions)
            if split not in UNANSWERED:  # matched by place, as upstream does: some ids differ
                answers = [row["ground_truth"] for row in self.suite.answers(split)]
            self._rows[split] = list(zip(questions, answers, strict=True))
        return self._rows[split]


class SingleTurnSession:
    """One question. Right are the answer's calls; in irrelevance no call at all (also one that cannot
    be read), in live_relevance any call, as upstream has it."""

    def __init__(
        self,
        environment: BfclSingleTurn,
        task: Task,
        documents: list[dict[str, Any]],
        answers: list[dict[str, Any]] | None,
    ) -> None:
        self._environment, self._task = environment, task
        self._documents, self._answers = documents, answers
        self._right: bool | None = None
        self._closed = False

    @property
    def language(self) -> Language:
        """What values are written in."""
        return "java" if self._task.split == "java" else "javascript" if self._task.split == "javascript" else "python"

    @property
    def first(self) -> Step:
        """The question and the tools."""
        tools = tuple(
            openai_tool(document, language=self.language, responses=self._environment.responses)
            for document in self._documents
        )
        return Step(observation=self._task.instruction, info={"tools": tools, "refused": False})

    def step(self, action: Action) -> Step:
        """Compare the calls; nothing is run."""
        if self._right is not None or self._closed:
            raise RuntimeError("step() after the episode ended; start a new session")
        self._right = self._is_right(action)
        refused = action.command is None
        observation = action.error if action.error else OVER
        return Step(observation=observation, reward=float(self._right), done=True, info={"refused": refused})

    def outcome(self) -> Outcome:
        """Success once the answer was right."""
        return Outcome(reward=float(self._right is True), success=self._right is True)

    def close(self) -> None:
        """End the session."""
        self._closed = True

    def _is_right(self, action: Action) -> bool:
        if self._answers is None:
            return bool(action.calls) == (self._task.split == RELEVANCE)
        read = None if self.language == "python" else self._environment.suite.reader(self.language)
        return right_calls(action.calls, self._documents, self._answers, language=self.language, read=read)


def dialogue(messages: Sequence[Mapping[str, str]]) -> str:
    r"""The question as one text; who speaks is said where there is more than one message.

    >>> dialogue([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    'System: Be brief.\n\nUser: Hi'
    """
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{message['role'].capitalize()}: {message['content']}" for message in messages)

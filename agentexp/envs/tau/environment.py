"""τ-bench retail as an environment: a customer to serve by the shop's policy, with the shop's tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from agentexp.envs.tau.case import Case, Release
from agentexp.envs.tau.expert import ScriptedClerk
from agentexp.envs.tau.reward import Referee
from agentexp.envs.tau.session import TauSession
from agentexp.envs.tau.tau2 import Tau2
from agentexp.envs.tau.tau_bench import TauBench
from agentexp.envs.tau.users import Users
from agentexp.errors import ConfigError, nearest
from agentexp.seeding import seed_for
from agentexp.types import Task

RELEASES: Mapping[str, Callable[[], Release]] = {"tau2": Tau2, "tau_bench": TauBench}
MANIFEST = Path(__file__).with_name("manifest.json")
VALID_SHARE = 0.2  # of the official train tasks, by customer


class TauRetail:
    """Splits of the release (tau2: train, test and base, which is both; tau_bench: train, dev, test), and ours:
    fit and valid, the official train tasks cut in two so that no customer is in both.

    release: "tau2" (τ²-bench) or "tau_bench" (τ-bench v1). user: who plays the customers.

    `Task.instruction` is the shop's policy: the customer's wishes are theirs to tell. `Task.scenario` is
    the customer, since many call more than once.
    """

    name = "tau_retail"
    releases: ClassVar[Mapping[str, Callable[[], Release]]] = RELEASES

    def __init__(self, *, release: Literal["tau2", "tau_bench"], user: Users) -> None:
        known = self.releases
        if release not in known:
            raise ConfigError(f"release is {release!r}; allowed: {', '.join(known)}.{nearest(release, known)}")
        self._release, self._users = known[release](), user
        self._referee = Referee(self._release)
        self._splits = {**self._release.splits, **_by_customer(self._release)}

    def tasks(self, split: str) -> Sequence[Task]:
        """All tasks of a split, in the release's order."""
        if split not in self._splits:
            raise ConfigError(
                f"No split {split!r} of {self._release.name}; allowed: {', '.join(self._splits)}."
                f"{nearest(split, self._splits)}"
            )
        return [self._task(split, self._release.cases[name]) for name in self._splits[split]]

    def start(self, task: Task, seed: int) -> TauSession:
        """Open a conversation. `seed` is the customer's."""
        case = self._case(task)
        return TauSession(
            case,
            shop=self._release.open(),
            user=self._users.open(case, seed),
            referee=self._referee,
            ending=self._release.ending,
            tools=self._release.tools,
        )

    def expert(self, task: Task, seed: int, noise: float) -> ScriptedClerk:
        """A scripted clerk who knows the right calls."""
        return ScriptedClerk(self._case(task), self._release.records, seed=seed, noise=noise)

    def floor(self, tasks: Sequence[Task]) -> float:
        """The share of tasks that a clerk gets right who says goodbye at once."""
        return sum(self._referee.right_untouched(self._case(task)) for task in tasks) / len(tasks)

    def version(self) -> Mapping[str, str]:
        """What a result must record."""
        found = manifest(self._release, self._splits)
        known = json.loads(MANIFEST.read_text(encoding="utf-8"))
        name = next((name for name, listed in known.items() if listed == found), "of no known release")
        digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]
        bases = {" + ".join(case.basis) for case in self._release.cases.values()}
        unjudged = sum(case.unjudged > 0 for case in self._release.cases.values())
        basis = "; ".join([*sorted(bases), *([f"assertions of {unjudged} tasks not judged"] if unjudged else [])])
        return {
            "environment": self.name,
            "release": self._release.name,
            "package": self._release.version(),
            "tasks": f"{name}, {digest}",
            "reward_basis": basis,
            **self._users.version(),
        }

    def _case(self, task: Task) -> Case:
        return self._release.cases[task.data["case"]]

    def _task(self, split: str, case: Case) -> Task:
        writes = len(case.writes)
        return Task(
            id=f"{self._release.name}/{case.id}",
            env=self.name,
            split=split,
            instruction=f"Serve the customer. The policy:\n\n{self._release.policy}",
            scenario=case.customer.user_id,
            kind="no_write" if not writes else "one_write" if writes == 1 else "several_writes",
            difficulty=writes,
            data={"case": case.id},
        )


def manifest(release: Release, splits: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str | int]]:
    """Each split's size and the hash of its tasks: ids, customers, what is asked, what is right."""
    return {
        split: {
            "tasks": len(ids),
            "sha256": hashlib.sha256("\n".join(_line(release.cases[name]) for name in ids).encode()).hexdigest(),
        }
        for split, ids in splits.items()
    }


def _line(case: Case) -> str:
    gold = [call.canonical for call in case.gold]
    told = [case.request, case.manner]
    return json.dumps([case.id, case.customer.user_id, told, gold, case.outputs, case.basis])


def _by_customer(release: Release) -> dict[str, list[str]]:
    """The official train split cut in two by customer: about VALID_SHARE of the tasks to measure on."""
    train = release.splits["train"]
    customers = {release.cases[name].customer.user_id for name in train}
    held: set[str] = set()
    for customer in sorted(customers, key=lambda user_id: seed_for("tau valid", user_id)):
        if sum(release.cases[name].customer.user_id in held for name in train) >= VALID_SHARE * len(train):
            break
        held.add(customer)
    sides: dict[str, list[str]] = {"fit": [], "valid": []}
    for name in train:
        sides["valid" if release.cases[name].customer.user_id in held else "fit"].append(name)
    return sides

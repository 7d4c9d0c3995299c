"""τ-bench v1's retail domain, from its own package `tau_bench`, which is on no registry.

Written against the package's documented interface and tested with a made-up module of that shape: the
package itself could not be installed where this was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agentexp.envs.tau.arithmetic import calculate
from agentexp.envs.tau.case import TRANSFER, Answer, Case, Records, customer_of
from agentexp.envs.tau.tables import Table, fingerprint
from agentexp.errors import ConfigError
from agentexp.types import ToolCall

INSTALL = "pip install git+https://github.com/sierra-research/tau-bench"
RESPOND = "respond"  # the name of a right "action" that is a message
_TASKS = {"train": "TASKS_TRAIN", "dev": "TASKS_DEV", "test": "TASKS_TEST"}


class TauBench:
    """The installed release."""

    name = "tau_bench"
    install = INSTALL
    ending = frozenset({TRANSFER})

    def __init__(self) -> None:
        retail = "tau_bench.envs.retail"
        self.records: Mapping[str, Records] = _import(f"{retail}.data").load_data()
        self.policy = str(_import(f"{retail}.wiki").WIKI)
        self._invoke = {tool.get_info()["function"]["name"]: tool for tool in _import(f"{retail}.tools").ALL_TOOLS}
        self.tools: tuple[Mapping[str, Any], ...] = tuple(tool.get_info() for tool in self._invoke.values())
        cases: dict[str, list[Case]] = {}
        for split, name in _TASKS.items():
            tasks = getattr(_import(f"{retail}.tasks_{split}"), name)
            cases[split] = [_case(f"{split}-{number}", task, self.records) for number, task in enumerate(tasks)]
        self.cases: Mapping[str, Case] = {case.id: case for found in cases.values() for case in found}
        self.splits: Mapping[str, Sequence[str]] = {split: [c.id for c in found] for split, found in cases.items()}

    def open(self) -> TauBenchShop:
        """A shop in its first state."""
        return TauBenchShop({name: Table(records) for name, records in self.records.items()}, self._invoke)

    def version(self) -> str:
        """The package and its version."""
        try:
            return f"tau_bench {version('tau_bench')}"
        except PackageNotFoundError:
            return "tau_bench of unknown version"


class TauBenchShop:
    """One session's database, with the release's own tools over it; only `calculate` is ours."""

    def __init__(self, tables: Mapping[str, Table], tools: Mapping[str, Any]) -> None:
        self._tables, self._tools = tables, tools

    def call(self, call: ToolCall) -> Answer:
        """The tool's answer, as the release writes it."""
        if call.name not in self._tools:
            return Answer(f"Unknown action {call.name}", worked=False)
        arguments = deepcopy(dict(call.arguments))  # a tool may keep what it is given
        try:
            if call.name == "calculate":
                return Answer(calculate(**arguments), worked=True)
            text = str(self._tools[call.name].invoke(data=self._tables, **arguments))
        except Exception as error:  # the release answers whatever a tool raises with its words
            text = f"Error: {error}"
        return Answer(text, worked=not text.startswith("Error"))

    def fingerprint(self) -> str:
        """A hash of what was changed so far."""
        return fingerprint(self._tables, _plain)


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(f"release: tau_bench needs the package ({error}): {INSTALL}; or set release: tau2") from error


def _case(name: str, task: Any, records: Mapping[str, Records]) -> Case:
    gold = tuple(ToolCall(name=a.name, arguments=a.kwargs) for a in task.actions if a.name != RESPOND)
    return Case(
        id=name,
        customer=customer_of(records, task.user_id, task.instruction),
        request=task.instruction,
        manner="",
        gold=gold,
        outputs=tuple(task.outputs),
        basis=("DB", "COMMUNICATE"),
        unjudged=0,
    )


def _plain(record: Any) -> Any:
    return record

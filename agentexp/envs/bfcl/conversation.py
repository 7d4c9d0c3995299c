"""One multi-turn row of the leaderboard, read: what the user says, which tools there are, the right
calls. Shared by all sessions that play it; knows no state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentexp.envs.bfcl.ground_truth import read_call
from agentexp.envs.bfcl.release import Suite
from agentexp.errors import DataError
from agentexp.types import ToolCall


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation:
    """`users[t]` opens turn t, `gold[t]` are its right calls (none: the agent must not call),
    `tools[t]` what is offered in it, `callable[t]` the names that run, `apis` the documented tools of
    each API class."""

    users: tuple[str, ...]
    gold: tuple[tuple[ToolCall, ...], ...]
    tools: tuple[tuple[dict[str, Any], ...], ...]
    callable: tuple[frozenset[str], ...]
    apis: Mapping[str, tuple[str, ...]]
    config: Mapping[str, Any]
    long_context: bool


def read_conversation(
    suite: Suite,
    row: Mapping[str, Any],
    answer: Mapping[str, Any],
    tools: Mapping[str, Mapping[str, dict[str, Any]]],
) -> Conversation:
    """The conversation of a question and its answer; `tools` has the schemas by API and name. Held-out
    tools (`missed_function`) come at the end of the list, in the turn that names them, as upstream has
    it."""
    if len(row["question"]) != len(answer["ground_truth"]):
        raise DataError(f"BFCL: {row['id']} has {len(row['question'])} user turns, its answer another number")
    schemas = {name: schema for api in row["involved_classes"] for name, schema in tools[api].items()}
    parameters = {name: list(schema["function"]["parameters"]["properties"]) for name, schema in schemas.items()}
    excluded = set(row.get("excluded_function", ()))
    arriving = {int(turn): list(names) for turn, names in row.get("missed_function", {}).items()}
    held_out = {name for names in arriving.values() for name in names}
    offered = [name for name in schemas if name not in excluded | held_out]
    gold = tuple(tuple(read_call(text, parameters) for text in turn) for turn in answer["ground_truth"])
    users: list[str] = []
    shown: list[tuple[dict[str, Any], ...]] = []
    callable_: list[frozenset[str]] = []
    for turn, messages in enumerate(row["question"]):
        offered += [name for name in arriving.get(turn, ()) if name in schemas]
        shown.append(tuple(schemas[name] for name in offered))
        # miss_func_49 needs a tool in a turn before it arrives; upstream runs what is not offered, too.
        callable_.append(frozenset(offered) | {call.name for call in gold[turn]})
        said = [message["content"] for message in messages]
        users.append("\n\n".join(said) if said else suite.more_functions)
    return Conversation(
        users=tuple(users),
        gold=gold,
        tools=tuple(shown),
        callable=tuple(callable_),
        apis={api: tuple(tools[api]) for api in row["involved_classes"]},
        config=row["initial_config"],
        long_context="long_context" in row["id"],
    )

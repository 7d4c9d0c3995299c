"""What a task of either release holds, and the shop that it is played in. Knows no session, no user."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentexp.errors import DataError
from agentexp.types import ToolCall

Records = Mapping[str, Mapping[str, Any]]  # key -> record, as plain data
TRANSFER = "transfer_to_human_agents"
_READS = ("get_", "find_", "list_")
_NEUTRAL = frozenset({"calculate", "think", TRANSFER})
_USER_ID = re.compile(r"\b[a-z]+_[a-z]+_\d{4}\b")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Customer:
    """Who calls, and what they can say to prove it. email: None where they do not remember it."""

    user_id: str
    first_name: str
    last_name: str
    zip: str
    email: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One task. request: why the customer calls; manner: how they behave and what else they know (both
    the customer's secret, in the second person). gold: the right calls. outputs: what the agent has to
    say. basis: what the reward looks at."""

    id: str
    customer: Customer
    request: str
    manner: str
    gold: tuple[ToolCall, ...]
    outputs: tuple[str, ...]
    basis: tuple[str, ...]
    unjudged: int  # assertions in natural language, which need a judge

    @property
    def writes(self) -> tuple[ToolCall, ...]:
        """The right calls that may change the database."""
        return tuple(call for call in self.gold if changes_data(call.name))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool said, and whether it did what it was asked."""

    text: str
    worked: bool


class Shop(Protocol):
    """One session's database with the tools over it."""

    def call(self, call: ToolCall) -> Answer:
        """The tool's answer; whatever is wrong with a call is answered, never raised."""
        ...

    def fingerprint(self) -> str:
        """A hash of what was changed so far."""
        ...


class Release(Protocol):
    """An installed release of the benchmark: tasks, database, tools, policy."""

    name: str
    install: str  # the pip command
    policy: str
    tools: tuple[Mapping[str, Any], ...]
    splits: Mapping[str, Sequence[str]]  # split -> ids of cases
    cases: Mapping[str, Case]
    records: Mapping[str, Records]
    ending: frozenset[str]  # tools that end the conversation

    def open(self) -> Shop: ...
    def version(self) -> str: ...


def changes_data(tool: str) -> bool:
    """Whether a tool may change the database.

    >>> changes_data("cancel_pending_order"), changes_data("get_order_details")
    (True, False)
    """
    return tool not in _NEUTRAL and not tool.startswith(_READS)


def customer_of(records: Mapping[str, Records], user_id: str, told: str) -> Customer:
    """What the customer of this id can say, if `told` is all that they were told: they know their name and
    zip code, and their e-mail address where it stands there."""
    try:
        user = records["users"][user_id]
    except KeyError as error:
        raise DataError(f"the user {user_id!r} of a task is not in the database; the release is damaged") from error
    email = str(user["email"])
    return Customer(
        user_id=user_id,
        first_name=str(user["name"]["first_name"]),
        last_name=str(user["name"]["last_name"]),
        zip=str(user["address"]["zip"]),
        email=email if email.lower() in told.lower() else None,
    )


def find_user(records: Mapping[str, Records], gold: Sequence[ToolCall], told: str) -> str | None:
    """The user that a task is about, where the release does not say: whom its right calls look up,
    whose orders they touch, or else who is described in the customer's instructions."""
    users, orders = records["users"], records["orders"]
    for call in gold:
        named = call.arguments.get("user_id")
        owner = orders.get(str(call.arguments.get("order_id")), {}).get("user_id")
        for user_id in (named, owner):
            if user_id in users:
                return str(user_id)
    for user_id in _USER_ID.findall(told):
        if user_id in users:
            return str(user_id)
    emails = {found.lower() for found in _EMAIL.findall(told)}
    for user_id, user in users.items():
        name = f"{user['name']['first_name']} {user['name']['last_name']}"
        if user["email"].lower() in emails or (name in told and user["address"]["zip"] in told):
            return user_id
    return None

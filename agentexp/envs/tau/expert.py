"""A scripted clerk who knows the right calls: finds out who calls, reads, asks, writes, says goodbye."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping

from agentexp.envs.tau.case import TRANSFER, Case, Customer, Records, changes_data
from agentexp.seeding import seed_for
from agentexp.types import Step, ToolCall

ASK_WHO = "Could you tell me your email address, or your name and zip code?"
GOODBYE = "Is there anything else I can help you with?"
HANDED_OVER = "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON."  # the policy's words


class ScriptedClerk:
    """Plays the plan of a task. noise: chance, at each turn, of a needless look-up instead, which
    changes nothing and delays the plan by a turn."""

    def __init__(self, case: Case, records: Mapping[str, Records], *, seed: int, noise: float) -> None:
        self._plan = plan(case, records)
        self._lookups = _lookups(records)
        self._rng = random.Random(seed_for("tau expert", case.id, seed))
        self._noise = noise

    def act(self, step: Step) -> tuple[str, bool]:
        """(command, deliberate): the canonical text of a call, or words to the customer."""
        if self._rng.random() < self._noise:
            name, key, ids = self._rng.choice(self._lookups)
            return ToolCall(name=name, arguments={key: self._rng.choice(ids)}).canonical, False
        return next(self._plan, GOODBYE), True


def plan(case: Case, records: Mapping[str, Records]) -> Iterator[str]:
    """Everything that the clerk does, in order."""
    yield ASK_WHO
    yield _identify(case.customer).canonical
    details = ToolCall(name="get_user_details", arguments={"user_id": case.customer.user_id})
    yield details.canonical
    seen = {details.canonical}
    for call in case.gold:
        if call.name.startswith("find_user") or call.name == TRANSFER:
            continue
        if not changes_data(call.name):
            if call.canonical not in seen:
                yield call.canonical
            seen.add(call.canonical)
            continue
        for read in _reads(call, records):
            if read.canonical not in seen:
                yield read.canonical
            seen.add(read.canonical)
        yield f"I am about to {call.name.replace('_', ' ')}: {_words(call)}. Do you confirm (yes/no)?"
        yield call.canonical
    told = f"What you wanted to know: {'; '.join(case.outputs)}." if case.outputs else ""
    if transfer := next((call for call in case.gold if call.name == TRANSFER), None):
        if told:
            yield told
        yield transfer.canonical
        yield HANDED_OVER
    else:
        yield f"{told} {GOODBYE}".strip()


def _identify(customer: Customer) -> ToolCall:
    if customer.email:
        return ToolCall(name="find_user_id_by_email", arguments={"email": customer.email})
    name = {"first_name": customer.first_name, "last_name": customer.last_name, "zip": customer.zip}
    return ToolCall(name="find_user_id_by_name_zip", arguments=name)


def _reads(write: ToolCall, records: Mapping[str, Records]) -> Iterator[ToolCall]:
    """What to look at before a write: the order, and the products whose items change for others."""
    order_id = str(write.arguments.get("order_id"))
    if order_id not in records["orders"]:
        return
    yield ToolCall(name="get_order_details", arguments={"order_id": order_id})
    if "new_item_ids" in write.arguments:
        changed = set(write.arguments.get("item_ids", ()))
        for item in records["orders"][order_id]["items"]:
            if item["item_id"] in changed:
                yield ToolCall(name="get_product_details", arguments={"product_id": item["product_id"]})


def _words(call: ToolCall) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {json.dumps(value)}" for key, value in call.arguments.items())


def _lookups(records: Mapping[str, Records]) -> list[tuple[str, str, list[str]]]:
    return [
        ("get_order_details", "order_id", sorted(records["orders"])),
        ("get_product_details", "product_id", sorted(records["products"])),
    ]

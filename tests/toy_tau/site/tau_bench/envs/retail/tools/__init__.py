"""Tools of the shape of the release: classes with `invoke(data, **arguments)` and `get_info()`."""

import json
from collections.abc import Callable
from typing import Any


def _tool(function: Callable[..., str], **parameters: str) -> type:
    properties = {name: {"type": kind} for name, kind in parameters.items()}
    info = {
        "type": "function",
        "function": {
            "name": function.__name__,
            "description": function.__name__.replace("_", " "),
            "parameters": {"type": "object", "properties": properties, "required": list(parameters)},
        },
    }
    return type(function.__name__, (), {"invoke": staticmethod(function), "get_info": staticmethod(lambda: info)})


def calculate(data: Any, expression: str) -> str:
    raise AssertionError("the release evaluates the model's text here; nobody may come here")


def cancel_pending_order(data: Any, order_id: str, reason: str) -> str:
    order = data["orders"][order_id]
    if order["status"] != "pending":
        return "Error: non-pending order cannot be cancelled"
    order["status"], order["cancel_reason"] = "cancelled", reason
    total = sum(item["price"] for item in order["items"])
    data["users"][order["user_id"]]["payment_methods"]["gift_card_1"]["balance"] += total
    return json.dumps(order)


def find_user_id_by_email(data: Any, email: str) -> str:
    for user_id, user in data["users"].items():
        if user["email"] == email:
            return user_id
    return "Error: user not found"


def find_user_id_by_name_zip(data: Any, first_name: str, last_name: str, zip: str) -> str:
    for user_id, user in data["users"].items():
        if (*user["name"].values(), user["address"]["zip"]) == (first_name, last_name, zip):
            return user_id
    return "Error: user not found"


def get_order_details(data: Any, order_id: str) -> str:
    return json.dumps(data["orders"][order_id]) if order_id in data["orders"] else "Error: order not found"


def get_product_details(data: Any, product_id: str) -> str:
    return json.dumps(data["products"][product_id])


def get_user_details(data: Any, user_id: str) -> str:
    return json.dumps(data["users"][user_id])


def modify_pending_order_items(data: Any, order_id: str, item_ids: list[str], new_item_ids: list[str]) -> str:
    order = data["orders"][order_id]
    if order["status"] != "pending":
        return "Error: non-pending order cannot be modified"
    for old, new in zip(item_ids, new_item_ids, strict=True):
        item = next(item for item in order["items"] if item["item_id"] == old)
        variant = data["products"][item["product_id"]]["variants"][new]
        item["item_id"], item["price"] = new, variant["price"]
    order["status"] = "pending (item modified)"
    return json.dumps(order)


def return_delivered_order_items(data: Any, order_id: str, item_ids: list[str]) -> str:
    order = data["orders"][order_id]
    if order["status"] != "delivered":
        return "Error: non-delivered order cannot be returned"
    order["status"], order["return_items"] = "return requested", sorted(item_ids)
    return json.dumps(order)


def transfer_to_human_agents(data: Any, summary: str) -> str:
    return "Transfer successful"


ALL_TOOLS = [
    _tool(calculate, expression="string"),
    _tool(cancel_pending_order, order_id="string", reason="string"),
    _tool(find_user_id_by_email, email="string"),
    _tool(find_user_id_by_name_zip, first_name="string", last_name="string", zip="string"),
    _tool(get_order_details, order_id="string"),
    _tool(get_product_details, product_id="string"),
    _tool(get_user_details, user_id="string"),
    _tool(modify_pending_order_items, order_id="string", item_ids="array", new_item_ids="array"),
    _tool(return_delivered_order_items, order_id="string", item_ids="array"),
    _tool(transfer_to_human_agents, summary="string"),
]

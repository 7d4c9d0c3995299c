"""Three users, five orders, two products."""

from copy import deepcopy
from typing import Any

_USERS = [
    ("ada_byron_1815", "Ada", "Byron", "10001", "ada1815@example.com"),
    ("alan_turing_1912", "Alan", "Turing", "20002", "alan1912@example.com"),
    ("grace_hopper_1906", "Grace", "Hopper", "30003", "grace1906@example.com"),
]
_ORDERS = [
    ("#W1", "ada_byron_1815", "pending", [("11", "mug", "1")]),
    ("#W2", "ada_byron_1815", "delivered", [("21", "lamp", "2"), ("11", "mug", "1")]),
    ("#W3", "alan_turing_1912", "pending", [("21", "lamp", "2")]),
    ("#W4", "alan_turing_1912", "delivered", [("12", "mug", "1")]),
    ("#W5", "grace_hopper_1906", "pending", [("11", "mug", "1"), ("22", "lamp", "2")]),
]
PRICES = {"11": 5.0, "12": 7.5, "21": 30.0, "22": 42.0}


def _user(user_id: str, first: str, last: str, code: str, email: str) -> dict[str, Any]:
    return {
        "user_id": user_id,
        "name": {"first_name": first, "last_name": last},
        "address": {"address1": "1 Road", "zip": code},
        "email": email,
        "payment_methods": {"gift_card_1": {"source": "gift_card", "id": "gift_card_1", "balance": 20.0}},
        "orders": [order for order, owner, _, _ in _ORDERS if owner == user_id],
    }


def _order(order_id: str, owner: str, status: str, items: list[tuple[str, str, str]]) -> dict[str, Any]:
    listed = [{"item_id": i, "name": name, "product_id": p, "price": PRICES[i]} for i, name, p in items]
    return {"order_id": order_id, "user_id": owner, "status": status, "items": listed}


def _product(product_id: str, name: str) -> dict[str, Any]:
    variants = {i: {"item_id": i, "price": p, "available": True} for i, p in PRICES.items() if i[0] == product_id}
    return {"product_id": product_id, "name": name, "variants": variants}


_DATA = {
    "orders": {row[0]: _order(*row) for row in _ORDERS},
    "products": {"1": _product("1", "mug"), "2": _product("2", "lamp")},
    "users": {row[0]: _user(*row) for row in _USERS},
}


def load_data() -> dict[str, Any]:
    return deepcopy(_DATA)

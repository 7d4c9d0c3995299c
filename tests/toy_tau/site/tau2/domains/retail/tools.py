from typing import Any

from tau2.domains.retail.data_model import Order, RetailDB, User

TOOLS = ("calculate", "cancel_pending_order", "find_user_id_by_name_zip", "get_order_details", "get_user_details")


class _Documented:
    def __init__(self, name: str) -> None:
        self.openai_schema = {"type": "function", "function": {"name": name, "description": name, "parameters": {}}}


class RetailTools:
    def __init__(self, db: RetailDB) -> None:
        self.db = db

    def get_tools(self) -> dict[str, _Documented]:
        return {name: _Documented(name) for name in TOOLS}

    def use_tool(self, tool_name: str, **arguments: Any) -> Any:
        if tool_name not in TOOLS:
            raise ValueError(f"Tool '{tool_name}' not found.")
        return getattr(self, tool_name)(**arguments)

    def calculate(self, expression: str) -> str:
        raise AssertionError("the release evaluates the model's text here; nobody may come here")

    def cancel_pending_order(self, order_id: str, reason: str) -> Order:
        order = self.get_order_details(order_id)
        if order.status != "pending":
            raise ValueError("Non-pending order cannot be cancelled")
        order.status, order.cancel_reason = "cancelled", reason
        return order

    def find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:
        for user_id, user in self.db.users.items():
            if (*user.name.values(), user.address["zip"]) == (first_name, last_name, zip):
                return user_id
        raise ValueError("User not found")

    def get_order_details(self, order_id: str) -> Order:
        if order_id not in self.db.orders:
            raise ValueError("Order not found")
        return self.db.orders[order_id]

    def get_user_details(self, user_id: str) -> User:
        return self.db.users[user_id]

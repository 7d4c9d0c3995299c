from pydantic import BaseModel


class User(BaseModel):
    user_id: str
    name: dict[str, str]
    address: dict[str, str]
    email: str
    orders: list[str]


class Order(BaseModel):
    order_id: str
    user_id: str
    status: str
    items: list[dict[str, str]]
    cancel_reason: str | None = None


class RetailDB(BaseModel):
    users: dict[str, User]
    orders: dict[str, Order]
    products: dict[str, dict[str, str]]

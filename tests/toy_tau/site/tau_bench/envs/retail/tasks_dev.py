from tau_bench.types import Action, Task

TASKS_DEV = [
    Task(
        "alan_turing_1912",
        [Action("return_delivered_order_items", {"order_id": "#W4", "item_ids": ["12"]})],
        "You are Alan Turing in 20002. You want to return #W4.",
    )
]

from tau_bench.types import Action, Task

ADA = "You are Ada Byron in zip code 10001."
ALAN = "You are Alan Turing, and your email is alan1912@example.com."
GRACE = "You are Grace Hopper in 30003. You do not remember your email."
LATE = {"reason": "no longer needed"}

TASKS_TRAIN = [
    Task("ada_byron_1815", [Action("cancel_pending_order", {"order_id": "#W1", **LATE})], f"{ADA} Cancel order #W1."),
    Task(
        "alan_turing_1912",
        [Action("modify_pending_order_items", {"order_id": "#W3", "item_ids": ["21"], "new_item_ids": ["22"]})],
        f"{ALAN} You want the dearer lamp in #W3.",
    ),
    Task(
        "ada_byron_1815",
        [Action("return_delivered_order_items", {"order_id": "#W2", "item_ids": ["21", "11"]})],
        f"{ADA} Return all of #W2, and ask what that refunds.",
        ["35.00"],
    ),
    Task(
        "grace_hopper_1906",
        [
            Action("calculate", {"expression": "5 + 42"}),
            Action("cancel_pending_order", {"order_id": "#W5", **LATE}),
        ],
        f"{GRACE} You want to cancel #W5.",
    ),
    Task(
        "alan_turing_1912",
        [
            Action("return_delivered_order_items", {"order_id": "#W4", "item_ids": ["12"]}),
            Action("cancel_pending_order", {"order_id": "#W3", **LATE}),
        ],
        f"{ALAN} You want to return #W4 and cancel #W3.",
    ),
    Task(
        "grace_hopper_1906",
        [Action("modify_pending_order_items", {"order_id": "#W5", "item_ids": ["11"], "new_item_ids": ["12"]})],
        f"{GRACE} You want the other mug in #W5.",
    ),
    Task("ada_byron_1815", [], f"{ADA} You wonder what a mug costs.", ["7.50"]),
    Task("ada_byron_1815", [Action("transfer_to_human_agents", {"summary": "late"})], f"{ADA} You want a human."),
]

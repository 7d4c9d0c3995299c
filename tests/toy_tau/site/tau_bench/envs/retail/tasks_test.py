from tau_bench.types import Action, Task

TASKS_TEST = [
    Task("ada_byron_1815", [], "You are Ada Byron in 10001. You want a refund for #W3, which is not yours."),
    Task("ada_byron_1815", [], "You are Ada Byron in 10001. You wonder what is in #W2.", ["lamp", "1250"]),
    Task(
        "grace_hopper_1906",
        [Action("cancel_pending_order", {"order_id": "#W5", "reason": "ordered by mistake"})],
        "You are Grace Hopper in 30003. You want to cancel #W5.",
    ),
]

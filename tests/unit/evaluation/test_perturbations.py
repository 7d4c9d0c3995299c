"""Perturbations: each changes what it says and nothing else, and the right call can always be said."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from agentexp.agents.renderings import RENDERINGS
from agentexp.agents.schemas import name_of, properties_of, required_of
from agentexp.evaluation.perturbations import OPERATORS, Shown, gap, gaps, perturb
from agentexp.types import Message, ToolCall
from tests.toys import tool_schema

TOOLS = (
    tool_schema(
        "get_user_details", "Find the details of a user; see cancel_order.", {"name": "string", "zip": "string"}
    ),
    tool_schema("cancel_order", "Cancel an order that nobody wants.", {"order_id": "string", "reason": "string"}),
    tool_schema("ls", "List files, hidden ones too.", {"all": "boolean"}),
    {"type": "function", "function": {"name": "Finish", "parameters": {"type": "object", "properties": {}}}},
)
GOLD = ToolCall(name="cancel_order", arguments={"order_id": "#W1", "reason": "ordered by mistake"})


def shown(format: str = "json") -> Shown:
    def answer(call: ToolCall) -> str:
        return RENDERINGS[format].say([call], compact=False)

    return Shown(
        tools=TOOLS,
        messages=(
            Message(role="system", content="Use get_user_details first."),
            Message(role="user", content="Cancel #W1 please, ls first."),
            Message(role="assistant", content=answer(ToolCall(name="ls", arguments={"all": True}))),
            Message(role="user", content="a b"),
            Message(role="assistant", content="Which order?"),
            Message(role="user", content="The order #W1, ordered by mistake."),
        ),
        format=format,
        style="json",
    )


def names(s: Shown) -> list[str]:
    return [name_of(t) for t in s.tools]


def test_there_are_nine() -> None:
    assert len(OPERATORS) == 9


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_level_0_changes_nothing_a_seed_repeats_and_other_seeds_differ(operator: str) -> None:
    assert perturb(operator, shown(), level=0.0, seed=3) == shown()
    assert perturb(operator, shown(), level=0.5, seed=3) == perturb(operator, shown(), level=0.5, seed=3)
    results = {repr(perturb(operator, shown(), level=0.5, seed=seed)) for seed in range(12)}
    assert repr(shown()) not in results  # each one changes something
    assert len(results) > 1 or operator == "schema_style"


@pytest.mark.parametrize("operator", list(OPERATORS))
@pytest.mark.parametrize("format", list(RENDERINGS))
@pytest.mark.parametrize("level", [0.1, 0.5, 1.0])
def test_the_right_call_stays_sayable(operator: str, format: str, level: float) -> None:
    for seed in range(15):
        after = perturb(operator, shown(format), level=level, seed=seed)
        assert len(set(names(after))) == len(after.tools)  # no two tools share a name
        assert set(names(shown())) <= {after.latent(ToolCall(name=n)).name for n in names(after)}  # none is lost
        said = after.said(GOLD)
        (tool,) = [t for t in after.tools if name_of(t) == said.name]
        assert set(properties_of(tool)) == set(GOLD.arguments)
        assert sorted(required_of(tool)) == sorted(GOLD.arguments)
        read = RENDERINGS[format].read(RENDERINGS[format].say([said], compact=False)).calls
        assert [after.latent(c).canonical for c in read] == [GOLD.canonical]
        assert "#W1, ordered by mistake." in after.messages[-1].content  # what the arguments are copied from
        json.dumps(after.tools)


@pytest.mark.parametrize("operator", ["rename_tools", "typos"])
def test_names_change_everywhere_but_finish(operator: str) -> None:
    after = perturb(operator, shown(), level=1.0, seed=1)
    assert "Finish" in names(after)
    changed = {old: new for new, old in after.names.items()}
    assert "cancel_order" in changed
    text = repr((after.tools, after.messages))
    assert not any(old in text for old in changed if "_" in old)
    history = RENDERINGS["json"].read(after.messages[2].content).calls[0]
    assert after.latent(history) == ToolCall(name="ls", arguments={"all": True})
    assert after.messages[1].content == "Cancel #W1 please, ls first."  # "ls" in words could be anything
    if operator == "rename_tools":
        assert history.name != "ls"
        assert "Finds" not in text
        half = perturb(operator, shown(), level=0.5, seed=1)
        assert sum(n not in names(shown()) for n in names(half)) in (1, 2)  # 2 of 4, one of which may be Finish


def test_typos_swap_letters_of_descriptions() -> None:
    after = perturb("typos", shown(), level=1.0, seed=0)
    before_words = ["Cancel", "an", "order", "that", "nobody", "wants."]
    words = after.tools[1]["function"]["description"].split()
    assert words != before_words
    assert [sorted(w) for w in words] == [sorted(w) for w in before_words]  # letters are moved, none is lost
    assert after.messages[-1] == shown().messages[-1]


def test_reorder_moves_and_changes_nothing_else() -> None:
    after = perturb("reorder", shown(), level=1.0, seed=2)
    assert names(after) != names(shown())
    assert sorted(map(repr, map(_sorted, after.tools))) == sorted(map(repr, map(_sorted, TOOLS)))
    assert after.messages == shown().messages
    orders = {tuple(properties_of(t)) for s in range(8) for t in perturb("reorder", shown(), level=1.0, seed=s).tools}
    assert {("order_id", "reason"), ("reason", "order_id")} <= orders


def _sorted(tool: Any) -> Any:
    if isinstance(tool, dict):
        return sorted((k, _sorted(v)) for k, v in tool.items())
    return sorted(tool) if isinstance(tool, list) else tool


def test_descriptions_are_dropped_or_reworded() -> None:
    bare = perturb("drop_descriptions", shown(), level=1.0, seed=0)
    assert "description" not in repr(bare.tools)
    assert names(bare) == names(shown())
    one = perturb("drop_descriptions", shown(), level=0.25, seed=5)  # ceil(0.25 · 4) = 1 tool
    assert sum(a != b for a, b in zip(one.tools, TOOLS, strict=True)) <= 1
    reworded = perturb("paraphrase_descriptions", shown(), level=1.0, seed=0)
    said = reworded.tools[0]["function"]["description"]
    assert said != TOOLS[0]["function"]["description"]
    assert "cancel_order" in said  # a name is no word
    assert names(reworded) == names(shown())
    assert [list(properties_of(t)) for t in reworded.tools] == [list(properties_of(t)) for t in TOOLS]


def test_distractors_come_in_between() -> None:
    after = perturb("distractor_tools", shown(), level=1.0, seed=0)
    assert len(after.tools) == 8  # 4 + ceil(1 · 4)
    assert [n for n in names(after) if n in names(shown())] == names(shown())
    assert len(perturb("distractor_tools", shown(), level=0.25, seed=0).tools) == 5


def test_style_and_messages() -> None:
    assert perturb("schema_style", shown(), level=0.1, seed=0).style == "text"
    longer = perturb("extra_history", shown(), level=0.5, seed=0).messages
    assert len(longer) == 6 + 2 * 2  # ceil(0.5 · 4) = 2 exchanges
    assert longer[0] == shown().messages[0]
    assert longer[5:] == shown().messages[1:]
    assert [m.role for m in longer[1:5]] == ["user", "assistant"] * 2
    erring = perturb("error_observation", shown(), level=1.0, seed=0).messages
    assert erring[:-1] == shown().messages[:-1]
    assert erring[-1].content.endswith("\n" + shown().messages[-1].content)
    assert erring[-1].content.count("\n") == 3


def test_an_unknown_operator_or_level_is_refused() -> None:
    for operator, level in (("nothing", 0.5), ("typos", 1.5)):
        with pytest.raises(ValueError, match="there are rename_tools"):
            perturb(operator, shown(), level=level, seed=0)


def test_gap_by_hand() -> None:
    canonical, perturbed = [1, 1, 1, 0, 1, 0, 1, 1], [1, 0, 1, 0, 0, 1, 1, 1]
    found = gap(canonical, perturbed, clusters=range(8), seed=0)
    assert found.value == pytest.approx(1 / 8)  # (0 + 1 + 0 + 0 + 1 − 1 + 0 + 0) / 8
    assert found.low < 0 < found.high
    same = gap([1] * 50, [1] * 50, clusters=range(50), seed=0)
    # Wilson of 0 in 50: z² / (n + z²) = 3.8415 / 53.8415 = .0713
    assert (same.value, same.low, same.high) == (0.0, pytest.approx(-0.0713, abs=1e-4), pytest.approx(0.0713, abs=1e-4))
    both = gaps(canonical, {"typos": perturbed, "reorder": canonical}, clusters=range(8), seed=0)
    assert both["reorder"].value == 0.0
    assert both["all"].value == pytest.approx(1 / 16)  # (1/8 + 0) / 2
    with pytest.raises(ValueError, match="needs pairs"):
        gap([1], [1, 0], clusters=[0], seed=0)


def test_a_gap_is_tighter_in_pairs() -> None:
    """Negative control: with the pairing broken, the interval of the same gap is wider."""
    rng = random.Random(0)
    canonical = [float(rng.random() < 0.5) for _ in range(300)]
    perturbed = [c if rng.random() < 0.95 else 0.0 for c in canonical]
    paired = gap(canonical, perturbed, clusters=range(300), seed=0)
    broken = gap(canonical, rng.sample(perturbed, 300), clusters=range(300), seed=0)
    assert paired.value == pytest.approx(broken.value)
    assert 3 * (paired.high - paired.low) < broken.high - broken.low

"""Text rules: which alternative is told, how lists read, what a broken grammar says."""

from __future__ import annotations

import json

import pytest

from agentexp.envs.alfworld.facts import Relation
from agentexp.envs.alfworld.grammar import Grammar, parse_body, parse_grammar
from agentexp.envs.alfworld.rules import grammar_text
from agentexp.errors import DataError


def grammar(**rules: list[dict[str, str]]) -> Grammar:
    text = grammar_text("Your task is to: x").replace(
        'grammar :: """\n{',
        'grammar :: """\n{' + "".join(f"{json.dumps(k)}: {json.dumps(v)}," for k, v in rules.items()),
        1,
    )
    return parse_grammar(text)[0]


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ([], "You see nothing."),
        (["a"], "You see a apple 1."),
        (["b", "a"], "You see a apple 1, and a egg 1."),
        (["c", "b", "a"], "You see a apple 1, a egg 1, and a cup 1."),
    ],
)
def test_lists_are_sorted_by_raw_id_and_joined_as_upstream(inside: list[str], told: str) -> None:
    rules = grammar(r=[{"rhs": "You see [{o.indefinite + ' ' + o.name | in(o:object, r:receptacle)}]."}])
    facts = {"in": Relation([(o, "fridge") for o in inside])}
    names = {"a": "apple 1", "b": "egg 1", "c": "cup 1", "fridge": "fridge 1"}
    assert rules.tell("r", facts, names, {"r": "fridge"}) == told


def test_the_first_alternative_whose_condition_holds_is_told() -> None:
    alternatives = [{"condition": "hot(o:object)", "rhs": "hot {o.name}"}, {"rhs": "plain {o.name}"}]
    rules, names = grammar(r=alternatives), {"a": "apple 1"}
    assert rules.tell("r", {"hot": Relation([("a",)])}, names, {"o": "a"}) == "hot apple 1"
    assert rules.tell("r", {"hot": Relation()}, names, {"o": "a"}) == "plain apple 1"
    with pytest.raises(DataError, match="no rule 'gone'"):
        rules.tell("gone", {}, names, {})


def test_white_space_before_the_first_word_is_skipped_and_quotes_only_mark() -> None:
    # " (is open)" is told as "(is open)": "drawer 3(is open)" in one release of the games
    assert parse_body("\n  (is open)")[0].text == "(is open)"  # type: ignore[union-attr]
    assert parse_body('say "hello" \\n now')[0].text == "say hello \n now"  # type: ignore[union-attr]


@pytest.mark.parametrize("task", ["put a hot apple in fridge", 'place \\"one\\" mug', "cool, then put: 2 eggs (raw)"])
def test_the_task_is_read_apart_from_the_rules(task: str) -> None:
    text = grammar_text("X").replace('"rhs": "X"', f'"rhs": "Your task is to: {task}"')
    rules, told = parse_grammar(text)
    assert told == "Your task is to: " + task.replace('\\"', "")
    assert rules is parse_grammar(grammar_text("another task"))[0]  # parsed once for all games


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("", 'no "task" rule'),
        (grammar_text("x").replace('"list_empty"', '"list_emtpy"'), "lacks rule 'list_empty'"),
        (grammar_text("x").replace('"look.feedback"', '"look.fedback"'), "lacks rule 'look.feedback'"),
        (grammar_text("x").replace('"near": [', '"near": [,'), "not JSON"),
        (grammar_text("x").partition("action GotoLocation")[0], "lacks action 'look'"),
    ],
)
def test_a_broken_grammar_says_what_is_wrong(broken: str, says: str) -> None:
    with pytest.raises(DataError, match=says):
        parse_grammar(broken)

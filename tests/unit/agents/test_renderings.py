"""What is written in any rendering reads back as the same calls; garbage is an error that helps."""

from __future__ import annotations

import json
import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentexp.agents.reading import SPACED, Reading
from agentexp.agents.renderings import RENDERINGS
from agentexp.calls import command_of
from agentexp.types import ToolCall

NAMES = sorted(RENDERINGS)
TRICKY = (
    "]", "[{", "}", '"', "'", "\\", "\n", "\r\n", "</tool_call>", "<tool_call>", "</think>", "<think>", "Action: x",
    "\nAction Input: {}", '"""', "'''", "\\n", "\\u0041", "1", "01", "1.0", "true", "null", "None", "é", "\u2028",
    "\x00", "\x7f", "🙂", "```", "f(a=1)", "#", "%s", "{}", "ﬁ",
)  # fmt: skip
text = st.text(max_size=12) | st.lists(st.sampled_from(TRICKY), max_size=4).map("".join)
numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | text
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3))
names = st.from_regex(r"[A-Za-z_][\w.\-]{0,14}", fullmatch=True) | st.sampled_from(
    ["import", "None", "true", "get.user", "a..b", "5days", "ls-l", "Finish"]
)
keys = st.from_regex(r"[a-z_]{1,8}", fullmatch=True) | st.sampled_from(["from", "true", "None", "a-b", "ﬁ", ""]) | text
call = st.builds(lambda n, a: ToolCall(name=n, arguments=a), names, st.dictionaries(keys, values, max_size=4))
calls = st.lists(call, min_size=1, max_size=3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compact", [False, True])
def test_round_trip(name: str, compact: bool) -> None:
    rendering = RENDERINGS[name]

    @settings(deadline=None)
    @given(calls, st.sampled_from(["", "The mug may be in the fridge.", "I list [3] of {them}"]))
    def holds(said: list[ToolCall], thought: str) -> None:
        text = rendering.say(said, compact=compact, thought=thought)
        reading = rendering.read(text)
        assert reading.error is None, text
        assert command_of(reading.calls) == command_of(said), text  # canonical: 1, 1.0 and true differ

    holds()


def test_golden_texts() -> None:
    two = [ToolCall(name="cp", arguments={"from": "a", "n": 2, "deep": [None, True]}), ToolCall(name="ls")]
    said = {name: RENDERINGS[name].write(two, SPACED) for name in NAMES}
    assert said["react"] == (
        'Action: cp\nAction Input: {"from": "a", "n": 2, "deep": [null, true]}\nAction: ls\nAction Input: {}'
    )
    assert said["json"] == (
        '[{"name": "cp", "arguments": {"from": "a", "n": 2, "deep": [null, true]}}, {"name": "ls", "arguments": {}}]'
    )
    assert said["hermes"] == (
        '<tool_call>\n{"name": "cp", "arguments": {"from": "a", "n": 2, "deep": [null, true]}}\n</tool_call>\n'
        '<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>'
    )
    assert said["python"] == '[cp(n=2, deep=[None, True], **{"from": "a"}), ls()]'
    assert {command_of(RENDERINGS[name].read(text).calls) for name, text in said.items()} == {command_of(two)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("json", '[{"function": "f", "parameters": {"x": "[a(b)]"}}]'),  # the released code's own format
        ("json", 'Sure:\n```json\n[{"name": "f", "arguments": {"x": "[a(b)]"}}]\n```'),
        ("json", '{"type": "function", "function": {"name": "f", "arguments": "{\\"x\\": \\"[a(b)]\\"}"}}'),
        ("hermes", 'I look.\n<tool_call>{"name":"f","arguments":{"x":"[a(b)]"}}'),  # the end was cut
        ("react", '**Thought:** so\n**Action:** `f`\n**Action Input:** {"x": "[a(b)]"}\nObservation: none'),
        ("react", 'Action:\n{"name": "f", "arguments": {"x": "[a(b)]"}}'),
        ("python", "f(x='[a(b)]')"),
        ("python", '```python\n[f(x="[a" "(b)]")]\n```'),
    ],
)
def test_other_spellings_of_the_same_call(name: str, text: str) -> None:
    assert RENDERINGS[name].read(text) == Reading((ToolCall(name="f", arguments={"x": "[a(b)]"}),))


@pytest.mark.parametrize("name", NAMES)
def test_numbers_that_look_like_texts_stay_texts(name: str) -> None:
    """Negative control of the canonical comparison: 1, 1.0, true and "1" are four decisions."""
    kinds = [ToolCall(name="f", arguments={"x": x}) for x in (1, 1.0, True, "1", "true", None, "null")]
    said = {command_of(RENDERINGS[name].read(RENDERINGS[name].write([c], SPACED)).calls) for c in kinds}
    assert len(said) == len(kinds)


@pytest.mark.parametrize("name", NAMES)
def test_words_are_neither_calls_nor_errors(name: str) -> None:
    for text in ("Is there anything else?", "I paid $3 (three).", "a {b} and [c] remain", "", "Done."):
        assert RENDERINGS[name].read(text) == Reading(), text


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("json", '[{"name": "f", "arguments": {"x": }}]', "is no JSON"),
        ("json", "[]", "it is empty"),
        ("json", '[{"name": "f"}] or [{"name": "g"}]', "found 2 lists"),
        ("json", '[{"title": "f"}]', 'one key "name"'),
        ("json", '[{"name": 3}]', "the name of the tool is 3"),
        ("json", '[{"name": "f", "arguments": [1]}]', "write them as an object"),
        ("json", '[{"name": "f", "arguments": {"x": NaN}}]', "is no JSON"),
        ("json", '[{"name": "f", "arguments": {"x": 1e999}}]', "Out of range"),
        ("json", '[{"name": "f", "arguments": {"x": "\\ud800"}}]', "surrogates"),
        ("json", 'I call {"name": "f"', "is no JSON"),
        ("hermes", "<tool_call>f()</tool_call>", "Expecting value"),
        ("hermes", '{"name": "f"}</tool_call>', "without <tool_call>"),
        ("react", "Thought: I should look.", "found no action"),
        ("react", "Action: f", "no Action Input behind 'f'"),
        ("react", "Action: f\nAction Input: x=1", "Expecting value"),
        ("python", "[f(1)]", "has no name"),
        ("python", "[f(x=__import__('os').getcwd())]", "is no literal"),
        ("python", "[f(x=1+1)]", "is no literal"),
        ("python", "[f(x={1, 2})]", "is no literal"),
        ("python", "[f(x=f'{y}')]", "is no literal"),
        ("python", "[f(x=b'y')]", "is no literal"),
        ("python", "[f(x=1, **{'x': 2})]", "stands twice"),
        ("python", "[f(x=(1]", "is no"),
        ("python", "[f(x=1", "not closed"),
        ("python", "[1]", "is no call"),
        ("python", "[g()()]", "begins with the tool's name"),
    ],
)
def test_an_error_says_what_is_wrong_and_what_to_write(name: str, text: str, says: str) -> None:
    reading = RENDERINGS[name].read(text)
    assert not reading.calls
    assert reading.error is not None
    assert says in reading.error
    assert "write" in reading.error


@pytest.mark.parametrize("name", NAMES)
def test_garbage_never_raises(name: str) -> None:
    rendering = RENDERINGS[name]
    rng = random.Random(0)
    good = rendering.write([ToolCall(name="f", arguments={"x": ["a", {"b": "]"}]}), ToolCall(name="g")], SPACED)
    fragments = [*TRICKY, *good, "Action:", "Action Input:", "<tool_call>", '{"name":', "[f(", "**{", "\ud800"]
    for _ in range(1500):
        junk = list(good) if rng.random() < 0.5 else []
        for _ in range(rng.randrange(1, 12)):
            junk.insert(rng.randrange(len(junk) + 1), rng.choice(fragments))
            if rng.random() < 0.5 and junk:
                del junk[rng.randrange(len(junk))]
        _total(rendering.read("".join(junk)))
    for text in (
        "[" * 10_000, "{" * 10_000, '[{"a":' * 5000, "[f(x=" + "[" * 5000, "[f(x=" + "-" * 20_000 + "1)]",
        "[f" + ".a" * 20_000 + "()]", "[f(x=" + "9" * 5000 + ")]",
        '[{"name":"f","arguments":{"x":' + "9" * 5000 + "}}]",
        "[f(x='\\d')]", "<tool_call>" * 2000, "Action: f\nAction Input: {}\n" * 500,
        "[f(x='\x00')]", "[f(x=1if 1else 2)]",
        string.printable,
    ):  # fmt: skip
        _total(rendering.read(text))


def _total(reading: Reading) -> None:
    assert not (reading.calls and reading.error)
    for one in reading.calls:
        assert json.loads(one.canonical)["name"] == one.name

"""Ways to write tool calls as text and to read them back: ReAct lines, a JSON list, Hermes tags, Python.

Whatever is written reads back as the same calls, byte for byte of their canonical text. Reading never
raises and never evaluates: JSON is decoded by a decoder from where it begins (so brackets inside
strings are no brackets), Python by its syntax tree, literals only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentexp.agents.python_calls import read_python, write_python
from agentexp.agents.reading import (
    COMPACT,
    SPACED,
    TRIES,
    Reading,
    Spacing,
    arguments_in,
    brief,
    call_in,
    checked,
    decode,
    to_json,
    wrong,
)
from agentexp.types import ToolCall


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendering:
    """One way to write calls. how: what a system prompt says about it. write(calls, spacing), read(any
    text)."""

    name: str
    how: str
    write: Callable[[Sequence[ToolCall], Spacing], str]
    read: Callable[[str], Reading]

    def say(self, calls: Sequence[ToolCall], *, compact: bool, thought: str = "") -> str:
        """The text of an answer: the thought, if any, then the calls; compact without spaces that mean
        nothing."""
        said = _hide(self.write(calls, COMPACT if compact else SPACED))
        if not thought:
            return said
        return f"Thought: {thought}\n{said}" if self.name == "react" else f"{thought}\n{said}"


def _hide(text: str) -> str:
    """`think>` can stand in strings only; escaped, no reader takes it for the tag of hidden thoughts."""
    return text.replace("think>", "think\\u003e")


# -- ReAct -----------------------------------------------------------------------------------------

_ACTION = re.compile(r"^[ \t>*_#-]*action[ \t]*\d*[ \t*_]*:", re.IGNORECASE | re.MULTILINE)
_INPUT = re.compile(r"\s*[>*_#-]*action[ \t]*input[ \t]*\d*[ \t*_]*:[ \t*_]*\s*", re.IGNORECASE)
_THOUGHT = re.compile(r"^[ \t>*_#-]*(?:thought|action[ \t]*input)[ \t*_]*:", re.IGNORECASE | re.MULTILINE)


def _write_react(calls: Sequence[ToolCall], spacing: Spacing) -> str:
    return "\n".join(f"Action: {c.name}\nAction Input: {to_json(c.arguments, spacing)}" for c in calls)


def _read_react(text: str) -> Reading:
    calls, at = [], 0
    while label := _ACTION.search(text, at):
        try:
            call, at = _react_call(text, label.end())
        except ValueError as error:
            return wrong("the action", error, "write `Action: <tool>`, then `Action Input: <JSON object>`")
        calls.append(call)
    if not calls and _THOUGHT.search(text):
        return Reading(error="found no action; write `Action: <tool>`, then `Action Input: <JSON object>`")
    return Reading(tuple(calls))


def _react_call(text: str, at: int) -> tuple[ToolCall, int]:
    rest = re.compile(r"\s*").match(text, at)
    begin = rest.end() if rest else at
    if text[begin : begin + 1] == "{":  # Action: {"name": …, "arguments": {…}}
        value, end = decode(text, begin)
        return call_in(value), end
    line_end = text.find("\n", at) if "\n" in text[at:] else len(text)
    name = text[at:line_end].strip("*`\"' \t\r")
    found = _INPUT.match(text, line_end)
    if not found:
        raise ValueError(f"there is no Action Input behind {brief(name)}")
    value, end = decode(text, found.end())
    return checked(name, arguments_in(value)), end


# -- JSON list -------------------------------------------------------------------------------------

_TRACE = re.compile(r'"(?:name|function|tool)"\s*:')


def _write_json(calls: Sequence[ToolCall], spacing: Spacing) -> str:
    return to_json([{"name": c.name, "arguments": c.arguments} for c in calls], spacing)


def _read_json(text: str) -> Reading:
    found: list[tuple[ToolCall, ...]] = []
    odd: ValueError | None = None
    for value in _values(text):
        try:
            calls = tuple(call_in(v) for v in value) if isinstance(value, list) else (call_in(value),)
        except ValueError as error:
            odd = odd or error
            continue
        found.append(calls)
    advice = 'write one JSON list: [{"name": <tool>, "arguments": {…}}]'
    if len(found) > 1:
        return Reading(error=f"found {len(found)} lists of calls; {advice}")
    if found and found[0]:
        return Reading(found[0])
    if found or text.lstrip()[:1] in ("[", "{") or _TRACE.search(text):
        return wrong("the list of calls", odd or ValueError("it is empty" if found else "it is no JSON"), advice)
    return Reading()


def _values(text: str) -> Iterator[Any]:
    """Every JSON list and object that stands in a text, from the left; none that lies in another."""
    at = 0
    for _ in range(TRIES):
        begin = min((i for i in (text.find("[", at), text.find("{", at)) if i >= 0), default=-1)
        if begin < 0:
            return
        try:
            value, at = decode(text, begin)
        except ValueError:
            at = begin + 1
            continue
        yield value


# -- Hermes ----------------------------------------------------------------------------------------

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


def _write_hermes(calls: Sequence[ToolCall], spacing: Spacing) -> str:
    between = "" if spacing == COMPACT else "\n"
    said = [to_json({"name": c.name, "arguments": c.arguments}, spacing) for c in calls]
    return between.join(f"{_OPEN}{between}{one}{between}{_CLOSE}" for one in said)


def _read_hermes(text: str) -> Reading:
    calls, at = [], 0
    while (begin := text.find(_OPEN, at)) >= 0:
        begin += len(_OPEN)
        begin += len(text[begin:]) - len(text[begin:].lstrip())
        try:
            value, at = decode(text, begin)
            calls.append(call_in(value))
        except ValueError as error:
            advice = f'write {_OPEN}{{"name": <tool>, "arguments": {{…}}}}{_CLOSE}'
            return wrong("the tool call", error, advice)
    if not calls and _CLOSE in text:
        return Reading(error=f"found {_CLOSE} without {_OPEN}; write both around each call")
    return Reading(tuple(calls))


RENDERINGS: Mapping[str, Rendering] = {
    r.name: r
    for r in (
        Rendering(
            name="react",
            how="To call a tool, write\nThought: <why>\nAction: <tool>\nAction Input: <its arguments as a JSON object>",
            write=_write_react,
            read=_read_react,
        ),
        Rendering(
            name="json",
            how='To call tools, write one JSON list: [{"name": <tool>, "arguments": {<name>: <value>}}]',
            write=_write_json,
            read=_read_json,
        ),
        Rendering(
            name="hermes",
            how='To call a tool, write <tool_call>\n{"name": <tool>, "arguments": {<name>: <value>}}\n</tool_call>',
            write=_write_hermes,
            read=_read_hermes,
        ),
        Rendering(
            name="python",
            how='To call tools, write one Python list: [<tool>(<name>=<value>)], such as [find(text="a", limit=3)]',
            write=write_python,
            read=read_python,
        ),
    )
}

"""Ways to write tool calls as text and to read them back: ReAct lines, a JSON list, Hermes tags, Python.

Whatever is written reads back as the same calls, byte for byte of their canonical text. Reading never
raises and never evaluates: JSON is decoded by a decoder from where it begins (so brackets inside
strings are no brackets), Python by its syntax tree, literals only.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentexp.types import ToolCall

_DEEP = 64  # brackets within brackets; more is nobody's call, and would exhaust the stack of a parser
_TRIES = 64  # brackets at which a call may begin; bounds the time that garbage takes

Spacing = tuple[str, str]  # what stands between items, and behind a key
COMPACT, SPACED = (",", ":"), (", ", ": ")


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands in a text: calls, or what is wrong and what to do. Neither: plain words."""

    calls: tuple[ToolCall, ...] = ()
    error: str | None = None


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


# -- JSON, the part that all but Python share ------------------------------------------------------


def _json(value: Any, spacing: Spacing) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=spacing)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_number)  # a raw line break in a string is fine


def _decode(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins at `at` and where it ends. ValueError if there is none."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value, end


def _call(value: Any) -> ToolCall:
    """A call in any of the usual spellings of its two keys. ValueError says what is wrong."""
    if not isinstance(value, Mapping):
        raise ValueError(f"a call is a JSON object, this is {_brief(value)}")
    if isinstance(value.get("function"), Mapping):
        value = value["function"]
    named = [value[key] for key in ("name", "function", "tool") if key in value]
    if len(named) != 1:
        raise ValueError(f'a call has one key "name"; this has the keys {_brief(list(value))}')
    given = [value[key] for key in ("arguments", "parameters", "args", "input") if key in value]
    if len(given) > 1:
        raise ValueError(f'a call has one key "arguments"; this has the keys {_brief(list(value))}')
    return checked(named[0], _arguments(given[0] if given else {}))


def _arguments(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):  # OpenAI's form: JSON within JSON
        value = _decode(value, len(value) - len(value.lstrip()))[0]
    if not isinstance(value, Mapping):
        raise ValueError(f"the arguments are {_brief(value)}; write them as an object, {{}} for none")
    return value


def checked(name: Any, arguments: Mapping[str, Any]) -> ToolCall:
    """A call that can be stored and compared. ValueError says what is wrong."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"the name of the tool is {_brief(name)}; it must be a text")
    call = ToolCall(name=name.strip(), arguments=arguments)
    try:
        call.canonical.encode()
    except RecursionError as error:
        raise ValueError("the arguments are nested too deeply") from error
    return call


def _brief(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}…"


# -- ReAct -----------------------------------------------------------------------------------------

_ACTION = re.compile(r"^[ \t>*_#-]*action[ \t]*\d*[ \t*_]*:", re.IGNORECASE | re.MULTILINE)
_INPUT = re.compile(r"\s*[>*_#-]*action[ \t]*input[ \t]*\d*[ \t*_]*:[ \t*_]*\s*", re.IGNORECASE)
_THOUGHT = re.compile(r"^[ \t>*_#-]*(?:thought|action[ \t]*input)[ \t*_]*:", re.IGNORECASE | re.MULTILINE)


def _write_react(calls: Sequence[ToolCall], spacing: Spacing) -> str:
    return "\n".join(f"Action: {c.name}\nAction Input: {_json(c.arguments, spacing)}" for c in calls)


def _read_react(text: str) -> Reading:
    calls, at = [], 0
    while label := _ACTION.search(text, at):
        try:
            call, at = _react_call(text, label.end())
        except ValueError as error:
            return _wrong("the action", error, "write `Action: <tool>`, then `Action Input: <JSON object>`")
        calls.append(call)
    if not calls and _THOUGHT.search(text):
        return Reading(error="found no action; write `Action: <tool>`, then `Action Input: <JSON object>`")
    return Reading(tuple(calls))


def _react_call(text: str, at: int) -> tuple[ToolCall, int]:
    rest = re.compile(r"\s*").match(text, at)
    begin = rest.end() if rest else at
    if text[begin : begin + 1] == "{":  # Action: {"name": …, "arguments": {…}}
        value, end = _decode(text, begin)
        return _call(value), end
    line_end = text.find("\n", at) if "\n" in text[at:] else len(text)
    name = text[at:line_end].strip("*`\"' \t\r")
    found = _INPUT.match(text, line_end)
    if not found:
        raise ValueError(f"there is no Action Input behind {_brief(name)}")
    value, end = _decode(text, found.end())
    return checked(name, _arguments(value)), end


# -- JSON list -------------------------------------------------------------------------------------

_TRACE = re.compile(r'"(?:name|function|tool)"\s*:')


def _write_json(calls: Sequence[ToolCall], spacing: Spacing) -> str:
    return _json([{"name": c.name, "arguments": c.arguments} for c in calls], spacing)


def _read_json(text: str) -> Reading:
    found: list[tuple[ToolCall, ...]] = []
    wrong: ValueError | None = None
    for value in _values(text):
        try:
            calls = tuple(_call(v) for v in value) if isinstance(value, list) else (_call(value),)
        except ValueError as error:
            wrong = wrong or error
            continue
        found.append(calls)
    advice = 'write one JSON list: [{"name": <tool>, "arguments": {…}}]'
    if len(found) > 1:
        return Reading(error=f"found {len(found)} lists of calls; {advice}")
    if found and found[0]:
        return Reading(found[0])
    if found or text.lstrip()[:1] in ("[", "{") or _TRACE.search(text):
        return _wrong("the list of calls", wrong or ValueError("it is empty" if found else "it is no JSON"), advice)
    return Reading()


def _values(text: str) -> Iterator[Any]:
    """Every JSON list and object that stands in a text, from the left; none that lies in another."""
    at = 0
    for _ in range(_TRIES):
        begin = min((i for i in (text.find("[", at), text.find("{", at)) if i >= 0), default=-1)
        if begin < 0:
            return
        try:
            value, at = _decode(text, begin)
        except ValueError:
            at = begin + 1
            continue
        yield value


# -- Hermes ----------------------------------------------------------------------------------------

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


def _write_hermes(calls: Sequence[ToolCall], spacing: Spacing) -> str:
    between = "" if spacing == COMPACT else "\n"
    said = [_json({"name": c.name, "arguments": c.arguments}, spacing) for c in calls]
    return between.join(f"{_OPEN}{between}{one}{between}{_CLOSE}" for one in said)


def _read_hermes(text: str) -> Reading:
    calls, at = [], 0
    while (begin := text.find(_OPEN, at)) >= 0:
        begin += len(_OPEN)
        begin += len(text[begin:]) - len(text[begin:].lstrip())
        try:
            value, at = _decode(text, begin)
            calls.append(_call(value))
        except ValueError as error:
            advice = f'write {_OPEN}{{"name": <tool>, "arguments": {{…}}}}{_CLOSE}'
            return _wrong("the tool call", error, advice)
    if not calls and _CLOSE in text:
        return Reading(error=f"found {_CLOSE} without {_OPEN}; write both around each call")
    return Reading(tuple(calls))


# -- Python ----------------------------------------------------------------------------------------

_WORDS = {"true": True, "false": False, "null": None}  # what models write for Python's own
_CALL = re.compile(r"^[\"']?[A-Za-z_][\w.-]*[\"']?\(.*\)$", re.DOTALL)
_BEGUN = re.compile(r"\[\s*[\"']?[A-Za-z_][\w.-]*[\"']?\(")
_FENCE = re.compile(r"^```\w*\n(.*?)\n?```$", re.DOTALL)


def _write_python(calls: Sequence[ToolCall], spacing: Spacing) -> str:
    comma, colon = spacing

    def value(v: Any) -> str:
        if isinstance(v, Mapping):
            return "{" + comma.join(f"{_json(k, spacing)}{colon}{value(x)}" for k, x in v.items()) + "}"
        if isinstance(v, list | tuple):
            return f"[{comma.join(value(x) for x in v)}]"
        # JSON's strings are Python's too, and so are its numbers
        return repr(v) if v is None or isinstance(v, bool) else _json(v, spacing)

    def one(call: ToolCall) -> str:
        name = call.name if all(_word(part) for part in call.name.split(".")) else _json(call.name, spacing)
        plain = [f"{k}={value(v)}" for k, v in call.arguments.items() if _word(k)]
        other = {k: v for k, v in call.arguments.items() if not _word(k)}
        return f"{name}({comma.join([*plain, *([f'**{value(other)}'] if other else [])])})"

    return f"[{comma.join(one(c) for c in calls)}]"


def _word(text: str) -> bool:
    # Python reads identifiers in Unicode's NFKC form, which changes some that are not ASCII.
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text) and text not in _WORDS


def _read_python(text: str) -> Reading:
    advice = 'write [tool(name="value", …)]'
    bare = text.strip()
    if fenced := _FENCE.match(bare):
        bare = fenced.group(1).strip()
    if _CALL.match(bare):
        bare = f"[{bare}]"
    found: list[tuple[ToolCall, ...]] = []
    wrong: ValueError | None = None
    at = 0
    for _ in range(_TRIES):
        begin = bare.find("[", at)
        if begin < 0:
            break
        try:
            end = _closing(bare, begin)
            found.append(_python_calls(bare[begin:end]))
            at = end
        except ValueError as error:
            wrong = wrong or error
            at = begin + 1
    if len(found) > 1:
        return Reading(error=f"found {len(found)} lists of calls; {advice}")
    if found and found[0]:
        return Reading(found[0])
    if found or bare.startswith("[") or _BEGUN.search(bare):
        return _wrong("the list of calls", wrong or ValueError("it is empty"), advice)
    return Reading()


def _closing(text: str, begin: int) -> int:
    """Just behind the bracket that closes the one at `begin`; brackets in string literals count not."""
    depth, at = 0, begin
    while at < len(text):
        c = text[at]
        if c in "\"'":
            quote = c * 3 if text.startswith(c * 3, at) else c
            at += len(quote)
            while at < len(text) and not text.startswith(quote, at):
                at += 2 if text[at] == "\\" else 1
            at += len(quote)
            continue
        if c in "[({":
            depth += 1
        elif c in "])}":
            depth -= 1
        at += 1
        if depth == 0:
            return at
        if depth > _DEEP:
            raise ValueError("it is nested too deeply")
    raise ValueError("its bracket is not closed")


def _python_calls(text: str) -> tuple[ToolCall, ...]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a string is odd Python, and still a string
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"it is no Python ({error})") from error
    if not isinstance(tree, ast.List):
        raise ValueError("it is no list")
    return tuple(_python_call(node) for node in tree.elts)


def _python_call(node: ast.expr) -> ToolCall:
    if not isinstance(node, ast.Call):
        raise ValueError(f"{_brief(_source(node))} is no call")
    if node.args:
        raise ValueError(f"an argument of {_brief(_source(node.func))} has no name; write name=value")
    arguments: dict[str, Any] = {}
    for given in node.keywords:
        value = _literal(given.value)
        for key, one in value.items() if given.arg is None and isinstance(value, dict) else [(given.arg, value)]:
            if not isinstance(key, str) or key in arguments:
                raise ValueError(f"the argument {key!r} is no name or stands twice")
            arguments[key] = one
    return checked(_called(node.func), arguments)


def _called(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return ".".join([node.id, *reversed(parts)])
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and not parts:
        return node.value
    raise ValueError("a call begins with the tool's name")


def _literal(node: ast.expr) -> Any:
    """The JSON value that a literal says. Nothing is evaluated."""
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            return node.value
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as number)):
            return -number if isinstance(node.op, ast.USub) else number
        case ast.Name(id=word) if word in _WORDS:
            return _WORDS[word]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            said = [(None if k is None else _literal(k), _literal(v)) for k, v in zip(keys, values, strict=True)]
            if all(isinstance(k, str) for k, _ in said):
                return dict(said)
            raise ValueError("the keys of an object must be texts")
    raise ValueError(f"{_brief(_source(node))} is no literal; write values as texts, numbers, lists or objects")


def _source(node: ast.expr) -> str:
    return type(node).__name__ if not isinstance(node, ast.Name) else node.id


def _wrong(what: str, error: ValueError, advice: str) -> Reading:
    said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return Reading(error=f"{what} cannot be read: {said}; {advice}")


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
            write=_write_python,
            read=_read_python,
        ),
    )
}

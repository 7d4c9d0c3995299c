"""Calls as Python writes them, `[f(a=1, b="x")]`: read by the syntax tree, literals only, never evaluated."""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from agentexp.agents.reading import TRIES, Reading, Spacing, brief, checked, to_json, wrong
from agentexp.types import ToolCall

_DEEP = 64  # brackets within brackets; more is nobody's call, and would exhaust the stack of a parser
_WORDS = {"true": True, "false": False, "null": None}  # what models write for Python's own
_CALL = re.compile(r"^[\"']?[A-Za-z_][\w.-]*[\"']?\(.*\)$", re.DOTALL)
_BEGUN = re.compile(r"\[\s*[\"']?[A-Za-z_][\w.-]*[\"']?\(")
_FENCE = re.compile(r"^```\w*\n(.*?)\n?```$", re.DOTALL)


def write_python(calls: Sequence[ToolCall], spacing: Spacing) -> str:
    """A list of calls; what Python does not allow as a name is quoted."""
    comma, colon = spacing

    def value(v: Any) -> str:
        if isinstance(v, Mapping):
            return "{" + comma.join(f"{to_json(k, spacing)}{colon}{value(x)}" for k, x in v.items()) + "}"
        if isinstance(v, list | tuple):
            return f"[{comma.join(value(x) for x in v)}]"
        # JSON's strings are Python's too, and so are its numbers
        return repr(v) if v is None or isinstance(v, bool) else to_json(v, spacing)

    def one(call: ToolCall) -> str:
        name = call.name if all(_word(part) for part in call.name.split(".")) else to_json(call.name, spacing)
        plain = [f"{k}={value(v)}" for k, v in call.arguments.items() if _word(k)]
        other = {k: v for k, v in call.arguments.items() if not _word(k)}
        return f"{name}({comma.join([*plain, *([f'**{value(other)}'] if other else [])])})"

    return f"[{comma.join(one(c) for c in calls)}]"


def _word(text: str) -> bool:
    # Python reads identifiers in Unicode's NFKC form, which changes some that are not ASCII.
    return text.isascii() and text.isidentifier() and not keyword.iskeyword(text) and text not in _WORDS


def read_python(text: str) -> Reading:
    """The calls of the one list in a text, or of one call without brackets around it."""
    advice = 'write [tool(name="value", …)]'
    bare = text.strip()
    if fenced := _FENCE.match(bare):
        bare = fenced.group(1).strip()
    if _CALL.match(bare):
        bare = f"[{bare}]"
    found: list[tuple[ToolCall, ...]] = []
    odd: ValueError | None = None
    at = 0
    for _ in range(TRIES):
        begin = bare.find("[", at)
        if begin < 0:
            break
        try:
            end = _closing(bare, begin)
            found.append(_python_calls(bare[begin:end]))
            at = end
        except ValueError as error:
            odd = odd or error
            at = begin + 1
    if len(found) > 1:
        return Reading(error=f"found {len(found)} lists of calls; {advice}")
    if found and found[0]:
        return Reading(found[0])
    if found or bare.startswith("[") or _BEGUN.search(bare):
        return wrong("the list of calls", odd or ValueError("it is empty"), advice)
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
        raise ValueError(f"{brief(_source(node))} is no call")
    if node.args:
        raise ValueError(f"an argument of {brief(_source(node.func))} has no name; write name=value")
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
    raise ValueError(f"{brief(_source(node))} is no literal; write values as texts, numbers, lists or objects")


def _source(node: ast.expr) -> str:
    return type(node).__name__ if not isinstance(node, ast.Name) else node.id

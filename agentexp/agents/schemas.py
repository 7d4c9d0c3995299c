"""Schemas of tools in OpenAI's form: written for a prompt, renamed, compared. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Schema = Mapping[str, Any]
Style = Literal["json", "text"]


def function_of(tool: Schema) -> Mapping[str, Any]:
    """The part that describes the function, with or without its envelope."""
    inner = tool.get("function", tool)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise ValueError(f"a tool's schema needs function.name; this has the keys {sorted(map(str, tool))}")
    return inner


def name_of(tool: Schema) -> str:
    """The tool's name.

    >>> name_of({"type": "function", "function": {"name": "ls"}})
    'ls'
    """
    return str(function_of(tool)["name"])


def with_function(tool: Schema, **changes: Any) -> dict[str, Any]:
    """The schema with other values in its function part; None takes a key out."""
    inner = {**function_of(tool), **changes}
    inner = {key: value for key, value in inner.items() if value is not None}
    return {**tool, "function": inner} if "function" in tool else inner


def properties_of(tool: Schema) -> Mapping[str, Any]:
    """Parameter name to its schema."""
    return dict((function_of(tool).get("parameters") or {}).get("properties") or {})


def required_of(tool: Schema) -> list[str]:
    """The parameters that a call must give."""
    return list((function_of(tool).get("parameters") or {}).get("required") or [])


def written(tool: Schema, style: Style) -> str:
    r"""The schema as text: one line of JSON, or a signature with a line for each described parameter.

    >>> cp = {"type": "function", "function": {"name": "cp", "description": "Copies.", "parameters": {"type": "object",
    ...       "properties": {"a": {"type": "string", "description": "from"}, "n": {"type": "integer"}},
    ...       "required": ["a"]}}}
    >>> print(written(cp, "text"))
    cp(a: string, n: integer, optional): Copies.
      a: from
    """
    if style == "json":
        return json.dumps(tool, ensure_ascii=False)
    function, needed = function_of(tool), set(required_of(tool))
    given, lines = [], []
    for name, schema in properties_of(tool).items():
        given.append(f"{name}: {_kind(schema)}" + ("" if name in needed else ", optional"))
        if told := _line(schema.get("description")):
            lines.append(f"  {name}: {told}")
    described = _line(function.get("description"))
    head = f"{function['name']}({', '.join(given)})" + (f": {described}" if described else "")
    return "\n".join([head, *lines])


def listed(tools: Sequence[Schema], style: Style) -> str:
    """All schemas, one under the other."""
    return "\n".join(written(tool, style) for tool in tools)


def _kind(schema: Mapping[str, Any]) -> str:
    if options := schema.get("enum"):
        return " | ".join(json.dumps(option, ensure_ascii=False) for option in options)
    kind = schema.get("type", "any")
    if isinstance(kind, list | tuple):
        kind = " | ".join(map(str, kind))
    inner = schema.get("items") or schema.get("properties")
    return f"{kind} {json.dumps(inner, ensure_ascii=False)}" if inner else str(kind)


def _line(text: Any) -> str:
    return " ".join(str(text).split()) if text else ""

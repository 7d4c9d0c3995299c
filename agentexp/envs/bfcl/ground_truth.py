"""Right calls, which the leaderboard writes as Python text. The text is parsed; nothing is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from agentexp.errors import DataError
from agentexp.types import ToolCall


def read_call(text: str, parameters: Mapping[str, Sequence[str]]) -> ToolCall:
    """A call such as `cd('docs')` or `cd(folder='docs')`. `parameters` gives each tool's names in
    order, for arguments without one.

    >>> read_call("cd('docs')", {"cd": ["folder"]}).canonical
    '{"arguments":{"folder":"docs"},"name":"cd"}'
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise ValueError("not a call of a function by its name")
        names = parameters[node.func.id]
        if len(node.args) > len(names):
            raise ValueError(f"{len(node.args)} arguments without a name, but the tool has {len(names)} parameters")
        values: dict[str, Any] = {n: ast.literal_eval(v) for n, v in zip(names, node.args, strict=False)}
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in values:
                raise ValueError(f"argument {keyword.arg} is given twice, or as **")
            values[keyword.arg] = ast.literal_eval(keyword.value)
        call = ToolCall(name=node.func.id, arguments=values)
        call.canonical  # noqa: B018  raises where a value is no JSON
        return call
    except (SyntaxError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"BFCL: the right call {text!r} cannot be read: {error}") from error

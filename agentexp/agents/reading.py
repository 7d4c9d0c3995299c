"""What every reader of tool calls needs: the JSON in a text, the call in a JSON value, words for what is
wrong. Nothing here is evaluated, and what is raised is a ValueError that the reader turns into words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentexp.types import ToolCall

TRIES = 64  # brackets at which a call may begin; bounds the time that garbage takes
Spacing = tuple[str, str]  # what stands between items, and behind a key
COMPACT, SPACED = (",", ":"), (", ", ": ")


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands in a text: calls, or what is wrong and what to do. Neither: plain words."""

    calls: tuple[ToolCall, ...] = ()
    error: str | None = None


def to_json(value: Any, spacing: Spacing) -> str:
    """JSON on one line. ValueError for NaN and infinities."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=spacing)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_number)  # a raw line break in a string is fine


def decode(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins at `at` and where it ends. ValueError if there is none."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value, end


def call_in(value: Any) -> ToolCall:
    """A call in any of the usual spellings of its two keys. ValueError says what is wrong."""
    if not isinstance(value, Mapping):
        raise ValueError(f"a call is a JSON object, this is {brief(value)}")
    if isinstance(value.get("function"), Mapping):
        value = value["function"]
    named = [value[key] for key in ("name", "function", "tool") if key in value]
    if len(named) != 1:
        raise ValueError(f'a call has one key "name"; this has the keys {brief(list(value))}')
    given = [value[key] for key in ("arguments", "parameters", "args", "input") if key in value]
    if len(given) > 1:
        raise ValueError(f'a call has one key "arguments"; this has the keys {brief(list(value))}')
    return checked(named[0], arguments_in(given[0] if given else {}))


def arguments_in(value: Any) -> Mapping[str, Any]:
    """The arguments of a call, as an object or as JSON in a text. ValueError says what is wrong."""
    if isinstance(value, str):  # OpenAI's form: JSON within JSON
        value = decode(value, len(value) - len(value.lstrip()))[0]
    if not isinstance(value, Mapping):
        raise ValueError(f"the arguments are {brief(value)}; write them as an object, {{}} for none")
    return value


def checked(name: Any, arguments: Mapping[str, Any]) -> ToolCall:
    """A call that can be stored and compared. ValueError says what is wrong."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"the name of the tool is {brief(name)}; it must be a text")
    call = ToolCall(name=name.strip(), arguments=arguments)
    try:
        call.canonical.encode()
    except RecursionError as error:
        raise ValueError("the arguments are nested too deeply") from error
    return call


def brief(value: Any) -> str:
    """A value in at most 60 characters, for an error."""
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}…"


def wrong(what: str, error: ValueError, advice: str) -> Reading:
    """The reading of a text that is no call: what is wrong and what to write."""
    said = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    return Reading(error=f"{what} cannot be read: {said}; {advice}")

"""The APIs of one conversation: objects of our own, and calls by name with plain values.

Upstream evaluates the model's text as Python and keeps its objects in a module's globals, so that
rollouts share state. Here a call is a name among the documented tools and a mapping of JSON values;
nothing is evaluated, and each world owns its objects.
"""

from __future__ import annotations

import copy
import decimal
import json
import pickle
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentexp.envs.bfcl.release import Suite
from agentexp.types import ToolCall

# Some APIs work through globals that all their objects share (mpmath's precision, a table of weather
# that is filled in and returned), so calls of different threads must not overlap.
_ONE_AT_A_TIME = threading.Lock()
_MOST_DIGITS = 1_000
_MOST_BITS = 100_000


@dataclass(frozen=True, slots=True)
class Result:
    """What a call answered; `worked` is False where it raised or was refused."""

    text: str
    worked: bool


class World:
    """The API objects of one conversation, by class name."""

    def __init__(self, apis: Mapping[str, Any], tools: Mapping[str, Sequence[str]]) -> None:
        self.apis = apis
        # Upstream lets the later class win where two have a tool of the same name; so do we.
        self._tools = {name: getattr(apis[api], name) for api, names in tools.items() for name in names}

    def call(self, call: ToolCall) -> Result:
        """Run a documented tool. What it raises becomes its answer, worded as upstream does."""
        if call.name not in self._tools:
            return Result(f"Error during execution: there is no function {call.name!r}", worked=False)
        if (reason := too_much(call)) is not None:
            return Result(f"Error during execution: {reason}", worked=False)
        arguments = copy.deepcopy(dict(call.arguments))  # an API may keep and change what it is given
        with _ONE_AT_A_TIME, decimal.localcontext():
            try:
                return Result(_text(self._tools[call.name](**arguments)), worked=True)
            except Exception as error:  # the boundary to the APIs' own code, on arguments of any kind
                return Result(f"Error during execution: {error}", worked=False)


def build_worlds(
    suite: Suite, configs: Mapping[str, Any], tools: Mapping[str, Sequence[str]], *, long_context: bool, count: int
) -> list[World]:
    """`count` equal worlds that share nothing, with each other or with the APIs' modules: in the long
    contexts upstream hands out objects of its module, which bookings then change."""
    apis: dict[str, Any] = {}
    for name in tools:
        apis[name] = suite.api(name)()
        if hasattr(apis[name], "_load_scenario"):  # all but MathAPI, which has no state
            apis[name]._load_scenario(copy.deepcopy(configs.get(name, {})), long_context=long_context)
    frozen = pickle.dumps(apis)
    return [World(pickle.loads(frozen), tools) for _ in range(count)]


def same_state(mine: World, gold: World) -> bool:
    """Whether every public attribute of every API object is equal."""
    try:
        return all(
            hasattr(mine.apis[name], key) and getattr(mine.apis[name], key) == value
            for name, api in gold.apis.items()
            for key, value in vars(api).items()
            if not key.startswith("_")
        )
    except RecursionError:  # a folder that was copied into itself; a right state has none
        return False


def contained(wanted: Sequence[str], seen: Sequence[str]) -> bool:
    """Whether all wanted answers are among those seen, each as often.

    >>> contained(["a", "a"], ["a", "b"])
    False
    """
    return not Counter(wanted) - Counter(seen)


def too_much(call: ToolCall) -> str | None:
    """Why a call of the mathematical API would keep the interpreter busy for minutes, or None.

    >>> too_much(ToolCall(name="power", arguments={"base": 10, "exponent": 10**9}))
    'the result of power would have more than 100000 bits'
    """
    given = call.arguments
    for key in ("precision", "decimal_places"):
        if isinstance(given.get(key), int | float) and abs(given[key]) > _MOST_DIGITS:
            return f"{key} is {given[key]}; at most {_MOST_DIGITS} is allowed"
    if call.name == "logarithm" and any(isinstance(given.get(key), str) for key in ("value", "base")):
        return "value and base must be numbers"  # mpmath would read "1e999999999" digit by digit
    base, exponent = given.get("base"), given.get("exponent")
    if call.name != "power" or not isinstance(base, int) or not isinstance(exponent, int):
        return None
    too_long = exponent * base.bit_length() > _MOST_BITS
    return f"the result of power would have more than {_MOST_BITS} bits" if too_long else None


def _text(answer: Any) -> str:
    if isinstance(answer, str):
        return answer
    if isinstance(answer, dict):
        try:
            return json.dumps(answer)
        except (TypeError, ValueError):  # some tools return objects
            return str(answer)
    return str(answer)

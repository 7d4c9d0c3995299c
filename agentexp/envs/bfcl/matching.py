"""Whether calls are the right ones, by comparison with written answers: the leaderboard's rule for its
single-turn categories, in our own words. Nothing is run.

An answer names one function and, for each parameter, the values that are accepted; the empty string
among them means that the parameter may be left out. Upstream compares exact types (True is no 1),
takes an int where a float is asked for (Python only), and ignores case, spaces and the marks ,./-_*^
in strings. Java and JavaScript values come as source text, which `read` turns into plain values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentexp.envs.bfcl.tools import Language, tool_name
from agentexp.types import ToolCall

Read = Callable[[str, str, str | None], Any]  # (source text, type, type of the elements) -> value
_TYPES: dict[str, dict[str, type]] = {
    "python": {
        **{"string": str, "any": str, "integer": int, "float": float, "boolean": bool},
        **{"array": list, "tuple": list, "dict": dict},
    },
    "java": {
        **dict.fromkeys(("byte", "short", "integer", "long"), int),
        **dict.fromkeys(("float", "double"), float),
        **dict.fromkeys(("char", "String", "any"), str),
        **dict.fromkeys(("Array", "ArrayList", "Queue", "Stack"), list),
        **{"boolean": bool, "HashMap": dict, "Hashtable": dict},
    },
    "javascript": {
        **{"String": str, "any": str, "integer": int, "Bigint": int, "float": float},
        **{"Boolean": bool, "dict": dict, "array": list},
    },
}
_WITH_ELEMENTS = {"python": ("array", "tuple"), "java": ("Array", "ArrayList"), "javascript": ("array",)}
_LONGEST = 20_000  # characters of source text; the readers' patterns are slow on longer ones


def right_calls(
    calls: Sequence[ToolCall],
    documents: Sequence[Mapping[str, Any]],
    answers: Sequence[Mapping[str, Any]],
    *,
    language: Language,
    read: Read | None,
) -> bool:
    """Whether the calls are those of the answers, in any order: each answer takes the first call that
    suits it and is still free. Where there is one document, it is meant, whatever the answer's name
    (two answers name their function otherwise)."""
    if len(calls) != len(answers):
        return False
    by_name = {document["name"]: document for document in documents}
    free = list(calls)
    for answer in answers:
        ((name, accepted),) = answer.items()
        document = documents[0] if len(documents) == 1 else by_name.get(name)
        suits = (call for call in free if document and right_call(call, document, accepted, language, read))
        taken = next(suits, None)
        if taken is None:
            return False
        free = [call for call in free if call is not taken]
    return True


def right_call(
    call: ToolCall,
    document: Mapping[str, Any],
    accepted: Mapping[str, Sequence[Any]],
    language: Language,
    read: Read | None,
) -> bool:
    """Whether one call has the document's name and, for each parameter, an accepted value."""
    parameters = document["parameters"]["properties"]
    given = call.arguments
    if call.name != tool_name(document["name"]) or any(
        name not in given for name in document["parameters"]["required"]
    ):
        return False
    if any(name not in given and "" not in values for name, values in accepted.items()):
        return False
    return all(
        name in parameters and name in accepted and _accepts(accepted[name], value, parameters[name], language, read)
        for name, value in given.items()
    )


def plain(text: str) -> str:
    """A string as it is compared.

    >>> plain("April 1, 2024") == plain("april 1 2024")
    True
    """
    return re.sub(r"[ ,./\-_*^]", "", text).lower().replace("'", '"')


def _accepts(
    accepted: Sequence[Any], value: Any, parameter: Mapping[str, Any], language: Language, read: Read | None
) -> bool:
    kind: str = parameter["type"]
    inner: str | None = parameter["items"]["type"] if kind in _WITH_ELEMENTS[language] else None
    expected, element = _TYPES[language][kind], _TYPES[language][inner] if inner is not None else None
    if read is not None:
        if not isinstance(value, str) or len(value) > _LONGEST:
            return False
        value = read(value, kind, inner)
    elif type(value) is int and expected is float:
        value = float(value)
    found: type = type(value)
    if found is not expected:
        # The answer may be of another type than the schema: a variable's name where a number is asked for.
        return found is _type_of(accepted) and value in accepted
    if element is not None and not any(_elements_fit(value, option, element) for option in accepted):
        return False
    if _type_of(accepted) not in {None, expected}:
        return value in accepted
    return _same(value, accepted, dicts=element is dict)


def _same(value: Any, accepted: Sequence[Any], *, dicts: bool) -> bool:
    """Whether a value of the right type is among the accepted ones. `dicts`: it is a list of dicts."""
    if isinstance(value, dict):
        return any(_entries_fit(value, option) for option in accepted if option != "")
    if isinstance(value, list) and dicts:
        return any(_list_of_dicts_fits(value, option) for option in accepted)
    if isinstance(value, list):
        return _plain_list(value) in [_plain_list(option) for option in accepted]
    if isinstance(value, str):
        return plain(value) in [plain(option) for option in accepted if isinstance(option, str)]
    return value in accepted


def _type_of(accepted: Sequence[Any]) -> type | None:
    return next((type(option) for option in accepted if option != ""), None)


def _elements_fit(value: Sequence[Any], option: Any, element: type) -> bool:
    """Upstream asks for the elements' type only where the accepted value is a list."""
    return not isinstance(option, list) or all(type(x) in {element, _type_of(option)} for x in value)


def _plain_list(values: Sequence[Any]) -> list[Any]:
    return [plain(x) if isinstance(x, str) else x for x in values]


def _entries_fit(value: Mapping[str, Any], option: Mapping[str, Any]) -> bool:
    """Each entry of an accepted dict lists its accepted values; deeper ones are compared as they are. One
    row (java_64) has a text for a list, of which upstream accepts each letter."""
    return all(
        isinstance(option.get(key), list | str) and (plain(x) if isinstance(x, str) else x) in _plain_list(option[key])
        for key, x in value.items()
    ) and all(key in value or "" in allowed for key, allowed in option.items())


def _list_of_dicts_fits(value: Sequence[Any], option: Sequence[Any]) -> bool:
    return len(value) == len(option) and all(
        isinstance(x, Mapping) and isinstance(wanted, Mapping) and _entries_fit(x, wanted)
        for x, wanted in zip(value, option, strict=True)
    )

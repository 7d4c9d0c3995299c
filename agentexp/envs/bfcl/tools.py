"""Tool schemas in OpenAI's form, from those of the leaderboard, which name types as Python, Java or
JavaScript do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Language = Literal["python", "java", "javascript"]
_TYPES = {
    **dict.fromkeys(("integer", "byte", "short", "long", "Bigint"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "bool", "Boolean"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple", "ArrayList", "Array", "Queue", "Stack", "Set"), "array"),
    **dict.fromkeys(("dict", "object", "HashMap", "Hashtable"), "object"),
}  # anything else is a string, as upstream has it
_NAMES = {"java": "Java", "javascript": "JavaScript"}


def openai_tool(document: Mapping[str, Any], *, language: Language, responses: bool) -> dict[str, Any]:
    """One tool. Java and JavaScript values are asked for as source text, in a string. `responses`
    keeps the schema of what the tool returns.

    >>> doc = {"name": "geo.find", "description": "Find.", "parameters": {
    ...     "type": "dict", "properties": {"x": {"type": "float"}}, "required": ["x"]}}
    >>> openai_tool(doc, language="python", responses=False)["function"]["parameters"]
    {'type': 'object', 'properties': {'x': {'type': 'number'}}, 'required': ['x']}
    """
    parameters = _schema({**document["parameters"], "type": "dict"})
    if language != "python":
        parameters["properties"] = {
            name: _as_text(node, language) for name, node in document["parameters"]["properties"].items()
        }
    function = {"name": tool_name(document["name"]), "description": document["description"], "parameters": parameters}
    if responses and "response" in document:
        function["response"] = _schema(document["response"])
    return {"type": "function", "function": function}


def tool_name(name: str) -> str:
    """A name that chat templates and endpoints accept: they allow no dot.

    >>> tool_name("geo.find")
    'geo_find'
    """
    return name.replace(".", "_")


def _schema(node: Mapping[str, Any]) -> dict[str, Any]:
    converted = dict(node)
    if isinstance(converted.get("type"), str):
        converted["type"] = _TYPES.get(converted["type"], "string")
    if isinstance(converted.get("properties"), Mapping):
        converted["properties"] = {
            name: _schema({"type": "string", **child}) for name, child in converted["properties"].items()
        }
    if isinstance(converted.get("items"), Mapping):
        converted["items"] = _schema(converted["items"])
    return converted


def _as_text(node: Mapping[str, Any], language: Language) -> dict[str, Any]:
    kind = node["type"]
    elements = f" with elements of type {node['items']['type']}" if "items" in node else ""
    entries = f" with the entries {sorted(node['properties'])}" if "properties" in node else ""
    article = f"a {_NAMES[language]} value" if kind == "any" else f"a {_NAMES[language]} {kind}{elements}{entries}"
    description = f"{node.get('description', '')} Given as {article}, in source text.".strip()
    return {"type": "string", "description": description}

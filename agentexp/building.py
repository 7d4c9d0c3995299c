"""From a composed configuration to objects: a node `{_target_: agentexp.x.Y, key: value, …}` is first
bound to the signature of its target (nothing is imported), then built. Knows no Hydra.

A constructor's parameters are the keys of its node. A parameter that the node does not set is
injected by name when such a part exists (environment, model, policy, seed, …).
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentexp.errors import ConfigError, nearest
from agentexp.signatures import Parameter, Target, Type, find_target
from agentexp.source import lacking

Where = Callable[[str], str]  # the file and line, or the override, that set a dotted key
TARGET = "_target_"
OWN = "agentexp"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A node that fits its target. values: checked plain values, and Bound nodes, by parameter.
    injected: parameters that parts will fill."""

    key: str
    target: Target
    values: Mapping[str, Any]
    injected: tuple[str, ...]


class Binder:
    """Binds nodes and collects what is wrong with them, so that one message names everything.

    parts: names that may be injected. packages: those whose targets are built, besides agentexp.
    where: tells who set a key, for the messages.
    """

    def __init__(self, *, parts: Collection[str], packages: Sequence[str], where: Where) -> None:
        self.parts, self.packages, self.where = parts, (OWN, *packages), where
        self.problems: list[str] = []

    def bind(self, node: Any, key: str, wanted: str | None = None) -> Bound | None:
        """Bind one node; None after a problem. wanted: the class or protocol that it must make."""
        target = self._target(node, key)
        if target is None:
            return None
        if wanted is not None:
            self._fits(target, (wanted,), key)
        values: dict[str, Any] = {}
        for name in node:
            if name == TARGET:
                continue
            if name in target.parameters:
                values[name] = self._value(node[name], target.parameters[name], f"{key}.{name}", target)
            else:
                self._unknown(f"{key}.{name}", name, target)
        absent = [p for n, p in target.parameters.items() if n not in node and n not in self.parts and p.required]
        for parameter in absent:
            asked = f"{target.name} needs it ({parameter.type.text})"
            self._say(f"{key}.{parameter.name} is missing: {asked}; set it in {self.where(key)}")
        injected = tuple(n for n in target.parameters if n not in node and n in self.parts)
        return Bound(key=key, target=target, values=values, injected=injected)

    def finish(self) -> None:
        """Raise one ConfigError with everything that was wrong."""
        if self.problems:
            raise ConfigError("\n".join(dict.fromkeys(self.problems)))

    def _say(self, problem: str) -> None:
        self.problems.append(problem)

    def _target(self, node: Any, key: str) -> Target | None:
        if not isinstance(node, Mapping):
            self._say(
                f"{key} is {node!r} ({self.where(key)}), but a node with {TARGET} is needed.{_option_hint(key, node)}"
            )
            return None
        name = node.get(TARGET)
        if not isinstance(name, str):
            self._say(f"{key} ({self.where(key)}) has no {TARGET}; it must name the class or function to build")
            return None
        if name.partition(".")[0] not in self.packages or "." not in name:
            place = self.where(f"{key}.{TARGET}")
            self._say(
                f"{key}.{TARGET} is {name!r} ({place}); only targets of {', '.join(self.packages)} are built. "
                f"Name another package that you trust in plugins: plugins=[{name.partition('.')[0]}]"
            )
            return None
        try:
            return find_target(name)
        except ConfigError as error:
            self._say(f"{key}.{TARGET} ({self.where(f'{key}.{TARGET}')}): {error}")
            return None

    def _unknown(self, key: str, name: str, target: Target) -> None:
        known = [n for n in target.parameters if n not in self.parts] or ["none"]
        guess = nearest(name, known)
        self._say(f"{key} ({self.where(key)}) is no key of {target.name}.{guess} Its keys: {', '.join(known)}")

    def _value(self, value: Any, parameter: Parameter, key: str, target: Target) -> Any:
        return self._typed(value, parameter.type, key, target)

    def _typed(self, value: Any, kind: Type, key: str, target: Target) -> Any:
        if isinstance(value, Mapping) and TARGET in value:
            bound = self.bind(value, key)
            if bound is not None and not kind.anything:
                self._node_fits(bound.target, kind, key)
            return bound
        if kind.anything:
            return value
        if value is None and None in kind.plain:
            return None
        if kind.items and isinstance(value, list):
            return [self._typed(v, kind.items, f"{key}.{n}", target) for n, v in enumerate(value)]
        if kind.values and isinstance(value, Mapping):
            return {k: self._typed(v, kind.values, f"{key}.{k}", target) for k, v in value.items()}
        if kind.plain and (not kind.parts or not isinstance(value, Mapping)):
            return self._plain(value, kind, key, target)
        wanted, hint = " or ".join(kind.parts or (kind.text,)), _option_hint(key, value)
        self._say(
            f"{key} is {value!r} ({self.where(key)}), but {target.name} needs a node with {TARGET} there, "
            f"of {wanted}.{hint}"
        )
        return None

    def _plain(self, value: Any, kind: Type, key: str, target: Target) -> Any:
        try:
            return _adapter(kind.hint).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            inner = [str(p) for p in first["loc"] if isinstance(p, int) or not isinstance(value, str | int | float)]
            spot = ".".join([key, *inner]) if isinstance(value, list | dict) else key
            guess = nearest(value, kind.text.split(" | ")) if isinstance(value, str) else ""
            shown = _shown(first.get("input", value), value)
            self._say(f"{spot} is {shown} ({self.where(key)}), but {target.name} needs {kind.text}.{guess}")
            return None

    def _node_fits(self, made: Target, kind: Type, key: str) -> None:
        makes = made.makes
        if makes.anything or (makes.plain and set(makes.plain) <= set(kind.plain)):
            return
        if not kind.parts or not makes.parts:
            self._say(f"{key} is a node of {made.name} ({self.where(key)}), which gives {makes.text}, not {kind.text}")
            return
        self._fits(made, kind.parts, key)

    def _fits(self, made: Target, wanted: Sequence[str], key: str) -> None:
        for part in made.makes.parts:
            reasons = [lacking(part, w) for w in wanted]
            if reasons and all(reasons):
                self._say(
                    f"{key} is {made.name} ({self.where(f'{key}.{TARGET}')}), but {'; '.join(r for r in reasons if r)}"
                )


def build(bound: Bound, parts: Mapping[str, Any]) -> Any:
    """Import the target and call it, its nested nodes first.

    A ValueError that the constructor itself raises becomes a ConfigError that names the key.
    """
    values = {name: _built(value, parts) for name, value in bound.values.items()}
    values |= {name: parts[name] for name in bound.injected}
    module, _, attribute = bound.target.name.rpartition(".")
    try:
        make = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise ConfigError(
            f"{bound.key} needs {bound.target.name}, which cannot be imported: {error}. Install what it asks for "
            f"(extras of agentexp: pip install 'agentexp[…]'), or choose another {bound.key}"
        ) from error
    try:
        return make(**values)
    except ValueError as error:
        raised_inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
        deeper = raised_inside and error.__traceback__.tb_next.tb_next is not None  # type: ignore[union-attr]
        if deeper:  # not the constructor's own check: a bug deserves its traceback
            raise
        raise ConfigError(f"{bound.key} ({bound.target.name}): {error}") from error


def _built(value: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(value, Bound):
        return build(value, parts)
    if isinstance(value, list):
        return [_built(v, parts) for v in value]
    if isinstance(value, dict):
        return {k: _built(v, parts) for k, v in value.items()}
    return value


def _option_hint(key: str, value: Any) -> str:
    """What was probably meant by a bare word where a node belongs."""
    if not isinstance(value, str) or "." in key:
        return f" Set its keys instead: {key}.KEY=VALUE" if isinstance(value, str) else ""
    return f" To choose an option of a group write {key}=OPTION (or GROUP@{key}=OPTION)"


def _shown(found: Any, whole: Any) -> str:
    return repr(found if isinstance(whole, list | dict) and not isinstance(found, bytes) else whole)


@lru_cache(maxsize=256)
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)

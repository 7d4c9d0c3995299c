"""Constructors and functions as their source describes them, read without importing anything: a
configuration is checked in milliseconds, before torch is loaded. Knows no YAML."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union

from agentexp.errors import ConfigError, nearest
from agentexp.source import Module, class_of, follow, full_name, home_of, load

_PLAIN: dict[str, Any] = {
    "int": int, "float": float, "bool": bool, "str": str, "bytes": bytes, "list": list[Any], "dict": dict[str, Any],
    "tuple": tuple[Any, ...], "set": set[Any], "None": None, "pathlib.Path": Path,
}  # fmt: skip
_ANYTHING = {"typing.Any", "object"}
_LISTS = {"list", "set", "frozenset", "collections.abc.Sequence", "collections.abc.Iterable", "typing.Sequence"}
_DICTS = {"dict", "collections.abc.Mapping", "typing.Mapping"}


@dataclass(frozen=True, kw_only=True)
class Type:
    """What an annotation allows.

    plain: values that YAML can write, as typing objects. parts: dotted names of classes, which need a
    node with `_target_` (or an injected part). items, values: a list or a mapping of such nodes.
    """

    text: str
    plain: tuple[Any, ...] = ()
    parts: tuple[str, ...] = ()
    items: Type | None = None
    values: Type | None = None
    anything: bool = False

    @property
    def hint(self) -> Any:
        """The plain members as one typing object."""
        return Union[self.plain] if self.plain else None  # noqa: UP007  built at run time

    @property
    def holds_parts(self) -> bool:
        return bool(self.parts or self.items or self.values)

    def __or__(self, other: Type) -> Type:
        return Type(
            text=f"{self.text} | {other.text}",
            plain=self.plain + other.plain,
            parts=self.parts + other.parts,
            items=self.items or other.items,
            values=self.values or other.values,
            anything=self.anything or other.anything,
        )


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One key that a constructor takes."""

    name: str
    type: Type
    required: bool


@dataclass(frozen=True, kw_only=True)
class Target:
    """A class or function that `_target_` may name. makes: what calling it gives (its own name for a class)."""

    name: str
    parameters: Mapping[str, Parameter]
    makes: Type
    file: Path


def find_target(name: str) -> Target:
    """The target of a dotted name. ConfigError names the nearest one where there is none."""
    module, attribute = home_of(name)
    found = follow(module, attribute)
    if found is None:
        guess = nearest(attribute, module.public())
        raise ConfigError(
            f"{name} does not exist: {module.file} has no class or function {attribute!r}.{guess} "
            f"It has: {', '.join(module.public()) or 'none'}"
        )
    home, statement = found
    if isinstance(statement, ast.FunctionDef):
        makes = _annotation(home, statement.returns) if statement.returns else Type(text="anything", anything=True)
        return Target(name=name, parameters=_arguments(home, statement, skip=0), makes=makes, file=home.file)
    if isinstance(statement, ast.ClassDef):
        own = f"{home.name}.{statement.name}"
        makes = Type(text=own, parts=(own,))
        return Target(name=name, parameters=_constructor(home, statement), makes=makes, file=home.file)
    raise ConfigError(f"{name} is neither a class nor a function (see {home.file}); a _target_ must be one of them")


def _annotation(module: Module, expression: ast.expr) -> Type:
    text = ast.unparse(expression)
    match expression:
        case ast.Constant(value=None):
            return Type(text="null", plain=(None,))
        case ast.Constant(value=str(quoted)):
            return _annotation(module, ast.parse(quoted, mode="eval").body)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _annotation(module, left) | _annotation(module, right)
        case ast.Subscript(value=value, slice=inner):
            return _subscript(module, full_name(module, value), inner, text)
    name = full_name(module, expression)
    if name in _ANYTHING:
        return Type(text=text, anything=True)
    if name in _PLAIN:
        return Type(text=text, plain=(_PLAIN[name],))
    home, _, last = name.rpartition(".")
    source = load(home) if home else None
    match source and source.names.get(last):
        case ast.Assign(value=alias) | ast.AnnAssign(value=ast.expr() as alias) if source:
            return _annotation(source, alias)
    return Type(text=name, parts=(name,))


def _subscript(module: Module, name: str, inner: ast.expr, text: str) -> Type:
    arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name == "typing.Literal":
        values = tuple(ast.literal_eval(a) for a in arguments)
        return Type(text=" | ".join(map(str, values)), plain=(Literal[values],))
    if name in {"typing.Annotated", "typing.Final"}:
        return _annotation(module, arguments[0])
    types = [_annotation(module, a) for a in arguments if not (isinstance(a, ast.Constant) and a.value is ...)]
    if name == "typing.Optional":
        return types[0] | Type(text="null", plain=(None,))
    if name == "typing.Union":
        union = types[0]
        for t in types[1:]:
            union = union | t
        return union
    if name in _LISTS:
        return Type(text=text, items=types[0]) if types[0].holds_parts else _container(text, list, types)
    if name in _DICTS:
        return Type(text=text, values=types[1]) if types[1].holds_parts else _container(text, dict, types)
    if name == "tuple":
        variadic = len(types) != len(arguments)
        if variadic:
            return Type(text=text, items=types[0]) if types[0].holds_parts else _container(text, tuple, types, ...)
        return _container(text, tuple, types)
    return Type(text=text, parts=(name,))


def _container(text: str, kind: Any, types: list[Type], *rest: Any) -> Type:
    inner = tuple(Any if t.anything else t.hint for t in types)
    return Type(text=text, plain=(kind[(*inner, *rest)],))


def _constructor(module: Module, definition: ast.ClassDef) -> dict[str, Parameter]:
    for statement in definition.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return _arguments(module, statement, skip=1)
    inherited: dict[str, Parameter] = {}
    for base in reversed(definition.bases):
        found = class_of(full_name(module, base))
        inherited |= _constructor(*found) if found else {}
    names = [d.func if isinstance(d, ast.Call) else d for d in definition.decorator_list]
    if not any(full_name(module, d) == "dataclasses.dataclass" for d in names):
        return inherited
    fields = [s for s in definition.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
    for field in fields:
        assert isinstance(field.target, ast.Name)
        if "ClassVar" in ast.unparse(field.annotation):
            continue
        kind = _annotation(module, field.annotation)
        inherited[field.target.id] = Parameter(name=field.target.id, type=kind, required=field.value is None)
    return inherited


def _arguments(module: Module, function: ast.FunctionDef, *, skip: int) -> dict[str, Parameter]:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    bare = len(positional) - len(given.defaults)
    found = [(a, n < bare) for n, a in enumerate(positional)][skip:]
    found += [(a, default is None) for a, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return {
        a.arg: Parameter(
            name=a.arg,
            type=_annotation(module, a.annotation) if a.annotation else Type(text="anything", anything=True),
            required=required,
        )
        for a, required in found
    }

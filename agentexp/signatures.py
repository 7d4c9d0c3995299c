"""Constructors and functions as their source describes them, read without importing anything: a
configuration is checked in milliseconds, before torch is loaded. Knows no YAML."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Literal, Union

from agentexp.errors import ConfigError, nearest

_PLAIN: dict[str, Any] = {
    "int": int, "float": float, "bool": bool, "str": str, "bytes": bytes, "list": list[Any], "dict": dict[str, Any],
    "tuple": tuple[Any, ...], "set": set[Any], "None": None, "pathlib.Path": Path,
}  # fmt: skip
_ANYTHING = {"typing.Any", "object"}
_LISTS = {"list", "set", "frozenset", "collections.abc.Sequence", "collections.abc.Iterable", "typing.Sequence"}
_DICTS = {"dict", "collections.abc.Mapping", "typing.Mapping"}
_STRUCTURAL = {"typing.Protocol", "typing_extensions.Protocol"}


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


@dataclass(frozen=True)
class Module:
    """A parsed source file. names: every name bound at its top level."""

    name: str
    file: Path
    names: Mapping[str, ast.stmt]

    def public(self) -> list[str]:
        """Classes and functions that a `_target_` may name."""
        kinds = (ast.ClassDef, ast.FunctionDef)
        return [n for n, s in self.names.items() if isinstance(s, kinds) and not n.startswith("_")]


def source_file(module: str) -> Path | None:
    """Where a module's source lies; no module, not even a parent package, is imported."""
    top, *rest = module.split(".")
    spec = PathFinder.find_spec(top)
    if spec is None:
        return None
    if not rest and spec.origin and spec.origin.endswith(".py"):
        return Path(spec.origin)
    for root in spec.submodule_search_locations or ():
        place = Path(root).joinpath(*rest)
        for file in (place.with_suffix(".py"), place / "__init__.py") if rest else ():
            if file.is_file():
                return file
    return None


@lru_cache(maxsize=512)
def load(module: str) -> Module | None:
    """The parsed module, or None where there is no source."""
    file = source_file(module)
    if file is None:
        return None
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise ConfigError(f"{file}:{error.lineno} is not Python: {error.msg}") from error
    return Module(module, file, {name: s for s in _statements(tree.body) for name in _bound(s)})


def find_target(name: str) -> Target:
    """The target of a dotted name. ConfigError names the nearest one where there is none."""
    module, attribute = _split(name)
    found = _follow(module, attribute)
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


def lacking(part: str, wanted: str) -> str | None:
    """Why an object of class `part` cannot stand where `wanted` is annotated; None if it can (or if
    the sources do not tell). A protocol is compared by its members, a class by its ancestors."""
    asked, given = _class(wanted), _class(part)
    if asked is None or given is None or wanted == part:
        return None
    home, definition = asked
    if not _STRUCTURAL & set(_bases(home, definition)):
        return None if wanted in _ancestors(*given) else f"it is no {wanted}"
    offered = set(_members(*given))
    absent = [m for m in dict.fromkeys(_members(home, definition)) if m not in offered and not m.startswith("_")]
    return f"it lacks {', '.join(absent)}, which {wanted} asks for" if absent else None


def _split(name: str) -> tuple[Module, str]:
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = load(".".join(parts[:cut]))
        if module is not None and cut == len(parts) - 1:
            return module, parts[-1]
        if module is not None:
            beside = _beside(module)
            raise ConfigError(
                f"{name} does not exist: {module.name} has no module {parts[cut]!r}.{nearest(parts[cut], beside)}"
            )
    top = parts[0]
    raise ConfigError(f"{name} does not exist: no package {top!r} is installed; pip install it, or mend the name")


def _beside(module: Module) -> list[str]:
    if module.file.name != "__init__.py":
        return module.public()
    here = module.file.parent.iterdir()
    return sorted(p.stem for p in here if p.suffix == ".py" or (p.is_dir() and any(p.glob("*.py"))))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try):
            yield from _statements(statement.body)
            yield from _statements(statement.orelse)


def _bound(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [t.id for t in targets if isinstance(t, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            return [name]
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            return [a.asname or a.name for a in names]
    return []


def _follow(module: Module, name: str) -> tuple[Module, ast.stmt] | None:
    """The statement that defines a name, through imports."""
    statement = module.names.get(name)
    if isinstance(statement, ast.ImportFrom):
        origin = next((a.name for a in statement.names if (a.asname or a.name) == name), name)
        home = load(_absolute(module, statement))
        return _follow(home, origin) if home else None
    return (module, statement) if statement is not None else None


def _absolute(module: Module, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    package = module.name.split(".") if module.file.name == "__init__.py" else module.name.split(".")[:-1]
    base = package[: len(package) - statement.level + 1]
    return ".".join([*base, *([statement.module] if statement.module else [])])


def _name(module: Module, expression: ast.expr) -> str:
    """The full dotted name of what an expression names in a module."""
    if isinstance(expression, ast.Attribute):
        return f"{_name(module, expression.value)}.{expression.attr}"
    if not isinstance(expression, ast.Name):
        return ast.unparse(expression)
    statement = module.names.get(expression.id)
    match statement:
        case ast.ImportFrom(names=names):
            origin = next((a.name for a in names if (a.asname or a.name) == expression.id), expression.id)
            source = _absolute(module, statement)
            home = load(source) if source.partition(".")[0] not in {"typing", "collections", "pathlib"} else None
            if home is not None and origin in home.names:
                return _name(home, ast.Name(id=origin))
            return f"{source}.{origin}"
        case ast.Import(names=names):
            return next((a.name for a in names if (a.asname or a.name) == expression.id), expression.id)
        case None:
            return expression.id
    return f"{module.name}.{expression.id}"


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
            return _subscript(module, _name(module, value), inner, text)
    name = _name(module, expression)
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
        found = _class(_name(module, base))
        inherited |= _constructor(*found) if found else {}
    names = [d.func if isinstance(d, ast.Call) else d for d in definition.decorator_list]
    if not any(_name(module, d) == "dataclasses.dataclass" for d in names):
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


def _class(name: str) -> tuple[Module, ast.ClassDef] | None:
    home, _, last = name.rpartition(".")
    module = load(home) if home else None
    found = _follow(module, last) if module else None
    return (found[0], found[1]) if found and isinstance(found[1], ast.ClassDef) else None


def _bases(module: Module, definition: ast.ClassDef) -> list[str]:
    return [_name(module, b.value if isinstance(b, ast.Subscript) else b) for b in definition.bases]


def _ancestors(module: Module, definition: ast.ClassDef) -> list[str]:
    names = [f"{module.name}.{definition.name}"]
    for base in _bases(module, definition):
        found = _class(base)
        names += _ancestors(*found) if found else [base]
    return names


def _members(module: Module, definition: ast.ClassDef) -> list[str]:
    names: list[str] = []
    for base in _bases(module, definition):
        found = _class(base)
        names += _members(*found) if found else []
    for node in ast.walk(definition):
        match node:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
            case ast.Assign(targets=targets):
                names += [t.id for t in targets if isinstance(t, ast.Name)]
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                names.append(name)
    return names

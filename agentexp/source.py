"""Python source as names: which file defines what, through imports, without importing anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

from agentexp.errors import ConfigError, nearest

_NOT_FOLLOWED = {"typing", "typing_extensions", "collections", "pathlib", "dataclasses", "abc", "enum"}
_PROTOCOLS = {"typing.Protocol", "typing_extensions.Protocol"}


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
    file = source_file(module) if module.partition(".")[0] not in _NOT_FOLLOWED else None
    if file is None:
        return None
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise ConfigError(f"{file}:{error.lineno} is not Python: {error.msg}") from error
    return Module(module, file, {name: s for s in _statements(tree.body) for name in _bound(s)})


def home_of(name: str) -> tuple[Module, str]:
    """The module of a dotted name, and what is left. ConfigError names the nearest module."""
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


def follow(module: Module | None, name: str) -> tuple[Module, ast.stmt] | None:
    """The statement that defines a name, through imports."""
    if module is None:
        return None
    statement = module.names.get(name)
    if isinstance(statement, ast.ImportFrom):
        origin = next((a.name for a in statement.names if (a.asname or a.name) == name), name)
        return follow(load(_absolute(module, statement)), origin)
    return (module, statement) if statement is not None else None


def _absolute(module: Module, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    package = module.name.split(".") if module.file.name == "__init__.py" else module.name.split(".")[:-1]
    base = package[: len(package) - statement.level + 1]
    return ".".join([*base, *([statement.module] if statement.module else [])])


def full_name(module: Module, expression: ast.expr) -> str:
    """The full dotted name of what an expression names in a module."""
    if isinstance(expression, ast.Attribute):
        return f"{full_name(module, expression.value)}.{expression.attr}"
    if not isinstance(expression, ast.Name):
        return ast.unparse(expression)
    statement = module.names.get(expression.id)
    match statement:
        case ast.ImportFrom(names=names):
            origin = next((a.name for a in names if (a.asname or a.name) == expression.id), expression.id)
            source = _absolute(module, statement)
            home = load(source)
            if home is not None and origin in home.names:
                return full_name(home, ast.Name(id=origin))
            return f"{source}.{origin}"
        case ast.Import(names=names):
            return next((a.name for a in names if (a.asname or a.name) == expression.id), expression.id)
        case None:
            return expression.id
    return f"{module.name}.{expression.id}"


def lacking(part: str, wanted: str) -> str | None:
    """Why an object of class `part` cannot stand where `wanted` is annotated; None if it can (or if
    the sources do not tell). A protocol is compared by its members, a class by its ancestors."""
    asked, given = class_of(wanted), class_of(part)
    if asked is None or given is None or wanted == part:
        return None
    home, definition = asked
    if not _PROTOCOLS & set(_bases(home, definition)):
        return None if wanted in ancestors(*given) else f"it is no {wanted}"
    offered = set(members(*given))
    absent = [m for s in definition.body for m in _defined(s) if m not in offered and not m.startswith("_")]
    return f"it lacks {', '.join(absent)}, which {wanted} asks for" if absent else None


def class_of(name: str) -> tuple[Module, ast.ClassDef] | None:
    """The class of a dotted name, if its source can be read."""
    home, _, last = name.rpartition(".")
    found = follow(load(home) if home else None, last)
    return (found[0], found[1]) if found and isinstance(found[1], ast.ClassDef) else None


def _bases(module: Module, definition: ast.ClassDef) -> list[str]:
    return [full_name(module, b.value if isinstance(b, ast.Subscript) else b) for b in definition.bases]


def ancestors(module: Module, definition: ast.ClassDef) -> list[str]:
    """A class and all its bases."""
    names = [f"{module.name}.{definition.name}"]
    for base in _bases(module, definition):
        found = class_of(base)
        names += ancestors(*found) if found else [base]
    return names


def members(module: Module, definition: ast.ClassDef) -> list[str]:
    """Methods and attributes, inherited ones too, as far as the source tells."""
    names: list[str] = []
    for base in _bases(module, definition):
        found = class_of(base)
        names += members(*found) if found else []
    for statement in definition.body:
        names += _defined(statement)
        names += [
            node.attr
            for node in ast.walk(statement)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        ]
    return names


def _defined(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return [t.id for t in targets if isinstance(t, ast.Name)]
    return []

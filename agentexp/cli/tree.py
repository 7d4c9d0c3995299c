"""The conf/ folders on disk: which groups and options there are. Knows no Hydra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentexp.errors import ConfigError, DataError
from agentexp.source import source_file


@dataclass(frozen=True)
class Tree:
    """The folders that are searched for options: that of agentexp, then those of the plug-ins."""

    roots: tuple[Path, ...]

    def groups(self) -> list[str]:
        """Top-level groups, agentexp's own first."""
        found = [p.name for root in self.roots for p in sorted(root.iterdir()) if p.is_dir() and _is_group(p)]
        return list(dict.fromkeys(found))

    def is_group(self, name: str) -> bool:
        """Whether a name such as 'environment' or 'experiment/loop' is a group."""
        return bool(name) and any((root / name).is_dir() for root in self.roots)

    def options(self, group: str) -> list[str]:
        """The options of a group, with those of its folders: 'loop', or 'laptop/default'."""
        found: list[str] = []
        for root in self.roots:
            folder = root / group
            found += sorted(p.relative_to(folder).with_suffix("").as_posix() for p in folder.rglob("*.yaml"))
        return list(dict.fromkeys(found))

    def file(self, path: str) -> Path | None:
        """The file of a config path such as 'algorithm/loop'."""
        return next((f for root in self.roots if (f := root / f"{path}.yaml").is_file()), None)

    def about(self, group: str, option: str) -> str:
        """The first comment of an option's file."""
        file = self.file(f"{group}/{option}")
        for line in file.read_text(encoding="utf-8").splitlines() if file else ():
            if line.startswith("#") and "@package" not in line:
                return line.removeprefix("#").strip()
            if line and not line.startswith("#"):
                return ""
        return ""


def tree(plugins: Sequence[str] = ()) -> Tree:
    """The conf/ of agentexp and `PACKAGE/conf` of each plug-in; no package is imported."""
    return Tree((own_conf(), *(folder for name in plugins if (folder := _conf_of(name)).is_dir())))


def options_text(where: Tree) -> str:
    """Groups, their options, and what each is about."""
    lines = []
    for group in where.groups():
        lines.append(f"{group}:")
        options = where.options(group)
        width = max(map(len, options))
        lines += [f"  {option.ljust(width)}  {where.about(group, option)}".rstrip() for option in options]
    return "\n".join(lines)


def own_conf() -> Path:
    """The conf/ of agentexp: inside the package where it is installed, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "conf", package.parent / "conf"):
        if (folder / "config.yaml").is_file():
            return folder
    raise DataError(f"the configuration folder is missing: neither {package}/conf nor {package.parent}/conf holds it")


def _conf_of(name: str) -> Path:
    file = source_file(name) if name.isidentifier() else None
    if file is None:
        raise ConfigError(
            f"plugins names {name!r}, which is no package that this Python finds; install it (pip install …), "
            "or put its folder on PYTHONPATH"
        )
    return file.parent / ("conf" if file.name == "__init__.py" else f"{file.stem}_conf")


def _is_group(folder: Path) -> bool:
    return not folder.name.startswith((".", "_")) and any(folder.rglob("*.yaml"))

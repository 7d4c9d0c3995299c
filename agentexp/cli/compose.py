"""Hydra composes, we say what is wrong. Every composition error is said again with file, key and the
nearest valid one. The only file, with sweep.py, that knows Hydra; imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from agentexp.cli.origins import Contribution, Origins, short
from agentexp.cli.tree import Tree, own_conf, tree
from agentexp.errors import ConfigError, nearest

ROOT = "config"
_ABSENT = object()


@dataclass(frozen=True, kw_only=True)
class Composed:
    """A resolved configuration, plain; the options chosen by group; and who set what."""

    config: dict[str, Any]
    choices: Mapping[str, str]
    origins: Origins
    plugins: tuple[str, ...]
    overrides: tuple[Override, ...]


def compose_config(arguments: Sequence[str]) -> Composed:
    """Compose conf/config.yaml with overrides as typed."""
    overrides = parse(arguments)
    plugins = plugin_names(overrides)
    where = tree(plugins)
    check_groups(overrides, where)
    search = [f"hydra.searchpath=[{','.join(f'file://{r}' for r in where.roots[1:])}]"] if len(where.roots) > 1 else []
    with initialize_config_dir(config_dir=str(own_conf()), version_base="1.3"):
        try:
            composed = compose(ROOT, overrides=[*search, *arguments])
            origins, choices = _origins([*search, *arguments], overrides, where)
        except yaml.YAMLError as error:
            raise ConfigError(f"a configuration file is not YAML: {error}") from error
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(_said_again(error, overrides, where, search)) from error
    try:
        config = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        key = error.full_key or "a key"
        raise ConfigError(f"{key} ({origins.where(key)}): {str(error).splitlines()[0]}") from error
    assert isinstance(config, dict)
    return Composed(
        config={str(k): v for k, v in config.items()},
        choices=choices,
        origins=origins,
        plugins=plugins,
        overrides=tuple(overrides),
    )


def parse(arguments: Sequence[str]) -> list[Override]:
    """Overrides by Hydra's grammar: key=value, +key=value, ~key, key=a,b."""
    parser = OverridesParser.create()
    parsed = []
    for argument in arguments:
        if "=" not in argument and not argument.startswith("~"):
            raise ConfigError(f"{argument!r} is no override; write key=value, such as algorithm=rloo or seed=1")
        try:
            parsed.append(parser.parse_override(argument))
        except HydraException as error:
            reason = str(error).splitlines()[0]
            raise ConfigError(
                f"{argument!r} cannot be read as an override ({reason}); quote a value that holds spaces, commas, "
                "braces or equal signs: 'key=\"a, b\"'"
            ) from error
    return parsed


def plugin_names(overrides: Sequence[Override]) -> tuple[str, ...]:
    """Packages named by plugins=[…] on the command line, else in config.yaml."""
    given = [o for o in overrides if o.key_or_group == "plugins"]
    if given and not given[-1].is_delete():
        value = given[-1].value()
    else:
        value = OmegaConf.to_container(OmegaConf.load(own_conf() / f"{ROOT}.yaml")).get("plugins")  # type: ignore[union-attr]
    if not isinstance(value, list | None) or not all(isinstance(v, str) for v in value or ()):
        raise ConfigError(f"plugins is {value!r}; a list of package names is needed: plugins=[my_package]")
    return tuple(value or ())


def check_groups(overrides: Sequence[Override], where: Tree) -> None:
    """Refuse what Hydra would misread: unknown options, groups meant by a dotted key, misspelt groups."""
    groups, keys = where.groups(), _top_keys()
    for o in overrides:
        key, typed = o.key_or_group, o.input_line
        value = None if o.is_delete() or o.is_sweep_override() else o.value()
        if where.is_group(key):
            _check_option(o, value, where)
            continue
        head, dot, rest = key.partition(".")
        as_path = key.replace(".", "/")
        if dot and where.is_group(as_path):
            written = f"{head}={rest.replace('.', '/')}/{value}"
            raise ConfigError(f"{typed!r}: {as_path}/ is a folder of options of the group {head}; write {written}")
        if dot and where.is_group(head) and isinstance(value, str) and value in where.options(head):
            raise ConfigError(f"{typed!r}: {value!r} is an option of the group {head}; write {head}={value}")
        if "/" in key:
            known = [g for g in groups if where.is_group(g)]
            raise ConfigError(
                f"{typed!r}: there is no group {key!r} under conf/.{nearest(key.partition('/')[0], known)} "
                f"Groups: {', '.join(known)}. A single key is written with dots: {key.replace('/', '.')}=…"
            )
        if not dot and key not in keys and not o.is_add():
            known = [*groups, *keys]
            guess, listed = nearest(head, known), ", ".join(known)
            raise ConfigError(f"{typed!r}: conf/{ROOT}.yaml has no group or key {key!r}.{guess} It has: {listed}")
        if (
            not dot
            and key in keys
            and isinstance(value, str)
            and value in where.options("algorithm")
            and key == "warm_start"
        ):
            raise ConfigError(f"{typed!r}: to choose the warm start write algorithm@warm_start={value}")


def _check_option(o: Override, value: Any, where: Tree) -> None:
    group = o.key_or_group
    if value is None and not o.is_delete() and not o.is_sweep_override():
        raise ConfigError(f"{o.input_line!r}: {group} is a group; leave it out with ~{group}, or choose an option")
    wanted = value if isinstance(value, list) else [value]
    if o.is_sweep_override():
        wanted = [] if "glob(" in (o.input_line or "") else [_unquoted(str(v)) for v in o.sweep_string_iterator()]
    options = where.options(group)
    for option in wanted:
        if option is None:
            continue
        if not isinstance(option, str) or option not in options:
            raise ConfigError(
                f"{o.input_line!r}: the group {group} ({where.roots[0].name}/{group}/) has no option {option!r}."
                f"{nearest(str(option), options)} Options: {', '.join(options)}. "
                "The options of another package need plugins=[PACKAGE]"
            )
    if o.is_add() and not o.package and group in {g for g, _ in _default_groups()}:
        raise ConfigError(f"{o.input_line!r}: the group {group} is chosen already; write {group}={value} without the +")


def _unquoted(value: str) -> str:
    return value.strip("'\"")


def _default_groups() -> Iterator[tuple[str, Any]]:
    for entry in OmegaConf.to_container(OmegaConf.load(own_conf() / f"{ROOT}.yaml"))["defaults"]:  # type: ignore[index,call-overload]
        if isinstance(entry, dict):
            (name, option), *_ = entry.items()
            yield name.removeprefix("optional ").removeprefix("override "), option


def _top_keys() -> list[str]:
    keys = OmegaConf.load(own_conf() / f"{ROOT}.yaml").keys() - {"defaults"}
    packages = [g.partition("@")[2] for g, _ in _default_groups() if "@" in g]
    return sorted(str(k) for k in keys) + packages


def _origins(arguments: Sequence[str], overrides: Sequence[Override], where: Tree) -> tuple[Origins, dict[str, str]]:
    loader = GlobalHydra.instance().config_loader()
    defaults = loader.compute_defaults_list(config_name=ROOT, overrides=list(arguments), run_mode=RunMode.RUN)
    files = []
    for entry in defaults.defaults:
        path = entry.config_path
        file = where.file(path) if path and not path.startswith("hydra/") else None
        if file is not None:
            files.append(Contribution(file, "" if entry.package in {None, "_global_"} else str(entry.package)))
    values = [
        (o.key_or_group, "(deleted)" if o.is_delete() else str(o.value()), f"command line: {o.input_line}")
        for o in overrides
        if not where.is_group(o.key_or_group)
    ]
    chosen = [
        (
            f"{o.key_or_group}@{o.package}" if o.package else o.key_or_group,
            str(o.value()),
            f"command line: {o.input_line}",
        )
        for o in overrides
        if where.is_group(o.key_or_group) and not o.is_delete()
    ]
    choices = {k: v for k, v in defaults.overrides.known_choices.items() if not k.startswith("hydra/") and v}
    by = {
        k: m.containing_config_path for k, m in defaults.overrides.override_metadata.items() if not m.external_override
    }
    for group in choices:
        file = where.file(by.get(group) or ROOT)
        if file is not None and not any(g == group for g, _, _ in chosen):
            chosen.append((group, choices[group], short(file)))
    return Origins(files, chosen, values), choices


def _said_again(error: Exception, overrides: Sequence[Override], where: Tree, search: Sequence[str]) -> str:
    """Hydra's complaint, with the key, the place and the nearest valid key."""
    bad = _culprit(overrides, where, search)
    if bad is None:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"the configuration cannot be composed: {' '.join(lines)}"
    override, problem, base, origins = bad
    if problem:
        return f"{override.input_line!r}: {problem}"
    node: Any = base
    parent = name = ""
    for name in override.key_or_group.split("."):
        if not isinstance(node, DictConfig) or name not in node:
            break
        node, parent = node._get_node(name), f"{parent}.{name}" if parent else name
    known = [str(k) for k in node] if isinstance(node, DictConfig) else []
    file = origins.where(parent).partition(":")[0]
    meant = f" To choose an option of the group write {parent}=OPTION." if where.is_group(parent) else ""
    return (
        f"{override.input_line!r}: there is no key {override.key_or_group!r}: {file} has no {name!r}"
        f"{f' in {parent}' if parent else ''}.{nearest(name, known)}{meant} Its keys: {', '.join(known) or 'none'}"
    )


def _culprit(
    overrides: Sequence[Override], where: Tree, search: Sequence[str]
) -> tuple[Override, str, DictConfig, Origins] | None:
    """The first override that breaks the composition of those before it, what Hydra says of it (nothing:
    its key does not exist), and the configuration without it and its origins."""
    groups = [o for o in overrides if where.is_group(o.key_or_group)]
    good = [*search, *(str(o.input_line) for o in groups)]
    try:
        base = compose(ROOT, overrides=good)
    except HydraException:
        return None
    for o in (o for o in overrides if o not in groups):
        try:
            following = compose(ROOT, overrides=[*good, str(o.input_line)])
        except HydraException as error:
            exists = OmegaConf.select(base, o.key_or_group, default=_ABSENT) is not _ABSENT
            cause = error.__cause__ if error.__cause__ is not None else error
            origins, _ = _origins(good, groups, where)
            return o, str(cause).splitlines()[0] if exists or o.is_add() else "", base, origins
        base, good = following, [*good, str(o.input_line)]
    return None

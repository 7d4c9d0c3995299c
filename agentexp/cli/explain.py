"""`--explain KEY`: a value, and every file that sets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from agentexp.cli.compose import Composed
from agentexp.errors import ConfigError, nearest


def explain(composed: Composed, key: str) -> str:
    """The value of a dotted key and who set it; for a group, which option and who chose it."""
    known = list(_keys(composed.config, ""))
    if key not in known:
        last = key.rpartition(".")[2]
        close = nearest(key, [k for k in known if k.rpartition(".")[2] == last] or known)
        raise ConfigError(f"there is no key {key!r} in this configuration.{close}")
    value: Any = composed.config
    for name in key.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    lines = []
    group, choice = _choice(composed, key)
    if choice:
        lines.append(f"{group}={choice}, chosen by {composed.origins.chosen(group)}")
    lines.append(_shown(key, value))
    settings = composed.origins.of(key)
    width = max((len(str(o)) for o in settings), default=0)
    for n, origin in enumerate(settings):
        wins = "   <- wins" if n == len(settings) - 1 and len(settings) > 1 else ""
        lines.append(f"  {str(origin).ljust(width)}  {origin.text}{wins}".rstrip())
    if not settings:
        lines.append(f"  {composed.origins.where(key)}")
    return "\n".join(lines)


def _choice(composed: Composed, key: str) -> tuple[str, str | None]:
    for group, option in composed.choices.items():
        name, _, package = group.partition("@")
        if key == (package or name):
            return group, option
    return key, None


def _shown(key: str, value: Any) -> str:
    if isinstance(value, Mapping | list):
        body = yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()
        return f"{key}:\n" + "\n".join(f"    {line}" for line in body.splitlines())
    return f"{key} = {yaml.safe_dump(value, allow_unicode=True).removesuffix('...' + chr(10)).strip()}"


def _keys(node: Any, prefix: str) -> Iterator[str]:
    items = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ()
    for name, value in items:
        key = f"{prefix}.{name}" if prefix else str(name)
        yield key
        yield from _keys(value, key)

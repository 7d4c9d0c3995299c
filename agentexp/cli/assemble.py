"""The composition root: a composed configuration becomes the parts of a run. First all of it is bound
and type-checked; only then is anything heavy imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentexp.building import Binder, Bound, build
from agentexp.cli.compose import Composed
from agentexp.errors import ConfigError, nearest

# section of the configuration -> (name under which the part is injected, what it must be), in the order of building
SECTIONS: dict[str, tuple[str, str | None]] = {
    "environment": ("environment", "agentexp.envs.base.Environment"),
    "agent": ("agent", "agentexp.agents.base.Agent"),
    "hardware": ("hardware", "agentexp.hardware.Hardware"),
    "model": ("model", "agentexp.learning.model.Model"),
    "reward_model": ("reward_model", "agentexp.learning.reward_model.RewardModel"),
    "policy": ("policy", "agentexp.policies.base.Policy"),
    "rollout": ("rollouts", "agentexp.rollouts.collect.Rollouts"),
    "evaluation": ("evaluation", "agentexp.evaluation.evaluate.Evaluation"),
    "warm_start": ("warm_start", "agentexp.run.Algorithm"),
    "algorithm": ("algorithm", "agentexp.run.Algorithm"),
    "tracking": ("tracker", "agentexp.tracking.Tracker"),
    "run": ("run", "agentexp.run.Run"),
}
OPTIONAL = {"warm_start"}
ON_DEMAND = {"reward_model"}  # built only where another part asks for it
PLAIN: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "seed": (int,),
    "output_root": (str,),
    "output_dir": (str, type(None)),
    "plugins": (list,),
}
INJECTED = frozenset({"name", "seed", "output_dir", "plugins", "chat", *(part for part, _ in SECTIONS.values())})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A configuration that fits: every section bound, nothing built."""

    sections: Mapping[str, Bound]
    name: str
    seed: int
    output_dir: Path
    config: Mapping[str, Any]  # as the run folder records it: without places


def bind(composed: Composed, output_dir: Path) -> Recipe:
    """Check everything against the constructors' signatures. One ConfigError names all that is wrong."""
    config, where = composed.config, composed.origins.where
    binder = Binder(parts=INJECTED, packages=composed.plugins, where=where)
    _check_top(config, composed, binder)
    sections: dict[str, Bound] = {}
    for section, (_, wanted) in SECTIONS.items():
        node = config.get(section)
        unused = section == "warm_start" and not _warm_iterations(config)
        if section not in config and section not in OPTIONAL:
            binder.problems.append(f"{section} is missing; choose an option of the group: {section}=OPTION")
        elif node is not None or section not in OPTIONAL:
            bound = binder.bind(node, section, wanted)
            if bound is not None and not unused:
                sections[section] = bound
    binder.finish()
    recorded = {k: v for k, v in config.items() if k not in {"output_root", "output_dir"}}
    return Recipe(sections=sections, name=config["name"], seed=config["seed"], output_dir=output_dir, config=recorded)


def assemble(recipe: Recipe, without: Collection[str] = ()) -> dict[str, Any]:
    """Build every part, in order, each with the parts before it. without: sections to leave out (None)."""
    parts: dict[str, Any] = {
        "name": recipe.name,
        "seed": recipe.seed,
        "output_dir": str(recipe.output_dir),
        "plugins": list(recipe.config["plugins"]),
    }
    _quiet()
    used = {s: b for s, b in recipe.sections.items() if s not in without}
    for section, (part, _) in SECTIONS.items():
        bound = used.get(section)
        if section in ON_DEMAND and not any(_asks(b, part) for b in used.values()):
            bound = None
        absent = [n for n in bound.injected if n not in parts] if bound else []
        if absent:
            before = ", ".join(parts)
            raise ConfigError(f"{section} asks for {', '.join(absent)}, built after it; built before it are {before}")
        parts[part] = build(bound, parts) if bound else None
        if section == "model":
            from agentexp.policies.chat import Chat

            parts["chat"] = Chat(tokenizer=parts["model"].tokenizer)
    return parts


def _asks(value: Any, part: str) -> bool:
    """Whether a bound node, or one inside it, is given the part."""
    if isinstance(value, Bound):
        return part in value.injected or any(_asks(v, part) for v in value.values.values())
    if isinstance(value, Mapping):
        return any(_asks(v, part) for v in value.values())
    return isinstance(value, list) and any(_asks(v, part) for v in value)


def _quiet() -> None:
    """Without a terminal, no progress bars of libraries in the output."""
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def _warm_iterations(config: Mapping[str, Any]) -> bool:
    run = config.get("run")
    return bool(isinstance(run, Mapping) and run.get("warm_start_iterations"))


def _check_top(config: Mapping[str, Any], composed: Composed, binder: Binder) -> None:
    known = [*PLAIN, *SECTIONS]
    where = composed.origins.where
    for key in config:
        if key not in known:
            binder.problems.append(
                f"{key} ({where(key)}) is no key of config.yaml.{nearest(key, known)} Its keys: {', '.join(known)}"
            )
    for key, kinds in PLAIN.items():
        value = config.get(key)
        if not isinstance(value, kinds) or isinstance(value, bool):
            names = " | ".join("null" if k is type(None) else k.__name__ for k in kinds)
            binder.problems.append(f"{key} is {value!r} ({where(key)}), but {names} is needed")

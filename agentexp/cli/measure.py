"""`agentexp evaluate`: a run folder's checkpoint, or any model, on any split, without training."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from omegaconf import OmegaConf

from agentexp.checkpoints import Checkpoint, Checkpoints
from agentexp.cli.assemble import assemble, bind
from agentexp.cli.compose import Composed, check_groups, compose_config, parse
from agentexp.cli.origins import Contribution, Origins
from agentexp.cli.places import label_of
from agentexp.cli.train import model_folder
from agentexp.cli.tree import tree
from agentexp.errors import ConfigError, DataError

if TYPE_CHECKING:
    from agentexp.learning.model import Model
    from agentexp.policies.base import Policy

_UNUSED = ("run", "tracking", "algorithm", "warm_start")  # sections that measuring does not need


def measure(run: Path | None, arguments: Sequence[str], which: str) -> int:
    """Measure and write result.json into a folder of its own."""
    composed = compose_config(arguments) if run is None else recompose(run, arguments)
    checkpoint = None if run is None else _checkpoint(run, which)
    place = _place(composed, run, checkpoint)
    recipe = bind(composed, place)
    parts = assemble(recipe, without=_UNUSED)
    number = None if checkpoint is None else checkpoint.number
    if checkpoint is not None:
        _load(parts["model"], parts["policy"], checkpoint)
    from agentexp.evaluation.standalone import evaluate_only

    evaluate_only(
        name=recipe.name,
        seed=recipe.seed,
        output_dir=str(place),
        evaluation=parts["evaluation"],
        config={**recipe.config, "evaluated": {"run": None if run is None else str(run), "checkpoint": number}},
        what=f"model {parts['model'].name}" if run is None else f"checkpoint {number} of {run}",
    )
    print(f"Results: {place / 'result.json'}")
    return 0


def _place(composed: Composed, run: Path | None, checkpoint: Checkpoint | None) -> Path:
    label = label_of(composed.overrides)
    if composed.config.get("output_dir") is not None:
        return Path(str(composed.config["output_dir"]))
    if run is not None and checkpoint is not None:
        return run / "evaluations" / ",".join(filter(None, (f"checkpoint-{checkpoint.number}", label)))
    root = Path(str(composed.config["output_root"])) / "evaluations"
    return root / (label or str(composed.config["name"])) / str(composed.config["seed"])


def _load(model: Model, policy: Policy, checkpoint: Checkpoint) -> None:
    """Only the weights: what else an algorithm kept does not matter here, so any split may be played."""
    state = checkpoint.load()["state"]
    weights = state.get("learner", {}).get("weights")
    if weights is None:
        raise DataError(
            f"{checkpoint.path} holds no learner.weights: its algorithm keeps its model elsewhere. Measure the saved "
            "model instead: agentexp evaluate model.weights=RUN"
        )
    model.load_weights(weights)
    policy.refresh()


def recompose(run: Path, arguments: Sequence[str]) -> Composed:
    """A run folder's own configuration, with sections chosen anew and single keys changed by overrides."""
    file = run / "config.yaml"
    if not file.is_file():
        raise DataError(f"{run} is not a run folder: it has no config.yaml. Give the folder that holds one.")
    try:
        before: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DataError(f"{file} cannot be read as YAML: {error}") from error
    if not isinstance(before, dict):
        raise DataError(f"{file} holds no configuration. Give the folder of a whole run.")
    overrides = parse(arguments)
    plugins = [str(p) for p in before.get("plugins") or []]
    where = tree(plugins)
    check_groups(overrides, where)
    groups = [o for o in overrides if where.is_group(o.key_or_group)]
    if any(o.is_delete() or o.is_sweep_override() for o in overrides):
        raise ConfigError("evaluate takes key=value and group=option only, one value each")
    chosen = [str(o.input_line) for o in groups]
    fresh = compose_config([*chosen, f"plugins=[{','.join(plugins)}]"]).config if groups else {}
    config = OmegaConf.create({"output_root": "runs", "output_dir": None, **before})
    for o in groups:
        section = o.package or o.key_or_group
        if section not in fresh:
            raise ConfigError(f"{o.input_line!r}: evaluate cannot change {section}; set single keys of it instead")
        config[section] = fresh[section]
    for o in overrides:
        if o not in groups:
            OmegaConf.update(config, o.key_or_group, o.value(), force_add=True)
    saved, model = model_folder(run), config.get("model") or {}
    if "weights" in model and ("path" not in model or (saved / "adapter_config.json").is_file()) and saved.is_dir():
        model["weights"] = str(run)  # with its own words, should the vocabulary have grown since
    values = [(o.key_or_group, str(o.value()), f"command line: {o.input_line}") for o in overrides if o not in groups]
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    return Composed(
        config={str(k): v for k, v in plain.items()},
        choices={},
        origins=Origins([Contribution(file, "")], [], values),
        plugins=tuple(plugins),
        overrides=tuple(overrides),
    )


def _checkpoint(run: Path, which: str) -> Checkpoint:
    store = Checkpoints(run / "checkpoints", keep=1)
    if which in {"latest", "best"}:
        found = store.best() if which == "best" else store.latest()
    elif which.isdigit():
        found = store.numbered(int(which))
    else:
        raise ConfigError(f"--checkpoint is {which!r}; allowed: latest, best, or a number")
    for notice in store.notices:
        print(notice, file=sys.stderr)
    if found is None:
        numbers = ", ".join(str(c.number) for c in store.all()) or "none; train it first (its command resumes it)"
        raise DataError(f"{run} has no whole checkpoint {which!r}. There are: {numbers}")
    return found

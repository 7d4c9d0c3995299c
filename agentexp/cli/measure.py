"""`agentexp evaluate`: a run folder's checkpoint, or any model, on any split, without training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import yaml
from omegaconf import OmegaConf

from agentexp.cli.assemble import assemble, bind
from agentexp.cli.compose import Composed, check_groups, compose_config, parse
from agentexp.cli.origins import Contribution, Origins
from agentexp.cli.places import label_of
from agentexp.cli.tree import tree
from agentexp.errors import ConfigError, DataError

_UNTRAINED = ("run", "tracking")


def measure(run: Path | None, arguments: Sequence[str], checkpoint: str) -> int:
    """Measure and write result.json into a folder of its own."""
    composed = compose_config(arguments) if run is None else recompose(run, arguments)
    label = label_of(composed.overrides)
    learners = ("algorithm", "warm_start") if run is None else ()
    if run is None:
        number = None
        place = Path(str(composed.config["output_root"])) / "evaluations" / (label or str(composed.config["name"]))
        place = place / str(composed.config["seed"])
    else:
        number = _number(run, checkpoint)
        place = run / "evaluations" / (f"checkpoint-{number}" + (f",{label}" if label else ""))
    if composed.config.get("output_dir") is not None:
        place = Path(str(composed.config["output_dir"]))
    recipe = bind(composed, place)
    parts = assemble(recipe, without=(*_UNTRAINED, *learners))
    what = f"model {parts['model'].name}"
    config = {**recipe.config, "evaluated": {"run": None if run is None else str(run), "checkpoint": number}}
    if run is not None and number is not None:
        from agentexp.checkpoints import restore

        trained = {"warm_start": parts["warm_start"], "algorithm": parts["algorithm"]}
        restore(run / "checkpoints", trained, which=number)
        what = f"checkpoint {number} of {run}"
    from agentexp.evaluation.standalone import evaluate_only

    evaluate_only(
        name=recipe.name,
        seed=recipe.seed,
        output_dir=str(place),
        evaluation=parts["evaluation"],
        config=config,
        what=what,
    )
    print(f"Results: {place / 'result.json'}")
    return 0


def recompose(run: Path, arguments: Sequence[str]) -> Composed:
    """A run folder's own configuration, with sections chosen anew and single keys changed by overrides."""
    file = run / "config.yaml"
    if not file.is_file():
        raise DataError(f"{run} is not a run folder: it has no config.yaml. Give the folder that holds one.")
    before: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
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
    values = [(o.key_or_group, str(o.value()), str(o.input_line)) for o in overrides if o not in groups]
    plain = OmegaConf.to_container(config, resolve=True)
    assert isinstance(plain, dict)
    return Composed(
        config={str(k): v for k, v in plain.items()},
        choices={},
        origins=Origins([Contribution(file, "")], [(o.key_or_group, "", str(o.input_line)) for o in groups], values),
        plugins=tuple(plugins),
        overrides=tuple(overrides),
    )


def _number(run: Path, which: str) -> int:
    from agentexp.checkpoints import Checkpoints

    store = Checkpoints(run / "checkpoints", keep=1)
    if which.isdigit():
        return int(which)
    if which not in {"latest", "best"}:
        raise ConfigError(f"--checkpoint is {which!r}; allowed: latest, best, or a number")
    kind: Literal["latest", "best"] = "best" if which == "best" else "latest"
    found = store.best() if kind == "best" else store.latest()
    if found is None:
        raise DataError(f"{run} holds no whole checkpoint; train it first (its command resumes it)")
    return found.number

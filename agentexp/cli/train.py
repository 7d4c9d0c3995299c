"""`agentexp train`: compose, bind, look whether it is done; then build, run, and save the model."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from agentexp.cli.assemble import Recipe, assemble, bind
from agentexp.cli.compose import Composed, compose_config, parse
from agentexp.cli.explain import explain
from agentexp.cli.places import run_folder
from agentexp.errors import ConfigError
from agentexp.files import TEMPORARY, make_folder, storing

if TYPE_CHECKING:
    from agentexp.learning.model import Model
    from agentexp.learning.reward_model import RewardModel


def train(arguments: Sequence[str]) -> int:
    """One run, from the start or from its last checkpoint."""
    recipe = prepare(_single(arguments))
    from agentexp.console import last_line
    from agentexp.folder import RunFolder

    folder = RunFolder(recipe.output_dir)
    done = folder.finished(recipe.config)
    if done is not None:
        print(f"{recipe.output_dir} is done.\n{last_line(done)}")
        return 0
    make_folder(recipe.output_dir)
    print(f"Run folder: {recipe.output_dir}", flush=True)
    parts = assemble(recipe)
    parts["run"].train(
        algorithm=parts["algorithm"],
        evaluation=parts["evaluation"],
        tracker=parts["tracker"],
        warm_start=parts["warm_start"],
        config=recipe.config,
        export=partial(save_models, parts, recipe.output_dir),
    )
    return 0


def prepare(composed: Composed) -> Recipe:
    """Bind a composed configuration for its run folder."""
    return bind(composed, run_folder(composed))


def check(arguments: Sequence[str]) -> int:
    """Print the checked configuration and where it would run."""
    recipe = prepare(_single(arguments))
    print(f"# {recipe.output_dir}")
    print(yaml.safe_dump(dict(recipe.config), sort_keys=False, allow_unicode=True), end="")
    return 0


def explain_key(arguments: Sequence[str], key: str) -> int:
    """Print a value and who set it."""
    print(explain(_single(arguments), key))
    return 0


def model_folder(run: Path) -> Path:
    """Where a finished run keeps its model: `model.weights=RUN` finds it."""
    return run / "model"


def save_models(parts: Mapping[str, Any], run: Path) -> None:
    """Write what the run made: the model, and its reward model if it has one."""
    if parts["reward_model"] is not None:
        save_model(parts["reward_model"], run / "reward_model")
    save_model(parts["model"], model_folder(run))


def save_model(model: Model | RewardModel, final: Path) -> None:
    """Write weights and tokenizer, whole or not at all."""
    from safetensors import SafetensorError
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    aside = final.with_name(f"{TEMPORARY}{final.name}")
    with storing(final, "writing"):
        shutil.rmtree(aside, ignore_errors=True)
        try:
            model.save(aside)
            shutil.rmtree(final, ignore_errors=True)
            aside.replace(final)
        except SafetensorError as error:  # it hides the OSError in its text
            code = re.search(r"os error (\d+)", str(error))
            if code is None:
                raise
            raise OSError(int(code[1]), os.strerror(int(code[1]))) from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _single(arguments: Sequence[str]) -> Composed:
    swept = [str(o.input_line) for o in parse(arguments) if o.is_sweep_override()]
    if swept:
        raise ConfigError(
            f"{swept[0]!r} holds several values; for a sweep write agentexp train -m {' '.join(arguments)}"
        )
    return compose_config(arguments)

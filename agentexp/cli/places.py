"""Where a run lives: <output_root>/<name>/<what the command line overrides>/<seed>, without timestamps,
so that the same command finds its own run again and another one never does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from hydra.core.override_parser.types import Override

from agentexp.cli.compose import Composed
from agentexp.errors import ConfigError

_NOT_TOLD = {"name", "seed", "output_root", "output_dir", "plugins", "experiment"}
_LONGEST = 100


def run_folder(composed: Composed, swept: Collection[str] = ()) -> Path:
    """The folder of a composed run; an output_dir that is set is taken as it is.

    swept: keys that tell the members of a sweep apart. They stand in the path even of a run that
    was given a name; all other overrides do only where it was not.
    """
    config = composed.config
    if config.get("output_dir") is not None:
        return Path(str(config["output_dir"]))
    named = any(o.key_or_group == "name" for o in composed.overrides)
    told = [o for o in composed.overrides if o.get_key_element() in swept or not named]
    base, label = Path(str(config["output_root"])) / str(config["name"]), label_of(told)
    return base / label / str(config["seed"]) if label else base / str(config["seed"])


def label_of(overrides: Iterable[Override]) -> str:
    """What is overridden, as a folder name: 'algorithm=rloo', sorted; shortened with a hash where too long."""
    whole = ",".join(sorted(str(o.input_line) for o in overrides if o.key_or_group not in _NOT_TOLD))
    label = re.sub(r"[^A-Za-z0-9._=,+~@-]+", "-", whole)
    if len(label) > _LONGEST:
        label = f"{label[:_LONGEST]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return label


def refuse_sharing(folders: Sequence[Path]) -> None:
    """Every member of a sweep needs a folder of its own."""
    twice = sorted({str(f) for f in folders if list(folders).count(f) > 1})
    if twice:
        raise ConfigError(
            f"members of the sweep would share {', '.join(twice)}; sweep each value once, and leave output_dir "
            "(a single folder) out: output_root=FOLDER holds them all"
        )

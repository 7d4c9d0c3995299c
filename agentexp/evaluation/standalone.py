"""`agentexp evaluate`: measures one policy on one split into its own result.json, without training."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentexp.console import Display, evaluated_line
from agentexp.evaluation.evaluate import Evaluation
from agentexp.files import make_folder
from agentexp.folder import RunFolder, write_json
from agentexp.provenance import provenance
from agentexp.store import write_trajectories


def evaluate_only(
    *, name: str, seed: int, output_dir: str, evaluation: Evaluation, config: Mapping[str, Any], what: str
) -> dict[str, Any]:
    """Measure what `evaluation.rollouts` plays; `what` names it in words. Repeating a finished
    command prints its result again; a killed one starts over.
    """
    folder = RunFolder(Path(output_dir))
    display = Display()
    with folder.locked() as notice, display:
        display.notice(notice)
        result = folder.finished(config)
        if result is None:
            folder.prepare(config)
            manifest = evaluation.manifest()
            write_json(folder.manifest, manifest)
            write_json(folder.provenance, provenance(config, manifest["environment"]))
            started = time.monotonic()
            found = evaluation.full(display.progress)
            make_folder(folder.trajectories)
            for measured in found.values():
                write_trajectories(folder.trajectories / f"evaluation-{measured.word}.parquet", measured.trajectories)
            main = found["success"]
            result = {
                "name": name,
                "seed": seed,
                "what": what,
                "split": evaluation.split,
                "games": main.games,
                "games_sha256": manifest["sha256"],
                "trials": main.trials,
                "decoding": main.decoding,
                "success": main.success.to_json(),
                **({"greedy": found["greedy"].success.to_json()} if "greedy" in found else {}),
                "by_type": {kind: e.to_json() for kind, e in main.by_type.items()},
                "details": {decoding: measured.to_json() for decoding, measured in found.items()},
                "environment": manifest["environment"],
                "label": manifest["environment"].get("label", ""),
                "wall_s": time.monotonic() - started,
            }
            write_json(folder.result, result)
        display.say(evaluated_line(result))
    return result

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
            make_folder(folder.trajectories)
            result = {
                "name": name,
                "seed": seed,
                "what": what,
                **measured(evaluation, manifest, display, folder.trajectories, prefix="evaluation-"),
                "environment": manifest["environment"],
                "label": manifest["environment"].get("label", ""),
            }
            if evaluation.also is not None:
                result["also"] = measured(
                    evaluation.also, manifest["also"], display, folder.trajectories, prefix="also-"
                )
            result["wall_s"] = time.monotonic() - started
            write_json(folder.result, result)
        display.say(evaluated_line(result))
        if result.get("also"):
            display.say(evaluated_line({"what": what, **result["also"]}))
    return result


def measured(
    evaluation: Evaluation, manifest: Mapping[str, Any], display: Display, trajectories: Path, *, prefix: str
) -> dict[str, Any]:
    """One evaluation's part of the result; its trajectories go to files whose names begin with `prefix`."""
    found = evaluation.full(display.progress)
    for one in found.values():
        write_trajectories(trajectories / f"{prefix}{one.word}.parquet", one.trajectories)
    main = found["success"]
    return {
        "split": evaluation.split,
        "games": main.games,
        "games_sha256": manifest["sha256"],
        "trials": main.trials,
        "decoding": main.decoding,
        "success": main.success.to_json(),
        **({"greedy": found["greedy"].success.to_json()} if "greedy" in found else {}),
        "pass_hat": {str(k): value for k, value in main.pass_hat.items()},
        "floor": main.floor,
        "by_type": {kind: e.to_json() for kind, e in main.by_type.items()},
        "details": {decoding: one.to_json() for decoding, one in found.items()},
    }

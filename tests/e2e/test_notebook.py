"""The notebook's cells run, in order, on a run folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_cells_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "AGENTEXP_RUN": str(run),
    }
    made = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "toy_run.py"), str(run)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    notebook = json.loads((ROOT / "notebooks" / "read_a_run.ipynb").read_text())
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "after" in done.stdout

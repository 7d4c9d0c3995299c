"""Every option of every group composes, binds to its constructors' signatures, and imports no torch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentexp.cli.assemble import SECTIONS
from agentexp.cli.compose import compose_config
from agentexp.cli.train import prepare
from agentexp.cli.tree import tree

TREE = tree()
OPTIONS = [(group, option) for group in TREE.groups() for option in TREE.options(group)]


@pytest.mark.parametrize(("group", "option"), OPTIONS, ids=[f"{g}={o}" for g, o in OPTIONS])
def test_option_composes_and_binds(group: str, option: str) -> None:
    recipe = prepare(compose_config([f"{group}={option}"]))
    assert recipe.sections.keys() == SECTIONS.keys() - (
        {} if recipe.config["run"]["warm_start_iterations"] else {"warm_start"}
    )


@pytest.mark.parametrize("algorithm", TREE.options("algorithm"))
def test_every_algorithm_is_a_warm_start_too(algorithm: str) -> None:
    prepare(compose_config([f"algorithm@warm_start={algorithm}"]))


@pytest.mark.parametrize("row", [o for o in TREE.options("experiment") if o.startswith("loop/")])
def test_row_of_table_1_has_a_laptop_size_that_keeps_its_algorithm(row: str) -> None:
    paper = prepare(compose_config([f"experiment={row}"])).config
    laptop = prepare(compose_config([f"experiment={row}", "scale=laptop"])).config
    for key in ("advantage", "weighting", "epochs", "loss"):
        assert paper["algorithm"][key] == laptop["algorithm"][key]
    assert paper["model"]["path"] == "Qwen/Qwen2.5-32B-Instruct"
    assert "path" not in laptop["model"]
    assert paper["algorithm"]["tasks_per_iteration"] * paper["algorithm"]["rollouts_per_task"] == 240


@pytest.mark.parametrize("row", [o for o in TREE.options("experiment") if o.startswith("agent_prm/")])
def test_row_of_agent_prm_has_a_laptop_size_that_keeps_its_algorithm(row: str) -> None:
    paper = prepare(compose_config([f"experiment={row}"])).config
    laptop = prepare(compose_config([f"experiment={row}", "scale=laptop"])).config
    assert paper["algorithm"]["_target_"] == laptop["algorithm"]["_target_"]
    assert paper["algorithm"]["fit"].get("target") == laptop["algorithm"]["fit"].get("target")
    assert paper["model"]["path"] == "meta-llama/Llama-3.2-3B-Instruct"
    assert paper["model"]["lora"] is None
    assert "path" not in laptop["model"]


@pytest.mark.parametrize(
    "row",
    [
        o
        for o in TREE.options("experiment")
        if o.startswith("agentic_dpo/") and not o.endswith(("_4b", "_9b", "/eto", "/grpo"))
    ],
)
def test_row_of_agentic_dpo_has_a_laptop_size_that_keeps_its_algorithm(row: str) -> None:
    paper = prepare(compose_config([f"experiment={row}"])).config
    laptop = prepare(compose_config([f"experiment={row}", "scale=laptop"])).config
    for key in ("preference", "imitation", "states", "reference", "sft_weight", "warm_up_rounds"):
        assert paper["algorithm"][key] == laptop["algorithm"][key]
    assert paper["model"]["path"] == "Qwen/Qwen3.5-2B"
    assert "path" not in laptop["model"]
    assert paper["algorithm"]["visits_per_round"] == paper["algorithm"]["learner"]["total_steps"] * 16 == 1200


def test_every_number_of_a_paper_s_preset_names_its_source() -> None:
    source = re.compile(r"#.*(Table|App\.|eq\.|paper|official code|ours)")
    bare = []
    for file in sorted(
        [
            *(TREE.roots[0] / "experiment" / "loop").rglob("*.yaml"),
            *(TREE.roots[0] / "experiment" / "agent_prm").rglob("*.yaml"),
            *(TREE.roots[0] / "experiment" / "agentic_dpo").rglob("*.yaml"),
            *(TREE.roots[0] / "scale").rglob("*.yaml"),
        ]
    ):
        for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if re.search(r":\s*-?\d", line) and not source.search(line):
                bare.append(f"{file.name}:{n}: {line.strip()}")
    assert not bare, "\n".join(bare)


def test_a_yaml_fits_on_a_screen_and_says_what_it_is() -> None:
    for file in TREE.roots[0].rglob("*.yaml"):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 60, file
        assert any(line.startswith("#") and "@package" not in line for line in lines[:2]), file


def test_binding_everything_imports_no_torch() -> None:
    code = (
        "import sys\n"
        "from agentexp.cli.compose import compose_config\n"
        "from agentexp.cli.train import prepare\n"
        "prepare(compose_config(['algorithm=grpo', 'model=qwen2_5_7b']))\n"
        "heavy = {'torch', 'transformers', 'peft', 'pyarrow', 'matplotlib'} & sys.modules.keys()\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path.cwd(), check=False)
    assert done.returncode == 0, done.stderr

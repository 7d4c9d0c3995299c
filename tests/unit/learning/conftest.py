"""Models small enough for a unit test."""

import pytest
import torch
from peft import LoraConfig, get_peft_model

from agentexp.learning.model import Model, tiny

WORDS = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(40)]


def small_model(seed: int = 0) -> Model:
    return tiny(
        words=WORDS, weights=None, hidden_size=32, layers=2, head_size=16, mlp_ratio=2,
        max_context_tokens=256, initializer_range=0.1, threads=1, seed=seed,
    )  # fmt: skip


@pytest.fixture
def model() -> Model:
    return small_model()


@pytest.fixture
def lora_model() -> Model:
    base = small_model()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = get_peft_model(
            base.network, LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
        )
        for name, p in network.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=0.1)  # a fresh adapter is the identity; this one is not
    return Model(network=network, tokenizer=base.tokenizer, name="lora")

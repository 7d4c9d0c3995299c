"""The tiny model: saved and loaded whole, never of another size than asked for."""

from pathlib import Path
from typing import Any

import pytest
import torch

from agentexp.errors import ConfigError, DataError
from agentexp.learning.model import shipped, tiny
from tests.unit.learning.conftest import WORDS, small_model

SIZE: dict[str, Any] = {
    "words": WORDS, "hidden_size": 32, "layers": 2, "head_size": 16, "mlp_ratio": 2, "max_context_tokens": 256,
    "initializer_range": 0.1, "threads": 1, "seed": 3,
}  # fmt: skip


def test_a_saved_model_is_loaded_with_its_words(tmp_path: Path) -> None:
    model = small_model()
    model.save(tmp_path / "model")
    again = tiny(weights=str(tmp_path), **{**SIZE, "words": ["other"]})
    assert again.tokenizer.get_vocab() == model.tokenizer.get_vocab()
    assert all(torch.equal(model.weights()[k], v) for k, v in again.weights().items())


@pytest.mark.parametrize("key", ["hidden_size", "layers", "head_size", "mlp_ratio", "max_context_tokens"])
def test_another_size_than_the_weights_have_is_refused(tmp_path: Path, key: str) -> None:
    small_model().save(tmp_path)
    with pytest.raises(ConfigError, match=f"model.{key} is .* model.weights=null"):
        tiny(weights=str(tmp_path), **{**SIZE, key: 2 * SIZE[key]})


def test_a_missing_model_names_the_shipped_ones(tmp_path: Path) -> None:
    assert "alfworld_pi0" in shipped()
    with pytest.raises(DataError, match=r"one of the shipped: .*alfworld_pi0"):
        tiny(weights=str(tmp_path), **SIZE)


def test_the_seed_makes_the_weights() -> None:
    one, same, other = (small_model(seed).weights() for seed in (1, 1, 2))
    assert all(torch.equal(one[k], v) for k, v in same.items())
    assert any(not torch.equal(one[k], v) for k, v in other.items())

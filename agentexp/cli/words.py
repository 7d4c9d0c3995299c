"""A run's tokens as text, without loading a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def decoder(run: Path) -> Callable[[int], str] | None:
    """Token id to text by the tokenizer saved in the run folder; None where there is none yet."""
    file = run / "model" / "tokenizer.json"
    if not file.is_file():
        return None
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    return lambda i: tokenizer.id_to_token(i) or f"<{i}>"

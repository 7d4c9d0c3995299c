"""A run's tokens as text, without loading a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from agentexp.errors import DataError


def decoder(run: Path) -> Callable[[int], str] | None:
    """Token id to text by the tokenizer saved in the run folder; None where there is none yet. Words of
    a tokenizer that puts no spaces into its tokens are set apart by one."""
    file = run / "model" / "tokenizer.json"
    if not file.is_file():
        return None
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises nothing narrower
        raise DataError(f"{file} is not a whole tokenizer: {error}") from error
    gap = " " if type(tokenizer.model).__name__ == "WordLevel" else ""
    return lambda i: f"{tokenizer.id_to_token(i) or f'<{i}>'}{gap}"

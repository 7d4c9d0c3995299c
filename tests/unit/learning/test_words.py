"""The word-level tokenizer: what it reads and says, with and without punctuation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from agentexp.agents.naming import SYNONYMS
from agentexp.agents.views import CommandView
from agentexp.envs.alfworld.commands import templates
from agentexp.envs.alfworld.words import view_words, vocabulary, vocabulary_of_views
from agentexp.errors import ConfigError
from agentexp.learning.words import word_tokenizer
from agentexp.policies.chat import Chat
from tests.toys import react

COMMANDS = [
    "look", "inventory", "help", "go to fridge 1", "open drawer 12", "close fridge 1", "examine mug 2",
    "take mug 1 from desk 2", "put mug 1 in/on desk 2", "move mug 1 to desk 2", "use desklamp 1",
    "clean mug 1 with sinkbasin 1", "heat egg 1 with microwave 1", "cool egg 1 with fridge 1",
    "slice apple 1 with knife 1",
]  # fmt: skip


def view(format: Any, rename: bool) -> CommandView:
    return CommandView(name="v", format=format, rename=rename, commands=templates(), shows="renamed", compact=True)


@pytest.mark.parametrize("format", ["command", "json", "hermes", "python"])
def test_the_tiny_model_can_say_every_view_of_every_command(format: str, tmp_path: Path) -> None:
    word_tokenizer(vocabulary_of_views()).save_pretrained(tmp_path)
    chat = Chat(tokenizer=AutoTokenizer.from_pretrained(tmp_path))
    for key in range(8):  # other verbs each time
        for rename in (False, True):
            agent = view(format, rename).through(react(), str(key), [])
            for command in COMMANDS:
                said = chat.scripted(agent.write(command))  # raises where a word is lost
                assert len(said.ids) <= 12  # the end of turn included
                assert agent.parse(chat.tokenizer.decode(said.ids[:-1])).command == command
                assert not rename or chat.tokenizer.unk_token_id not in said.ids


def test_a_call_by_hand() -> None:
    tokenizer = word_tokenizer(vocabulary_of_views())
    text = '[{"name":"take","arguments":{"object":"mug 1","receptacle":"desk 2"}}]'
    pieces = [
        '[{"name":"',
        "take",
        '","arguments":{"',
        "object",
        '":"',
        "mug 1",
        '","',
        "receptacle",
        '":"',
        "desk 2",
        '"}}]',
    ]
    assert tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"]) == pieces
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    with pytest.raises(ConfigError, match=r"model\.words"):  # control: the plain vocabulary has no brackets
        Chat(tokenizer=word_tokenizer(vocabulary())).scripted(text)


def test_observations_read_the_same_with_and_without_the_extra_words() -> None:
    """The extra words come last, so an id of the plain vocabulary means the same word."""
    plain, views = word_tokenizer(vocabulary()), word_tokenizer(vocabulary_of_views())
    text = "You arrive at desk 2. On the desk 2, you see a mug 1, a pen 1, and a keychain 3. You don't see it's off."
    assert plain(text)["input_ids"] == views(text)["input_ids"]
    assert plain.decode(plain("go to desk 2")["input_ids"]) == "go to desk 2"
    assert len(view_words()) == len(set(view_words()))


def test_every_synonym_of_a_verb_is_a_word() -> None:
    known = set(vocabulary_of_views())
    for verb in templates():
        assert verb in SYNONYMS  # else a renamed verb would be two words in one
        assert set(SYNONYMS[verb]) <= known

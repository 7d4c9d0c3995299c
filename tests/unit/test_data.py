"""`agentexp data alfworld`: what it says of nothing, of a part, of a corrupt part, of the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentexp import data
from agentexp.data import alfworld_report, contents_hash
from agentexp.envs.alfworld.environment import find_games
from agentexp.envs.alfworld.generate import write_game
from tests.alfworld_games import official_games


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole release of six games, in miniature."""
    monkeypatch.setattr(data, "OFFICIAL_COUNTS", {"train": 2, "valid_seen": 2, "valid_unseen": 2})
    monkeypatch.setattr(data, "KNOWN_HASHES", {})
    for number, split in enumerate(["train", "train", "valid_seen", "valid_seen", "valid_unseen", "valid_unseen"]):
        path = write_game("train", number, tmp_path / "made")
        target = tmp_path / "json_2.1.1" / split / path.parent.parent.name / path.parent.name
        target.parent.mkdir(parents=True)
        path.parent.rename(target)
    return tmp_path


def test_nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    status, text = alfworld_report(None)
    assert status == 2
    assert "alfworld-download" in text
    assert "ALFWORLD_DATA is not set" in text
    status, text = alfworld_report(tmp_path)
    assert status == 2
    assert str(tmp_path) in text


def test_the_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = alfworld_report(folder)
    assert status == 0
    assert text.count("complete") == 3
    monkeypatch.setenv("ALFWORLD_DATA", str(folder))
    assert alfworld_report(None) == (status, text)


def test_a_missing_game_and_a_corrupt_one(folder: Path) -> None:
    games = find_games(folder, "train")
    games[0].write_text("{", encoding="utf-8")
    find_games(folder, "valid_seen")[0].unlink()
    status, text = alfworld_report(folder)
    assert status == 1
    assert f"corrupt: Game file {games[0]}" in text
    assert "1 of 2 games  incomplete" in text


def test_the_hash_sees_contents_and_names_but_not_the_folder(folder: Path, tmp_path: Path) -> None:
    before = contents_hash(find_games(folder, "train"))
    (folder / "json_2.1.1").rename(folder / "elsewhere")
    moved = sorted((folder / "elsewhere" / "train").glob("*/*/game.tw-pddl"))
    assert contents_hash(moved) == before
    moved[0].write_text(moved[0].read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert contents_hash(moved) != before


def test_a_whole_split_with_other_contents_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "KNOWN_HASHES", {"valid_seen": "0" * 16})
    status, text = alfworld_report(folder)
    assert status == 1
    assert f"(known: {'0' * 16})" in text


@pytest.mark.shared
def test_the_official_valid_seen_games_are_complete_and_as_known(tmp_path: Path) -> None:
    _, text = alfworld_report(official_games(tmp_path))
    assert "140 of 140 games  complete  sha256 71bc5b9d70ec996b (as known)" in text

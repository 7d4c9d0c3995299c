"""The table of runs that differ by their seed: pooled rates by hand, and what cannot be pooled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentexp.errors import DataError
from agentexp.reports.pooled import Row, find_runs, learned, tables, text


def point(iteration: int, won: list[int], trials: int = 1) -> dict[str, Any]:
    return {"iteration": iteration, "won": won, "trials": trials}


def write(root: Path, seed: int, **changes: Any) -> Path:
    result = {
        "seed": seed,
        "split": "valid",
        "games_sha256": "a",
        "label": "",
        "also": None,
        "curve": [point(0, [0, 0, 1, 0] * 10), point(1, [1, 1, 1, seed] * 10)],
        "beside": {
            "BoN(pi_0,Q_0)": {"4": {"won": [1, 0, 1, 0] * 10, "trials": 1}},
            "BoN(pi_1,Q_0)": {"4": {"won": [1, 1, 1, 1] * 10, "trials": 1}},
        },
        **changes,
    }
    folder = root / str(seed)
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def test_rows_of_two_seeds_by_hand(tmp_path: Path) -> None:
    for seed in (0, 1):
        write(tmp_path, seed)
    (table,) = tables(find_runs([tmp_path]))
    assert [r.name for r in table.rows] == ["pi_0", "BoN(pi_0,Q_0) n=4", "pi_1", "BoN(pi_1,Q_0) n=4"]
    # pi_1: 30 of 40 with seed 0 and 40 of 40 with seed 1
    assert [r.success.value for r in table.rows] == [0.25, 0.5, 70 / 80, 1.0]
    assert [r.success.n for r in table.rows] == [80] * 4
    gain = table.rows[2].above(table.rows[0])
    assert gain.value == pytest.approx(70 / 80 - 0.25)
    assert gain.low > 0.0
    said = text(table)
    assert "success on 40 games of valid, 2 seeds" in said
    assert "pi_1                  0.750     1.000  .875 [" in said
    assert learned(table).startswith("valid: pi_1 is above pi_0: +0.625 [")


def test_seeds_on_one_game_are_drawn_together() -> None:
    """Three seeds that agree on every game know no more than one: the interval is as wide."""
    won = (1, 0, 1, 1, 0) * 20
    one = Row(name="x", won={0: won}, trials=1).success
    three = Row(name="x", won={0: won, 1: won, 2: won}, trials=1).success
    assert three.n == 300
    assert three.high - three.low == pytest.approx(one.high - one.low, abs=0.01)
    mixed = Row(name="x", won={0: won, 1: won[1:] + won[:1], 2: won[2:] + won[:2]}, trials=1).success
    assert mixed.high - mixed.low < 0.8 * (one.high - one.low)  # control: seeds that differ do know more


def test_the_second_evaluation_is_a_table_of_its_own(tmp_path: Path) -> None:
    also = {"split": "valid_seen", "games_sha256": "b", "curve": [point(0, [0, 2], trials=2)], "beside": {}}
    write(tmp_path, 0, also=also)
    first, second = tables(find_runs([tmp_path]))
    assert (first.split, second.split) == ("valid", "valid_seen")
    assert second.rows[0].success.value == 0.5
    assert learned(second) == ""


def test_what_cannot_be_pooled_is_said(tmp_path: Path) -> None:
    write(tmp_path / "a", 0)
    write(tmp_path / "a", 1, games_sha256="other")
    with pytest.raises(DataError, match="measured different games: games_sha256"):
        tables(find_runs([tmp_path / "a"]))
    write(tmp_path / "b", 0, curve=[{"iteration": 0, "success": {}}])
    with pytest.raises(DataError, match="older agentexp"):
        tables(find_runs([tmp_path / "b"]))
    (tmp_path / "c").mkdir()
    with pytest.raises(DataError, match="holds no finished training run"):
        find_runs([tmp_path / "c"])
    with pytest.raises(DataError, match="is no folder"):
        find_runs([tmp_path / "d"])
    with pytest.raises(DataError, match="has seeds"):
        Row(name="x", won={0: (1,)}, trials=1).above(Row(name="y", won={1: (1,)}, trials=1))

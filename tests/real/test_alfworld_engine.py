"""Our engine beside the real TextWorld engine, to the letter. Needs the extra `alfworld`; with
AGENTEXP_REQUIRE_REAL=1 (CI) a missing engine is a failure, not a skip.

The full comparison (every game at hand, an hour) is `benchmarks/alfworld_engine.py`.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from agentexp.envs.alfworld.engine import Engine
from agentexp.envs.alfworld.environment import GeneratedAlfWorld
from agentexp.envs.alfworld.games import Game
from agentexp.envs.alfworld.generate import write_game
from agentexp.types import Action
from tests.alfworld_games import official_games
from tests.unusual_games import TWISTS, unusual

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]  # warnings of textworld's own packages


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """benchmarks/alfworld_engine.py as a module; the test skips or fails without the real engine."""
    if importlib.util.find_spec("textworld") is None or importlib.util.find_spec("alfworld") is None:
        message = "the real engine is missing: pip install 'agentexp[alfworld]'"
        if os.environ.get("AGENTEXP_REQUIRE_REAL") == "1":
            pytest.fail(message)
        pytest.skip(message)
    path = Path(__file__).parents[2] / "benchmarks" / "alfworld_engine.py"
    spec = importlib.util.spec_from_file_location("alfworld_engine_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_equal(benchmark: ModuleType, path: Path, *, walks: int, steps: int) -> None:
    out = benchmark.compare(path, walks, steps, 0)
    assert not out.mismatches, "\n".join(out.mismatches[:5])
    assert out.counts["real step"] > steps


@pytest.mark.shared
def test_forty_official_games_of_all_types_and_both_wordings(benchmark: ModuleType, tmp_path: Path) -> None:
    games = benchmark.choose(official_games(tmp_path), 40, 0)
    assert len(games) == 40
    assert len({path.parent.parent.name.partition("-")[0] for path in games}) == 6
    wordings = {"You pick up" in path.read_text(encoding="utf-8") for path in games}
    assert wordings == {True, False}
    for path in games:
        assert_equal(benchmark, path, walks=1, steps=20)


@pytest.mark.parametrize("number", range(6))
def test_generated_games(benchmark: ModuleType, tmp_path: Path, number: int) -> None:
    assert_equal(benchmark, write_game("valid", number, tmp_path), walks=3, steps=20)


@pytest.mark.parametrize("twist", sorted(TWISTS))
def test_unusual_games(benchmark: ModuleType, tmp_path: Path, twist: str) -> None:
    number = sorted(TWISTS).index(twist)
    path = write_game("train", number, tmp_path)
    path.write_text(
        json.dumps(unusual(json.loads(path.read_text(encoding="utf-8")), [twist], number)), encoding="utf-8"
    )
    Game.load(path)
    assert_equal(benchmark, path, walks=3, steps=20)


def test_the_grammar_of_later_releases(benchmark: ModuleType, tmp_path: Path) -> None:
    """`move X to Y`, `help`, and arriving at a thing instead of a location: alfworld 0.4's own rules."""
    package = importlib.util.find_spec("alfworld")
    assert package is not None
    assert package.origin is not None
    rules = Path(package.origin).parent / "data"
    for number in range(2):
        path = write_game("valid", number, tmp_path)
        data = json.loads(path.read_text(encoding="utf-8"))
        task = Engine(Game.load(path)).game.task.partition(": ")[2]
        data["pddl_domain"] = (rules / "alfred.pddl").read_text(encoding="utf-8")
        data["grammar"] = (rules / "alfred.twl2").read_text(encoding="utf-8").replace("UNKNOWN GOAL", task)
        path.write_text(json.dumps(data), encoding="utf-8")
        assert "help" in Engine(Game.load(path)).admissible()
        assert_equal(benchmark, path, walks=3, steps=20)


def test_both_engines_behind_one_session(benchmark: ModuleType) -> None:
    options = {"admissible": True, "explore": 0.0, "train_games": 20, "valid_games": 20}
    ours = GeneratedAlfWorld(engine="pure", **options)  # type: ignore[arg-type]
    real = GeneratedAlfWorld(engine="textworld", **options)  # type: ignore[arg-type]
    task = ours.tasks("valid")[4]
    one, two, expert = ours.start(task, 0), real.start(task, 0), ours.expert(task, 0, 0.0)
    step = one.first
    assert step == two.first
    while not step.done:
        command = expert.act(step)[0]
        step = one.step(Action(text=command, command=command))
        assert step == two.step(Action(text=command, command=command))
    assert one.outcome() == two.outcome()
    assert one.outcome().success


def test_a_wrong_engine_is_caught(benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: an engine that forgets that heating takes the cold away is told apart."""
    path = write_game("train", 3, tmp_path)
    monkeypatch.setitem(
        __import__("agentexp.envs.alfworld.engine", fromlist=["CHANGES"]).CHANGES, "coolobject", ("isclean", None)
    )
    out = benchmark.compare(path, 9, 25, 0)
    assert out.mismatches

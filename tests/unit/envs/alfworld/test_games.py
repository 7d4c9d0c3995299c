"""Game files: whole, cut short, edited; and the same room with things elsewhere."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentexp.envs.alfworld.domain import actions, read_domain
from agentexp.envs.alfworld.engine import Engine
from agentexp.envs.alfworld.games import Game, name_entities, read_goal
from agentexp.envs.alfworld.generate import goal_of, make_game, make_spec, place, problem_text, write_game
from agentexp.envs.alfworld.rules import domain_text, grammar_text
from agentexp.errors import DataError
from tests.alfworld_games import GOALS, kitchen, play


@pytest.fixture(scope="module")
def game_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_game("train", 5, tmp_path_factory.mktemp("games"))


def test_a_written_game_plays_as_the_generated_one(game_file: Path) -> None:
    written, made = Engine(Game.load(game_file)), Engine(make_game("train", 5))
    assert written.reset() == made.reset()
    rng = random.Random(0)
    for _ in range(60):
        assert written.admissible() == made.admissible()
        command = rng.choice(made.admissible())
        assert written.step(command) == made.step(command)


def edited(path: Path, folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    copy = folder / "game.tw-pddl"
    copy.write_text(json.dumps(data), encoding="utf-8")
    return copy


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.pop("grammar"), "lacks grammar"),
        (lambda d: d.update(pddl_domain=3, pddl_problem=None), "lacks pddl_domain, pddl_problem"),
        (lambda d: d.update(pddl_problem=d["pddl_problem"].partition("(:goal")[0]), "no .* followed by a .:goal"),
        (lambda d: d.update(pddl_problem=d["pddl_problem"][:-60]), "unbalanced brackets"),
        (lambda d: d.update(pddl_domain=d["pddl_domain"][:900]), "unbalanced brackets"),
        (lambda d: d.update(pddl_domain=""), "unbalanced brackets"),
        (
            lambda d: d.update(pddl_problem=d["pddl_problem"].replace("(atlocation agent1", "(atlocaton agent1")),
            "0 places",
        ),
        (lambda d: d.update(grammar="hello"), 'no "task" rule'),
        (
            lambda d: d.update(pddl_domain=d["pddl_domain"].replace("(not (holdsAny ?a))", "", 1)),
            "rules for 'pickupobject'",
        ),
    ],
)
def test_a_corrupt_file_is_named_with_what_is_wrong(
    game_file: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    path = edited(game_file, tmp_path, change)
    with pytest.raises(DataError, match=says) as caught:
        Game.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"), [(b"", "not JSON"), (b"{", "not JSON"), (b"\xff\xfe\x00", "not JSON"), (b"[1]", "lacks")]
)
def test_a_file_that_is_no_game(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says):
        Game.load(path)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        Game.load(tmp_path / "gone")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        Game.load(tmp_path)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["pddl_domain", "grammar", "pddl_problem"]), st.floats(0, 1))
def test_a_text_cut_anywhere_is_an_error_or_makes_no_difference(part: str, where: float) -> None:
    spec = make_spec("train", 5)
    whole = {
        "pddl_domain": domain_text(),
        "grammar": grammar_text(f"Your task is to: {spec.instruction}"),
        "pddl_problem": problem_text(place(spec), goal_of(spec)),
    }
    cut = {**whole, part: whole[part][: int(where * len(whole[part]))]}
    try:
        game = Game(domain=cut["pddl_domain"], grammar=cut["grammar"], problem=cut["pddl_problem"])
    except DataError:
        return
    assert Engine(game).admissible() == Engine(make_game("train", 5)).admissible()
    assert game.goal == goal_of(spec)


@pytest.mark.parametrize("kind", ["pick", "look", "clean", "heat", "cool", "two"])
def test_the_six_goals_are_recognised(kind: str) -> None:
    goal = read_goal(f"(:goal {GOALS[kind]})".lower())
    assert goal.kind == kind
    assert goal.object_type == "appletype"


@pytest.mark.parametrize(
    "goal",
    [
        "(exists (?r - receptacle) (forall (?o - object) (inreceptacle ?o ?r)))",
        "(and (objecttype ?o appletype) (receptacletype ?r shelftype) (not (ishot ?o)) (inreceptacle ?o ?r))",
        "(and (objecttype ?o appletype) (objecttype ?m bowltype) (inreceptacleobject ?o ?m) (receptacletype ?r x))",
        "(and (objecttype ?o appletype) (objecttype ?p eggtype) (receptacletype ?r x) (inreceptacle ?o ?r))",
        "(inreceptacle ?o ?r)",
        "",
    ],
)
def test_any_other_goal_is_refused_not_guessed(goal: str) -> None:
    with pytest.raises(DataError):
        kitchen(goal)


def test_names_count_backwards_and_basins_say_so() -> None:
    ids = ["cup_bar_2", "cup_bar_1", "cup_bar_10", "sink_bar_1_bar_sinkbasin", "sink_bar_1", "agent1"]
    assert name_entities(ids) == {  # sorted ids: cup_bar_1, cup_bar_10, cup_bar_2
        "agent1": "agent1 ", "cup_bar_1": "cup 3", "cup_bar_10": "cup 2", "cup_bar_2": "cup 1",
        "sink_bar_1": "sink 1", "sink_bar_1_bar_sinkbasin": "sinkbasin 1",
    }  # fmt: skip


def test_a_domain_is_read_whatever_its_layout_and_refused_when_its_rules_differ() -> None:
    text = domain_text()
    commented = "; (:action nonsense\n" + text.upper().replace("\n", "  ; why\n")
    assert actions(commented) == actions(text)
    assert read_domain(text).tools["clean"] == {"sinktype", "sinkbasintype"}
    assert not read_domain(text).help
    only_basin = text.replace("(receptacleType ?r SinkType)", "")
    assert read_domain(only_basin).tools["clean"] == {"sinkbasintype"}
    helpful = (
        text[: text.rindex(")")]
        + "(:action help :parameters (?a - agent) :precondition () :effect (and (checked ?a))))"
    )
    assert Engine(kitchen(domain=text)).step("help")[0] == "Nothing happens."
    assert read_domain(helpful).help
    for old, new in [("(not (isHot ?o))", ""), ("(pickupable ?o)", ""), ("(isSliced ?co)", "(isClean ?co)")]:
        with pytest.raises(DataError, match="engine: textworld"):
            read_domain(text.replace(old, new, 1))
    with pytest.raises(DataError, match="lacks the action"):
        read_domain(text.replace("(:action look", "(:action watch"))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 200), st.integers(0, 10**9))
def test_shuffled_games_keep_room_and_goal_and_are_not_won(number: int, seed: int) -> None:
    game = make_game("train", number)
    twin, again = game.shuffled(random.Random(seed)), game.shuffled(random.Random(seed))
    assert twin.start["inreceptacle"].rows == again.start["inreceptacle"].rows
    assert twin.goal == game.goal
    assert twin.places == game.places
    assert {o for o, _ in twin.start["inreceptacle"].rows} == {o for o, _ in game.start["inreceptacle"].rows}
    for item, receptacle in twin.start["inreceptacle"].rows - game.start["inreceptacle"].rows:
        assert twin.fits(item, receptacle)
        assert (item, twin.places[receptacle][0]) in twin.start["objectatlocation"].rows
    assert not Engine(twin).won
    assert game.start["inreceptacle"].rows == make_game("train", number).start["inreceptacle"].rows  # untouched


def test_shuffling_moves_things() -> None:
    game = kitchen("pick")
    opening = Engine(game).reset()
    tables = set()
    for seed in range(8):
        twin = game.shuffled(random.Random(seed))
        assert (twin.opening, twin.rearranged) == (None, True)
        assert Engine(twin).reset() == opening
        tables.add(play(Engine(twin), "go to table 1")[0][0])
    assert len(tables) > 1

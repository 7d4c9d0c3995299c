"""Generated games and the expert who solves them; both see nothing that they should not."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from agentexp.envs.alfworld.engine import Engine
from agentexp.envs.alfworld.expert import Searcher, read_task
from agentexp.envs.alfworld.generate import ROOM_NUMBERS, TASK_TYPES, make_game, make_spec, place, write_game
from agentexp.envs.alfworld.rooms import make_room
from agentexp.errors import DataError
from tests.alfworld_games import FACTS, kitchen


def test_a_game_is_a_function_of_split_and_number() -> None:
    first = [
        (make_spec("train", n).instruction, sorted(place(make_spec("train", n))["inreceptacle"])) for n in range(30)
    ]
    make_spec.cache_clear()
    make_room.cache_clear()
    again = [
        (make_spec("train", n).instruction, sorted(place(make_spec("train", n))["inreceptacle"])) for n in range(30)
    ]
    assert first == again
    assert len({str(placements) for _, placements in first}) == 30


def test_the_six_types_take_turns_and_splits_share_no_room() -> None:
    rooms = {}
    for split in ROOM_NUMBERS:
        specs = [make_spec(split, n) for n in range(600)]
        assert set(Counter(s.kind for s in specs).values()) == {100}
        rooms[split] = {(s.room.kind, s.room.number) for s in specs}
    assert not rooms["train"] & rooms["valid"]
    assert not rooms["train"] & rooms["test"]
    assert not rooms["valid"] & rooms["test"]
    furniture = {split: {make_room(*room).receptacles for room in found} for split, found in rooms.items()}
    assert not furniture["train"] & furniture["valid"]


@pytest.mark.parametrize("split", ["train", "valid"])
def test_no_game_is_won_at_the_start_and_its_things_exist(split: str) -> None:
    for number in range(240):
        game, spec = make_game(split, number), make_spec(split, number)
        engine = Engine(game)
        assert not engine.won
        assert game.goal.kind == spec.kind
        assert len(game.goal_objects) >= game.goal.count
        assert game.lamps if spec.kind == "look" else game.goal_receptacles
        assert read_task(spec.instruction).item == spec.item


def solve(
    split: str, number: int, *, steps: int, noise: float = 0.0, explore: float = 0.0, seed: int = 0
) -> tuple[bool, int, int]:
    """(won, steps, random moves) of the expert, who is given words only."""
    engine = Engine(make_game(split, number))
    expert = Searcher(instruction=make_spec(split, number).instruction, seed=seed, noise=noise, explore=explore)
    heard, chance = engine.reset(), 0
    for step in range(1, steps + 1):
        command, deliberate = expert.act(heard, engine.admissible())
        chance += not deliberate
        heard, _, done = engine.step(command)
        if done:
            return True, step, chance
    return False, steps, chance


def test_the_expert_solves_generated_games() -> None:
    won = Counter(make_spec("valid", n).kind for n in range(300) if solve("valid", n, steps=50)[0])
    assert set(won) == set(TASK_TYPES)
    assert min(won.values()) >= 48  # of 50 of each type


def test_an_imperfect_expert_is_worse_and_tells_its_random_moves() -> None:
    perfect = [solve("valid", n, steps=15) for n in range(120)]
    noisy = [solve("valid", n, steps=15, noise=0.5, seed=n) for n in range(120)]
    blind = [solve("valid", n, steps=15, noise=1.0, seed=n) for n in range(120)]
    assert sum(w for w, _, _ in perfect) > sum(w for w, _, _ in noisy) + 20
    assert sum(w for w, _, _ in noisy) > sum(w for w, _, _ in blind) + 5
    assert sum(c for _, _, c in perfect) == 0
    assert all(c == steps for _, steps, c in blind)
    share = sum(c for _, _, c in noisy) / sum(steps for _, steps, _ in noisy)
    assert 0.4 < share < 0.55  # below .5: an episode ends with a deliberate move
    assert solve("valid", 7, steps=30, noise=0.3, seed=4) == solve("valid", 7, steps=30, noise=0.3, seed=4)


@pytest.mark.parametrize(
    ("instruction", "item", "where", "verb", "count"),
    [
        ("put a mug in desk", "mug", "desk", None, 1),
        ("put some vase on safe.", "vase", "safe", None, 1),
        ("look at bowl under the desklamp", "bowl", None, None, 1),
        ("examine the pen with the desklamp", "pen", None, None, 1),
        ("put a clean fork in drawer", "fork", "drawer", "clean", 1),
        ("clean some ladle and put it in drawer.", "ladle", "drawer", "clean", 1),
        ("put a hot egg in fridge", "egg", "fridge", "heat", 1),
        ("heat some mug and put it in coffeemachine", "mug", "coffeemachine", "heat", 1),
        ("put a cool pan in stoveburner", "pan", "stoveburner", "cool", 1),
        ("cool some potato and put it in microwave", "potato", "microwave", "cool", 1),
        ("put two cd in safe", "cd", "safe", None, 2),
        ("find two saltshaker and put them in cabinet.", "saltshaker", "cabinet", None, 2),
    ],
)
def test_the_expert_reads_every_wording(
    instruction: str, item: str, where: str | None, verb: str | None, count: int
) -> None:
    wish = read_task(instruction)
    assert (wish.item, wish.receptacle, wish.verb, wish.count) == (item, where, verb, count)


def test_a_task_in_other_words_is_an_error() -> None:
    with pytest.raises(DataError, match="does not understand the task 'dance'"):
        read_task("dance")


def test_written_games_have_the_official_layout(tmp_path: Path) -> None:
    path = write_game("valid", 3, tmp_path)
    assert re.fullmatch(
        r"valid/pick_heat_then_place_in_recep-\w+-None-\w+-4\d\d/trial_3/game.tw-pddl", str(path.relative_to(tmp_path))
    )


def test_rooms_differ_and_are_plausible() -> None:
    rng = random.Random(0)
    kitchens = [make_room("kitchen", rng.randrange(10_000)) for _ in range(50)]
    assert len({k.receptacles for k in kitchens}) == 50
    for room in kitchens:
        kinds = Counter(r.kind for r in room.receptacles)
        assert kinds["fridge"] == kinds["microwave"] == kinds["sinkbasin"] == 1
        assert 15 <= len(room.receptacles) <= 70
        assert len({r.id for r in room.receptacles}) == len(room.receptacles)


def test_two_things_in_two_right_places_are_brought_together() -> None:
    apart = FACTS.replace("apple_bar_1 fridge_bar_1", "apple_bar_1 shelf_bar_1")
    apart = apart.replace("apple_bar_2 table_bar_1", "apple_bar_2 shelf_bar_2")
    engine = Engine(kitchen("two", facts=apart))
    expert = Searcher(instruction="put two apple in shelf", seed=0, noise=0.0, explore=0.0)
    heard = engine.reset()
    for _ in range(14):
        heard, _, done = engine.step(expert.act(heard, engine.admissible())[0])
        if done:
            return
    pytest.fail(f"not solved; the last answer was {heard!r}")

"""The two environments: tasks, sessions, and what bad options say."""

from __future__ import annotations

import builtins
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentexp.envs.alfworld.environment import AlfWorld, GeneratedAlfWorld
from agentexp.envs.alfworld.generate import write_game
from agentexp.envs.alfworld.words import WORD, vocabulary
from agentexp.envs.base import Teaches
from agentexp.errors import ConfigError, DataError
from agentexp.types import Action, Step


def generated(**options: Any) -> GeneratedAlfWorld:
    return GeneratedAlfWorld(
        **{"engine": "pure", "admissible": False, "explore": 0.0, "train_games": 60, "valid_games": 24, **options}
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in the official layout, filled with generated games."""
    folder = tmp_path_factory.mktemp("alfworld")
    for number in range(8):
        write_game("train", number, folder / "json_2.1.1")
    return folder


def official(data: Path | str | None, **options: Any) -> AlfWorld:
    given = {"engine": "pure", "admissible": False, "explore": 0.0, "shuffle_placements": 0.0, "train_tasks": 0}
    return AlfWorld(data=None if data is None else str(data), **{**given, **options})


def command(text: str) -> Action:
    return Action(text=text, command=text)


def run_expert(env: Any, task: Any, noise: float = 0.0, steps: int = 50) -> list[str]:
    session, expert = env.start(task, 0), env.expert(task, 1, noise)
    step, done = session.first, []
    for _ in range(steps):
        done.append(expert.act(step)[0])
        step = session.step(command(done[-1]))
        if step.done:
            break
    return done


def test_tasks_are_lazy_ordered_and_picklable() -> None:
    start = time.perf_counter()
    env = generated(train_games=10**7)
    tasks = env.tasks("train")
    last = tasks[-1]
    assert time.perf_counter() - start < 1.0
    assert last.id == "train/9999999"
    assert len(tasks) == 10**7
    assert [t.id for t in tasks[:3]] == ["train/0", "train/1", "train/2"]
    assert pickle.loads(pickle.dumps(last)) == last
    with pytest.raises(IndexError):
        tasks[10**7]


def test_generated_results_are_labelled() -> None:
    assert generated().name != "alfworld"
    assert generated().version()["label"] == "generated games, not ALFWorld scores"


@pytest.mark.parametrize("admissible", [True, False])
def test_the_expert_plays_whether_or_not_commands_are_shown(admissible: bool) -> None:
    env = generated(admissible=admissible)
    assert isinstance(env, Teaches)
    task = env.tasks("valid")[2]
    assert ("admissible" in env.start(task, 0).first.info) is admissible
    assert run_expert(env, task) == run_expert(generated(admissible=not admissible), task)


def test_a_session_scores_counts_and_ends() -> None:
    env = generated()
    task = env.tasks("valid")[0]
    session = env.start(task, 0)
    assert session.first.info == {"inventory": "nothing", "refused": False}
    assert session.outcome().reward == 0.0
    assert session.step(command("fly")).info["refused"]
    assert session.step(Action(text="?", command=None, error="no command found")).observation == "no command found"
    for text in run_expert(env, task):
        step = session.step(command(text))
    assert step.done
    assert step.reward == 1.0
    outcome = session.outcome()
    assert outcome.success
    assert outcome.metrics["refused"] == 2.0
    with pytest.raises(RuntimeError, match="after the episode ended"):
        session.step(command("look"))
    session.close()
    session.close()
    fresh = env.start(task, 1)
    fresh.close()
    with pytest.raises(RuntimeError):
        fresh.step(command("look"))


def test_official_layout_is_read(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = official(data)
    tasks = env.tasks("train")
    assert len(tasks) == 8
    assert {t.kind for t in tasks} == {"pick", "look", "clean", "heat", "cool", "two"}
    for task in tasks:
        assert task.instruction in env.start(task, 0).first.observation
    assert official(data / "json_2.1.1").tasks("train")[3] == tasks[3]
    monkeypatch.setenv("ALFWORLD_DATA", str(data))
    assert official(None).tasks("train")[3] == tasks[3]
    assert "train 8" in env.version()["games"]


def test_few_games_give_endless_tasks_and_a_group_shares_its_placements(data: Path) -> None:
    env = official(data, shuffle_placements=0.7, train_tasks=400)
    tasks = list(env.tasks("train"))
    assert len({t.id for t in tasks}) == 400
    moved = [t for t in tasks if t.data["placements"]]
    assert 0.6 < len(moved) / 400 < 0.8
    assert len({t.scenario for t in tasks}) == 8
    once, again = env.game(moved[0]), official(data, shuffle_placements=0.7, train_tasks=400).game(moved[0])
    assert once.start["inreceptacle"].rows == again.start["inreceptacle"].rows
    assert not any(t.data["placements"] for t in official(data).tasks("train"))


@pytest.mark.parametrize(
    "name", ["pick_and_place_with_movable_recep-A-B-C-1", "pick_and_place_simple-AppleSliced-None-D-1"]
)
def test_games_that_upstream_leaves_out_are_left_out(data: Path, tmp_path: Path, name: str) -> None:
    source = next((data / "json_2.1.1" / "train").glob("*/*/game.tw-pddl"))
    for folder, text in {
        name: source.read_text(encoding="utf-8"),
        "pick_and_place_simple-A-None-B-1": source.read_text(encoding="utf-8").replace(
            '"solvable": true', '"solvable": false'
        ),
        "pick_and_place_simple-A-None-B-2": source.read_text(encoding="utf-8"),
    }.items():
        path = tmp_path / "valid_seen" / folder / "trial_1" / "game.tw-pddl"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    assert [p.parent.parent.name for p in official(tmp_path).files("valid_seen")] == [
        "pick_and_place_simple-A-None-B-2"
    ]


def test_bad_options_and_missing_data_say_what_to_do(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    cases: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: generated().tasks("tran"), ConfigError, "Did you mean 'train'"),
        (lambda: official(data).tasks("valid_sen"), ConfigError, "Did you mean 'valid_seen'"),
        (lambda: generated(engine="textword"), ConfigError, "Did you mean 'textworld'"),
        (lambda: generated(explore=1.5), ConfigError, "explore is 1.5"),
        (lambda: generated(valid_games=0), ConfigError, "valid_games is 0"),
        (lambda: official(data, shuffle_placements=-0.1), ConfigError, "shuffle_placements is -0.1"),
        (lambda: official(data, train_tasks=-1), ConfigError, "train_tasks is -1"),
        (lambda: official(None), DataError, "ALFWORLD_DATA"),
        (lambda: official(tmp_path / "gone"), DataError, "is not there"),
        (lambda: official(tmp_path).tasks("train"), DataError, "agentexp data alfworld"),
    ]
    for make, error, says in cases:
        with pytest.raises(error, match=says):
            make()


def test_a_corrupt_game_is_named_when_its_task_is_made(tmp_path: Path) -> None:
    path = tmp_path / "train" / "pick_and_place_simple-A-None-B-1" / "trial_1" / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"trial_1/game\.tw-pddl is corrupt"):
        official(tmp_path).tasks("train")[0]


def test_the_real_engine_asks_for_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_alfworld(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith(("alfworld", "textworld")):
            raise ImportError(f"No module named {name!r}")
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_alfworld)
    env = generated(engine="textworld")
    with pytest.raises(ConfigError, match=r"pip install 'agentexp\[alfworld\]'"):
        env.start(env.tasks("train")[0], 0)


def test_the_vocabulary_covers_every_word_of_play() -> None:
    words = vocabulary()
    assert words == vocabulary()
    assert len(set(words)) == len(words)
    known = set(words)
    env = generated(admissible=True)
    for task in [*env.tasks("train"), *env.tasks("valid")]:
        session, expert = env.start(task, 0), env.expert(task, 0, 0.3)
        step: Step = session.first
        for _ in range(12):
            text = " ".join([step.observation, *step.info["admissible"], task.instruction]).lower()
            assert {w for w in WORD.findall(text) if not w.startswith("loc ")} <= known
            step = session.step(command(expert.act(step)[0]))
            if step.done:
                break


def test_a_session_is_cheap() -> None:
    env, seconds, steps = generated(), 0.0, 0
    for task in env.tasks("train"):
        commands = run_expert(env, task, noise=0.2, steps=30)
        session = env.start(task, 0)
        start = time.process_time()
        for text in commands:
            session.step(command(text))
        seconds += time.process_time() - start
        steps += len(commands)
    assert seconds / steps < 400e-6  # 35 µs on an idle machine; a broken cache costs milliseconds


def sessions_of(make: Callable[[], Any]) -> list[str]:
    env = make()
    return [env.start(t, 0).first.observation for t in env.tasks("valid")[:5]]


def test_nothing_depends_on_hash_seeds_or_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sessions_of(generated)
    monkeypatch.chdir(tmp_path)
    assert sessions_of(generated) == before
    assert list(tmp_path.iterdir()) == []

"""What every environment must keep. A new one is added to ENVIRONMENTS and has to pass all of it.

Each row: how to make it, the splits it has, the score of doing nothing useful, and whether actions
are calls of tools.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from agentexp.envs.alfworld.environment import GeneratedAlfWorld
from agentexp.envs.base import Environment, HasFloor, Teaches
from agentexp.envs.subprocess_env import SubprocessEnv
from agentexp.errors import ConfigError
from agentexp.policies.chat import Chat
from agentexp.rollouts.demonstrations import demonstrate
from agentexp.types import Action, Step, ToolCall
from tests.doors import Doors
from tests.tool_actions import says
from tests.toy_bfcl import OPTIONS as TOY_OPTIONS
from tests.toy_bfcl import ToyBfcl
from tests.toy_tau import ToyTau
from tests.toys import CHATML, bytes_tokenizer, react

GENERATED = {"engine": "pure", "admissible": True, "explore": 0.0, "train_games": 50, "valid_games": 20}


@dataclass(frozen=True)
class Row:
    """An environment under test."""

    make: Callable[[], Any]
    splits: tuple[str, ...]
    floor: float
    ids: dict[str, str]  # split -> sha256 of its task ids, frozen
    tools: bool = False  # actions are calls; words are for the user


def hosted(factory: str, arguments: dict[str, Any]) -> SubprocessEnv:
    return SubprocessEnv(
        factory=factory, arguments=arguments, step_timeout_s=10.0, start_timeout_s=30.0, python=None, plugins=["tests"]
    )


DOORS_IDS = {
    "train": "bcde48f521078b2f",
    "valid": "c338ea8764b76cb5",
}
GENERATED_IDS = {
    "train": "c5f110502b432912",
    "valid": "89ef3222ec2ba01a",
}
TOY_BFCL_IDS = {
    "train": "ae8d42089ef5f307",
    "test": "a1885d6e3d2de9b9",
}
TOY_TAU_IDS = {
    "train": "fa4151b2d628eecf",
    "dev": "a9125e56774ce51d",
    "test": "68037cabcf820cfd",
}
TOY_TAU = {"release": "tau_bench"}
ENVIRONMENTS = {
    "doors": Row(Doors, ("train", "valid"), 0.0, DOORS_IDS),
    "doors in a process": Row(lambda: hosted("tests.doors.Doors", {}), ("train", "valid"), 0.0, DOORS_IDS),
    "generated alfworld": Row(lambda: GeneratedAlfWorld(**GENERATED), ("train", "valid"), 0.0, GENERATED_IDS),  # type: ignore[arg-type]
    "generated alfworld in a process": Row(
        lambda: hosted("agentexp.envs.alfworld.environment.GeneratedAlfWorld", GENERATED),
        ("train", "valid"),
        0.0,
        GENERATED_IDS,
    ),
    "made-up bfcl": Row(lambda: ToyBfcl(**TOY_OPTIONS), ("train", "test"), 0.0, TOY_BFCL_IDS, tools=True),
    "made-up bfcl in a process": Row(
        lambda: hosted("tests.toy_bfcl.ToyBfcl", TOY_OPTIONS), ("train", "test"), 0.0, TOY_BFCL_IDS, tools=True
    ),
    "made-up tau retail": Row(lambda: ToyTau(**TOY_TAU), ("train", "dev", "test"), 0.0, TOY_TAU_IDS, tools=True),  # type: ignore[arg-type]
    "made-up tau retail in a process": Row(
        lambda: hosted("tests.toy_tau.ToyTau", TOY_TAU), ("train", "dev", "test"), 0.0, TOY_TAU_IDS, tools=True
    ),
}
GARBAGE = ("", " ", "open", "xyzzy", "думать", "\x00", "a" * 10_000, "{'command': 1}", "__import__('os')")


@pytest.fixture(params=list(ENVIRONMENTS))
def row(request: pytest.FixtureRequest) -> Row:
    return ENVIRONMENTS[request.param]


@pytest.fixture
def env(row: Row) -> Iterator[Environment]:
    environment = row.make()
    yield environment
    if isinstance(environment, SubprocessEnv):
        environment.close()


def walk(env: Environment, number: int, seed: int, commands: tuple[str, ...]) -> list[Step]:
    session = env.start(env.tasks("train")[number], seed)
    steps = [session.first]
    for command in commands:
        if not steps[-1].done:
            steps.append(session.step(says(command)))
    session.close()
    return steps


def test_same_task_and_seed_same_session(env: Environment) -> None:
    commands = ("look", "inventory", "open door 9")
    assert walk(env, 0, 7, commands) == walk(env, 0, 7, commands)
    assert walk(env, 0, 7, ())[0].observation != walk(env, 1, 7, ())[0].observation  # control: tasks differ


def test_step_after_done_raises(env: Environment) -> None:
    session = env.start(env.tasks("train")[0], 0)
    won = solve(env, 0)
    for command in won:
        step = session.step(says(command))
    assert step.done
    with pytest.raises(RuntimeError, match="ended"):
        session.step(says(won[-1]))
    assert session.outcome().success
    session.close()


def test_close_twice_is_fine(env: Environment) -> None:
    session = env.start(env.tasks("train")[0], 0)
    session.close()
    session.close()


def test_oracle_wins_and_doing_nothing_scores_the_floor(env: Environment, row: Row) -> None:
    for number in range(6):
        commands = solve(env, number)
        session = env.start(env.tasks("train")[number], 0)
        assert session.outcome().reward == row.floor
        assert not session.outcome().success
        for command in commands:
            step = session.step(says(command))
        assert step.done
        assert session.outcome().reward == 1.0
        session.close()


@pytest.mark.parametrize("error", [None, "found no ACTION line"])
def test_garbage_becomes_an_observation(env: Environment, row: Row, error: str | None) -> None:
    session = env.start(env.tasks("train")[0], 0)
    for text in GARBAGE:
        calls = (ToolCall(name=text, arguments={text: text}),) if row.tools else ()
        action = Action(text=text, command=text or "x", calls=calls)
        step = session.step(Action(text=text, command=None, error=error) if error else action)
        assert step.observation
        assert step.info["refused"] is True
        assert not step.done
    session.close()


def test_sessions_share_nothing(env: Environment) -> None:
    """Two sessions of a task: what one does, the other does not see."""
    alone = walk(env, 0, 0, tuple(solve(env, 0)))
    one, two = env.start(env.tasks("train")[0], 0), env.start(env.tasks("train")[0], 0)
    steps = [one.first, *(one.step(says(command)) for command in solve(env, 0))]
    assert steps == alone
    assert two.first == alone[0]
    assert not two.outcome().success
    steps = [two.first, *(two.step(says(command)) for command in solve(env, 0))]
    assert steps == alone
    one.close()
    two.close()


def test_tasks_are_named_once_and_picklable(env: Environment, row: Row) -> None:
    seen: set[str] = set()
    for split in row.splits:
        tasks = list(env.tasks(split))
        ids = [task.id for task in tasks]
        assert len(set(ids)) == len(ids)
        assert not seen & set(ids)  # splits are disjoint
        seen |= set(ids)
        assert pickle.loads(pickle.dumps(tasks)) == tasks
        assert all(task.env == env.name and task.split == split and task.instruction for task in tasks)
        assert list(env.tasks(split)) == tasks


def test_unknown_split_names_the_known(env: Environment, row: Row) -> None:
    with pytest.raises(ConfigError) as error:
        env.tasks("trian")
    assert all(split in str(error.value) for split in row.splits)


def test_split_ids_are_frozen(env: Environment, row: Row) -> None:
    """Pitfall 20. A change here changes what results mean: change `version()` with it."""
    for split in row.splits:
        assert fingerprint(env, split) == row.ids[split], f"the tasks of {split!r} changed"


def test_a_floor_is_a_share_of_tasks(env: Environment, row: Row) -> None:
    """In this process and in another: the same, or none."""
    tasks = env.tasks("train")[:8]
    here = HERE[env.name]()
    wanted = here.floor(tasks) if isinstance(here, HasFloor) else None
    assert (env.floor(tasks) if isinstance(env, HasFloor) else None) == wanted
    assert wanted is None or 0.0 <= wanted <= 1.0
    assert (wanted is None) == (env.name in {"doors", "alfworld_generated"})


def test_versions_are_recorded(env: Environment) -> None:
    version = env.version()
    assert version
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in version.items())


def test_it_can_be_rolled_out(env: Environment) -> None:
    from tests.toys import rollouts  # noqa: PLC0415

    collection = rollouts(env, max_turns=3, step_timeout_s=30.0, max_context_tokens=2000).collect(
        env.tasks("train")[:2], rollouts_per_task=2, temperature=1.0, seed=0
    )
    assert collection.stats["scored"] == 4
    assert collection.stats["env_errors"] == 0


HERE: dict[str, Callable[[], Any]] = {
    "doors": Doors,
    "alfworld_generated": lambda: GeneratedAlfWorld(**GENERATED),  # type: ignore[arg-type]
    "bfcl": lambda: ToyBfcl(**TOY_OPTIONS),
    "tau_retail": lambda: ToyTau(**TOY_TAU),  # type: ignore[arg-type]
}


def fingerprint(env: Environment, split: str) -> str:
    text = "\n".join(f"{t.id}\t{t.kind}\t{t.instruction}" for t in env.tasks(split))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def solve(env: Environment, number: int) -> list[str]:
    """The commands of the environment's expert, played in this process."""
    teacher: Any = env
    if isinstance(env, SubprocessEnv):
        teacher = HERE[env.name]()
    assert isinstance(teacher, Teaches)
    if env.name in {"bfcl", "tau_retail"}:
        return solve_with_calls(teacher, number)
    played = demonstrate(
        environment=teacher,  # type: ignore[arg-type]
        agent=react(),
        chat=Chat(tokenizer=bytes_tokenizer(CHATML)),
        task=env.tasks("train")[number],
        sample=0,
        seed=0,
        noise=0.0,
        max_turns=100,
    )
    assert played.outcome is not None
    assert played.outcome.success
    return [str(turn.action.command) for turn in played.turns]


def solve_with_calls(env: Any, number: int) -> list[str]:
    """The same without an agent: the expert's commands as actions made by hand."""
    task = env.tasks("train")[number]
    session, expert = env.start(task, 0), env.expert(task, 0, 0.0)
    step, commands = session.first, []
    while not step.done:
        commands.append(expert.act(step)[0])
        step = session.step(says(commands[-1]))
    assert session.outcome().success
    return commands

"""Environments that hang, raise or die at step 3 (pitfall 12)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentexp.envs.subprocess_env import SubprocessEnv
from agentexp.errors import ConfigError, DataError, EnvironmentFailure, RolloutError
from agentexp.rollouts.episode import EnvCall
from agentexp.rollouts.workers import Workers
from agentexp.types import Action, StopReason
from tests.doors import Doors
from tests.toys import rollouts

WALL = Action(text="open door 9", command="open door 9")


def hosted(step_timeout_s: float = 1.0, **arguments: object) -> SubprocessEnv:
    return SubprocessEnv(
        factory="tests.doors.Doors",
        arguments=arguments,
        step_timeout_s=step_timeout_s,
        start_timeout_s=20.0,
        python=None,
        plugins=["tests"],
    )


def nobody_wins(_: object) -> str:
    return "open door 9"


@pytest.fixture
def children() -> Iterator[set[int]]:
    """Fails a test that leaves a child process behind."""
    before = alive()
    yield before
    assert alive() - before == set()


def alive() -> set[int]:
    """Children of this process that host environments."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if b"subprocess_child" in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raise", "the environment raised in step 3 of train/1: OSError: the simulator lost its world"),
        ("hang", "hung in step 3 of train/1: no answer within 1.5 s; it was killed"),
        ("spin", "hung in step 3 of train/1: no answer within 1.5 s; it was killed"),
        ("kill", "was killed by SIGKILL in step 3 of train/1"),
    ],
)
def test_a_failing_process_is_a_stop_reason_of_its_own(fault: str, said: str, children: set[int]) -> None:
    env = hosted(step_timeout_s=1.5, fault=fault, faulty=["train/1"], games=3)
    collection = rollouts(env, nobody_wins, workers=4).collect(
        env.tasks("train"), rollouts_per_task=2, temperature=1.0, seed=0
    )
    bad = collection.groups[1]
    assert {t.stop for t in bad.trajectories} == {StopReason.ENV_ERROR}
    assert all(said in str(t.error) for t in bad.trajectories)
    assert all(t.outcome is None and len(t.turns) == 3 and t.turns[-1].step is None for t in bad.trajectories)
    assert bad.rewards == ()  # never a reward of 0
    assert {t.stop for g in (collection.groups[0], collection.groups[2]) for t in g.trajectories} == {
        StopReason.MAX_TURNS
    }
    stats = collection.stats
    assert (stats["env_errors"], stats["retries"], stats["dead_groups"], stats["abandoned_threads"]) == (2, 2, 1, 0)
    env.close()


def test_a_hanging_call_in_our_own_process_is_left_behind() -> None:
    env = Doors(fault="hang", faulty=["train/1"], games=3, faults_left=1)
    began = time.monotonic()
    collection = rollouts(env, nobody_wins, step_timeout_s=1.0, retries=0).collect(
        env.tasks("train"), rollouts_per_task=2, temperature=1.0, seed=0
    )
    assert time.monotonic() - began < 30.0  # the call itself hangs for an hour
    failed = [t for g in collection.groups for t in g.trajectories if t.stop is StopReason.ENV_ERROR]
    assert len(failed) == collection.stats["abandoned_threads"] == 1
    assert "did not answer within 1 s (step_timeout_s)" in str(failed[0].error)


def test_a_failure_that_passes_leaves_no_trace() -> None:
    """A retry has the seeds of the first attempt, so the trajectories equal those without failure."""
    broken, sound = Doors(fault="raise", faults_left=2), Doors()
    kwargs = {"rollouts_per_task": 3, "temperature": 1.0, "seed": 0}
    retried = rollouts(broken, workers=1, retries=2).collect(broken.tasks("train"), **kwargs)
    assert retried.stats["retries"] == 2
    assert retried.groups == rollouts(sound).collect(sound.tasks("train"), **kwargs).groups


def test_too_many_dead_groups_end_it_with_the_environments_words() -> None:
    env = Doors(fault="raise")
    with pytest.raises(RolloutError, match=r"2 groups have fewer than 2 scored .*simulator lost its world"):
        rollouts(env, nobody_wins).collect(env.tasks("train"), rollouts_per_task=3, temperature=1.0, seed=0)
    assert all(session.closed for session in env.opened)


def test_one_failure_in_a_group_does_not_kill_it() -> None:
    """Pitfalls 5 and 12: two scored members remain."""
    env = Doors(fault="raise", faulty=["train/1"], faults_left=1)
    collection = rollouts(env, nobody_wins, retries=0, max_dead_groups=1).collect(
        env.tasks("train"), rollouts_per_task=3, temperature=1.0, seed=0
    )
    assert len(collection.groups[1].trajectories) == 3
    assert len(collection.groups[1].rewards) == 2
    assert collection.stats["dead_groups"] == 0


def test_failures_of_single_rollouts_stay_in_the_denominator() -> None:
    """An evaluation goes on as long as anything works, and stops where nothing ever did."""
    env = Doors(fault="raise", faulty=[f"train/{i}" for i in range(1, 8)])
    collection = rollouts(env, nobody_wins, retries=0, slots=1, max_dead_groups=2).collect(
        env.tasks("train"), rollouts_per_task=1, temperature=0.0, seed=0
    )
    assert [len(g.trajectories) for g in collection.groups] == [1] * 8
    assert collection.stats["env_errors"] == 7
    broken = Doors(fault="raise")
    with pytest.raises(RolloutError, match="simulator lost its world"):
        rollouts(broken, nobody_wins, max_dead_groups=2).collect(
            broken.tasks("train"), rollouts_per_task=1, temperature=0.0, seed=0
        )


def test_an_environment_that_cannot_start() -> None:
    env = hosted(nonsense=1)
    with pytest.raises(EnvironmentFailure, match=r"raised in the start of tests.doors.Doors: TypeError.*nonsense"):
        env.tasks("train")
    missing = SubprocessEnv(
        factory="tests.doors.Dors",
        arguments={},
        step_timeout_s=1.0,
        start_timeout_s=20.0,
        python=None,
        plugins=["tests"],
    )
    with pytest.raises(ConfigError, match=r"'tests.doors.Dors' cannot be imported"):
        missing.tasks("train")


def test_a_factory_outside_the_named_packages_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'os.system' is outside agentexp .* add its package to plugins"):
        SubprocessEnv(
            factory="os.system", arguments={}, step_timeout_s=1.0, start_timeout_s=1.0, python=None, plugins=["tests"]
        )


def test_kill_minus_nine_at_step_three(children: set[int]) -> None:
    env = hosted()
    session = env.start(env.tasks("train")[0], 0)
    session.step(WALL)
    session.step(WALL)
    assert session.pid is not None
    os.kill(session.pid, signal.SIGKILL)
    with pytest.raises(EnvironmentFailure, match="was killed by SIGKILL in step 3 of train/0"):
        session.step(WALL)
    session.close()
    session.close()
    env.close()


def test_a_hung_child_is_killed_before_the_error_is_told(children: set[int]) -> None:
    env = hosted(fault="hang", fault_step=1)
    session = env.start(env.tasks("train")[0], 0)
    pid = session.pid
    assert pid is not None
    with pytest.raises(EnvironmentFailure, match="it was killed"):
        session.step(WALL)
    assert not running(pid)
    session.close()
    env.close()


def test_a_child_is_used_again_only_after_a_clean_close(children: set[int]) -> None:
    env = hosted(fault="raise", faulty=["train/1"])
    good, bad, *_ = env.tasks("train")
    first = env.start(good, 0)
    pid = first.pid
    first.close()
    second = env.start(bad, 0)
    assert second.pid == pid
    second.step(WALL)
    second.step(WALL)
    with pytest.raises(EnvironmentFailure):
        second.step(WALL)
    second.close()
    third = env.start(good, 0)
    assert third.pid != pid
    third.close()
    env.close()


@pytest.mark.parametrize("fault", ["none", "hang", "spin"])
def test_children_die_with_a_killed_parent(fault: str) -> None:
    program = textwrap.dedent(f"""
        import threading
        from agentexp.envs.subprocess_env import SubprocessEnv
        from agentexp.types import Action
        env = SubprocessEnv(factory="tests.doors.Doors", arguments={{"fault": {fault!r}, "fault_step": 1}},
                            step_timeout_s=60.0, start_timeout_s=20.0, python=None, plugins=["tests"])
        session = env.start(env.tasks("train")[0], 0)
        print(session.pid, flush=True)
        session.step(Action(text="open door 9", command="open door 9"))
        threading.Event().wait()
    """)
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.3)
    assert running(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 30.0
    while running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not running(pid)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TestWorkers:
    def test_results_come_in_order_and_failures_as_values(self) -> None:
        def fail() -> None:
            raise KeyError("lost")

        workers = Workers(count=3, timeout_s=5.0)
        calls = [EnvCall(lambda i=i: i) for i in range(20)]  # type: ignore[misc]
        results = workers.run([*calls, EnvCall(fail)])
        assert results[:20] == list(range(20))
        assert str(results[20]) == "the environment raised KeyError: 'lost'"
        assert workers.run([]) == []
        workers.close()

    def test_calls_do_not_run_on_the_main_thread(self) -> None:
        workers = Workers(count=2, timeout_s=5.0)
        threads = workers.run([EnvCall(threading.get_ident)] * 4)
        assert threading.get_ident() not in threads
        workers.close()

    def test_a_hung_call_is_abandoned_the_rest_is_run_and_the_late_end_is_cleaned_up(self) -> None:
        release, cleaned = threading.Event(), threading.Event()
        workers = Workers(count=1, timeout_s=0.5)
        hanging = EnvCall(release.wait, late=lambda _: cleaned.set())
        results = workers.run([EnvCall(lambda: 1), hanging, EnvCall(lambda: 2), EnvCall(lambda: 3)])
        assert (results[0], *results[2:]) == (1, 2, 3)
        assert isinstance(results[1], EnvironmentFailure)
        assert workers.abandoned == 1
        assert not cleaned.is_set()
        release.set()
        assert cleaned.wait(20.0)
        assert workers.run([EnvCall(lambda: 4)]) == [4]
        workers.close()

    def test_many_short_calls_are_cheap(self) -> None:
        """A hand-over per round, not per call: far below the 100 us that waking a thread may take."""
        workers = Workers(count=1, timeout_s=5.0)
        calls = [EnvCall(int)] * 2000
        workers.run(calls)
        began = time.process_time()
        workers.run(calls)
        assert (time.process_time() - began) / len(calls) < 100e-6
        workers.close()


def test_a_corrupt_game_is_not_an_environment_failure() -> None:
    """What the user must repair ends the run with its own words, however few games it touches."""

    def corrupt() -> None:
        raise DataError("Game file x is corrupt")

    found = Workers(count=1, timeout_s=5.0).run([EnvCall(corrupt)])
    assert isinstance(found[0], DataError)

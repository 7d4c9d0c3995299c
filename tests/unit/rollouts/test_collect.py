"""Collecting: order and seeds, early stop, truncation, budgets (pitfalls 5, 11, 13, 19)."""

from __future__ import annotations

import pytest

from agentexp.errors import ConfigError, RolloutError
from agentexp.policies.chat import Chat
from agentexp.rollouts.collect import Collection, Enough
from agentexp.seeding import seed_for
from agentexp.types import Request, StopReason, Trajectory
from tests.doors import Doors
from tests.toys import bytes_tokenizer, react, rollouts, words


def random_door(request: Request) -> str:
    return f"open door {1 + request.seed % 3}"


def play(
    env: Doors | None = None, seed: int = 0, k: int = 4, enough: Enough | None = None, **changes: object
) -> Collection:
    env = env or Doors()
    return rollouts(env, **changes).collect(  # type: ignore[arg-type]
        env.tasks("train"), rollouts_per_task=k, temperature=1.0, seed=seed, enough=enough
    )


def flat(collection: Collection) -> list[Trajectory]:
    return [t for group in collection.groups for t in group.trajectories]


def test_groups_keep_the_order_of_tasks_and_samples() -> None:
    collection = play()
    assert [g.task.id for g in collection.groups] == [f"train/{i}" for i in range(8)]
    assert all([t.sample for t in g.trajectories] == [0, 1, 2, 3] for g in collection.groups)
    assert all(t.seed == seed_for(0, t.task.id, t.sample) for t in flat(collection))
    assert collection.stats["scored"] == collection.stats["episodes"] == 32


@pytest.mark.parametrize("changes", [{"slots": 3}, {"workers": 4}, {"slots": 1, "workers": 1}])
def test_same_seed_same_trajectories_whatever_runs_beside(changes: dict[str, int]) -> None:
    """Pitfall 19; the control is another seed."""
    assert play().groups == play(**changes).groups
    assert play().groups != play(seed=1).groups


def test_a_group_starts_alike_and_samples_apart() -> None:
    (group, *_) = play().groups
    assert len({t.turns[0].messages[-1].content for t in group.trajectories}) == 1
    assert len({tuple(turn.action.command for turn in t.turns) for t in group.trajectories}) > 1


def test_prompts_and_completions_make_up_what_the_policy_saw() -> None:
    seen: dict[str, tuple[int, ...]] = {}

    def say(request: Request) -> str:
        seen[request.episode] = request.prompt_ids
        return random_door(request)

    env = Doors()
    collection = rollouts(env, say).collect(env.tasks("train"), rollouts_per_task=2, temperature=1.0, seed=0)
    for t in flat(collection):
        ids = [i for turn in t.turns for i in (*turn.prompt_ids, *turn.completion.ids)]
        ids = ids[: len(ids) - len(t.turns[-1].completion.ids)]
        assert seen[f"{t.task.id}#{t.sample}"] == tuple(ids)


def test_every_session_is_closed_and_every_episode_released() -> None:
    env = Doors()
    player = rollouts(env)
    player.collect(
        env.tasks("train"), rollouts_per_task=4, temperature=1.0, seed=0, enough=Enough(total=0.5, per_task=2)
    )
    assert all(session.closed for session in env.opened)
    assert player.policy.live == set()


def test_early_stop_cancels_the_rest_and_keeps_it() -> None:
    """Pitfall 11: at least 2 of 4 a task and half of all."""
    done: list[tuple[int, int]] = []
    env = Doors()
    collection = rollouts(env, slots=32).collect(
        env.tasks("train"), rollouts_per_task=4, temperature=1.0, seed=0, enough=Enough(total=0.5, per_task=2),
        progress=lambda n, total: done.append((n, total)),
    )  # fmt: skip
    stats = collection.stats
    cancelled = [t for t in flat(collection) if t.stop is StopReason.CANCELLED]
    assert 0 < len(cancelled) == stats["cancelled"]
    assert stats["scored"] >= 16
    assert all(len(group.rewards) >= 2 for group in collection.groups)
    assert all(len(group.trajectories) == 4 for group in collection.groups)  # all were live: none is lost
    assert all(t.outcome is None and t.turns for t in cancelled)  # partial, unscored
    assert stats["cancelled_turns"] == sum(len(t.turns) for t in cancelled) / len(cancelled)
    assert done[-1] == (32, 32)


def test_early_stop_waits_for_every_task() -> None:
    """One task that nobody solves holds the others up until it has its share by MAX_TURNS."""

    def stubborn(request: Request) -> str:
        return "open door 9" if request.episode.startswith("train/3#") else random_door(request)

    env = Doors()
    collection = rollouts(env, stubborn, slots=32, max_turns=30).collect(
        env.tasks("train"), rollouts_per_task=4, temperature=1.0, seed=0, enough=Enough(total=0.5, per_task=1)
    )
    assert len(collection.groups[3].rewards) >= 1
    assert {t.stop for t in collection.groups[3].trajectories} == {StopReason.MAX_TURNS}


def test_what_never_started_is_counted_not_made_up() -> None:
    collection = play(enough=Enough(total=0.2, per_task=1), slots=2, k=2, env=Doors(games=1))
    assert collection.stats["unstarted"] + collection.stats["episodes"] == 2
    collection = play(enough=Enough(total=0.5, per_task=1), slots=1, k=4, env=Doors(games=1))
    assert (collection.stats["unstarted"], len(collection.groups[0].trajectories)) == (2, 2)


def test_without_enough_nothing_is_cut() -> None:
    assert play().stats["cancelled"] == play().stats["unstarted"] == 0


def test_budgets_of_turns_and_tokens_are_scored() -> None:
    hopeless = Doors(lucky=False)
    assert {t.stop for t in flat(play(hopeless, max_turns=2))} == {StopReason.MAX_TURNS}
    collection = play(hopeless, max_context_tokens=40, max_turns=30)
    for t in flat(collection):
        assert t.stop is StopReason.MAX_TOKENS
        assert t.outcome is not None
        read = sum(len(turn.prompt_ids) + len(turn.completion.ids) for turn in t.turns)
        assert read <= 40
        assert all(turn.completion.finish == "stop" for turn in t.turns)  # it ends before a turn, not in one
    assert collection.stats["stop_max_tokens"] == 32


def test_thoughts_are_turns_without_a_step_of_the_environment() -> None:
    def thinker(request: Request) -> str:
        return "think: hm" if request.seed % 2 else random_door(request)

    env = Doors()
    collection = rollouts(env, thinker, agent=react(think=True), max_turns=30).collect(
        env.tasks("train"), rollouts_per_task=2, temperature=1.0, seed=0
    )
    thoughts = [turn for t in flat(collection) for turn in t.turns if turn.action.is_thought]
    assert thoughts
    assert {turn.step.observation for turn in thoughts if turn.step} == {"OK."}
    stats = collection.stats
    assert stats["env_steps"] == stats["turns"] - len(thoughts) == sum(s.steps for s in env.opened)


class TestTruncation:
    """Pitfall 13: a completion that max_new_tokens cut, by each policy's name."""

    def cut(self, truncation: str) -> Collection:
        def long_winded(request: Request) -> str:
            if request.episode == "train/0#1":
                return "open door 1 open door 2 open door 3 open door 1 open door 2"
            return random_door(request)

        env = Doors(games=2)
        return rollouts(env, long_winded, truncation=truncation).collect(
            env.tasks("train"), rollouts_per_task=3, temperature=1.0, seed=0
        )

    def test_error(self) -> None:
        with pytest.raises(RolloutError, match=r"turn 0 of train/0#1 was cut at max_new_tokens=8; raise"):
            self.cut("error")

    def test_drop(self) -> None:
        collection = self.cut("drop")
        dropped = collection.groups[0].trajectories[1]
        assert (dropped.stop, dropped.truncated, dropped.outcome) == (StopReason.CANCELLED, "drop", None)
        assert dropped.turns[-1].step is None  # what was cut was never played
        assert len(collection.groups[0].rewards) == 2
        assert (collection.stats["truncated_drop"], collection.stats["cancelled"]) == (1, 0)

    def test_mask(self) -> None:
        collection = self.cut("mask")
        masked = collection.groups[0].trajectories[1]
        assert (masked.stop, masked.truncated) == (StopReason.MAX_TURNS, "mask")
        assert {turn.deliberate for turn in masked.turns} == {False}
        assert all(turn.deliberate for turn in collection.groups[0].trajectories[0].turns)
        assert collection.stats["truncated_mask"] == 1

    def test_keep(self) -> None:
        collection = self.cut("keep")
        kept = collection.groups[0].trajectories[1]
        assert (kept.stop, kept.truncated) == (StopReason.MAX_TURNS, "keep")
        assert all(turn.deliberate and len(turn.completion.ids) == 8 for turn in kept.turns)
        assert collection.stats["truncated_keep"] == 1
        assert collection.stats["cut_completions"] == len(kept.turns)

    def test_nothing_cut_nothing_named(self) -> None:
        assert {t.truncated for t in flat(play(truncation="error"))} == {None}


def test_garbage_is_answered_and_counted() -> None:
    env = Doors(games=1)
    collection = rollouts(env, lambda _: "", agent=react(format="react")).collect(
        env.tasks("train"), rollouts_per_task=2, temperature=1.0, seed=0
    )
    assert collection.stats["parse_error_rate"] == 1.0
    assert "found no ACTION line" in (flat(collection)[0].turns[0].step or pytest.fail("no step")).observation


def test_breaks_are_counted() -> None:
    from tests.toys import FORGETTING  # noqa: PLC0415

    tokenizer = bytes_tokenizer(FORGETTING)
    env = Doors(games=1, lucky=False)
    from agentexp.policies.scripted import ScriptedPolicy  # noqa: PLC0415

    policy = ScriptedPolicy(tokenizer=tokenizer, say=lambda _: "<think>a</think>open door 1")
    collection = rollouts(
        env, chat=Chat(tokenizer=tokenizer), policy=policy, max_turns=3, max_new_tokens=64, max_context_tokens=4096
    ).collect(env.tasks("train"), rollouts_per_task=2, temperature=1.0, seed=0)
    assert collection.stats["breaks"] == 4
    assert [turn.segment for turn in flat(collection)[0].turns] == [0, 1, 2]
    assert flat(collection)[0].segments == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slots": 0}, "rollouts.slots is 0"),
        ({"max_turns": 0}, "rollouts.max_turns is 0"),
        ({"retries": -1}, "retries must be 0 or more"),
        ({"max_context_tokens": 8}, "no more than max_new_tokens"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rollouts(Doors(), **changes)


def test_impossible_orders_are_refused() -> None:
    env = Doors()
    tasks = env.tasks("train")
    with pytest.raises(ConfigError, match="only 2 rollouts are played"):
        rollouts(env).collect(tasks, rollouts_per_task=2, temperature=1.0, seed=0, enough=Enough(total=0.9, per_task=4))
    with pytest.raises(ConfigError, match="'train/0' first"):
        rollouts(env).collect([tasks[0], tasks[0]], rollouts_per_task=2, temperature=1.0, seed=0)
    with pytest.raises(ConfigError, match=r"enough.total is 1.5"):
        Enough(total=1.5, per_task=1)


def test_a_policy_that_breaks_its_contract_is_named() -> None:
    env = Doors()
    player = rollouts(env)
    answer = player.policy.complete
    player.policy.complete = lambda requests: answer(requests)[1:]  # type: ignore[method-assign]
    with pytest.raises(RolloutError, match="gave 15 completions for 16 requests"):
        player.collect(env.tasks("train"), rollouts_per_task=2, temperature=1.0, seed=0)
    assert all(session.closed for session in env.opened)


def test_chat_is_only_asked_for_new_text() -> None:
    """No O(history) work: what is encoded does not grow with the turn."""
    env = Doors(games=1, lucky=False)
    chat = Chat(tokenizer=words())
    rollouts(env, chat=chat, max_turns=30, max_context_tokens=2000).collect(
        env.tasks("train"), rollouts_per_task=1, temperature=1.0, seed=0
    )
    assert chat.encode_text.cache_info().misses <= 3


def test_candidates_are_asked_for_and_rollouts_of_a_task_share_their_random_numbers() -> None:
    seen: dict[str, list[Request]] = {}

    def say(request: Request) -> str:
        seen.setdefault(request.episode, []).append(request)
        return random_door(request)

    env = Doors()
    collection = rollouts(env, say).collect(
        env.tasks("train"), rollouts_per_task=3, temperature=1.0, seed=0, candidates=(1, 4, 16)
    )
    for group in collection.groups:
        asked = [seen[f"{group.task.id}#{k}"] for k in range(3)]
        assert [{r.candidates for r in requests} for requests in asked] == [{1}, {4}, {16}]
        assert len({requests[0].seed for requests in asked}) == 1
        alike = [tuple(turn.action.command for turn in t.turns) for t in group.trajectories]
        assert len(set(alike)) == 1  # this policy takes the first candidate, so all play the same
    with pytest.raises(ConfigError, match="2 numbers of candidates for 3 rollouts"):
        rollouts(env).collect(env.tasks("train"), rollouts_per_task=3, temperature=1.0, seed=0, candidates=(1, 4))


def test_without_candidates_every_request_asks_for_one() -> None:
    seen: list[Request] = []

    def say(request: Request) -> str:
        seen.append(request)
        return random_door(request)

    env = Doors()
    rollouts(env, say).collect(env.tasks("train"), rollouts_per_task=2, temperature=1.0, seed=0)
    assert {r.candidates for r in seen} == {1}

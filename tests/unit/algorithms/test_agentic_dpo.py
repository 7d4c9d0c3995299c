"""Agentic-DPO: which states, which negatives, what loss; that it learns, and that its control does not."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn.functional import logsigmoid

from agentexp.agents.base import Agent
from agentexp.algorithms.agentic_dpo import AgenticDpo
from agentexp.algorithms.expert_pool import AsShown, ExpertPool, Visit
from agentexp.algorithms.hard_negatives import Contrast, HardNegatives, branch_sums
from agentexp.algorithms.round_choice import RoundChoice
from agentexp.errors import ConfigError
from agentexp.learning import trees
from agentexp.learning.model import Model, tiny
from agentexp.losses.imitation import Dft, Likelihood
from agentexp.losses.preference import Dpo, Kto, SimPo, ZeroReferenceDpo
from agentexp.packing import trunks
from agentexp.policies.chat import Chat
from agentexp.policies.hf import HfPolicy
from agentexp.rollouts.collect import Rollouts
from agentexp.types import Action, Completion, Message, Step, Task, Turn
from tests.doors import Doors
from tests.toys import WORDS, react
from tests.unit.learning.test_learner import learner as make_learner

ZERO = ZeroReferenceDpo(beta=0.5, length_scale="power", alpha=0.5)


def model(seed: int = 0) -> Model:
    return tiny(
        words=[*WORDS, "take", "act"], weights=None, hidden_size=32, layers=2, head_size=16, mlp_ratio=2,
        max_context_tokens=512, initializer_range=0.1, threads=1, seed=seed,
    )  # fmt: skip


def a_pool(network: Model, **changes: Any) -> ExpertPool:
    options: dict[str, Any] = {
        "environment": Doors(), "agent": react(), "chat": Chat(tokenizer=network.tokenizer), "seed": 0,
        "split": "train", "demonstrations": 8, "demonstrations_seed": None, "noise": 0.0, "only_successes": True,
        "max_turns": 6, "views": [AsShown()], "view_weights": None, "max_context_tokens": 400,
    }  # fmt: skip
    return ExpertPool(**{**options, **changes})


def some_negatives(policy: Any, **changes: Any) -> HardNegatives:
    options: dict[str, Any] = {
        "samples_per_state": 4, "temperature": 1.0, "max_new_tokens": 4, "equivalence": "latent", "hardness": "sum",
        "unfinished": "keep", "unparsable": "keep",
    }  # fmt: skip
    return HardNegatives(policy=policy, **{**options, **changes})


def made(**changes: Any) -> AgenticDpo:
    network = changes.pop("network", None) or model()
    policy = HfPolicy(model=network, initial_cache_tokens=16, branch_tokens=4096)
    pool = changes.pop("pool", {})
    negatives = changes.pop("negatives", {})
    learner = {"lr": 3e-3, "tokens_per_microbatch": 4096, **changes.pop("learner", {})}
    options: dict[str, Any] = {
        "policy": policy, "learner": make_learner(network, **learner), "seed": 0, "pool": a_pool(network, **pool),
        "negatives": some_negatives(policy, **negatives), "preference": ZERO, "reference": "warm_up",
        "imitation": Likelihood(), "sft_weight": 0.5, "warm_up_sft_weight": 0.5, "sft_scale": "mean",
        "states": "every", "warm_up_rounds": 1, "visits_per_round": 10, "pairs_per_step": 4, "restart": True,
        "choice": None, "shuffle_sides": False,
    }  # fmt: skip
    return AgenticDpo(**{**options, **changes})


class Says:
    """A policy whose branches say what it is told: texts by state."""

    def __init__(self, network: Model, texts: Callable[[Sequence[int]], Sequence[str]]) -> None:
        self.chat, self.texts = Chat(tokenizer=network.tokenizer), texts

    def branch(self, trunks: Any, points: Any, *, n: int, **_: Any) -> list[list[list[Completion]]]:
        return [
            [[self.said(t) for t in self.texts(ids[:at])[:n]] for at in ats]
            for ids, ats in zip(trunks, points, strict=True)
        ]

    def said(self, text: str) -> Completion:
        ids = (*self.chat.encode_text(text), self.chat.eos_ids[0])
        return Completion(ids=ids, logprobs=(-1.0,) * len(ids), text=text, finish="stop", policy_version=0)


@torch.no_grad()
def plainly(network: Model, ids: Sequence[int], said: Sequence[int]) -> float:
    """Sum of log-probs of `said` behind `ids`, by the whole network on a plain row."""
    logits = network.network(input_ids=torch.tensor([[*ids, *said]])).logits[0].log_softmax(-1)
    return sum(float(logits[len(ids) + k - 1, token]) for k, token in enumerate(said))


def visits(pool: ExpertPool, count: int | None = None, *, whole: bool = False, round: int = 0) -> list[Visit]:
    return pool.visits(count, round=round, most_new_tokens=4, whole=whole)[0]


# ---------------------------------------------------------------- states and views


def test_states_are_the_expert_s_deliberate_turns_and_the_plain_view_is_the_demonstration_itself() -> None:
    pool = a_pool(model(), noise=0.5, only_successes=False)
    found = visits(pool)
    assert len(found) == sum(turn.deliberate for t in pool.played for turn in t.turns)
    assert any(not turn.deliberate for t in pool.played for turn in t.turns)  # there was something to leave out
    for visit in found:
        n, k = visit.order
        (trunk,) = trunks(pool.played[n])
        d = trunk.decisions[k]
        assert (visit.trunk.ids, visit.at, visit.said) == (trunk.ids, d.start, trunk.ids[d.start : d.end])
        assert visit.action == pool.played[n].turns[k].action


def test_a_round_visits_no_state_twice_and_rounds_differ() -> None:
    pool = a_pool(model())
    first, second = ([v.key for v in visits(pool, 10, round=r)] for r in (0, 1))
    assert len(set(first)) == len(first) == 10
    assert first != second
    assert first == [v.key for v in visits(a_pool(model()), 10, round=0)]
    other = visits(a_pool(model(), demonstrations_seed=1), 10, round=0)
    assert [v.trunk.ids for v in other] != [v.trunk.ids for v in visits(pool, 10, round=0)]
    with pytest.raises(ConfigError, match="visits_per_round is 10000"):
        visits(pool, 10_000)


def test_a_state_that_is_too_long_is_left_out_whole_and_counted() -> None:
    pool = a_pool(model())
    sizes = sorted(v.at + 4 for v in visits(pool))
    limit = sizes[len(sizes) // 2]
    short = a_pool(model(), max_context_tokens=limit)
    found, counts = short.visits(None, round=0, most_new_tokens=4, whole=False)
    assert len(found) == sum(s <= limit for s in sizes)
    assert counts["over_long"] == sum(s > limit for s in sizes) > 0
    assert all(v.trunk.ids[v.at : v.at + len(v.said)] == v.said for v in found)  # nothing was cut
    with pytest.raises(ConfigError, match="never cut"):
        visits(a_pool(model(), max_context_tokens=3))


class Renamed:
    """Doors are taken, not opened; `broken` forgets to read that."""

    def __init__(self, name: str = "renamed", *, broken: bool = False) -> None:
        self.name, self.broken = name, broken

    def through(self, agent: Agent, key: str, decided: Sequence[str | None]) -> Agent:
        return RenamedAgent(agent, broken=self.broken)


class RenamedAgent:
    def __init__(self, inner: Agent, *, broken: bool) -> None:
        self.inner, self.broken = inner, broken

    def render(self, task: Task, turns: Sequence[Turn], step: Step) -> list[Message]:
        said = [m.content for m in self.inner.render(task, turns, step)]
        return [Message(role="user", content=f"act {text}") for text in said]

    def parse(self, text: str) -> Action:
        return self.inner.parse(text if self.broken else text.replace("take", "open"))

    def write(self, command: str) -> str:
        return command.replace("open", "take")


def test_a_view_changes_the_words_of_the_whole_history_and_no_decision() -> None:
    network = model()
    pool = a_pool(network, views=[Renamed()])
    read = network.tokenizer.decode
    long = [v for v in visits(pool) if v.order[1] > 0]
    assert long
    for visit in long:
        text = read(visit.trunk.ids[: visit.at])
        assert "take" in text
        assert "open" not in text
        assert read(visit.said).startswith("take door")
        assert str(visit.action.command).startswith("open door")


def test_views_are_drawn_alike() -> None:
    pool = a_pool(model(), views=[AsShown(), Renamed()], demonstrations=60, environment=Doors(games=60))
    found = visits(pool)
    renamed = sum(isinstance(v.agent, RenamedAgent) for v in found)
    assert abs(renamed / len(found) - 0.5) < 0.2  # about 120 states: 0.2 is more than four deviations
    pool.view_weights = [1.0, 0.0]
    assert not any(isinstance(v.agent, RenamedAgent) for v in visits(pool))
    for whole in (visits(pool, whole=True),):
        shown: dict[int, set[bool]] = {}
        for v in whole:
            shown.setdefault(v.order[0], set()).add(isinstance(v.agent, RenamedAgent))
        assert all(len(kinds) == 1 for kinds in shown.values())  # one view a trajectory


def test_a_view_that_cannot_read_its_own_words_is_refused() -> None:
    """The released parser reads its own JSON as no tool, so that the expert's own action became a negative."""
    with pytest.raises(ConfigError, match="'renamed' writes 'open door 1' as 'take door 1'"):
        visits(a_pool(model(), views=[Renamed(broken=True)]))


# ---------------------------------------------------------------- negatives


@pytest.mark.parametrize("hardness", ["sum", "mean"])
def test_the_negative_is_the_likeliest_wrong_action(hardness: Any) -> None:
    network = model()
    policy = HfPolicy(model=network, initial_cache_tokens=16, branch_tokens=4096)
    one = some_negatives(policy, samples_per_state=8, temperature=0.5, hardness=hardness)
    pool = a_pool(network)
    found = visits(pool, 12)
    learner = make_learner(network, tokens_per_microbatch=4096)  # temperature 1
    contrasts, counts = one.find(found, learner, seed=3, progress=None)
    said = one.sample(found, 3, None)
    otherwise = 0
    for contrast, visit, completions in zip(contrasts, found, said, strict=True):
        wrong = [c for c in completions if react().parse(c.text).command != visit.action.command]

        def worth(c: Completion, visit: Visit = visit) -> float:
            value = plainly(network, visit.trunk.ids[: visit.at], c.ids)
            return value if hardness == "sum" else value / len(c.ids)

        if not wrong:
            assert contrast.rejected is None
            continue
        assert contrast.rejected is not None
        assert contrast.rejected in [c.ids for c in wrong]
        best = max(worth(c) for c in wrong)
        mine = plainly(network, visit.trunk.ids[: visit.at], contrast.rejected)
        assert mine / (1 if hardness == "sum" else len(contrast.rejected)) == pytest.approx(best, abs=1e-4)
        otherwise += contrast.rejected != wrong[0].ids
    assert otherwise  # negative control: the first wrong sample (the released code's) is another
    assert counts["sampled"] == 8 * 12


def test_log_probs_of_hardness_are_the_learner_s_not_the_sampler_s() -> None:
    network = model()
    policy = HfPolicy(model=network, initial_cache_tokens=16, branch_tokens=4096)
    found = visits(a_pool(network), 6)
    said = some_negatives(policy, temperature=0.3).sample(found, 1, None)
    actions = [[c.ids for c in completions] for completions in said]
    ours = branch_sums(make_learner(network, tokens_per_microbatch=4096), found, actions)
    for visit, completions, values in zip(found, said, ours, strict=True):
        for c, value in zip(completions, values, strict=True):
            assert value == pytest.approx(plainly(network, visit.trunk.ids[: visit.at], c.ids), abs=1e-4)
    theirs = sum(sum(c.logprobs) for completions in said for c in completions)
    assert sum(map(sum, ours)) < theirs - 1.0  # at temperature .3 the sampler's own words look likelier to it


@pytest.mark.parametrize("view", [AsShown(), Renamed()])
def test_a_correct_action_is_never_a_negative(view: Any) -> None:
    network = model()
    pool = a_pool(network, views=[view])
    right = {v.trunk.ids[: v.at]: network.tokenizer.decode(v.said[:-1]) for v in visits(pool)}
    policy = Says(network, lambda state: [right[tuple(state)]] * 2 + ["find door 3", "find key"])
    learner = make_learner(network)
    contrasts, counts = some_negatives(policy).find(visits(pool), learner, seed=0, progress=None)
    assert counts["equivalent"] == 2 * len(contrasts)
    assert counts["agreement"] == 0.5
    for c in contrasts:
        assert c.rejected is not None
        assert network.tokenizer.decode(c.rejected[:-1]) in {"find door 3", "find key"}
    only_right = Says(network, lambda state: [right[tuple(state)]])
    contrasts, counts = some_negatives(only_right, samples_per_state=1).find(
        visits(pool), learner, seed=0, progress=None
    )
    assert counts["no_negative"] == len(contrasts)
    assert all(c.rejected is None for c in contrasts)


def test_by_tool_name_another_argument_is_no_negative() -> None:
    network = model()
    pool = a_pool(network)
    policy = Says(network, lambda state: ["open the key", "find key"])
    for how, texts in (("latent", {"open key", "find key"}), ("tool_name", {"find key"})):
        contrasts, _ = some_negatives(policy, equivalence=how, samples_per_state=2).find(
            visits(pool), make_learner(network), seed=0, progress=None
        )
        assert {network.tokenizer.decode((c.rejected or ())[:-1]) for c in contrasts} <= texts
        assert all(c.rejected is not None for c in contrasts)


# ---------------------------------------------------------------- the loss


def test_a_step_s_loss_is_the_paper_s() -> None:
    """The mean of lambda (-log pi(a+)) / |a+| - log sigma(beta / max(|a+|, |a-|)^alpha (…)), from plain rows."""
    one = made(visits_per_round=None)
    contrasts, _ = one.negatives.find(visits(one.pool), one.learner, seed=4, progress=None)
    some = [c for c in contrasts if c.rejected is not None][:5]
    some += [replace(c, rejected=None) for c in some[:1]]  # and one without a negative
    total = 0.0
    for c in some:
        state = c.visit.trunk.ids[: c.visit.at]
        plus = plainly(one.learner.model, state, c.visit.said)
        total += 0.5 * -plus / len(c.visit.said)
        if c.rejected is not None:
            scale = 0.5 / max(len(c.visit.said), len(c.rejected)) ** 0.5
            minus = plainly(one.learner.model, state, c.rejected)
            total -= float(logsigmoid(torch.tensor(scale * (plus - minus))))
    assert one.step(some, 0.5, 0)["loss"] == pytest.approx(total / 6, rel=1e-5)


def test_only_the_actions_words_are_learnt_never_the_state_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """The released code's imitation also learns the prompt."""
    picked: list[list[int]] = []
    inner = trees.picked_logps

    def spy(network: Model, states: torch.Tensor, ids: torch.Tensor, temperature: float) -> torch.Tensor:
        picked.append(ids.tolist())
        return inner(network, states, ids, temperature)

    one = made()
    contrasts, _ = one.negatives.find(visits(one.pool, 4), one.learner, seed=4, progress=None)
    monkeypatch.setattr(trees, "picked_logps", spy)
    one.step(contrasts, 0.5, 0)
    said = [t for c in contrasts for ids in (c.visit.said, c.rejected or ()) for t in ids]
    assert sorted(t for ids in picked for t in ids) == sorted(said)


def test_micro_batches_leave_the_step_unchanged_and_shared_states_too() -> None:
    results = []
    for budget in (40, 100_000):
        one = made(
            warm_up_rounds=0, visits_per_round=None, pairs_per_step=16, learner={"tokens_per_microbatch": budget}
        )
        metrics = one.iterate(0).metrics
        results.append((metrics["train/loss"], metrics["train/margin"], metrics["train/sft_loss"]))
    assert results[0] == pytest.approx(results[1], rel=1e-4)


def test_without_a_negative_a_state_only_imitates() -> None:
    """The same step with and without a preference when the student says what the expert says."""
    weights = []
    for preference in (ZERO, None):
        network = model()
        one = made(network=network, preference=preference, warm_up_rounds=0, visits_per_round=None)
        right = {v.trunk.ids[: v.at]: network.tokenizer.decode(v.said[:-1]) for v in visits(one.pool)}
        one.negatives.policy = Says(network, lambda state, right=right: [right[tuple(state)]] * 4)  # type: ignore[assignment,misc]
        one.iterate(0)
        weights.append(network.weights())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


class Frozen(Doors):
    """Steps raise once `frozen`."""

    frozen = False

    def strike(self, task: Task, step: int) -> None:
        if self.frozen:
            raise AssertionError("the environment was stepped")


def test_no_environment_runs_after_the_demonstrations() -> None:
    environment = Frozen()
    one = made(pool={"environment": environment})
    one.pool.fill()
    environment.frozen = True
    opened = len(environment.opened)
    for i in range(2):
        one.iterate(i)
    assert len(environment.opened) == opened
    session = environment.start(environment.tasks("train")[0], 0)
    with pytest.raises(AssertionError, match="was stepped"):  # negative control: it would have been seen
        session.step(Action(text="", command="open door 1"))


def test_step_dpo_keeps_the_first_wrong_state_of_each_trajectory() -> None:
    network = model()
    one = made(network=network, states="first_wrong", warm_up_rounds=0, visits_per_round=None)
    found = visits(one.pool, whole=True)
    long = max(v.order[1] for v in found)
    assert long > 0
    right = {v.trunk.ids[: v.at]: network.tokenizer.decode(v.said[:-1]) for v in found}
    turn = {v.trunk.ids[: v.at]: v.order[1] for v in found}
    # right at the first turn, wrong later: so the pairs are those of turn 1
    one.negatives.policy = Says(  # type: ignore[assignment]
        network, lambda state: [right[tuple(state)] if turn[tuple(state)] == 0 else "find key"] * 4
    )
    stepped: list[Any] = []
    one.step = lambda contrasts, *_: stepped.extend(contrasts) or {"loss": 0.0}  # type: ignore[method-assign,func-returns-value]
    one.iterate(0)
    assert stepped
    assert {c.visit.order[1] for c in stepped} == {1}
    assert len(stepped) == len({c.visit.order[0] for c in stepped})


# ---------------------------------------------------------------- learning, choosing, resuming


@pytest.mark.parametrize(
    "preference",
    [
        ZERO,
        Dpo(beta=0.5, length_scale="sum", alpha=0.0),
        SimPo(beta=2.0, gamma=0.5),
        Kto(beta=0.5, chosen_weight=1.0, rejected_weight=1.0),
    ],
    ids=lambda p: type(p).__name__,
)
def test_every_preference_loss_raises_the_margin_and_its_controls_do_not(preference: Any) -> None:
    """log pi(a+) - log pi(a-) of the same pairs before and after some steps on them; with the sides shuffled; and
    with the sides swapped."""

    def gain(*, shuffled: bool = False, swapped: bool = False) -> float:
        one = made(
            preference=preference, sft_weight=0.0, warm_up_rounds=0, visits_per_round=None, shuffle_sides=shuffled,
            pairs_per_step=8, learner={"lr": 3e-3},
        )  # fmt: skip
        contrasts = one.negatives.find(visits(one.pool), one.learner, seed=5, progress=None)[0]
        contrasts = one.with_reference([c for c in contrasts if c.rejected is not None])
        sides = [[c.visit.said, c.rejected or ()] for c in contrasts]

        def margin() -> float:
            sums = branch_sums(one.learner, [c.visit for c in contrasts], sides)
            return sum(a - b for a, b in sums) / len(sums)

        before = margin()
        used = [other_way_round(c) for c in contrasts] if swapped else contrasts
        for n in range(8):
            one.step(used, 0.0, n)
        return margin() - before

    learnt = gain()
    assert learnt > 0.5
    assert abs(gain(shuffled=True)) < 0.5 * learnt
    assert gain(swapped=True) < -0.5


def other_way_round(c: Contrast) -> Contrast:
    assert c.rejected is not None
    return replace(c, visit=replace(c.visit, said=c.rejected), rejected=c.visit.said, reference=c.reference[::-1])


@pytest.mark.parametrize("imitation", [Likelihood(), Dft()], ids=lambda p: type(p).__name__)
def test_it_learns_the_expert_s_actions(imitation: Any) -> None:
    one = made(imitation=imitation, visits_per_round=None, learner={"lr": 1e-2})
    metrics = [one.iterate(i).metrics for i in range(10)]
    assert "negatives/sampled" not in metrics[0]  # R0 imitates only
    if isinstance(imitation, Likelihood):  # DFT's -p log p is small where p is, too
        assert metrics[-1]["train/sft_loss"] < 0.5 * metrics[0]["train/sft_loss"]
    assert metrics[-1]["negatives/agreement"] > metrics[1]["negatives/agreement"] + 0.2
    assert metrics[-1]["negatives/agreement"] > 0.6


def test_with_sides_shuffled_and_no_anchor_it_does_not() -> None:
    agreement = {}
    for shuffled in (False, True):
        one = made(
            shuffle_sides=shuffled, sft_weight=0.0, visits_per_round=None, pairs_per_step=8, learner={"lr": 3e-3},
            preference=ZeroReferenceDpo(beta=1.0, length_scale="power", alpha=0.5), warm_up_rounds=2,
        )  # fmt: skip
        agreement[shuffled] = [one.iterate(i).metrics.get("negatives/agreement", 0.0) for i in range(8)]
    assert agreement[False][2] == agreement[True][2]  # the same warm-up
    assert agreement[False][-1] > agreement[False][2] + 0.1
    assert agreement[True][-1] < agreement[False][-1] - 0.1


def rounds(network: Model, games: int = 4) -> RoundChoice:
    environment = Doors()
    return RoundChoice(
        environment=environment,
        rollouts=Rollouts(
            environment=environment, agent=react(), chat=Chat(tokenizer=network.tokenizer),
            policy=HfPolicy(model=network, initial_cache_tokens=16, branch_tokens=4096), max_turns=3, max_new_tokens=4,
            max_context_tokens=400, slots=8, workers=1, step_timeout_s=5.0, retries=0, max_dead_groups=2,
            truncation="keep",
        ),
        seed=0, split="valid", games=games, temperature=1.0,
    )  # fmt: skip


def test_the_best_round_is_handed_on_and_training_goes_on_from_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    network = model()
    one = rounds(network)
    successes = iter([0.25, 0.75, 0.5, 0.75])

    def collect(self: Any, tasks: Sequence[Task], **_: Any) -> Any:
        won = int(4 * next(successes))
        trajectories = [SimpleNamespace(outcome=SimpleNamespace(success=n < won)) for n in range(4)]
        return SimpleNamespace(groups=[SimpleNamespace(trajectories=trajectories)])

    monkeypatch.setattr(Rollouts, "collect", collect)
    name, learnt = next(iter(network.trainable().items()))
    parameter = learnt.data

    def after(round: int) -> float:
        """Train (add 1), look, and tell what is handed on."""
        one.go_on(network)
        parameter.view(-1)[0] += 1.0
        one.look(network, round)
        return float(network.weights()[name].flatten()[0])

    start = float(parameter.view(-1)[0])
    handed = [after(r) - start for r in range(4)]
    assert handed == pytest.approx([1.0, 2.0, 2.0, 2.0], abs=1e-5)  # round 1 is the best, and the earliest of equals
    one.go_on(network)
    assert float(parameter.view(-1)[0]) - start == pytest.approx(4.0, abs=1e-5)  # four rounds were trained


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("reference", ["warm_up", "round"])
def test_resume_continues_bit_for_bit(chosen: bool, reference: str) -> None:
    def fresh(seed: int = 0) -> AgenticDpo:
        network = model()
        return made(
            network=network, preference=Dpo(beta=0.5, length_scale="sum", alpha=0.0), reference=reference,
            choice=rounds(network) if chosen else None, restart=False, seed=seed,
        )  # fmt: skip

    whole = fresh()
    metrics: list[Any] = [whole.iterate(i).metrics for i in range(4)]
    first = fresh()
    for i in range(2):
        first.iterate(i)
    state = copy.deepcopy(first.state_dict())
    second = fresh()
    second.load_state_dict(state)
    assert [second.iterate(i).metrics for i in (2, 3)] == metrics[2:]
    want = whole.learner.model.weights()
    assert all(torch.equal(want[name], w) for name, w in second.learner.model.weights().items())
    other = fresh()  # negative control: without the state the rounds are others
    assert [other.iterate(i).metrics for i in (2, 3)] != metrics[2:]


def test_restart_forgets_the_moments_and_begins_the_schedule_again() -> None:
    lrs = {}
    for restart in (True, False):
        one = made(restart=restart, visits_per_round=8, learner={"schedule": "linear", "total_steps": 4})
        lrs[restart] = [one.iterate(i).metrics["train/lr"] for i in range(2)]
    assert lrs[True][0] == lrs[True][1] == lrs[False][0]
    assert lrs[False][1] < lrs[False][0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"preference": None, "sft_weight": 0.0}, "nothing would be learnt"),
        ({"pairs_per_step": 0}, "pairs_per_step is 0"),
        ({"visits_per_round": 0}, "visits_per_round is 0"),
        ({"sft_weight": float("nan")}, "sft_weight is nan"),
        ({"pool": {"views": []}}, "views"),
        ({"pool": {"view_weights": [0.5, 0.5]}}, "for 1 views"),
        ({"pool": {"view_weights": [0.0]}}, "not all 0"),
        ({"pool": {"views": [AsShown(), AsShown()]}}, "name twice"),
        ({"negatives": {"samples_per_state": 0}}, "samples_per_state is 0"),
    ],
)
def test_what_could_not_learn_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        made(**change)

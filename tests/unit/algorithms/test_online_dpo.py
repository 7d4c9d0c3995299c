"""Online DPO: which candidates form pairs, and that the policy moves towards what Q prefers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import agentexp.algorithms.online_dpo as module
from agentexp.algorithms.online_dpo import OnlineDpo
from agentexp.errors import ConfigError
from agentexp.learning.model import Model
from agentexp.learning.reward_model import Scores
from agentexp.policies.hf import HfPolicy
from agentexp.types import Completion, Decision, Tree, Trunk
from tests.unit.learning.conftest import small_model
from tests.unit.learning.test_learner import learner as make_learner


def made(**changes: Any) -> OnlineDpo:
    model = changes.pop("model", None) or small_model()
    settings: dict[str, Any] = {
        "policy": HfPolicy(model=model, initial_cache_tokens=16, branch_tokens=4096),
        "learner": make_learner(model, lr=3e-3),
        "reward_model": None,
        "seed": 0, "steps": 2, "trunks_per_step": 2, "states_per_trunk": None, "samples_per_state": 4,
        "temperature": 1.0, "max_new_tokens": 3, "unit": "raw", "labels": "hard",
        "beta": 0.5, "length_scale": "sum", "alpha": 0.5, "min_gap": 0.0,
        "epochs": 1, "unfinished": "keep", "unfinished_score": -1.0,
    }  # fmt: skip
    return OnlineDpo(**{**settings, **changes})


TRUNKS = [
    Trunk(
        ids=(5, 6, 7, 8, 9, 4, 6, 2),
        decisions=(Decision(turn=0, start=2, end=4), Decision(turn=1, start=6, end=8)),
        origin=f"t{n}#0/0",
    )
    for n in range(3)
]


def judge(worth: Any) -> Any:
    """A reward model that is a function of a branch's ids."""

    def score(_: object, trees: list[Tree], *, tokens_per_microbatch: int) -> list[Scores]:
        return [
            Scores(decisions=(0.0,) * len(t.trunk.decisions), branches=tuple(worth(b.ids) for b in t.branches))
            for t in trees
        ]

    return score


def completion(*ids: int, finish: str = "stop") -> Completion:
    return Completion(ids=ids, logprobs=(-1.0,) * len(ids), text="x", finish=finish, policy_version=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "expected"), [("keep", {0: 1.0, 1: 2.0}), ("drop", {0: 1.0}), ("penalty", {0: 1.0, 1: -1.0})]
)
def test_what_an_unfinished_action_counts_for(how: str, expected: dict[int, float]) -> None:
    said = [completion(7), completion(8, finish="length")]
    assert made(unfinished=how).worth(said, [1.0, 2.0]) == expected


def test_equal_scores_form_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "score", judge(lambda _: 1.0))
    dpo = made()
    before = dpo.learner.model.weights()
    metrics = dpo.improve(TRUNKS, iteration=0, watch=None, progress=None)
    assert metrics["pairs"] == 0.0
    assert metrics["ties"] == metrics["states"] == 4.0  # two states on each of two trunks
    assert metrics["rounds_without_pairs"] == 2.0
    assert all(torch.equal(before[name], now) for name, now in dpo.learner.model.weights().items())


def test_best_against_worst_of_each_state_and_the_first_loss_is_log_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "score", judge(lambda ids: float(sum(ids))))
    dpo = made()
    ranked, counts = dpo.rank(TRUNKS[:2], 7)
    for r in ranked:
        totals = [sum(b.ids) for b in r.tree.branches]
        assert all(a > b for a, b in zip(totals[0::2], totals[1::2], strict=True))
        assert [a - b for a, b in zip(totals[0::2], totals[1::2], strict=True)] == list(r.gaps)
    assert counts["pairs"] + counts["ties"] == counts["states"] == 4.0
    first = dpo.round(TRUNKS[:2], dpo.learner.model.weights(), 7)
    assert first["loss"] == pytest.approx(math.log(2.0), abs=1e-5)  # pi = pi_{i-1}: every margin is 0
    assert first["accuracy"] == 0.0  # margins equal, none above


def test_the_policy_moves_towards_what_q_prefers_and_away_with_its_sign_flipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @torch.no_grad()
    def nine(model: Model) -> float:
        logits = model.network(input_ids=torch.tensor([TRUNKS[0].ids[:2]])).logits[0, -1]
        return float(logits.log_softmax(-1)[9])

    def wanted_after(sign: float) -> float:
        monkeypatch.setattr(module, "score", judge(lambda ids: sign * (ids[0] == 9)))
        dpo = made(steps=25, samples_per_state=8)
        dpo.improve(TRUNKS, iteration=0, watch=None, progress=None)
        return nine(dpo.learner.model)

    model = small_model()
    start = nine(model)
    assert wanted_after(1.0) > start + 0.3
    assert wanted_after(-1.0) < start - 0.1


def test_soft_labels_end_at_the_reference_times_exp_q_over_beta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eq. (3): with Q = 1 for one action, 0 for the rest and beta = 1, that action's odds grow by e, no more."""
    state = Trunk(ids=TRUNKS[0].ids[:4], decisions=(Decision(turn=0, start=2, end=4),), origin="t#0/0")

    @torch.no_grad()
    def log_odds(model: Model) -> float:
        p = model.network(input_ids=torch.tensor([state.ids[:2]])).logits[0, -1].softmax(-1)[9]
        return float(p.log() - (1 - p).log())

    def growth(labels: str, steps: int) -> float:
        monkeypatch.setattr(module, "score", judge(lambda ids: float(ids[0] == 9)))
        model = small_model()
        before = log_odds(model)
        dpo = made(
            model=model, learner=make_learner(model, lr=1e-3), labels=labels, beta=1.0, steps=steps, trunks_per_step=4,
            samples_per_state=32, max_new_tokens=1,
        )  # fmt: skip
        dpo.improve([state] * 4, iteration=0, watch=None, progress=None)
        return log_odds(model) - before

    assert growth("soft", 150) == pytest.approx(1.0, abs=0.15)
    assert growth("hard", 150) > 2.0  # control: a hard label goes on


def test_q_as_a_probability_or_as_its_log_odds() -> None:
    said = [completion(7), completion(8)]
    assert made(unit="raw").worth(said, [0.0, 2.0]) == {0: 0.0, 1: 2.0}
    assert made(unit="probability").worth(said, [0.0, 2.0]) == pytest.approx({0: 0.5, 1: 1 / (1 + math.exp(-2.0))})


def test_the_reference_is_the_policy_that_the_iteration_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """KL to pi_{i-1}, not to what supervised training made: a second call starts again at log 2."""
    monkeypatch.setattr(module, "score", judge(lambda ids: float(sum(ids))))
    dpo = made(steps=4)
    dpo.improve(TRUNKS, iteration=0, watch=None, progress=None)
    moved = dpo.learner.model.weights()
    again = dpo.round(TRUNKS[:2], moved, 11)
    assert again["loss"] == pytest.approx(math.log(2.0), abs=1e-5)


def test_watching_ends_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "score", judge(lambda ids: float(sum(ids))))
    metrics = made(steps=9).improve(TRUNKS, iteration=0, watch=lambda rounds: rounds == 3, progress=None)
    assert metrics["rounds"] == 3.0


@pytest.mark.parametrize("change", [{"samples_per_state": 1}, {"beta": 0.0}, {"steps": 0}, {"min_gap": -1.0}])
def test_what_could_not_learn_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        made(**change)

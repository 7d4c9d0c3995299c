"""ETO: which trajectories are paired, the log-prob of a whole one, and that it learns and resumes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.nn.functional import logsigmoid

from agentexp.algorithms.eto import Eto
from agentexp.errors import ConfigError
from agentexp.learning.model import Model
from agentexp.losses.preference import Dpo, Kto
from agentexp.packing import to_samples
from agentexp.policies.chat import Chat
from agentexp.policies.hf import HfPolicy
from agentexp.rollouts.collect import Rollouts
from agentexp.types import Trajectory
from tests.doors import Doors
from tests.toys import react
from tests.unit.algorithms.test_agentic_dpo import a_pool, model
from tests.unit.learning.test_learner import learner as make_learner


def made(*, network: Model | None = None, **changes: Any) -> Eto:
    network = network or model()
    policy = HfPolicy(model=network, initial_cache_tokens=16, branch_tokens=4096)
    options: dict[str, Any] = {
        "policy": policy, "learner": make_learner(network, lr=3e-3, tokens_per_microbatch=4096), "seed": 0,
        "rollouts": Rollouts(
            environment=Doors(), agent=react(), chat=Chat(tokenizer=network.tokenizer), policy=policy, max_turns=3,
            max_new_tokens=4, max_context_tokens=400, slots=8, workers=1, step_timeout_s=5.0, retries=0,
            max_dead_groups=2, truncation="keep",
        ),
        "pool": a_pool(network), "preference": Dpo(beta=0.5, length_scale="sum", alpha=0.0), "reference": "start",
        "tasks_per_iteration": 8, "temperature": 1.0, "pairs_per_step": 4, "epochs": 2,
    }  # fmt: skip
    return Eto(**{**options, **changes})


@torch.no_grad()
def whole_logp(network: Model, trajectory: Trajectory) -> float:
    """Sum over generated tokens of log pi, from plain logits."""
    total = 0.0
    for sample in to_samples(trajectory, 0.0):
        logps = network.network(input_ids=torch.tensor([sample.ids])).logits[0].log_softmax(-1)
        total += sum(float(logps[t - 1, i]) for t, i in enumerate(sample.ids) if sample.mask[t])
    return total


def played(one: Eto) -> list[Trajectory]:
    tasks = one.prepare().next(8)
    groups = one.rollouts.collect(tasks, rollouts_per_task=1, temperature=1.0, seed=3).groups
    return [t for g in groups for t in g.trajectories]


def test_failed_trajectories_against_the_expert_s_of_the_same_task_and_the_loss_by_hand() -> None:
    one = made(learner=make_learner(network := model(), lr=0.0, tokens_per_microbatch=4096), network=network)
    trajectories = played(one)
    failed = [t for t in trajectories if t.outcome is not None and not t.outcome.success]
    assert failed
    pairs, counts = one.pairs(trajectories)
    assert counts["pairs"] == len(pairs) == len(failed)
    terms = []
    for t, pair in zip(failed, one.with_reference(pairs), strict=True):
        expert = one.experts[t.task.id]
        assert expert.task.id == t.task.id
        plus, minus = whole_logp(network, expert), whole_logp(network, t)
        assert pair.reference == pytest.approx((plus, minus), abs=1e-3)
        shifted = 0.5 * ((plus - minus) - (pair.reference[0] - 1.0 - pair.reference[1]))
        terms.append(-float(logsigmoid(torch.tensor(shifted))))
    moved = [
        type(p)(chosen=p.chosen, rejected=p.rejected, reference=(p.reference[0] - 1.0, p.reference[1]))
        for p in one.with_reference(pairs)
    ]
    assert one.step(moved)["loss"] == pytest.approx(sum(terms) / len(terms), rel=1e-3)


def test_micro_batches_leave_the_step_unchanged() -> None:
    norms = []
    for budget in (100, 100_000):
        network = model()
        one = made(network=network, learner=make_learner(network, lr=1e-3, tokens_per_microbatch=budget))
        pairs = one.with_reference(one.pairs(played(one))[0])
        norms.append(one.step(pairs)["grad_norm"])
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)


def test_it_learns_and_with_sides_swapped_it_unlearns() -> None:
    def gain(*, swapped: bool) -> float:
        one = made()
        pairs = one.with_reference(one.pairs(played(one))[0])
        used = [
            type(p)(chosen=p.rejected, rejected=p.chosen, reference=p.reference[::-1]) if swapped else p for p in pairs
        ]
        expert = next(iter(one.experts.values()))
        before = whole_logp(one.learner.model, expert)
        for _ in range(8):
            metrics = one.step(used)
        assert metrics["margin"] > 0.0
        return whole_logp(one.learner.model, expert) - before

    assert gain(swapped=False) > 0.5
    assert gain(swapped=True) < -0.5


@pytest.mark.parametrize("reference", ["start", "round"])
def test_resume_continues_bit_for_bit(reference: str) -> None:
    whole = made(reference=reference)
    metrics = [untimed(whole.iterate(i).metrics) for i in range(3)]
    first = made(reference=reference)
    first.iterate(0)
    state = copy.deepcopy(first.state_dict())
    second = made(reference=reference)
    second.load_state_dict(state)
    assert [untimed(second.iterate(i).metrics) for i in (1, 2)] == metrics[1:]
    want = whole.learner.model.weights()
    assert all(torch.equal(want[name], w) for name, w in second.learner.model.weights().items())
    assert metrics[1] != metrics[2]


def untimed(metrics: Any) -> dict[str, float]:
    return {k: v for k, v in metrics.items() if not k.startswith("time/")}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="KL"):
        made(preference=Kto(beta=1.0, chosen_weight=1.0, rejected_weight=1.0))
    with pytest.raises(ConfigError, match="epochs 0"):
        made(epochs=0)
    with pytest.raises(ConfigError, match="tasks_per_iteration is 9"):
        made(tasks_per_iteration=9).prepare()

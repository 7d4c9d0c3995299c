"""The learner: invariances of the step, resume, one copy, the switched-off adapter."""

import copy
import gc
import math
import random
from typing import Any

import pytest
import torch

from agentexp.errors import ConfigError, DataError
from agentexp.learning.learner import Learner
from agentexp.learning.logps import token_logps
from agentexp.learning.model import Model
from agentexp.learning.reward_learner import RewardLearner
from agentexp.learning.reward_model import reward_model
from agentexp.losses.imitation import negative_log_likelihood
from agentexp.losses.ppo import ClippedPolicyLoss
from agentexp.packing import Row, token_weights
from agentexp.types import Sample
from tests.unit.learning.conftest import small_model


def learner(model: Model, **changes: Any) -> Learner:
    settings: dict[str, Any] = {
        "lr": 1e-2, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "max_grad_norm": 1.0, "warmup_steps": 0,
        "schedule": "constant", "total_steps": None, "final_lr_fraction": 0.0,
        "tokens_per_microbatch": 64, "temperature": 1.0,
    }  # fmt: skip
    return Learner(model=model, **{**settings, **changes})


def samples(n: int = 6, seed: int = 0) -> list[Sample]:
    rng = random.Random(seed)
    made = []
    for k in range(n):
        length = rng.randint(4, 14)
        mask = (False, *(rng.random() < 0.5 for _ in range(length - 2)), True)
        made.append(
            Sample(
                ids=tuple(rng.randrange(5, 45) for _ in range(length)),
                mask=mask,
                turn=tuple(t // 3 if m else -1 for t, m in enumerate(mask)),
                old_logps=tuple(-3.0 if m else 0.0 for m in mask),
                advantage=tuple((k - 2.5) if m else 0.0 for m in mask),
                origin=f"s{k}",
            )
        )
    return made


def rows(of: list[Sample]) -> list[Row]:
    return [Row(sample=s, weight=w) for s, w in zip(of, token_weights(of, "rollout"), strict=True)]


POLICY = ClippedPolicyLoss(level="token", epsilon=0.2, interval="one_plus_minus", kl_coefficient=0.0)


def test_chunked_logps_equal_the_whole_softmax(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentexp.learning.logps.CHUNK", 3)
    ids = torch.randint(5, 45, (3, 9), generator=torch.Generator().manual_seed(0))
    wanted = torch.ones_like(ids, dtype=torch.bool)
    wanted[:, 0] = False
    logits = model.network(input_ids=ids).logits[:, :-1] / 0.7
    whole = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    got = token_logps(model, ids, wanted, 0.7)
    assert torch.allclose(got[:, 1:], whole, atol=1e-5)
    grads = []
    for value in (whole.sum(), got.sum()):
        model.network.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        grads.append(torch.cat([p.grad.flatten() for p in model.trainable().values() if p.grad is not None]))
    assert torch.allclose(grads[0], grads[1], atol=1e-4)


@pytest.mark.parametrize("loss", [POLICY, negative_log_likelihood])
def test_micro_batches_and_order_leave_the_step_unchanged(model: Model, loss: Any) -> None:
    start = model.weights()
    results = []
    for budget, order in ((1000, 1), (16, 1), (40, -1)):
        model.load_weights(start)
        metrics = learner(model, tokens_per_microbatch=budget).step(rows(samples())[::order], loss)
        results.append((metrics["loss"], metrics["grad_norm"]))
    assert results[1] == pytest.approx(results[0], rel=1e-4)
    assert results[2] == pytest.approx(results[0], rel=1e-4)


def test_reweighting_each_micro_batch_alone_would_be_seen(model: Model) -> None:
    """Negative control for the test above: per-micro-batch denominators give another loss."""
    ragged = samples()
    whole = sum(sum(w) for w in token_weights(ragged, "token"))
    halves = sum(sum(w) for part in (ragged[:2], ragged[2:]) for w in token_weights(part, "token"))
    assert whole == pytest.approx(1.0)
    assert halves == pytest.approx(2.0)


def test_lr_zero_keeps_the_ratio_at_one(model: Model) -> None:
    one = learner(model, lr=0.0, temperature=0.6)
    played = samples()
    old = one.logps(played)
    fresh = [
        Sample(ids=s.ids, mask=s.mask, turn=s.turn, old_logps=o, advantage=s.advantage, origin=s.origin)
        for s, o in zip(played, old, strict=True)
    ]
    for _ in range(4):
        metrics = one.step(rows(fresh), POLICY)
        assert metrics["ratio"] == pytest.approx(1.0, abs=1e-5)
        assert metrics["kl_old"] == pytest.approx(0.0, abs=1e-6)


def test_another_temperature_in_the_trainer_would_be_seen(model: Model) -> None:
    played = samples()
    old = learner(model, temperature=0.6).logps(played)
    assert learner(model, temperature=1.0).logps(played)[0] != pytest.approx(old[0], abs=1e-3)


def test_resume_is_bit_for_bit(model: Model) -> None:
    straight = learner(model, schedule="cosine", total_steps=10, warmup_steps=2)
    start = model.weights()
    for n in range(6):
        straight.step(rows(samples(seed=n)), POLICY)
    want = model.weights()
    model.load_weights(start)
    first = learner(model, schedule="cosine", total_steps=10, warmup_steps=2)
    for n in range(3):
        first.step(rows(samples(seed=n)), POLICY)
    state = copy.deepcopy(first.state_dict())
    model.load_weights(start)
    second = learner(model, schedule="cosine", total_steps=10, warmup_steps=2)
    second.load_state_dict(state)
    for n in range(3, 6):
        second.step(rows(samples(seed=n)), POLICY)
    assert all(torch.equal(want[k], v) for k, v in model.weights().items())


def test_resume_without_the_optimiser_would_be_seen(model: Model) -> None:
    start = model.weights()
    outcomes = []
    for forget in (False, True):
        model.load_weights(start)
        one = learner(model)
        one.step(rows(samples(seed=0)), POLICY)
        if forget:
            one = learner(model)
        one.step(rows(samples(seed=1)), POLICY)
        outcomes.append(model.weights())
    assert any(not torch.equal(outcomes[0][k], outcomes[1][k]) for k in outcomes[0])


def test_a_gradient_that_is_not_finite_is_counted_and_not_applied(model: Model) -> None:
    before = model.weights()
    bad = samples(2)
    poisoned = [
        Sample(
            ids=s.ids,
            mask=s.mask,
            turn=s.turn,
            old_logps=s.old_logps,
            advantage=tuple(float("nan") if m else 0.0 for m in s.mask),
            origin=s.origin,
        )
        for s in bad
    ]
    metrics = learner(model).step(rows(poisoned), POLICY)
    assert metrics["skipped_steps"] == 1.0
    assert all(torch.equal(before[k], v) for k, v in model.weights().items())


def test_reference_is_the_base_model_without_a_copy(lora_model: Model) -> None:
    one = learner(lora_model)
    played = samples()
    adapted = one.logps(played)
    with lora_model.as_reference(None):
        reference = one.logps(played)
    assert adapted[0] != pytest.approx(reference[0], abs=1e-3)
    with lora_model.network.disable_adapter():  # type: ignore[operator]
        assert one.logps(played)[0] == pytest.approx(reference[0])
    assert one.logps(played)[0] == pytest.approx(adapted[0])  # it was switched on again


def test_a_full_model_needs_a_snapshot_for_a_reference(model: Model) -> None:
    with pytest.raises(ConfigError, match="no adapter"), model.as_reference(None):
        pass
    one, start = learner(model), model.weights()
    before = one.logps(samples())
    one.step(rows(samples()), POLICY)
    after = one.logps(samples())
    assert after[0] != pytest.approx(before[0], abs=1e-3)
    with model.as_reference(start):
        assert one.logps(samples())[0] == before[0]
    assert one.logps(samples())[0] == after[0]


def test_only_the_adapter_learns_and_is_saved(lora_model: Model) -> None:
    frozen = {n: p.detach().clone() for n, p in lora_model.network.named_parameters() if not p.requires_grad}
    learner(lora_model).step(rows(samples()), POLICY)
    assert all("lora_" in name for name in lora_model.weights())
    assert all(torch.equal(frozen[n], p) for n, p in lora_model.network.named_parameters() if not p.requires_grad)


def test_there_is_one_copy_of_the_weights(model: Model) -> None:
    """Big tensors alive after a step: the parameters, two moments each; nothing of the kind twice."""
    one = learner(model)
    one.step(rows(samples()), POLICY)
    shape = model.head.weight.shape
    gc.collect()
    alive = {
        t.data_ptr() for t in gc.get_objects() if type(t) in (torch.Tensor, torch.nn.Parameter) and t.shape == shape
    }
    assert len(alive) == 3  # tied embedding, first moment, second moment


def test_weights_of_another_model_are_refused(model: Model, lora_model: Model) -> None:
    with pytest.raises(DataError, match="do not fit"):
        model.load_weights(lora_model.weights())


@pytest.mark.parametrize(
    "change",
    [
        {"lr": -1.0},
        {"lr": math.nan},
        {"lr": math.inf},
        {"beta1": 2.0},
        {"max_grad_norm": 0.0},
        {"tokens_per_microbatch": 0},
        {"warmup_steps": -1},
        {"total_steps": 0},
    ],
)
def test_settings_that_cannot_learn_are_refused(model: Model, change: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        learner(model, **change)


def test_a_reward_learners_schedule_runs_over_each_fit() -> None:
    """Linear from 1 to .1 over 4 steps: 1, .775, .55, .325; a second fit of 2 steps: 1, .55."""
    judge = reward_model(model=small_model(), weights=None, lora=None, head_std=None, seed=0)
    settings: dict[str, Any] = {
        "reward_model": judge, "lr": 1.0, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "max_grad_norm": 1.0,
        "warmup_steps": 0, "final_lr_fraction": 0.1, "tokens_per_microbatch": 256,
    }  # fmt: skip
    one = RewardLearner(schedule="linear", total_steps=None, **settings)
    seen = []
    for steps in (4, 2):
        one.begin(steps)
        for _ in range(steps):
            seen.append(one.current_lr())
            one.steps += 1
    assert seen == pytest.approx([1.0, 0.775, 0.55, 0.325, 1.0, 0.55])
    whole = RewardLearner(schedule="linear", total_steps=4, **settings)  # one span over all fits, where asked for
    whole.steps = 2
    whole.begin(2)
    assert whole.current_lr() == pytest.approx(0.55)
    with pytest.raises(ValueError, match="needs total_steps"):
        learner(small_model(), schedule="linear", total_steps=None)

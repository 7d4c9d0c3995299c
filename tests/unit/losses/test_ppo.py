"""The clipped loss against python loops, golden values and exact enumeration."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from agentexp.advantages import Estimator, advantages
from agentexp.losses.ppo import ClippedPolicyLoss, clipped_objective, k3, log_ratio
from agentexp.packing import Batch, Row, collate, token_weights
from agentexp.types import Sample


def sample(tokens: int, *, mask: list[bool], turn: list[int], old: list[float], advantage: float) -> Sample:
    return Sample(
        ids=tuple(range(1, tokens + 1)),
        mask=tuple(mask),
        turn=tuple(turn),
        old_logps=tuple(old),
        advantage=tuple(advantage if m else 0.0 for m in mask),
        origin="t#0/0",
    )


def batch_of(samples: list[Sample], how: str = "rollout") -> Batch:
    weights = token_weights(samples, how)  # type: ignore[arg-type]
    return collate([Row(sample=s, weight=w) for s, w in zip(samples, weights, strict=True)])


TWO_TURNS = sample(
    6, mask=[False, True, True, False, True, True], turn=[-1, 0, 0, -1, 1, 1], old=[0, -1, -1, 0, -1, -1], advantage=2.0
)


def test_ratio_levels_golden() -> None:
    batch = batch_of([TWO_TURNS])
    logps = torch.tensor([[9.0, -0.9, -0.8, 9.0, -1.3, -1.0]])  # read positions hold rubbish

    def of(level: str) -> list[float]:
        return log_ratio(logps, batch.old_logps, batch.mask, batch.turn, level)[0].tolist()  # type: ignore[arg-type]

    assert of("token") == pytest.approx([0, 0.1, 0.2, 0, -0.3, 0.0], abs=1e-6)
    assert of("turn") == pytest.approx([0, 0.3, 0.3, 0, -0.3, -0.3], abs=1e-6)  # 0.1 + 0.2; -0.3 + 0
    assert of("trajectory") == pytest.approx([0, 0, 0, 0, 0, 0], abs=1e-6)  # they cancel


@given(st.lists(st.floats(-2, 2), min_size=6, max_size=6), st.sampled_from(["token", "turn", "trajectory"]))
def test_ratio_levels_equal_a_python_loop(values: list[float], level: str) -> None:
    batch = batch_of([TWO_TURNS])
    got = log_ratio(torch.tensor([values]), batch.old_logps, batch.mask, batch.turn, level)[0].tolist()  # type: ignore[arg-type]
    d = [v - o if m else 0.0 for v, o, m in zip(values, TWO_TURNS.old_logps, TWO_TURNS.mask, strict=True)]
    for t, m in enumerate(TWO_TURNS.mask):
        same = [
            u
            for u in range(6)
            if TWO_TURNS.mask[u]
            and (level == "trajectory" or u == t or (level == "turn" and TWO_TURNS.turn[u] == TWO_TURNS.turn[t]))
        ]
        assert got[t] == pytest.approx(sum(d[u] for u in same) if m else 0.0, abs=1e-5)


def test_clip_golden() -> None:
    rho = torch.log(torch.tensor([1.5, 1.5, 0.5, 0.5]))
    a = torch.tensor([1.0, -1.0, 1.0, -1.0])
    # A>0: min(rho, 1.1); A<0: -max(rho, 0.9)
    assert clipped_objective(rho, a, 0.1, "one_plus_minus").tolist() == pytest.approx([1.1, -1.5, 0.5, -0.9])
    # the released code's lower bound is 1/1.1 = 0.90909
    assert clipped_objective(rho, a, 0.1, "reciprocal").tolist() == pytest.approx([1.1, -1.5, 0.5, -1 / 1.1])


@given(st.floats(-2, 2), st.floats(-3, 3), st.floats(0.01, 0.5))
def test_clip_equals_the_papers_g(log_rho: float, a: float, eps: float) -> None:
    got = clipped_objective(
        torch.tensor(log_rho, dtype=torch.float64), torch.tensor(a, dtype=torch.float64), eps, "one_plus_minus"
    )
    assert got.item() == pytest.approx(min(math.exp(log_rho) * a, a + eps * abs(a)))


def test_loss_golden_rollout_mean() -> None:
    # old = new: every ratio is 1, so the loss is -mean over rollouts of A: -(2 - 1) / 2
    one = sample(3, mask=[False, True, True], turn=[-1, 0, 0], old=[0, -1, -2], advantage=2.0)
    two = sample(2, mask=[False, True], turn=[-1, 0], old=[0, -3], advantage=-1.0)
    batch = batch_of([one, two])
    loss = ClippedPolicyLoss(level="token", epsilon=0.2, interval="one_plus_minus", kl_coefficient=0.0)(
        batch, batch.old_logps
    )
    assert loss.total.item() == pytest.approx(-0.5)
    assert loss.metrics["clip_fraction"].item() == 0.0
    assert loss.metrics["ratio"].item() == pytest.approx(1.0)


@pytest.mark.parametrize("level", ["token", "turn", "trajectory"])
def test_read_tokens_have_exactly_no_gradient(level: str) -> None:
    batch = batch_of([TWO_TURNS])
    logps = (batch.old_logps + 0.01).requires_grad_()
    ClippedPolicyLoss(level=level, epsilon=0.2, interval="one_plus_minus", kl_coefficient=0.0)(
        batch, logps
    ).total.backward()  # type: ignore[arg-type, no-untyped-call]
    assert logps.grad is not None
    assert logps.grad[~batch.mask].tolist() == [0.0, 0.0]
    assert (logps.grad[batch.mask] != 0).all()


@settings(max_examples=30)
@given(st.integers(1, 3), st.permutations(range(4)))
def test_micro_batches_and_order_change_nothing(split: int, order: list[int]) -> None:
    g = torch.Generator().manual_seed(0)
    samples = []
    for n in range(4):
        mask = [False] + [bool(torch.rand(1, generator=g) < 0.6) for _ in range(3 + n)]
        mask[1] = True
        old = [-float(torch.rand(1, generator=g)) if m else 0.0 for m in mask]
        samples.append(
            sample(
                len(mask), mask=mask, turn=[t // 2 if m else -1 for t, m in enumerate(mask)], old=old, advantage=n - 1.5
            )
        )
    rows = [Row(sample=s, weight=w) for s, w in zip(samples, token_weights(samples, "rollout"), strict=True)]
    fn = ClippedPolicyLoss(level="turn", epsilon=0.1, interval="one_plus_minus", kl_coefficient=0.0)
    whole = collate(rows)
    want = fn(whole, whole.old_logps * 1.3).total.item()
    shuffled = [rows[i] for i in order]
    parts = [collate(shuffled[:split]), collate(shuffled[split:])]
    assert sum(fn(p, p.old_logps * 1.3).total.item() for p in parts) == pytest.approx(want, abs=1e-6)


def test_k3_is_never_negative_and_zero_when_equal() -> None:
    p, q, mask = torch.tensor([-1.0, -2.0, -0.5]), torch.tensor([-1.0, -1.0, -3.0]), torch.tensor([True, True, True])
    values = k3(p, q, mask)
    # d = 0, 1, -2.5: e^1 - 2 = .71828; e^-2.5 + 1.5 = 1.58208
    assert values.tolist() == pytest.approx([0.0, math.e - 2, math.exp(-2.5) + 1.5])


# --------------------------------------------------------------- exact policy gradient
REWARD = {(a, b): float(a == 1) + 0.5 * float(b == 2) * float(a != 0) for a in range(3) for b in range(3)}


def sequence_logps(theta: Tensor, tokens: tuple[int, int]) -> Tensor:
    """Two softmax tokens: theta[0] scores the first, theta[1 + first] the second."""
    first = theta[0].log_softmax(-1)[tokens[0]]
    second = theta[1 + tokens[0]].log_softmax(-1)[tokens[1]]
    return torch.stack([torch.zeros((), dtype=theta.dtype), first, second])


def expected_update(theta: Tensor, estimator: Estimator) -> Tensor:
    """E over all pairs of trajectories of the loss gradient, by enumeration."""
    total = torch.zeros_like(theta)
    all_sequences = list(REWARD)
    fn = ClippedPolicyLoss(level="token", epsilon=0.2, interval="one_plus_minus", kl_coefficient=0.0)
    for pair in itertools.product(all_sequences, repeat=2):
        live = theta.clone().requires_grad_()
        logps = torch.stack([sequence_logps(live, s) for s in pair])
        chance = logps.sum(1).exp().prod().detach()
        values = advantages([REWARD[s] for s in pair], estimator)
        rows = [
            sample(3, mask=[False, True, True], turn=[-1, 0, 1], old=logps[k].tolist(), advantage=values[k])
            for k in range(2)
        ]
        batch = batch_of(rows)
        fn(batch, logps).total.backward()  # type: ignore[no-untyped-call]
        assert live.grad is not None
        total += chance * live.grad
    return total


def exact_gradient(theta: Tensor) -> Tensor:
    live = theta.clone().requires_grad_()
    value = torch.stack([sequence_logps(live, s).sum().exp() * r for s, r in REWARD.items()]).sum()
    value.backward()  # type: ignore[no-untyped-call]
    assert live.grad is not None
    return live.grad


def test_leave_one_out_is_the_exact_policy_gradient() -> None:
    theta = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    # each rollout's two tokens share its weight, so the update is half the gradient of E[R]
    assert torch.allclose(expected_update(theta, "leave_one_out"), -0.5 * exact_gradient(theta), atol=1e-6)


def test_group_mean_is_short_by_one_over_k() -> None:
    """Negative control: the plain mean gives (K-1)/K of the gradient, so the test above can fail."""
    theta = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(expected_update(theta, "group_mean"), -0.25 * exact_gradient(theta), atol=1e-6)

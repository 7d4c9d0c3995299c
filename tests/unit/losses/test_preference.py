"""Preference pairs: the same prompt on both sides, named length scales, against plain Python."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from agentexp.errors import ConfigError
from agentexp.losses.preference import (
    Dpo,
    Kto,
    PairLogps,
    PreferenceLoss,
    SimPo,
    ZeroReferenceDpo,
    dpo,
    dpo_regression,
    preference_margin,
)
from agentexp.packing import Row, collate, pair_to_samples, token_weights
from agentexp.types import Pair
from tests.unit.learning.conftest import small_model
from tests.unit.learning.test_learner import learner

CHOSEN, REJECTED = torch.tensor([-2.0, -9.0]), torch.tensor([-5.0, -6.0])
N_CHOSEN, N_REJECTED = torch.tensor([4, 9]), torch.tensor([1, 4])


def margin(scale: str, alpha: float = 0.5) -> list[float]:
    values = preference_margin(CHOSEN, REJECTED, N_CHOSEN, N_REJECTED, scale=scale, alpha=alpha)
    return values.tolist()


def test_named_length_scales_golden() -> None:
    assert margin("sum") == [3.0, -3.0]
    assert margin("mean") == pytest.approx([-2 / 4 + 5, -9 / 9 + 6 / 4])  # 4.5, .5
    assert margin("power") == pytest.approx([3 / 2, -3 / 3])  # by sqrt(4), sqrt(9)
    assert margin("power", alpha=0.0) == margin("sum")


def test_dpo_equals_plain_python() -> None:
    got = dpo(torch.tensor([1.5, -1.0]), torch.tensor([0.5, 0.0]), beta=0.3)
    assert got.tolist() == pytest.approx([math.log1p(math.exp(-0.3 * 1.0)), math.log1p(math.exp(0.3 * 1.0))])


def test_dpo_regression_equals_plain_python_and_is_least_where_beta_margin_is_the_gap() -> None:
    one = dpo_regression(torch.tensor([1.5]), torch.tensor([0.5]), torch.tensor([0.6]), beta=0.3)
    p = 1 / (1 + math.exp(-0.6 / 0.3))  # sigma(2)
    assert one.tolist() == pytest.approx([p * math.log1p(math.exp(-1.0)) + (1 - p) * math.log1p(math.exp(1.0))])
    moved = torch.tensor([2.0, 1.0, 3.0], requires_grad=True)  # minus .5: the gap over beta, less, more
    terms = dpo_regression(moved, torch.zeros(3), torch.full((3,), 0.6), beta=0.3)
    (slopes,) = torch.autograd.grad(terms.sum(), moved)
    assert slopes.tolist()[0] == pytest.approx(0.0, abs=1e-6)
    assert slopes.tolist()[1] < 0.0 < slopes.tolist()[2]
    (hard,) = torch.autograd.grad(dpo(moved, torch.zeros(3), beta=0.3).sum(), moved)
    assert all(slope < 0.0 for slope in hard.tolist())  # a hard label is never satisfied


def test_the_prompt_is_the_same_on_both_sides_though_its_end_would_merge() -> None:
    """ ":" and " x" are one token when encoded together; a pair is made of parts encoded apart."""
    vocabulary = {":": 0, " ": 1, "x": 2, "y": 3, " x": 4, ": x": 5, "a": 6}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[(" ", "x"), (":", " x")]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("\n", "isolated")
    together = tokenizer.encode("a: x").ids
    prompt, x, y = (tuple(tokenizer.encode(t).ids) for t in ("a:", " x", " y"))
    assert tuple(together[: len(prompt)]) != prompt  # negative control: encoding the whole text moves the border
    chosen, rejected = pair_to_samples(Pair(prompt_ids=prompt, chosen=x, rejected=y), "p")
    read = len(prompt)
    assert chosen.ids[:read] == rejected.ids[:read] == prompt
    assert chosen.mask == (False,) * read + (True,) * len(x)
    assert rejected.mask == (False,) * read + (True,) * len(y)


def test_a_batch_of_two_unequal_pairs_is_two_batches_of_one() -> None:
    pairs = [
        Pair(prompt_ids=(5, 6, 7), chosen=(8, 1), rejected=(9, 10, 11, 1)),
        Pair(prompt_ids=(12, 13), chosen=(14,), rejected=(15, 1)),
    ]
    samples = [s for n, p in enumerate(pairs) for s in pair_to_samples(p, str(n))]
    one = learner(small_model())
    together = one.logps(samples)
    for sample, line in zip(samples, together, strict=True):
        assert one.logps([sample])[0] == pytest.approx(line, abs=1e-5)
    batch = collate([Row(sample=s, weight=w) for s, w in zip(samples, token_weights(samples, "token"), strict=True)])
    assert batch.lengths.tolist() == [5, 7, 3, 4]


def test_ties_and_empty_sides_are_refused() -> None:
    with pytest.raises(ValueError, match="tie"):
        Pair(prompt_ids=(5,), chosen=(7,), rejected=(7,))
    with pytest.raises(ValueError, match="empty"):
        Pair(prompt_ids=(), chosen=(7,), rejected=(8,))


def pair(
    chosen: float = -2.0,
    rejected: float = -5.0,
    *,
    n: tuple[int, int] = (4, 1),
    held: tuple[float, float] = (-3.0, -4.0),
    kl: float = 0.25,
) -> PairLogps:
    def one(x: float) -> torch.Tensor:
        return torch.tensor([x], dtype=torch.float64)

    return PairLogps(
        chosen=one(chosen).requires_grad_(), rejected=one(rejected).requires_grad_(), chosen_n=torch.tensor([n[0]]),
        rejected_n=torch.tensor([n[1]]), reference_chosen=one(held[0]), reference_rejected=one(held[1]), kl=kl,
    )  # fmt: skip


def sigma(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


ALL: list[PreferenceLoss] = [
    ZeroReferenceDpo(beta=0.5, length_scale="power", alpha=0.5),
    Dpo(beta=0.5, length_scale="sum", alpha=0.0),
    SimPo(beta=2.0, gamma=1.5),
    Kto(beta=0.5, chosen_weight=1.0, rejected_weight=1.0),
]
NAMES = [type(loss).__name__ for loss in ALL]


def test_each_loss_golden() -> None:
    """log pi+ = -2 of 4 tokens, log pi- = -5 of 1; log pi_ref -3 and -4; KL .25."""
    zero, with_reference, simpo, kto = (loss(pair()).item() for loss in ALL)
    assert zero == pytest.approx(-math.log(sigma(0.5 / math.sqrt(4) * 3)))  # beta / max(4, 1)^.5 (-2 + 5)
    assert with_reference == pytest.approx(-math.log(sigma(0.5 * (3 - 1))))  # 3 now, -3 + 4 = 1 before
    assert simpo == pytest.approx(-math.log(sigma(2 * (-2 / 4 + 5 / 1) - 1.5)))  # 2 x 4.5 - 1.5
    # r+ = -2 + 3 = 1, r- = -5 + 4 = -1: [1 - sigma(.5 (1 - .25)) + 1 - sigma(.5 (.25 + 1))] / 2
    assert kto == pytest.approx((1 - sigma(0.375) + 1 - sigma(0.625)) / 2)


def test_agentic_dpo_golden_at_the_paper_s_numbers() -> None:
    """beta .008, alpha .5, 30 tokens: .008 / sqrt(30) = .0014606; a difference of 10 gives sigma(.0146)."""
    loss = ZeroReferenceDpo(beta=0.008, length_scale="power", alpha=0.5)
    assert loss(pair(-20.0, -30.0, n=(30, 12))).item() == pytest.approx(-math.log(sigma(0.014606)), abs=1e-6)


def test_kto_s_sides_weigh_apart_and_each_sees_only_itself() -> None:
    only = Kto(beta=0.5, chosen_weight=2.0, rejected_weight=0.0)
    p = pair()
    only(p).sum().backward()  # type: ignore[no-untyped-call]
    assert p.rejected.grad is not None
    assert p.rejected.grad.item() == 0.0
    assert only(p).item() == pytest.approx(1 - sigma(0.375))


@pytest.mark.parametrize("loss", ALL, ids=NAMES)
@given(chosen=st.floats(-30, 0), rejected=st.floats(-30, 0), n=st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_the_chosen_side_is_raised_and_the_rejected_lowered(
    loss: PreferenceLoss, chosen: float, rejected: float, n: tuple[int, int]
) -> None:
    p = pair(chosen, rejected, n=n)
    loss(p).sum().backward()  # type: ignore[no-untyped-call]
    assert p.chosen.grad is not None
    assert p.rejected.grad is not None
    assert p.chosen.grad.item() <= 0.0 <= p.rejected.grad.item()
    swapped = pair(rejected, chosen, n=n[::-1])  # negative control: with sides swapped the signs are those of the sides
    loss(swapped).sum().backward()  # type: ignore[no-untyped-call]
    assert swapped.chosen.grad is not None
    assert swapped.chosen.grad.item() <= 0.0


@pytest.mark.parametrize("loss", ALL, ids=NAMES)
@given(logp=st.floats(-30, -0.01), n=st.integers(1, 40))
def test_equal_actions_give_no_gradient(loss: PreferenceLoss, logp: float, n: int) -> None:
    """The same action on both sides: what raises one side lowers the other by as much."""

    def gradient(held: tuple[float, float]) -> float:
        theta = torch.tensor(logp, dtype=torch.float64, requires_grad=True)
        same = pair(n=(n, n), held=held)
        p = PairLogps(
            **{**vars(same), "chosen": theta[None], "rejected": theta[None] if held[0] == held[1] else same.rejected}
        )
        loss(p).sum().backward()  # type: ignore[no-untyped-call]
        assert theta.grad is not None
        return theta.grad.item()

    assert gradient((-3.0, -3.0)) == pytest.approx(0.0, abs=1e-12)
    assert gradient((-3.0, -4.0)) < 0.0  # negative control: another action on the other side


@given(st.integers(2, 200), st.floats(0.0, 1.0), st.floats(0.01, 1.0))
def test_alpha_lowers_and_beta_raises_the_step(n: int, alpha: float, more: float) -> None:
    """At equal log-probs the gradient is beta / (2 max(n+, n-)^alpha)."""

    def slope(beta: float, a: float) -> float:
        p = pair(-3.0, -3.0, n=(n, n // 2))
        ZeroReferenceDpo(beta=beta, length_scale="power", alpha=a)(p).sum().backward()  # type: ignore[no-untyped-call]
        assert p.chosen.grad is not None
        return -p.chosen.grad.item()

    assert slope(0.1, alpha) == pytest.approx(0.1 / (2 * n**alpha))
    assert slope(0.1, alpha + more) < slope(0.1, alpha)
    assert slope(0.1 + more, alpha) > slope(0.1, alpha)


def test_dpo_on_sums_of_turns_is_dpo_on_the_trajectory() -> None:
    """ETO: log-probs of a trajectory's turns add up. -1 - 1 = -2 and -2 - 3 = -5."""
    whole = pair()
    turns = pair(sum([-1.0, -1.0]), sum([-2.0, -3.0]))
    loss = Dpo(beta=0.5, length_scale="sum", alpha=0.0)
    assert loss(whole).item() == loss(turns).item()
    assert loss(pair(-1.0, -2.0)).item() != loss(whole).item()  # negative control: the first turns alone


@pytest.mark.parametrize(
    "make",
    [
        lambda: ZeroReferenceDpo(beta=0.0, length_scale="sum", alpha=0.0),
        lambda: Dpo(beta=1.0, length_scale="power", alpha=-1.0),
        lambda: SimPo(beta=1.0, gamma=float("inf")),
        lambda: Kto(beta=1.0, chosen_weight=0.0, rejected_weight=0.0),
    ],
)
def test_numbers_that_make_no_loss_are_refused(make: object) -> None:
    with pytest.raises(ConfigError, match=r"beta|negative"):
        make()  # type: ignore[operator]

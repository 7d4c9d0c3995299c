"""Preference pairs: the same prompt on both sides, named length scales, against plain Python."""

import math

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from agentexp.losses.preference import dpo, dpo_regression, preference_margin
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

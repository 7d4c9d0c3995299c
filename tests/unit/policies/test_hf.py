"""The sampler against the learner's forward pass, its cache and its seeds."""

import random

import pytest
import torch

from agentexp.learning.logps import token_logps
from agentexp.learning.model import Model
from agentexp.policies.hf import HfPolicy
from agentexp.types import Request
from tests.unit.learning.conftest import small_model


@pytest.fixture
def policy() -> HfPolicy:
    return HfPolicy(model=small_model(), initial_cache_tokens=16, branch_tokens=4096)


def request(name: str, prompt: list[int], *, seed: int = 0, temperature: float = 1.0, tokens: int = 4) -> Request:
    return Request(episode=name, prompt_ids=tuple(prompt), max_tokens=tokens, temperature=temperature, seed=seed)


def forward_logps(model: Model, ids: list[int], temperature: float = 1.0) -> list[float]:
    row = torch.tensor([ids])
    wanted = torch.ones_like(row, dtype=torch.bool)
    wanted[0, 0] = False
    with torch.no_grad():
        values: list[float] = token_logps(model, row, wanted, temperature)[0].tolist()
    return values


def play(policy: HfPolicy, *, temperature: float = 1.0) -> dict[str, list[tuple[int, float]]]:
    """Seven ragged conversations over five turns, episodes ending and starting on the way."""
    rng = random.Random(1)
    live = {f"e{k}": [rng.randrange(5, 45) for _ in range(rng.randint(2, 9))] for k in range(7)}
    sampled: dict[str, list[tuple[int, float]]] = {k: [] for k in live}
    transcripts: dict[str, list[int]] = {}
    for t in range(5):
        asked = [request(k, ids, seed=hash((k, t)) % 2**32, temperature=temperature) for k, ids in live.items()]
        for ask, got in zip(asked, policy.complete(asked), strict=True):
            ids = live[ask.episode]
            sampled[ask.episode] += [(len(ids) + n, p) for n, p in enumerate(got.logprobs)]
            ids += [*got.ids, *(rng.randrange(5, 45) for _ in range(rng.randint(1, 6)))]
        for gone in list(live)[: t % 3]:
            transcripts[gone] = live.pop(gone)
            policy.release(gone)
            live[f"{gone}x"] = [rng.randrange(5, 45) for _ in range(rng.randint(2, 9))]
            sampled[f"{gone}x"] = []
    transcripts |= live
    policy.transcripts = transcripts  # type: ignore[attr-defined]
    return sampled


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_log_probs_equal_the_training_forward(policy: HfPolicy, temperature: float) -> None:
    sampled = play(policy, temperature=temperature)
    checked = 0
    for name, ids in policy.transcripts.items():  # type: ignore[attr-defined]
        forward = forward_logps(policy.model, ids, temperature)
        for at, logp in sampled[name]:
            assert logp == pytest.approx(forward[at], abs=2e-5)
            checked += 1
    assert checked > 80
    assert policy.reread_tokens == 0


def test_a_wrong_position_would_be_seen(policy: HfPolicy) -> None:
    """Negative control: shift the cache's lengths once and the log-probs part."""
    (first,) = policy.complete([request("a", [5, 6, 7], seed=1)])
    assert policy.reader._cache is not None
    with torch.inference_mode():
        policy.reader._cache.lengths += 1
    prompt = [5, 6, 7, *first.ids, 9, 9]
    (got,) = policy.complete([request("a", prompt, seed=2)])
    assert got.logprobs[0] != pytest.approx(forward_logps(policy.model, [*prompt, *got.ids])[len(prompt)], abs=1e-3)


def test_a_request_does_not_depend_on_its_neighbours(policy: HfPolicy) -> None:
    alone = policy.complete([request("a", [5, 6, 7], seed=3)])[0]
    policy.refresh()
    crowd = policy.complete(
        [request(f"x{k}", [8 + k] * (k + 1), seed=k) for k in range(5)] + [request("a", [5, 6, 7], seed=3)]
    )[-1]
    assert crowd.ids == alone.ids
    assert crowd.logprobs == pytest.approx(alone.logprobs, abs=1e-5)
    assert crowd.policy_version == alone.policy_version + 1


def test_other_seeds_give_other_samples(policy: HfPolicy) -> None:
    got = policy.complete([request(f"x{s}", [5, 6, 7], seed=s) for s in range(20)])
    assert len({c.ids for c in got}) > 10


def test_sampling_follows_the_distribution(policy: HfPolicy) -> None:
    n = 4000
    got = policy.complete([request(f"x{s}", [5, 6, 7], seed=s, tokens=1) for s in range(n)])
    with torch.no_grad():
        p = policy.model.network(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1].softmax(-1)
    counts = torch.bincount(torch.tensor([c.ids[0] for c in got]), minlength=len(p)) / n
    # total variation of an empirical distribution over 45 words at n = 4000 is near sqrt(45/(2 pi n)) = .042
    assert 0.5 * (counts - p).abs().sum().item() < 0.08


def test_greedy_is_the_argmax_and_rereads_nothing(policy: HfPolicy) -> None:
    prompt = [5, 6, 7]
    (got,) = policy.complete([request("a", prompt, temperature=0.0, tokens=5)])
    for at, token in enumerate(got.ids):
        logits = policy.model.network(input_ids=torch.tensor([prompt + list(got.ids[:at])])).logits[0, -1]
        assert token == int(logits.argmax())


def test_a_rewritten_history_is_read_again_and_counted(policy: HfPolicy) -> None:
    policy.complete([request("a", [5, 6, 7, 8], seed=0)])
    (got,) = policy.complete([request("a", [5, 6, 9, 9, 9], seed=5)])
    assert policy.reread_tokens == 3  # 9 9 9; 5 6 were kept
    forward = forward_logps(policy.model, [5, 6, 9, 9, 9, *got.ids])
    assert got.logprobs[0] == pytest.approx(forward[5], abs=2e-5)


def test_two_requests_of_one_episode_are_refused(policy: HfPolicy) -> None:
    with pytest.raises(ValueError, match="two requests"):
        policy.complete([request("a", [5]), request("a", [6])])


def test_new_weights_are_what_is_sampled_from(policy: HfPolicy) -> None:
    """Pitfall 18 for the shared network: after an update the sampler's log-probs are the learner's."""
    policy.complete([request("a", [5, 6, 7], seed=3)])
    with torch.no_grad():
        for p in policy.model.trainable().values():
            p.add_(0.05 * torch.randn(p.shape, generator=torch.Generator().manual_seed(0)))
    policy.refresh()
    (got,) = policy.complete([request("a", [5, 6, 7], seed=3)])
    assert got.logprobs[0] == pytest.approx(forward_logps(policy.model, [5, 6, 7, *got.ids])[3], abs=2e-5)


def test_old_keys_after_an_update_would_be_seen(policy: HfPolicy) -> None:
    """Negative control: without refresh() the kept keys are of the old weights."""
    (first,) = policy.complete([request("a", [5, 6, 7], seed=3)])
    with torch.no_grad():
        for p in policy.model.trainable().values():
            p.add_(0.05 * torch.randn(p.shape, generator=torch.Generator().manual_seed(0)))
    prompt = [5, 6, 7, *first.ids, 9]
    (got,) = policy.complete([request("a", prompt, seed=4)])
    assert got.logprobs[0] != pytest.approx(forward_logps(policy.model, [*prompt, *got.ids])[len(prompt)], abs=1e-3)

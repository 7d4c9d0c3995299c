"""What every policy must keep. A new one is added to POLICIES and has to pass all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentexp.policies.hf import HfPolicy
from agentexp.policies.scripted import ScriptedPolicy
from agentexp.types import Completion, Request
from tests.toys import words
from tests.unit.learning.conftest import small_model


def scripted() -> Any:
    texts = ["open door 1", "open door 2", "open", "find the key door 3"]
    return ScriptedPolicy(tokenizer=words(), say=lambda r: texts[r.seed % 4 if r.temperature else 0])


POLICIES: dict[str, Callable[[], Any]] = {
    "scripted": scripted,
    "hf": lambda: HfPolicy(model=small_model(), initial_cache_tokens=16, branch_tokens=4096),
}


@pytest.fixture(params=list(POLICIES))
def make(request: pytest.FixtureRequest) -> Callable[[], Any]:
    return POLICIES[request.param]


def ask(
    name: str, prompt: tuple[int, ...] = (5, 6, 7), seed: int = 0, temperature: float = 1.0, tokens: int = 6
) -> Request:
    return Request(episode=name, prompt_ids=prompt, max_tokens=tokens, temperature=temperature, seed=seed)


def same(one: Completion, two: Completion) -> bool:
    close = all(abs(p - q) < 1e-4 for p, q in zip(one.logprobs, two.logprobs, strict=True))
    return (one.ids, one.text, one.finish) == (two.ids, two.text, two.finish) and close


def test_one_completion_per_request_in_order_and_within_budget(make: Callable[[], Any]) -> None:
    requests = [ask(f"e{i}", seed=i, tokens=1 + i % 5) for i in range(12)]
    completions = make().complete(requests)
    assert len(completions) == 12
    for request, completion in zip(requests, completions, strict=True):
        assert 1 <= len(completion.ids) <= request.max_tokens
        assert completion.finish == "stop" or len(completion.ids) == request.max_tokens
    again = make().complete(requests[::-1])[::-1]
    assert all(same(one, two) for one, two in zip(completions, again, strict=True))


def test_a_request_does_not_depend_on_its_neighbours(make: Callable[[], Any]) -> None:
    crowd = [ask(f"e{i}", prompt=tuple(range(5, 6 + i)), seed=i) for i in range(8)]
    together = make().complete(crowd)
    for request, completion in zip(crowd, together, strict=True):
        assert same(make().complete([request])[0], completion)


def test_the_seed_decides(make: Callable[[], Any]) -> None:
    answers = {make().complete([ask("e", seed=s)])[0].ids for s in range(8)}
    assert len(answers) > 1
    greedy = {make().complete([ask("e", seed=s, temperature=0.0)])[0].ids for s in range(8)}
    assert len(greedy) == 1


def test_what_is_kept_between_turns_changes_no_answer(make: Callable[[], Any]) -> None:
    policy, prompt = make(), (5, 6, 7)
    for turn in range(4):
        (kept,) = policy.complete([ask("e", prompt=prompt, seed=turn)])
        (fresh,) = make().complete([ask("other", prompt=prompt, seed=turn)])
        assert same(kept, fresh)
        prompt = (*prompt, *kept.ids, 8, 9)
    policy.release("e")
    assert same(
        policy.complete([ask("e", prompt=(9, 8), seed=1)])[0], make().complete([ask("e", prompt=(9, 8), seed=1)])[0]
    )


def test_a_rewritten_prompt_is_read_anew(make: Callable[[], Any]) -> None:
    policy = make()
    policy.complete([ask("e", prompt=(5, 6, 7, 8))])
    (rewritten,) = policy.complete([ask("e", prompt=(5, 9, 10), seed=3)])
    assert same(rewritten, make().complete([ask("e", prompt=(5, 9, 10), seed=3)])[0])


def test_versions_count_refreshes(make: Callable[[], Any]) -> None:
    policy = make()
    assert policy.complete([ask("e")])[0].policy_version == policy.version == 0
    policy.refresh()
    assert policy.complete([ask("e")])[0].policy_version == policy.version == 1


def test_releasing_the_unknown_is_fine(make: Callable[[], Any]) -> None:
    make().release("never heard of")


def test_no_requests_no_answers(make: Callable[[], Any]) -> None:
    assert make().complete([]) == []

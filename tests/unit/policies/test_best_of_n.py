"""Several candidates at a state: the same numbers as the plain path, the history read once, and the best chosen."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from agentexp.errors import ConfigError
from agentexp.learning.reward_model import RewardModel, reward_model, score
from agentexp.policies.best_of_n import BestOfN
from agentexp.policies.hf import HfPolicy
from agentexp.policies.scoring import CandidateScorer
from agentexp.types import Branch, Request, Tree, Trunk
from tests.unit.learning.conftest import small_model
from tests.unit.policies.test_hf import forward_logps


@pytest.fixture
def policy() -> HfPolicy:
    return HfPolicy(model=small_model(), initial_cache_tokens=8, branch_tokens=100)


@pytest.fixture
def judge(policy: HfPolicy) -> RewardModel:
    return reward_model(model=policy.model, weights=None, lora=None, head_std=0.5, seed=0)


def ask(name: str, prompt: list[int], seed: int, n: int, tokens: int = 4) -> Request:
    return Request(episode=name, prompt_ids=tuple(prompt), max_tokens=tokens, temperature=1.0, seed=seed, candidates=n)


def play(policy: HfPolicy, ns: dict[str, int], choose: Any) -> dict[str, list[int]]:
    """Four turns of ragged conversations; `choose(name, candidates)` says which goes on."""
    rng = random.Random(1)
    live = {name: [rng.randrange(5, 45) for _ in range(rng.randint(2, 9))] for name in ns}
    for turn in range(4):
        asked = [ask(name, ids, seed=100 * turn + k, n=ns[name]) for k, (name, ids) in enumerate(live.items())]
        for request, said in zip(asked, policy.candidates(asked), strict=True):
            best = choose(request.episode, said)
            policy.keep(request.episode, best)
            ids = live[request.episode]
            for completion in said:  # every candidate, not only the kept one
                forward = forward_logps(policy.model, [*ids, *completion.ids])
                assert completion.logprobs == pytest.approx(forward[len(ids) :], abs=2e-5)
            ids += [*said[best].ids, *(rng.randrange(5, 45) for _ in range(rng.randint(1, 6)))]
    return live


def test_log_probs_of_all_candidates_equal_the_training_forward_over_turns(policy: HfPolicy) -> None:
    play(policy, {"a": 5, "b": 2, "c": 1, "d": 8}, lambda _, said: len(said) - 1)
    assert policy.reread_tokens == 0  # the kept branch's keys moved into place


def test_the_first_candidate_is_what_complete_says_and_fewer_are_the_first_of_more(policy: HfPolicy) -> None:
    (alone,) = policy.complete([ask("a", [5, 6, 7], 3, 1)])
    policy.refresh()
    (four,) = policy.candidates([ask("a", [5, 6, 7], 3, 4)])
    policy.refresh()
    (sixteen,) = policy.candidates([ask("a", [5, 6, 7], 3, 16)])
    assert [c.ids for c in sixteen[:4]] == [c.ids for c in four]
    assert four[0].ids == alone.ids
    assert len({c.ids for c in sixteen}) > 8


def test_branches_along_trunks_equal_the_plain_path(policy: HfPolicy) -> None:
    rng = random.Random(2)
    trunks = [[rng.randrange(5, 45) for _ in range(n)] for n in (12, 5, 20, 9)]
    points = [[3, 7, 12], [5], [1, 19], []]
    seeds = [[10 * r + k for k in range(len(p))] for r, p in enumerate(points)]
    found = policy.branch(trunks, points, n=3, max_tokens=4, temperature=1.0, seeds=seeds)
    for r, trunk in enumerate(trunks):
        assert len(found[r]) == len(points[r])
        for k, at in enumerate(points[r]):
            (plain,) = policy.candidates([ask("x", trunk[:at], seeds[r][k], 3)])
            policy.release("x")
            assert [c.ids for c in found[r][k]] == [c.ids for c in plain]
            for completion in found[r][k]:
                forward = forward_logps(policy.model, [*trunk[:at], *completion.ids])
                assert completion.logprobs == pytest.approx(forward[at:], abs=2e-5)


def test_a_branch_that_saw_the_rest_of_its_trunk_would_be_noticed(policy: HfPolicy) -> None:
    """Negative control: with points moved one on, log-probs part."""
    (((said,),),) = policy.branch([[5, 6, 7, 8, 9]], [[3]], n=1, max_tokens=3, temperature=1.0, seeds=[[1]])
    wrong = forward_logps(policy.model, [5, 6, 7, 8, *said.ids])[4:]
    assert said.logprobs != pytest.approx(wrong, abs=1e-3)


def test_scores_over_turns_equal_those_of_whole_rows(policy: HfPolicy, judge: RewardModel) -> None:
    scorer = CandidateScorer(reward_model=judge, initial_cache_tokens=8)
    rng = random.Random(3)
    ids = [5, 6, 7]
    for turn in range(4):
        request = ask("a", ids, turn, 6)
        (said,) = policy.candidates([request])
        (values,) = scorer.score([request], [said])
        trunk = Trunk(ids=tuple(ids), decisions=(), origin="a")
        tree = Tree(trunk=trunk, branches=tuple(Branch(at=len(ids), ids=c.ids) for c in said))
        assert values == pytest.approx(score(judge, [tree], tokens_per_microbatch=999)[0].branches, abs=1e-5)
        best = values.index(max(values))
        policy.keep("a", best)
        scorer.keep("a", said[best])
        ids += [*said[best].ids, *(rng.randrange(5, 45) for _ in range(3))]
    assert scorer.reader.reread_tokens == 0


def test_best_of_n_plays_the_highest_scored(policy: HfPolicy, judge: RewardModel) -> None:
    chooser = BestOfN(policy=policy, reward_model=judge, n=6, initial_cache_tokens=8)
    (chosen,) = chooser.complete([ask("a", [5, 6, 7], 4, 1)])
    chooser.refresh()
    (said,) = policy.candidates([ask("a", [5, 6, 7], 4, 6)])
    rows = [Trunk(ids=(5, 6, 7), decisions=(), origin="a")] * 6
    trees = [Tree(trunk=t, branches=(Branch(at=3, ids=c.ids),)) for t, c in zip(rows, said, strict=True)]
    values = [s.branches[0] for s in score(judge, trees, tokens_per_microbatch=999)]
    assert chosen.ids == said[values.index(max(values))].ids
    assert (chooser.turns, chooser.ties) == (1, 0)


def test_one_candidate_is_the_policy_itself(policy: HfPolicy, judge: RewardModel) -> None:
    plain = policy.complete([ask("a", [5, 6, 7], 4, 1), ask("b", [8], 5, 1)])
    policy.refresh()
    chooser = BestOfN(policy=policy, reward_model=judge, n=1, initial_cache_tokens=8)
    assert [c.ids for c in chooser.complete([ask("a", [5, 6, 7], 4, 1), ask("b", [8], 5, 1)])] == [c.ids for c in plain]


def test_a_policy_that_cannot_choose_says_so(policy: HfPolicy, judge: RewardModel) -> None:
    with pytest.raises(ValueError, match="best of n"):
        policy.complete([ask("a", [5, 6], 0, 2)])
    with pytest.raises(ConfigError, match="at least 1"):
        BestOfN(policy=policy, reward_model=judge, n=0, initial_cache_tokens=8)


def test_a_history_that_was_rewritten_is_read_anew(policy: HfPolicy, judge: RewardModel) -> None:
    chooser = BestOfN(policy=policy, reward_model=judge, n=4, initial_cache_tokens=8)
    chooser.complete([ask("a", [5, 6, 7], 4, 1)])
    (again,) = chooser.complete([ask("a", [5, 9, 9, 9], 5, 1)])
    chooser.refresh()
    with torch.inference_mode():
        (fresh,) = chooser.complete([ask("b", [5, 9, 9, 9], 5, 1)])
    assert again.ids == fresh.ids

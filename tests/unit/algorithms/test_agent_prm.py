"""AgentPRM over the real parts on a small environment: what an iteration does, and that it resumes bit for bit."""

from __future__ import annotations

import copy
from typing import Any

import torch

from agentexp.algorithms.agent_prm import AgentPrm
from agentexp.algorithms.monitor import Monitor
from agentexp.algorithms.online_dpo import OnlineDpo
from agentexp.algorithms.q_fit import QFit
from agentexp.learning.model import Model, tiny
from agentexp.learning.reward_learner import RewardLearner
from agentexp.learning.reward_model import reward_model
from agentexp.policies.chat import Chat
from agentexp.policies.hf import HfPolicy
from agentexp.rollouts.collect import Rollouts
from tests.doors import Doors
from tests.toys import WORDS, react
from tests.unit.learning.test_learner import learner as make_learner


def model() -> Model:
    return tiny(
        words=WORDS, weights=None, hidden_size=32, layers=2, head_size=16, mlp_ratio=2, max_context_tokens=512,
        initializer_range=0.1, threads=1, seed=0,
    )  # fmt: skip


def made(*, monitored: bool = False, restart: bool = False) -> AgentPrm:
    network = model()
    policy = HfPolicy(model=network, initial_cache_tokens=16, branch_tokens=4096)
    judge = reward_model(model=network, weights=None, lora=None, head_std=None, seed=0)
    environment = Doors()
    rollouts = Rollouts(
        environment=environment, agent=react(), chat=Chat(tokenizer=network.tokenizer), policy=policy, max_turns=3,
        max_new_tokens=4, max_context_tokens=400, slots=16, workers=1, step_timeout_s=5.0, retries=0, max_dead_groups=2,
        truncation="keep",
    )  # fmt: skip
    fit = QFit(
        reward_model=judge,
        learner=RewardLearner(
            reward_model=judge, lr=1e-3, beta1=0.9, beta2=0.99, weight_decay=0.0, max_grad_norm=1.0, warmup_steps=0,
            schedule="constant", total_steps=None, final_lr_fraction=1.0, tokens_per_microbatch=4096,
        ),
        seed=0, target="absolute", state="history", discount="to_go", gamma=0.95, reward_low=0.0, reward_high=1.0,
        min_gap=0.0, held_out=0.25, epochs=1, rows_per_step=4, restart=restart,
    )  # fmt: skip
    improvement = OnlineDpo(
        policy=policy, learner=make_learner(network, lr=1e-3, tokens_per_microbatch=4096), reward_model=judge, seed=0,
        steps=2, trunks_per_step=3, states_per_trunk=2, samples_per_state=3, temperature=1.0, max_new_tokens=4,
        unit="probability", labels="hard",
        beta=0.1, length_scale="sum", alpha=0.5, min_gap=0.0, epochs=1, unfinished="keep", unfinished_score=-1.0,
    )  # fmt: skip
    monitor = Monitor(
        environment=environment, rollouts=rollouts, policy=policy, reward_model=judge, seed=0, split="valid", games=4,
        temperature=1.0, every=1, keep="best", stop=False, tolerance=0.0,
    )  # fmt: skip
    return AgentPrm(
        environment=environment, rollouts=rollouts, seed=0, split="train", tasks_per_iteration=4, rollouts_per_task=2,
        temperature=1.0, fit=fit, improvement=improvement, monitor=monitor if monitored else None,
    )  # fmt: skip


def weights(one: AgentPrm) -> dict[str, torch.Tensor]:
    return {
        **one.improvement.learner.model.weights(),
        **{f"q {n}": w for n, w in one.fit.reward_model.weights().items()},
    }


def test_resume_continues_bit_for_bit() -> None:
    whole = made()
    metrics: list[Any] = [whole.iterate(i).metrics for i in range(3)]
    first = made()
    first.iterate(0)
    state = copy.deepcopy(first.state_dict())
    second = made()
    second.load_state_dict(state)
    again = [second.iterate(i).metrics for i in (1, 2)]
    for a, b in zip(metrics[1:], again, strict=True):
        assert {k: v for k, v in a.items() if not k.startswith("time/")} == {
            k: v for k, v in b.items() if not k.startswith("time/")
        }
    ours, theirs = weights(whole), weights(second)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_paper_s_pairs_are_measured_by_name() -> None:
    one = made()
    asked: list[str] = []
    one.measure = lambda name, judge: asked.append(name) if judge is one.fit.reward_model else None
    one.iterate(0)
    one.iterate(1)
    assert asked == ["BoN(pi_0,Q_0)", "BoN(pi_1,Q_0)", "BoN(pi_2,Q_1)"]


def test_the_reward_model_is_no_alias_of_the_policy() -> None:
    one = made()
    before = one.improvement.learner.model.weights()
    trajectories = one.rollouts.collect(one.tasks.next(4), rollouts_per_task=2, temperature=1.0, seed=0).groups
    one.fit.fit([t for g in trajectories for t in g.trajectories], iteration=0, progress=None)
    assert all(torch.equal(before[n], w) for n, w in one.improvement.learner.model.weights().items())


def test_fitting_from_the_start_forgets_the_last_q() -> None:
    one = made(restart=True)
    one.iterate(0)
    one.fit.learner.restart()
    start = one.fit.reward_model.start
    assert all(torch.equal(start[n], w) for n, w in one.fit.reward_model.weights().items())
    assert one.fit.learner.steps == 0


def test_the_monitor_keeps_the_best_policy_and_reports_what_it_saw() -> None:
    one = made(monitored=True)
    metrics = one.iterate(0).metrics
    assert metrics["monitor/kl_0"] == 0.0
    assert metrics["monitor/games"] == 4.0
    looks = {n: metrics[f"monitor/success_{n}"] for n in range(3)}
    assert metrics["monitor/best_success"] == max(looks.values())
    if metrics["monitor/best_rounds"] == 0.0:  # then the policy is the one that it began with
        start, now = made().improvement.learner.model.weights(), one.improvement.learner.model.weights()
        assert all(torch.equal(start[name], now[name]) for name in start)

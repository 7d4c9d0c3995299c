"""Environment steps per second of our rollouts against `generate` that reads the whole prompt anew.

Both sides are the same `Rollouts`: same tiny model, generated games, agent, seeds, decoding and
batch; only the policy differs. The other side is transformers' batched, left-padded `generate`
with its own key-value cache inside a turn, and it need not return log-probs (ours does). The model
is warmed up on a few demonstrations first, so that its commands have a command's length. Sides
take turns; medians are printed as one line of JSON.

    python benchmarks/rollouts.py [--weights FOLDER] [--tasks 16] [--repeats 3] [--temperature 1.0]
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from typing import Any

import torch

from agentexp.agents.react import ReActAgent
from agentexp.algorithms.sft import Sft
from agentexp.envs.alfworld.environment import GeneratedAlfWorld
from agentexp.envs.alfworld.words import vocabulary
from agentexp.learning.learner import Learner
from agentexp.learning.model import Model, tiny
from agentexp.policies.chat import Chat
from agentexp.policies.hf import HfPolicy
from agentexp.rollouts.collect import Collection, Rollouts
from agentexp.types import Completion, Request

ROLLOUTS_PER_TASK = 6


class GeneratePolicy:
    """`generate` on the whole prompts, left-padded to the longest. Keeps nothing between turns."""

    def __init__(self, model: Model) -> None:
        self.model, self.version = model, 0

    @torch.inference_mode()
    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        tokenizer, first = self.model.tokenizer, requests[0]
        longest = max(len(r.prompt_ids) for r in requests)
        ids = torch.full((len(requests), longest), tokenizer.pad_token_id)
        mask = torch.zeros_like(ids)
        for row, request in enumerate(requests):
            ids[row, longest - len(request.prompt_ids) :] = torch.tensor(request.prompt_ids)
            mask[row, longest - len(request.prompt_ids) :] = 1
        heat: dict[str, Any] = {"do_sample": False}
        if first.temperature:
            heat = {"do_sample": True, "temperature": first.temperature, "top_k": 0, "top_p": 1.0}
        torch.manual_seed(first.seed)
        generate: Any = self.model.causal_lm.generate
        out = generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=first.max_tokens,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            **heat,
        )
        return [self._completion(row) for row in out[:, longest:].tolist()]

    def _completion(self, row: list[int]) -> Completion:
        eos = self.model.tokenizer.eos_token_id
        ended = eos in row
        ids = tuple(row[: row.index(eos) + 1] if ended else row)
        return Completion(
            ids=ids,
            logprobs=(0.0,) * len(ids),
            text=self.model.tokenizer.decode([i for i in ids if i != eos]),
            finish="stop" if ended else "length",
            policy_version=0,
        )

    def release(self, episode: str) -> None:
        pass

    def refresh(self) -> None:
        pass


def warm_up(model: Model, environment: GeneratedAlfWorld, agent: ReActAgent, chat: Chat, policy: HfPolicy) -> None:
    """A hundred steps on demonstrations: enough to write commands, far from solving games."""
    learner = Learner(
        model=model, lr=3e-3, beta1=0.9, beta2=0.98, weight_decay=0.0, max_grad_norm=1.0, warmup_steps=10,
        schedule="constant", total_steps=None, final_lr_fraction=1.0, tokens_per_microbatch=8192, temperature=1.0,
    )  # fmt: skip
    Sft(
        environment=environment, agent=agent, chat=chat, learner=learner, policy=policy, seed=0, split="train",
        demonstrations=200, noise=0.0, only_successes=False, learn_random_moves=False, observation_weight=0.5,
        max_turns=30, steps_per_iteration=100, tokens_per_step=2000,
    ).iterate(0)  # fmt: skip


def same_commands(one: Collection, two: Collection) -> float:
    """Share of episodes in which both sides played the same commands."""
    pairs = [
        [tuple(t.action.command for t in trajectory.turns) for trajectory in pair]
        for g, h in zip(one.groups, two.groups, strict=True)
        for pair in zip(g.trajectories, h.trajectories, strict=True)
    ]
    return sum(a == b for a, b in pairs) / len(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--weights", help="a saved model folder or a shipped name (alfworld_pi0); default: warm one up here"
    )
    parser.add_argument("--tasks", type=int, default=16, help=f"games, {ROLLOUTS_PER_TASK} episodes each")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    environment = GeneratedAlfWorld(engine="pure", admissible=False, explore=0.0, train_games=2000, valid_games=500)
    agent = ReActAgent(
        format="plain", think=False, admissible=False, reminder=True, inventory=True, several="last", lower=True,
        keep=None, system_prompt=None,
    )  # fmt: skip
    model = tiny(
        words=vocabulary(), weights=options.weights, hidden_size=128, layers=4, head_size=32, mlp_ratio=3,
        max_context_tokens=2048, initializer_range=0.1, threads=options.threads, seed=0,
    )  # fmt: skip
    chat, ours = Chat(tokenizer=model.tokenizer), HfPolicy(model=model, initial_cache_tokens=512, branch_tokens=4096)
    if options.weights is None:
        warm_up(model, environment, agent, chat, ours)
    model.network.eval()
    tasks = environment.tasks("valid")[: options.tasks]

    def play(policy: Any, seed: int, games: int = options.tasks) -> Collection:
        rollouts = Rollouts(
            environment=environment, agent=agent, chat=chat, policy=policy, max_turns=30, max_new_tokens=16,
            max_context_tokens=2048, slots=96, workers=1, step_timeout_s=60.0, retries=0, max_dead_groups=1,
            truncation="keep",
        )  # fmt: skip
        return rollouts.collect(
            tasks[:games], rollouts_per_task=ROLLOUTS_PER_TASK, temperature=options.temperature, seed=seed
        )

    theirs = GeneratePolicy(model)
    for policy in (ours, theirs):
        play(policy, -1, games=1)  # both warm
    pairs = [(play(ours, seed), play(theirs, seed)) for seed in range(options.repeats)]

    def rate(collection: Collection) -> float:
        return collection.stats["env_steps"] / collection.stats["seconds"]

    def outside(collection: Collection) -> float:
        return 1.0 - collection.stats["model_seconds"] / collection.stats["seconds"]

    one, two = statistics.median(rate(a) for a, _ in pairs), statistics.median(rate(b) for _, b in pairs)
    print(
        json.dumps(
            {
                "steps_per_second_ours": round(one, 1),
                "steps_per_second_generate": round(two, 1),
                "speedup": round(statistics.median(rate(a) / rate(b) for a, b in pairs), 2),
                "outside_forward_share": round(statistics.median(outside(a) for a, _ in pairs), 3),
                "outside_policy_us_per_step": round(
                    statistics.median(
                        1e6 * (a.stats["seconds"] - a.stats["policy_seconds"]) / a.stats["env_steps"] for a, _ in pairs
                    )
                ),
                "tokens_per_step": [
                    round(statistics.mean(c.stats["tokens"] / c.stats["env_steps"] for c in side), 2)
                    for side in zip(*pairs, strict=True)
                ],
                "env_steps": [int(sum(c.stats["env_steps"] for c in side)) for side in zip(*pairs, strict=True)],
                "same_commands": round(statistics.mean(same_commands(a, b) for a, b in pairs), 3),
                "temperature": options.temperature,
                "parameters": sum(p.numel() for p in model.network.parameters()),
                "threads": torch.get_num_threads(),
            }
        )
    )


if __name__ == "__main__":
    main()

"""What a process reward model costs, on the shipped checkpoint and the expert's play.

    python benchmarks/process_reward.py [--rows N] [--repeats R]

The last line of standard output is JSON. training_ratio: tokens per second of fitting a reward model
over those of supervised fine-tuning on the same rows. scoring_ratio: scoring 16 candidates of one
state with the history read once, over reading it again for each candidate, and of 4. Medians over
repeats that take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from agentexp.algorithms.q_fit import QFit
from agentexp.algorithms.sft import rows as sft_rows
from agentexp.cli.assemble import assemble
from agentexp.cli.compose import compose_config
from agentexp.cli.train import prepare
from agentexp.learning.reward_model import score
from agentexp.losses.imitation import negative_log_likelihood
from agentexp.packing import to_samples, trunks
from agentexp.rollouts.demonstrations import expert_play
from agentexp.types import Branch, Decision, Tree, Trunk


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratio(ours: Callable[[], Any], other: Callable[[], Any], repeats: int) -> tuple[float, float, float]:
    """(other's seconds / ours, ours, other's): medians of runs that take turns, the first of each left out."""
    times: dict[str, list[float]] = {"ours": [], "other": []}
    for n in range(repeats + 1):
        for name, run in (("ours", ours), ("other", other)):
            spent = seconds(run)
            if n:
                times[name].append(spent)
    a, b = statistics.median(times["ours"]), statistics.median(times["other"])
    return b / a, a, b


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    parts = assemble(prepare(compose_config(["algorithm=agent_prm", "seed=3", "output_dir=unused"])))
    fit: QFit = parts["algorithm"].fit
    learner = parts["algorithm"].improvement.learner
    played = expert_play(
        environment=parts["environment"], agent=parts["agent"], chat=parts["chat"], split="train", count=options.rows,
        noise=0.1, max_turns=30, seed=3,
    )  # fmt: skip
    targets = fit.absolute(played, fit.values_of(played))
    samples = [s for t in played for s in to_samples(t, 0.0)]
    rows = sft_rows(samples, 0.0)
    tokens = sum(len(s.ids) for s in samples)
    training, prm_s, sft_s = ratio(
        lambda: fit.step(targets), lambda: learner.step(rows, negative_log_likelihood), options.repeats
    )
    trunk = max((trunk for t in played for trunk in trunks(t)), key=lambda trunk: len(trunk.ids))
    last = trunk.decisions[-1]
    state = Trunk(ids=trunk.ids[: last.start], decisions=(), origin=trunk.origin)
    found: dict[str, float] = {}
    for n in (4, 16):
        said = [Branch(at=last.start, ids=(*trunk.ids[last.start : last.end - 1], 5 + k)) for k in range(n)]
        once = [Tree(trunk=state, branches=tuple(said))]
        act = Decision(turn=0, start=last.start, end=last.end)  # all candidates are of one length
        whole = [Tree(trunk=Trunk(ids=state.ids + b.ids, decisions=(act,), origin="row")) for b in said]
        a = score(fit.reward_model, once, tokens_per_microbatch=16384)[0].branches
        b = [s.decisions[0] for s in score(fit.reward_model, whole, tokens_per_microbatch=16384)]
        assert torch.allclose(torch.tensor(a), torch.tensor(b), atol=1e-4), "the two ways give different scores"
        found[f"scoring_ratio_{n}"], found[f"score_once_ms_{n}"], found[f"score_again_ms_{n}"] = (
            round(value * (1 if k == 0 else 1000), 2)
            for k, value in enumerate(
                ratio(
                    lambda once=once: score(fit.reward_model, once, tokens_per_microbatch=16384),
                    lambda whole=whole: score(fit.reward_model, whole, tokens_per_microbatch=16384),
                    options.repeats,
                )
            )
        )
    print(
        json.dumps(
            {
                "training_ratio": round(training, 3),
                "prm_tokens_per_second": round(tokens / prm_s),
                "sft_tokens_per_second": round(tokens / sft_s),
                "rows": len(samples),
                "tokens": tokens,
                "history_tokens": len(state.ids),
                **found,
                "threads": torch.get_num_threads(),
            }
        )
    )


if __name__ == "__main__":
    main()

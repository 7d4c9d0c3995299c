"""What a pair costs when chosen and rejected share one reading of their state, on the shipped checkpoint
and the expert's play.

    python benchmarks/pair_sharing.py [--pairs N] [--repeats R]

The last line of standard output is JSON. ratio: CPU seconds (one thread) of forward and backward over pairs
laid out as two rows each, over those of the same pairs laid out as one row with two branches; early, late: of an
episode's first and last state. Medians over repeats that take turns; low and high are the least and the
greatest of the repeats' own ratios. The gradients of the two ways are compared first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from agentexp.cli.assemble import assemble
from agentexp.cli.compose import compose_config
from agentexp.cli.train import prepare
from agentexp.learning.logps import token_logps
from agentexp.learning.model import Model
from agentexp.learning.trees import branch_logps, lay, tree_size
from agentexp.losses.preference import dpo, preference_margin
from agentexp.packing import Row, buckets, collate, pair_to_samples, trunks
from agentexp.rollouts.demonstrations import expert_play
from agentexp.types import Branch, Pair, Tree, Trunk

BUDGET = 16384  # rows x longest row of a forward pass, for both ways


def contrast(plus: torch.Tensor, minus: torch.Tensor, pairs: Sequence[Pair], total: int) -> torch.Tensor:
    n = torch.tensor([(len(p.chosen), len(p.rejected)) for p in pairs])
    margin = preference_margin(plus, minus, n[:, 0], n[:, 1], scale="power", alpha=0.5)
    return dpo(margin, torch.zeros_like(margin), beta=0.1).sum() / total


def shared(model: Model, pairs: Sequence[Pair]) -> float:
    """Forward and backward, each state read once."""
    trees = [
        Tree(
            trunk=Trunk(ids=p.prompt_ids, decisions=(), origin="pair"),
            branches=tuple(Branch(at=len(p.prompt_ids), ids=ids) for ids in (p.chosen, p.rejected)),
        )
        for p in pairs
    ]
    total = 0.0
    for indices in buckets([tree_size(t) for t in trees], BUDGET):
        batch = lay([trees[i] for i in indices], dtype=model.causal_lm.dtype, device=model.device)
        logps = branch_logps(model, batch, 1.0)
        loss = contrast(logps[0::2], logps[1::2], [pairs[i] for i in indices], len(pairs))
        loss.backward()
        total += loss.item()
    return total


def separate(model: Model, pairs: Sequence[Pair]) -> float:
    """Forward and backward, a row for each side."""
    both = [pair_to_samples(p, "pair") for p in pairs]
    total = 0.0
    for indices in buckets([2 * max(len(s.ids) for s in sides) for sides in both], BUDGET):
        rows = [Row(sample=s, weight=tuple(map(float, s.mask))) for i in indices for s in both[i]]
        batch = collate(rows).to(model.device)
        logps = token_logps(model, batch.ids, batch.mask, 1.0).sum(1)
        loss = contrast(logps[0::2], logps[1::2], [pairs[i] for i in indices], len(pairs))
        loss.backward()
        total += loss.item()
    return total


def gradient(model: Model, way: Callable[[Model, Sequence[Pair]], float], pairs: Sequence[Pair]) -> torch.Tensor:
    model.network.zero_grad()
    way(model, pairs)
    return torch.cat([p.grad.flatten() for p in model.trainable().values() if p.grad is not None])


def measure(model: Model, pairs: Sequence[Pair], repeats: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {"shared": [], "separate": []}
    for n in range(repeats + 1):  # the first of each is left out
        for name, way in (("shared", shared), ("separate", separate)):
            model.network.zero_grad()
            start = time.process_time()
            way(model, pairs)
            if n:
                times[name].append(time.process_time() - start)
    each = [b / a for a, b in zip(times["shared"], times["separate"], strict=True)]
    a, b = statistics.median(times["shared"]), statistics.median(times["separate"])
    return {
        "ratio": round(b / a, 3),
        "low": round(min(each), 3),
        "high": round(max(each), 3),
        "shared_ms": round(1000 * a, 1),
        "separate_ms": round(1000 * b, 1),
        "state_tokens": round(statistics.mean(len(p.prompt_ids) for p in pairs), 1),
        "action_tokens": round(statistics.mean(len(p.chosen) for p in pairs), 1),
        "pairs": len(pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    parts = assemble(
        prepare(compose_config(["algorithm=agentic_dpo", "seed=3", "output_dir=unused", "hardware.threads=1"]))
    )
    model: Model = parts["model"]
    model.network.train()
    played = expert_play(
        environment=parts["environment"], agent=parts["agent"], chat=parts["chat"], split="train",
        count=3 * options.pairs, noise=0.0, max_turns=30, seed=3,
    )  # fmt: skip
    found: dict[str, list[Pair]] = {"early": [], "late": []}
    for trunk in (trunk for t in played for trunk in trunks(t) if len(trunk.decisions) >= 3):
        for name, d in (("early", trunk.decisions[0]), ("late", trunk.decisions[-1])):
            said = trunk.ids[d.start : d.end]
            wrong = (*said[:-2], said[-2] + 1, said[-1])  # another thing, of the same length
            found[name].append(Pair(prompt_ids=trunk.ids[: d.start], chosen=said, rejected=wrong))
    both = {name: pairs[: options.pairs] for name, pairs in found.items()}
    for pairs in both.values():
        one, two = gradient(model, shared, pairs), gradient(model, separate, pairs)
        assert torch.allclose(one, two, atol=1e-5 * float(two.abs().max()) + 1e-7), "the two ways differ"
    results = {name: measure(model, pairs, options.repeats) for name, pairs in both.items()}
    print(json.dumps({**results, "threads": torch.get_num_threads()}))


if __name__ == "__main__":
    main()

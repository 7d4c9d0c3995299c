"""Peak memory of a LOOP step against an SFT step on the same tokens.

Each kind runs in a fresh process; the peak is what the step added above the loaded model (resident
set on a CPU, allocated memory on a GPU). LOOP's includes recomputing the old log-probs. Prints one
line of JSON: sft_mib, loop_mib, ratio, model_copies.

    python benchmarks/learner_memory.py [--rows 48] [--tokens 400] [--repeats 3]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

VOCABULARY = 8192  # large, so that whole logits would show: rows x tokens x 8192 x 4 bytes


def resident_mib() -> float:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize() / 2**20


class Peak:
    """The highest resident set seen while it runs, sampled every millisecond."""

    def __enter__(self) -> Peak:
        self.value, self._on = resident_mib(), True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while self._on:
            self.value = max(self.value, resident_mib())
            time.sleep(0.001)

    def __exit__(self, *_: object) -> None:
        self._on = False
        self._thread.join()


def measure(kind: str, rows: int, tokens: int) -> dict[str, float]:
    """The peak of one step of `kind`, in this process."""
    import torch  # noqa: PLC0415  (only the child process needs it)

    from agentexp.learning.learner import Learner  # noqa: PLC0415
    from agentexp.learning.model import tiny  # noqa: PLC0415
    from agentexp.losses.imitation import negative_log_likelihood  # noqa: PLC0415
    from agentexp.losses.ppo import ClippedPolicyLoss  # noqa: PLC0415
    from agentexp.packing import Row, token_weights  # noqa: PLC0415
    from agentexp.types import Sample  # noqa: PLC0415

    words = [
        f"{a}{b}{c}"
        for a in "bcdfghjklmnp"
        for b in "aeiou"
        for c in (f"{i:c}{j:c}" for i in range(97, 123) for j in range(97, 123))
    ]
    model = tiny(
        words=words[: VOCABULARY - 5], weights=None, hidden_size=256, layers=6, head_size=32, mlp_ratio=3,
        max_context_tokens=2048, initializer_range=0.1, threads=1, seed=0,
    )  # fmt: skip
    learner = Learner(
        model=model, lr=1e-4, beta1=0.9, beta2=0.99, weight_decay=0.0, max_grad_norm=1.0, warmup_steps=0,
        schedule="constant", total_steps=None, final_lr_fraction=1.0, tokens_per_microbatch=rows * tokens,
        temperature=1.0,
    )  # fmt: skip
    rng = random.Random(0)
    samples = []
    for n in range(rows):
        mask = (False, *(rng.random() < 0.5 for _ in range(tokens - 1)))
        samples.append(
            Sample(
                ids=tuple(rng.randrange(5, VOCABULARY) for _ in range(tokens)),
                mask=mask,
                turn=tuple(t // 10 if m else -1 for t, m in enumerate(mask)),
                old_logps=(0.0,) * tokens,
                advantage=tuple((n % 2 - 0.5) if m else 0.0 for m in mask),
                origin=str(n),
            )
        )
    weights = token_weights(samples, "rollout")
    loop = ClippedPolicyLoss(level="token", epsilon=0.1, interval="one_plus_minus", kl_coefficient=0.0)
    learner.step(
        [Row(sample=s, weight=w) for s, w in zip(samples[:1], weights[:1], strict=True)], negative_log_likelihood
    )  # moments exist now
    gc.collect()
    cuda = model.device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    start = torch.cuda.memory_allocated() / 2**20 if cuda else resident_mib()
    with Peak() as peak:
        if kind == "loop":
            old = learner.logps(samples)
            samples = [
                Sample(ids=s.ids, mask=s.mask, turn=s.turn, old_logps=o, advantage=s.advantage, origin=s.origin)
                for s, o in zip(samples, old, strict=True)
            ]
        learner.step(
            [Row(sample=s, weight=w) for s, w in zip(samples, weights, strict=True)],
            loop if kind == "loop" else negative_log_likelihood,
        )
    top = torch.cuda.max_memory_allocated() / 2**20 if cuda else peak.value
    shape = model.head.weight.shape
    copies = len(
        {t.data_ptr() for t in gc.get_objects() if type(t) in (torch.Tensor, torch.nn.Parameter) and t.shape == shape}
    )
    assert copies == 3, f"{copies} tensors have the embedding's shape; one weight and two moments are expected"
    return {"mib": top - start, "model_copies": copies - 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=48)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kind", choices=["sft", "loop"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.kind:
        print(json.dumps(measure(args.kind, args.rows, args.tokens)))
        return
    found: dict[str, list[float]] = {"sft": [], "loop": []}
    copies = 0.0
    for _ in range(args.repeats):
        for kind in found:
            out = subprocess.run(
                [sys.executable, __file__, "--kind", kind, "--rows", str(args.rows), "--tokens", str(args.tokens)],
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            one = json.loads(out.stdout.splitlines()[-1])
            found[kind].append(one["mib"])
            copies = max(copies, one["model_copies"])
    sft, loop = statistics.median(found["sft"]), statistics.median(found["loop"])
    print(
        json.dumps(
            {
                "sft_mib": round(sft, 1),
                "loop_mib": round(loop, 1),
                "ratio": round(loop / sft, 4),
                "model_copies": copies,
            }
        )
    )


if __name__ == "__main__":
    main()

"""What the student would do at an expert's state, and which of it is wrong and likeliest: the negatives
of Agentic-DPO (arXiv 2607.10601).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from agentexp.agents.equivalence import Equivalence, equivalent
from agentexp.algorithms.expert_pool import Visit
from agentexp.errors import ConfigError
from agentexp.learning.learner import Learner
from agentexp.learning.trees import branch_logps, lay, tree_size
from agentexp.packing import buckets
from agentexp.policies.hf import HfPolicy
from agentexp.seeding import seed_for
from agentexp.types import Branch, Completion, Tree, Trunk

Hardness = Literal["sum", "mean"]
_TRUNKS_AT_A_TIME = 32  # between two words of progress


@dataclass(frozen=True, kw_only=True, slots=True)
class Contrast:
    """The expert's action at a state against a wrong one (None: there was none). reference: log pi_ref
    of the two, where a loss needs them."""

    visit: Visit
    rejected: tuple[int, ...] | None
    reference: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Grown:
    """A trunk up to its last state, with branches along it; `of[n]` is what branch n belongs to."""

    tree: Tree
    of: tuple[int, ...]


class HardNegatives:
    """K one-step actions of the student at each state; the likeliest that is not the expert's.

    samples_per_state: K; temperature, max_new_tokens: of the samples. equivalence: what counts as
    the expert's action. hardness: by the log-prob of the whole action (sum) or per token (mean),
    both at the learner's temperature, whatever the sampler's was. unfinished: whether an action that
    hit max_new_tokens may be a negative; unparsable: whether one that cannot be read may.
    """

    def __init__(
        self,
        *,
        policy: HfPolicy,
        samples_per_state: int,
        temperature: float,
        max_new_tokens: int,
        equivalence: Equivalence,
        hardness: Hardness,
        unfinished: Literal["keep", "drop"],
        unparsable: Literal["keep", "drop"],
    ) -> None:
        if min(samples_per_state, max_new_tokens) < 1 or not temperature > 0.0:
            raise ConfigError(
                f"hard negatives: samples_per_state is {samples_per_state} and max_new_tokens {max_new_tokens}, at "
                f"least 1 is needed; temperature is {temperature}, above 0 is needed"
            )
        self.policy = policy
        self.samples_per_state, self.temperature, self.max_new_tokens = samples_per_state, temperature, max_new_tokens
        self.equivalence, self.hardness = equivalence, hardness
        self.unfinished, self.unparsable = unfinished, unparsable

    def find(
        self,
        visits: Sequence[Visit],
        learner: Learner,
        *,
        seed: int,
        progress: Callable[[str, int, int], None] | None,
    ) -> tuple[list[Contrast], dict[str, float]]:
        """One contrast per visit, in order, and what was counted. `learner` says what is likely."""
        said = self.sample(visits, seed, progress)
        counts = dict.fromkeys(("sampled", "equivalent", "unfinished", "unparsable", "no_negative"), 0.0)
        wrong: list[list[Completion]] = []
        for visit, completions in zip(visits, said, strict=True):
            left = []
            for c in completions:
                action = visit.agent.parse(c.text)
                same = equivalent(action, visit.action, self.equivalence)
                cut, broken = c.finish == "length", action.error is not None
                counts["sampled"] += 1
                counts["equivalent"] += same
                counts["unfinished"] += cut
                counts["unparsable"] += broken
                if not (same or (cut and self.unfinished == "drop") or (broken and self.unparsable == "drop")):
                    left.append(c)
            wrong.append(left)
            counts["no_negative"] += not left
        hardest = self.hardest(visits, wrong, learner)
        contrasts = [Contrast(visit=v, rejected=ids) for v, ids in zip(visits, hardest, strict=True)]
        return contrasts, {**counts, "agreement": counts["equivalent"] / max(1.0, counts["sampled"])}

    def sample(
        self, visits: Sequence[Visit], seed: int, progress: Callable[[str, int, int], None] | None
    ) -> list[list[Completion]]:
        """K completions of every visit; a trunk is read once for all its states."""
        places: dict[str, list[int]] = {}
        for n, visit in enumerate(visits):
            places.setdefault(visit.trunk.origin, []).append(n)
        groups = list(places.values())
        found: dict[int, list[Completion]] = {}
        for at in range(0, len(groups), _TRUNKS_AT_A_TIME):
            some = groups[at : at + _TRUNKS_AT_A_TIME]
            said = self.policy.branch(
                [visits[g[0]].trunk.ids for g in some],
                [[visits[n].at for n in g] for g in some],
                n=self.samples_per_state,
                max_tokens=self.max_new_tokens,
                temperature=self.temperature,
                seeds=[[seed_for(seed, visits[n].key) for n in g] for g in some],
            )
            for g, states in zip(some, said, strict=True):
                found |= dict(zip(g, states, strict=True))
            if progress is not None:
                progress("sampling at expert states", min(at + len(some), len(groups)), len(groups))
        return [found[n] for n in range(len(visits))]

    def hardest(
        self, visits: Sequence[Visit], wrong: Sequence[Sequence[Completion]], learner: Learner
    ) -> list[tuple[int, ...] | None]:
        """The likeliest of each visit's wrong actions (the first of equals), None where there is none."""
        said = [[c.ids for c in completions] for completions in wrong]
        logps = branch_sums(learner, visits, said)
        found: list[tuple[int, ...] | None] = []
        for actions, values in zip(said, logps, strict=True):
            scores = [v / len(a) if self.hardness == "mean" else v for a, v in zip(actions, values, strict=True)]
            found.append(actions[max(range(len(scores)), key=scores.__getitem__)] if scores else None)
        return found


def grow(visits: Sequence[Visit], actions: Sequence[Sequence[tuple[int, ...]]]) -> list[Grown]:
    """Actions as branches at their states. States of one trunk share one reading of it."""
    places: dict[str, list[int]] = {}
    for n, visit in enumerate(visits):
        if actions[n]:
            places.setdefault(visit.trunk.origin, []).append(n)
    grown = []
    for members in places.values():
        trunk = visits[members[0]].trunk
        read = Trunk(ids=trunk.ids[: max(visits[n].at for n in members)], decisions=(), origin=trunk.origin)
        branches = tuple(Branch(at=visits[n].at, ids=ids) for n in members for ids in actions[n])
        of = tuple(n for n in members for _ in actions[n])
        grown.append(Grown(tree=Tree(trunk=read, branches=branches), of=of))
    return grown


@torch.no_grad()
def branch_sums(
    learner: Learner, visits: Sequence[Visit], actions: Sequence[Sequence[tuple[int, ...]]]
) -> list[list[float]]:
    """Summed log-probs of every visit's actions, by the learner at its temperature."""
    model = learner.model
    model.network.eval()
    grown = grow(visits, actions)
    found: list[list[float]] = [[] for _ in visits]
    for indices in buckets([tree_size(g.tree) for g in grown], learner.tokens_per_microbatch):
        chosen = [grown[i] for i in indices]
        batch = lay([g.tree for g in chosen], dtype=model.causal_lm.dtype, device=model.device)
        logps: Tensor = branch_logps(model, batch, learner.temperature)
        for n, value in zip([n for g in chosen for n in g.of], logps.tolist(), strict=True):
            found[n].append(value)
    return found

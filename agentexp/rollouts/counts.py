"""What a collection reports about itself. Knows trajectories only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentexp.types import StopReason, Trajectory


def count(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Figures of played episodes, cut ones included; lengths of both, since early stop cuts the long.

    refused_rate: of the steps that the environment answered, those it did not allow.
    parse_error_rate: of all turns, those in which no action was found.
    """
    turns = [turn for t in trajectories for turn in t.turns]
    answered = [t.step for t in turns if t.step is not None and not t.action.is_thought]
    cancelled = [t for t in trajectories if t.stop is StopReason.CANCELLED and t.truncated != "drop"]
    scored = [t for t in trajectories if t.scored]
    stats = {
        "episodes": len(trajectories),
        "turns": len(turns),
        "env_steps": len(answered),
        "thoughts": sum(t.action.is_thought for t in turns),
        "tokens": sum(len(t.completion.ids) for t in turns),
        "read_tokens": sum(len(t.prompt_ids) for t in turns),
        "scored": len(scored),
        "cancelled": len(cancelled),
        "env_errors": sum(t.stop is StopReason.ENV_ERROR for t in trajectories),
        "breaks": sum(t.segments - 1 for t in trajectories),
        "refused_rate": mean([float(bool(s.info.get("refused"))) for s in answered]),
        "parse_error_rate": mean([float(t.action.error is not None) for t in turns]),
        "cut_completions": sum(t.completion.finish == "length" for t in turns),
        "scored_turns": mean([len(t.turns) for t in scored]),
        "scored_tokens": mean([t.generated_tokens for t in scored]),
        "cancelled_turns": mean([len(t.turns) for t in cancelled]),
        "cancelled_tokens": mean([t.generated_tokens for t in cancelled]),
    }
    for reason in StopReason:
        stats[f"stop_{reason}"] = sum(t.stop is reason for t in trajectories)
    for policy in ("drop", "mask", "keep"):
        stats[f"truncated_{policy}"] = sum(t.truncated == policy for t in trajectories)
    return {name: float(value) for name, value in stats.items()}


def mean(values: Sequence[float]) -> float:
    """The mean, 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0

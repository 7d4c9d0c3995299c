"""From played groups to what an evaluation reports. Pure: knows trajectories and statistics only.

Success counts over all episodes asked for: one whose environment failed is a failure here, and is
counted apart as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentexp.seeding import seed_for
from agentexp.stats import Estimate, bootstrap, pass_hat_k, wilson
from agentexp.types import Group, Trajectory


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluated:
    """What one evaluation at one temperature found.

    turns: mean number of turns an episode; stops: episodes by stop reason; refused_rate: share of
    commands that the environment refused; pass_hat: pass^k for every k up to the trials a game;
    floor: the success of doing nothing, None where the environment does not say;
    won: successes of each game, in the frozen order of the games; truncated, rewritten: how many
    episodes met a truncation policy or a rewritten history.
    """

    split: str
    temperature: float
    trials: int
    games: int
    success: Estimate
    won: tuple[int, ...]
    by_type: Mapping[str, Estimate]
    reward: float
    turns: float
    generated_tokens: float
    stops: Mapping[str, int]
    refused_rate: float
    pass_hat: Mapping[int, float]
    floor: float | None
    truncated: int
    rewritten: int
    trajectories: tuple[Trajectory, ...]
    wall_s: float

    @property
    def word(self) -> str:
        """The decoding as a name for files and metrics."""
        return "greedy" if self.temperature == 0 else "sampled"

    @property
    def decoding(self) -> str:
        """The decoding in words."""
        return "greedy" if self.temperature == 0 else f"sampled at temperature {self.temperature:g}"

    def to_json(self) -> dict[str, Any]:
        """Everything but the trajectories."""
        return {
            "success": self.success.to_json(),
            "won": list(self.won),
            "by_type": {kind: e.to_json() for kind, e in self.by_type.items()},
            "decoding": self.decoding,
            "games": self.games,
            "trials": self.trials,
            "reward": self.reward,
            "turns": self.turns,
            "generated_tokens": self.generated_tokens,
            "stops": dict(self.stops),
            "refused_rate": self.refused_rate,
            "pass_hat": {str(k): v for k, v in self.pass_hat.items()},
            "floor": self.floor,
            "truncated": self.truncated,
            "rewritten": self.rewritten,
            "wall_s": self.wall_s,
        }

    def row(self) -> dict[str, float]:
        """Flat numbers for metrics.jsonl."""
        return {
            "success": self.success.value,
            "success_low": self.success.low,
            "success_high": self.success.high,
            "episodes": self.success.n,
            "reward": self.reward,
            "turns": self.turns,
            "generated_tokens": self.generated_tokens,
            "refused_rate": self.refused_rate,
            **{f"stop_{reason}": count for reason, count in self.stops.items()},
            **{f"success_{kind}": e.value for kind, e in self.by_type.items()},
            **{f"pass_hat_{k}": v for k, v in self.pass_hat.items() if k > 1},
            **({} if self.floor is None else {"floor": self.floor}),
            "wall_s": self.wall_s,
        }


def evaluated(
    groups: Sequence[Group], *, split: str, temperature: float, trials: int, floor: float | None, wall_s: float
) -> Evaluated:
    """Sum up groups of `trials` episodes each. floor: the success of doing nothing on the same tasks."""
    episodes = tuple(t for group in groups for t in group.trajectories)
    kinds = sorted({t.task.kind for t in episodes if t.task.kind})
    commands = [turn for t in episodes for turn in t.turns if turn.action.command is not None and turn.step is not None]
    refused = sum(bool(turn.step.info.get("refused")) for turn in commands if turn.step is not None)
    return Evaluated(
        split=split,
        temperature=temperature,
        trials=trials,
        games=len(groups),
        success=success_rate(episodes, trials=trials),
        won=tuple(sum(succeeded(t) for t in group.trajectories) for group in groups),
        by_type={k: success_rate([t for t in episodes if t.task.kind == k], trials=trials) for k in kinds},
        reward=sum(t.outcome.reward for t in episodes if t.outcome is not None) / len(episodes),
        turns=sum(len(t.turns) for t in episodes) / len(episodes),
        generated_tokens=sum(t.generated_tokens for t in episodes) / len(episodes),
        stops=dict(sorted(Counter(t.stop.value for t in episodes).items())),
        refused_rate=refused / len(commands) if commands else 0.0,
        pass_hat=_pass_hat(groups, trials),
        floor=floor,
        truncated=sum(t.truncated is not None for t in episodes),
        rewritten=sum(t.segments > 1 for t in episodes),
        trajectories=episodes,
        wall_s=wall_s,
    )


def succeeded(trajectory: Trajectory) -> bool:
    """Whether an episode was scored a success; an unscored one was not."""
    return trajectory.outcome is not None and trajectory.outcome.success


def success_rate(episodes: Sequence[Trajectory], *, trials: int) -> Estimate:
    """Success with its interval: Wilson where episodes are independent; otherwise a bootstrap over
    scenarios (several tasks a scenario) or over tasks (several trials a task).
    """
    wins = [float(succeeded(t)) for t in episodes]
    scenarios = {t.task.id: t.task.scenario for t in episodes}
    shared_scenarios = len(set(scenarios.values())) < len(scenarios)
    if trials == 1 and not shared_scenarios:
        return wilson(sum(wins), len(wins))
    clusters = [t.task.scenario if shared_scenarios else t.task.id for t in episodes]
    return bootstrap(wins, clusters=clusters, seed=seed_for(0, "evaluation", "bootstrap"))


def _pass_hat(groups: Sequence[Group], trials: int) -> dict[int, float]:
    wins = [sum(succeeded(t) for t in group.trajectories) for group in groups]
    return {k: sum(pass_hat_k(c, trials, k) for c in wins) / len(wins) for k in range(1, trials + 1)}

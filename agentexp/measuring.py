"""What a run measures, and what it found: the first evaluation and, where there is one, the second."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentexp.console import Display, estimate
from agentexp.evaluation.evaluate import Evaluation
from agentexp.evaluation.metrics import Evaluated
from agentexp.plan import Move
from agentexp.stats import intervals_apart
from agentexp.types import Trajectory


class Measuring:
    """Makes a run's measurements. `found` is all that was found so far, plain data for a checkpoint.

    keep: told a name and the trajectories of every measurement.
    """

    def __init__(
        self, evaluation: Evaluation, display: Display, keep: Callable[[str, Sequence[Trajectory]], None]
    ) -> None:
        self.evaluation, self.display, self.keep = evaluation, display, keep
        self.found: dict[str, Any] = {
            **_nothing(),
            "leaked": [],
            "also": None if evaluation.also is None else _nothing(),
        }

    @property
    def best_of(self) -> bool:
        """Whether best of n is measured at all."""
        also = self.evaluation.also
        return bool(self.evaluation.best_of or (also is not None and also.best_of))

    def measure(self, move: Move, *, wall_s: float) -> dict[str, float]:
        """Measure as the move says; its row. The measurements themselves go into `found`."""
        row = self._with(self.evaluation, move, self.found, wall_s)
        if self.evaluation.also is not None:
            also = self._with(self.evaluation.also, move, self.found["also"], wall_s)
            row |= {f"also/{name}": value for name, value in also.items()}
        return row

    def beside(self, name: str, reward_model: Any) -> None:
        """Best of n of the policy of this moment, for every n asked for, on the same games as ever."""
        for evaluation, found in ((self.evaluation, self.found), (self.evaluation.also, self.found["also"])):
            if evaluation is None or not evaluation.best_of:
                continue
            measured = evaluation.best_of_n(reward_model, self.display.progress)
            found["beside"][name] = {str(n): e.to_json() for n, e in measured.items()}
            for n, e in measured.items():
                self.keep(f"{self._prefix(evaluation)}{name}-{n}", e.trajectories)
            values = ", ".join(f"n={n} {e.success}" for n, e in measured.items())
            first = next(iter(measured.values()))
            self.display.say(f"{name}: success on {first.games} games of {first.split}: {values}", style="bold")

    def count_leaks(self, trajectories: Sequence[Trajectory]) -> None:
        """Games that are both trained on and evaluated are counted, and said in the last line."""
        leaked = self.evaluation.leaked([t.task.id for t in trajectories])
        self.found["leaked"] = sorted({*self.found["leaked"], *leaked})

    def result(self, games: Mapping[str, Any]) -> dict[str, Any]:
        """What result.json says of the measurements. games: the evaluation's manifest."""
        before, after = self.found["before"], self.found["after"]
        result: dict[str, Any] = {
            "split": self.evaluation.split,
            **{key: after["success"].get(key) for key in ("games", "floor", "pass_hat")},
            "games_sha256": games["sha256"],
            "trials": self.evaluation.trials,
            "decoding": after["success"]["decoding"],
            "before": None if before is None else {d: e["success"] for d, e in before.items()},
            "after": {d: e["success"] for d, e in after.items()},
            "curve": self.found["curve"],
            "beside": self.found["beside"],
            "also": self._also(games),
            "by_type": by_type(before, after),
            "environment": games["environment"],
            "label": games["environment"].get("label", ""),
            "env_errors": sum(e["stops"].get("env_error", 0) for m in (before, after) if m for e in m.values()),
            "leaked_games": len(self.found["leaked"]),
            "details": {"before": before, "after": after},
        }
        if before is not None:
            sampled = [estimate(result[when]["success"]) for when in ("before", "after")]
            result["intervals_apart"] = intervals_apart(*sampled)
        return result

    def _with(self, evaluation: Evaluation, move: Move, found: dict[str, Any], wall_s: float) -> dict[str, float]:
        """One evaluation's part of a measurement."""
        if move.kind == "curve":
            measured = {"success": evaluation.curve(self.display.progress)}
        else:
            measured = evaluation.full(self.display.progress)
            found[move.kind] = {decoding: e.to_json() for decoding, e in measured.items()}
        point = measured["success"]
        found["curve"].append(
            {
                "iteration": move.iteration,
                "success": point.success.to_json(),
                "won": list(point.won),
                "games": point.games,
                "trials": point.trials,
                "wall_s": wall_s,
            }
        )
        for e in measured.values():
            name = f"curve-{move.iteration:05d}" if move.kind == "curve" else f"{move.kind}-{e.word}"
            self.keep(f"{self._prefix(evaluation)}{name}", e.trajectories)
        self._say(move, measured)
        return {f"evaluation/{e.word}/{k}": v for e in measured.values() for k, v in e.row().items()}

    def _prefix(self, evaluation: Evaluation) -> str:
        """What the files of the second evaluation's trajectories begin with."""
        return "" if evaluation is self.evaluation else "also-"

    def _say(self, move: Move, measured: Mapping[str, Evaluated]) -> None:
        what = f"after iteration {move.iteration}" if move.kind == "curve" else move.kind
        values = ", ".join(f"{e.decoding} {e.success}" for e in measured.values())
        first = measured["success"]
        self.display.say(f"{what}: success on {first.games} games of {first.split}: {values}", style="bold")

    def _also(self, games: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the second evaluation found, as in a result: rates, curve and best of n on its games."""
        found, also = self.found["also"], self.evaluation.also
        if also is None:
            return None
        ends = {when: {d: e["success"] for d, e in (found[when] or {}).items()} or None for when in ("before", "after")}
        return {
            "split": also.split,
            **{key: found["after"]["success"].get(key) for key in ("games", "floor")},
            "games_sha256": games["also"]["sha256"],
            **ends,
            "curve": found["curve"],
            "beside": found["beside"],
        }


def _nothing() -> dict[str, Any]:
    """What an evaluation has found before it measured anything."""
    return {"before": None, "after": None, "curve": [], "beside": {}}


def by_type(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Success by task type, before and after, of the sampled policy."""
    kinds = after["success"]["by_type"]
    first = {} if before is None else before["success"]["by_type"]
    return {kind: {"before": first.get(kind), "after": kinds[kind]} for kind in kinds}

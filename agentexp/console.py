"""What a run says while it runs and when it ends: bars on a terminal, one line an iteration anywhere
else, and a last line in words. Knows results and numbers, no algorithm.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from agentexp.plan import Move
from agentexp.stats import Estimate, intervals_apart, short


class Display:
    """Progress with rate and time left. On a terminal: live bars, lines above them. Not on one: lines."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415  late: a tenth of a second that --help does not need

        self.console = Console(highlight=False, soft_wrap=True)
        self._bars: Any = None
        self._ids: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            from rich import progress  # noqa: PLC0415

            self._bars = progress.Progress(
                progress.TextColumn("[cyan]{task.description:<18}"),
                progress.BarColumn(bar_width=28),
                progress.MofNCompleteColumn(),
                progress.TextColumn("{task.fields[rate]}", style="dim"),
                progress.TimeRemainingColumn(compact=True, elapsed_when_finished=True),
                console=self.console,
                transient=True,
                refresh_per_second=4,
            )
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def say(self, text: str, *, style: str | None = None) -> None:
        """Print a line."""
        self.console.print(text, style=style, markup=False)

    def notice(self, text: str | None) -> None:
        """Print something out of the ordinary, if there is something."""
        if text:
            self.say(f"note: {text}", style="yellow")

    def progress(self, what: str, done: int, total: int) -> None:
        """`done` of `total` of something are done; the bar of a finished thing goes away."""
        if self._bars is None:
            return
        if what not in self._ids:
            self._ids[what] = self._bars.add_task(what, total=total, rate="")
        task = self._bars._tasks[self._ids[what]]
        if done < task.completed:
            self._bars.reset(self._ids[what], total=total, rate="")
        rate = (
            f"{task.speed:.1f}/s"
            if task.speed and task.speed >= 0.1
            else f"{1 / task.speed:.0f} s each"
            if task.speed
            else ""
        )
        self._bars.update(self._ids[what], completed=done, total=total, rate=rate, visible=done < total)


class Pace:
    """Time left of the moves of a run, from the last moves of the same kind."""

    def __init__(self, moves: Sequence[Move]) -> None:
        self._left = Counter(_sort(m) for m in moves)
        self._seconds: dict[str, list[float]] = {}
        self._since = time.monotonic()

    def lap(self, move: Move) -> float:
        """A move ended now; the seconds it took."""
        now = time.monotonic()
        took, self._since = now - self._since, now
        self._seconds.setdefault(_sort(move), []).append(took)
        self._left[_sort(move)] -= 1
        return took

    def left(self) -> str:
        """Time left in words; "at least" while some kind of move was never seen."""
        total, unseen = 0.0, False
        for sort, count in self._left.items():
            recent = self._seconds.get(sort, [])[-5:]
            unseen = unseen or (count > 0 and not recent)
            total += count * sum(recent) / len(recent) if recent else 0.0
        return ("at least " if unseen else "") + duration(total)


def _sort(move: Move) -> str:
    return move.part if move.kind == "iterate" else "curve" if move.kind == "curve" else "full evaluation"


def duration(seconds: float) -> str:
    """Seconds in words.

    >>> duration(5.2), duration(140), duration(9000)
    ('5.2 s', '2 min 20 s', '2 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


SHOWN = ("rollout/success", "sft/loss", "train/loss", "loss", "train/kl_old", "train/clip_fraction", "train/grad_norm")


def iteration_line(part: str, iteration: int, of: int, metrics: Mapping[str, Any], took_s: float, left: str) -> str:
    """One line for an iteration: where it is, the few numbers that matter, time taken and left."""
    shown = [f"{name.split('/')[-1]} {_number(metrics[name])}" for name in SHOWN if name in metrics]
    times = duration(took_s) + (f", {left} left" if left else "")
    return "  ".join([f"{part} {iteration}/{of}", *shown, times])


def _number(value: Any) -> str:
    return "nan" if value is None else short(value) if abs(value) < 1 else f"{value:.4g}"


def estimate(data: Mapping[str, Any]) -> Estimate:
    """The Estimate in a result.json."""
    return Estimate(
        value=data["value"], low=data["low"], high=data["high"], n=data["n"], method=data.get("method", "unknown")
    )


def last_line(result: Mapping[str, Any]) -> str:
    """Before → after in words: what moved, whether the intervals overlap, on which games.

    Both intervals are of the same games, so "do not overlap" is the stricter of the usual tests.
    """
    after, before = result["after"], result["before"]
    where = f"{result['games']} games of {result['split']}"
    if before is None:
        text = f"success {result['decoding']}: {estimate(after['success'])} on {where}"
    else:
        a, b = estimate(before["success"]), estimate(after["success"])
        word = "stayed at" if a.value == b.value else "rose" if b.value > a.value else "fell"
        moved = f"{word} {b}" if a.value == b.value else f"{word} from {a} to {b}"
        overlap = "do not overlap" if intervals_apart(a, b) else "overlap"
        text = f"before → after: success {result['decoding']} {moved} on {where}; the 95 % intervals {overlap}"
    if "greedy" in after:
        text += f"; greedy {str(estimate(before['greedy'])) + ' → ' if before else ''}{estimate(after['greedy'])}"
    return text + _remarks(result)


def evaluated_line(result: Mapping[str, Any]) -> str:
    """The last line of `agentexp evaluate`."""
    text = f"{result['what']}: success {result['decoding']} {estimate(result['success'])}"
    if "greedy" in result:
        text += f"; greedy {estimate(result['greedy'])}"
    return f"{text} on {result['games']} games of {result['split']}" + _remarks(result)


def _remarks(result: Mapping[str, Any]) -> str:
    text = ""
    if len(pass_hat := result.get("pass_hat") or {}) > 1:
        k = max(pass_hat, key=int)
        text += f"; pass^{k} {short(pass_hat[k])}"
    if result.get("floor") is not None:
        text += f"; doing nothing scores {short(result['floor'])}"
    text += f". {result['label'][0].upper()}{result['label'][1:]}." if result.get("label") else "."
    if result.get("leaked_games"):
        text += f" Beware: {result['leaked_games']} of the evaluated games were also trained on."
    if result.get("env_errors"):
        text += f" {result['env_errors']} episodes ended in an environment error and count as failures."
    if result.get("tracking_failures"):
        text += f" The tracker failed {result['tracking_failures']} times; metrics.jsonl is whole."
    return text

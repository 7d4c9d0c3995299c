"""The one outer loop. It owns cadence, resume, and what a run leaves behind; it knows nothing of how an
algorithm learns, a policy samples or an environment steps.

A run is a list of moves (iterate, measure), known before it starts. A checkpoint says how many moves
were made; resuming is making the others. Importing this file imports no torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from agentexp.checkpoints import Checkpoints, random_state, seed_random_state, set_random_state
from agentexp.console import Display, Pace, duration, iteration_line, last_line
from agentexp.errors import ConfigError
from agentexp.evaluation.evaluate import Evaluation, Progress, same_games
from agentexp.evaluation.picture import draw
from agentexp.files import make_folder, write_whole
from agentexp.folder import RunFolder, read_json, write_json
from agentexp.measuring import Measuring
from agentexp.plan import Move, Part, plan
from agentexp.provenance import changes, provenance
from agentexp.store import MetricsLog, write_trajectories
from agentexp.tracking import Guarded, Tracker
from agentexp.types import Iteration, Trajectory


class Algorithm(Protocol):
    """What learns. `iterate` counts from 0; a state is plain data and tensors, weights included."""

    def iterate(self, i: int) -> Iteration: ...

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any], /) -> None: ...


@runtime_checkable
class ShowsProgress(Protocol):
    """An algorithm that says how far it is within an iteration."""

    progress: Progress | None


@runtime_checkable
class MeasuresBeside(Protocol):
    """An algorithm that has a reward model to choose with: it calls `measure(name, reward_model)` when
    the policy and that model are a pair worth measuring as best of n."""

    measure: Callable[[str, Any], None] | None


class Run:
    """Warm start, before, iterations with points of the curve, after: resumable after every checkpoint.

    iterations: of the algorithm; warm_start_iterations: of the warm start that precedes it (0: none).
    evaluate_before: whether to measure what the algorithm starts from; evaluate_every: iterations
    between points of the learning curve (0: none). checkpoint_every: iterations between
    checkpoints; keep_checkpoints: how many of the last are kept, besides the best by success.
    """

    def __init__(
        self,
        *,
        name: str,
        seed: int,
        output_dir: str,
        iterations: int,
        warm_start_iterations: int,
        evaluate_before: bool,
        evaluate_every: int,
        checkpoint_every: int,
        keep_checkpoints: int,
        keep_trajectories: Literal["all", "evaluations", "none"],
    ) -> None:
        least = {
            "iterations": (iterations, 1),
            "warm_start_iterations": (warm_start_iterations, 0),
            "evaluate_every": (evaluate_every, 0),
            "checkpoint_every": (checkpoint_every, 1),
            "keep_checkpoints": (keep_checkpoints, 1),
        }
        for key, (value, smallest) in least.items():
            if value < smallest:
                raise ConfigError(f"run.{key} is {value}; at least {smallest} is needed")
        if not name or name.startswith("."):
            raise ConfigError(f"name is {name!r}; give a name that does not begin with a dot")
        self.name, self.seed, self.folder = name, seed, RunFolder(Path(output_dir))
        self.iterations, self.warm_start_iterations = iterations, warm_start_iterations
        self.keep_checkpoints, self.keep_trajectories = keep_checkpoints, keep_trajectories
        self.plan = plan(
            iterations=iterations,
            warm_start_iterations=warm_start_iterations,
            evaluate_before=evaluate_before,
            evaluate_every=evaluate_every,
            checkpoint_every=checkpoint_every,
        )

    def train(
        self,
        *,
        algorithm: Algorithm,
        evaluation: Evaluation,
        tracker: Tracker,
        warm_start: Algorithm | None,
        config: Mapping[str, Any],
        export: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        """Make the moves that are still to make and return the result; a finished run only says so.
        `export` writes what the run is for (the model), after the last move and before result.json."""
        if (warm_start is None) != (self.warm_start_iterations == 0):
            raise ConfigError(
                f"run.warm_start_iterations is {self.warm_start_iterations}, but there is "
                f"{'no' if warm_start is None else 'a'} warm start; give both or neither"
            )
        display = Display()
        with self.folder.locked() as notice, display:
            display.notice(notice)
            result = self.folder.finished(config)
            if result is not None:
                display.say(f"{self.folder.path} is done.")
                display.say(last_line(result))
                return result
            parts: dict[Part, Algorithm | None] = {"warm_start": warm_start, "algorithm": algorithm}
            attempt = _Attempt(self, parts, evaluation, tracker, display, export)
            return attempt.train(config)


class _Attempt:
    """One process's part of a run: from the last checkpoint to the end, or to its death."""

    def __init__(
        self,
        run: Run,
        parts: Mapping[Part, Algorithm | None],
        evaluation: Evaluation,
        tracker: Tracker,
        display: Display,
        export: Callable[[], None] | None,
    ) -> None:
        self.run, self.parts, self.evaluation, self.display = run, parts, evaluation, display
        self.folder, self.plan, self.export = run.folder, run.plan, export
        self.tracker = Guarded(tracker)
        self.checkpoints = Checkpoints(run.folder.checkpoints, keep=run.keep_checkpoints)
        self.measuring = Measuring(evaluation, display, partial(self.keep, evaluation=True))
        self.earlier_s = 0.0  # of the attempts before, up to the checkpoint
        self.started = time.monotonic()

    def train(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Resume or start, make the moves, finish."""
        self.folder.prepare(config)
        self.log = MetricsLog(self.folder.metrics)
        self.games = self.freeze_games()
        self.record_provenance(config)
        made = self.resume()
        step = self.plan[made - 1].step if made else 0
        self.tracker.start(folder=self.folder.path, name=f"{self.run.name}/{self.run.seed}", config=config, step=step)
        exit_code = 1
        try:
            shows: list[object] = [*self.parts.values()]
            for part in shows:
                if isinstance(part, ShowsProgress):
                    part.progress = self.display.progress
                if isinstance(part, MeasuresBeside) and self.measuring.best_of:
                    part.measure = self.measuring.beside
            pace = Pace(self.plan[made:])
            for n in range(made, len(self.plan)):
                self.make(self.plan[n], pace)
                if self.plan[n].save:
                    self.save(n)
            exit_code = 0
        except KeyboardInterrupt:
            self.display.say("Interrupted. The same command resumes from the last checkpoint.")
            raise
        finally:
            self.tracker.finish(exit_code=exit_code)
        return self.finish()

    # -- the moves -----------------------------------------------------------------------------

    def make(self, move: Move, pace: Pace) -> None:
        """Make one move and write its row."""
        row: dict[str, Any] = {"step": move.step, "part": move.part, "iteration": move.iteration}
        if move.kind == "iterate":
            part = self.parts[move.part]
            assert part is not None  # Run.train checked it
            done = part.iterate(move.iteration - 1)
            self.keep(
                f"{'warm_start' if move.part == 'warm_start' else 'iteration'}-{move.iteration:05d}", done.trajectories
            )
            self.measuring.count_leaks(done.trajectories)
            row |= {**done.metrics, "time/iteration_s": pace.lap(move)}
            of = self.run.iterations if move.part == "algorithm" else self.run.warm_start_iterations
            self.display.progress(move.part, move.iteration, of)
            self.display.say(iteration_line(move.part, move.iteration, of, row, row["time/iteration_s"], pace.left()))
        else:
            row |= {"evaluation": move.kind, **self.measuring.measure(move, wall_s=self.wall_s)}
            pace.lap(move)
        self.log.append(row)
        self.tracker.log(row, step=move.step)

    def keep(self, name: str, trajectories: Sequence[Trajectory], *, evaluation: bool = False) -> None:
        """Store trajectories, if the run keeps such ones."""
        if not trajectories or self.run.keep_trajectories == "none":
            return
        if evaluation or self.run.keep_trajectories == "all":
            make_folder(self.folder.trajectories)
            write_trajectories(self.folder.trajectories / f"{name}.parquet", trajectories)

    # -- resume --------------------------------------------------------------------------------

    def save(self, n: int) -> None:
        """A checkpoint after move n."""
        move, curve = self.plan[n], self.measuring.found["curve"]
        part = self.parts[move.part]
        assert part is not None
        state = {
            "part": move.part,
            "state": part.state_dict(),
            "random": random_state(),
            "found": self.measuring.found,
            "rows": self.log.rows,
            "wall_s": self.wall_s,
        }
        score = None if move.kind == "iterate" else curve[-1]["success"]["value"]
        about = {"kind": move.kind, "part": move.part, "iteration": move.iteration, "step": move.step}
        self.checkpoints.save(n + 1, state, score=score, about=about)

    def resume(self) -> int:
        """Put back the state of the last whole checkpoint; how many moves it had made."""
        checkpoint = self.checkpoints.latest()
        for notice in self.checkpoints.notices:
            self.display.notice(notice)
        if self.log.dropped:
            self.display.notice("the last row of metrics.jsonl was half-written and is dropped")
        if checkpoint is None:
            if self.log.truncate(0):
                self.display.notice("no whole checkpoint: the run starts over")
            seed_random_state(self.run.seed)
            return 0
        state = checkpoint.load()
        dropped = self.log.truncate(state["rows"])
        part = self.parts[state["part"]]
        assert part is not None
        part.load_state_dict(state["state"])
        self.measuring.found, self.earlier_s = state["found"], state["wall_s"]
        set_random_state(state["random"])
        last = self.plan[checkpoint.number - 1]
        where = "the measurement before" if last.kind == "before" else f"{last.part} iteration {last.iteration}"
        redone = f"; {dropped} younger rows of metrics.jsonl are made again" if dropped else ""
        self.display.notice(f"resuming after {where} ({checkpoint.path}){redone}")
        return checkpoint.number

    def freeze_games(self) -> dict[str, Any]:
        """The evaluated games' manifest, which must not change between attempts."""
        now = self.evaluation.manifest()
        if self.folder.manifest.exists():
            same_games(read_json(self.folder.manifest), now)
        else:
            write_json(self.folder.manifest, now)
        return now

    def record_provenance(self, config: Mapping[str, Any]) -> None:
        """provenance.json: of the first attempt, and how later ones differed from it."""
        now = provenance(config, self.games["environment"])
        if not self.folder.provenance.exists():
            write_json(self.folder.provenance, {**now, "resumed": []})
            return
        first = read_json(self.folder.provenance)
        changed = changes(first, now)
        entry = {"started": now["started"], "changed": changed}
        write_json(self.folder.provenance, {**first, "resumed": [*first.get("resumed", []), entry]})
        if changed:
            self.display.notice(f"since this run began, these changed: {', '.join(changed)}; see provenance.json")

    @property
    def wall_s(self) -> float:
        return self.earlier_s + time.monotonic() - self.started

    # -- the end -------------------------------------------------------------------------------

    def finish(self) -> dict[str, Any]:
        """report.png, result.json (last: it says that the run is done), and the last line."""
        result: dict[str, Any] = {
            "name": self.run.name,
            "seed": self.run.seed,
            **self.measuring.result(self.games),
            "iterations": self.run.iterations,
            "warm_start_iterations": self.run.warm_start_iterations,
            "tracking_failures": self.tracker.failures,
            "wall_s": self.wall_s,
        }
        if self.export is not None:
            self.export()
        write_whole(self.folder.report, draw(result))
        write_json(self.folder.result, result)
        self.display.say(f"{self.folder.path}: done in {duration(self.wall_s)}")
        self.display.say(last_line(result), style="bold green")
        return result

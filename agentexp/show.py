"""`agentexp show`: prints a run and one of its trajectories, readably. Knows run folders and
trajectories; loads no model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentexp.console import evaluated_line, last_line
from agentexp.errors import ConfigError, DataError, nearest
from agentexp.folder import RunFolder
from agentexp.store import read_metrics, read_trajectories, task_ids
from agentexp.types import Trajectory, Turn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Decode = Callable[[int], str]  # a token id as text

READ, UNTRAINED, FAINT, BAD = "grey58", "yellow", "dim", "red"


def show(
    path: Path, *, task: str | None, iteration: int | str | None, sample: int | None, decode: Decode | None
) -> None:
    """Print a run's state and one trajectory with its rewards, masks and log-probs.

    task: whose trajectory (null: the first). iteration: of which iteration, or the name of a file
    in trajectories/ such as "before-sampled" (null: the newest). sample: which rollout of the task.
    decode: turns an id into text, so that single tokens are shown; without it, ids are.
    """
    from rich.console import Console  # noqa: PLC0415  late: --help does not need it

    console = Console(highlight=False, soft_wrap=True)
    folder = RunFolder(path)
    if not folder.config.exists():
        raise DataError(f"{path} is not a run folder: it has no config.yaml. Give the folder that holds one.")
    _summary(console, folder)
    file = trajectory_file(folder, iteration)
    found = _one(file, task, sample)
    _trajectory(console, found, file, decode)


def trajectory_file(folder: RunFolder, iteration: int | str | None) -> Path:
    """The Parquet file of an iteration or measurement; the newest for None."""
    files = {p.stem: p for p in folder.trajectories.glob("*.parquet")} if folder.trajectories.is_dir() else {}
    if not files:
        raise DataError(
            f"{folder.trajectories} holds no trajectories (keep_trajectories=none, or none were played yet)"
        )
    if iteration is None:
        for stem in ("after-sampled", "evaluation-sampled", "after-greedy", "evaluation-greedy"):
            if stem in files:
                return files[stem]
        return max(files.values(), key=lambda p: p.stat().st_mtime)
    stem = str(iteration)
    if stem.isdigit():
        stem = f"iteration-{int(stem):05d}"
    if stem not in files:
        raise ConfigError(f"No trajectories of {stem!r}; there are: {', '.join(sorted(files))}.{nearest(stem, files)}")
    return files[stem]


def _one(file: Path, task: str | None, sample: int | None) -> Trajectory:
    ids = task_ids(file)
    if task is None:
        task = ids[0]
    if task not in ids:
        raise ConfigError(
            f"No task {task!r} in {file}; it holds {len(set(ids))} tasks, first {ids[0]!r}.{nearest(task, ids)}"
        )
    found = read_trajectories(file, task_id=task)
    if sample is None:
        return found[0]
    for trajectory in found:
        if trajectory.sample == sample:
            return trajectory
    raise ConfigError(f"No sample {sample} of task {task!r} in {file}; there are {sorted(t.sample for t in found)}")


def _summary(console: Console, folder: RunFolder) -> None:
    if folder.result.exists():
        result = folder.read_result()
        console.print(
            evaluated_line(result) if "what" in result else last_line(result), style="bold green", markup=False
        )
        return
    rows = list(read_metrics(folder.metrics)) if folder.metrics.exists() else []
    state = f"at {rows[-1]['part']} iteration {rows[-1]['iteration']}" if rows else "before its first iteration"
    console.print(f"{folder.path} is not finished: {state}", style="bold", markup=False)


def _trajectory(console: Console, trajectory: Trajectory, file: Path, decode: Decode | None) -> None:
    outcome = trajectory.outcome
    score = (
        "no score" if outcome is None else f"reward {outcome.reward:g}, {'success' if outcome.success else 'failure'}"
    )
    about = [
        f"{trajectory.task.id} #{trajectory.sample}",
        trajectory.task.kind,
        f"stop: {trajectory.stop}",
        score,
        f"{len(trajectory.turns)} turns",
        f"{trajectory.generated_tokens} sampled tokens",
        f"{trajectory.segments} segments" if trajectory.segments > 1 else "",
        f"truncation: {trajectory.truncated}" if trajectory.truncated else "",
    ]
    console.rule(style=FAINT)
    console.print(" · ".join(a for a in about if a), style="bold", markup=False)
    console.print(f"{file}", style=FAINT, markup=False)
    console.print(f"goal: {trajectory.task.instruction}", markup=False)
    if trajectory.error:
        console.print(f"error: {trajectory.error}", style=BAD, markup=False)
    console.print(_legend())
    for number, turn in enumerate(trajectory.turns):
        _turn(console, number, turn, trajectory.turns, decode)
    last = trajectory.turns[-1].step if trajectory.turns else None
    if last is not None:
        console.print(last.observation, style=READ, markup=False)


def _turn(console: Console, number: int, turn: Turn, turns: Sequence[Turn], decode: Decode | None) -> None:
    from rich.text import Text  # noqa: PLC0415

    logprobs = [p for p in turn.completion.logprobs if not math.isnan(p)]
    notes = [
        f"{len(turn.prompt_ids)} read, {len(turn.completion.ids)} sampled" if logprobs else "scripted, not sampled",
        f"log-prob {math.fsum(logprobs):.3f}" if logprobs else "",
        f"reward {turn.step.reward:g}" if turn.step is not None and turn.step.reward else "",
        "refused" if turn.step is not None and turn.step.info.get("refused") else "",
        "thought" if turn.action.is_thought else "",
        f"unreadable: {turn.action.error}" if turn.action.error else "",
        "random move, not imitated" if not turn.deliberate else "",
        f"new segment {turn.segment}" if number and turn.segment != turns[number - 1].segment else "",
        "stopped by length" if turn.completion.finish == "length" else "",
        "never answered" if turn.step is None else "",
    ]
    console.print(f"── turn {number} · " + " · ".join(n for n in notes if n), style=FAINT, markup=False)
    if decode is not None:
        console.print(Text("".join(decode(i) for i in turn.prompt_ids), style=READ))
    elif turn.messages:
        for message in turn.messages:
            console.print(Text(f"{message.role}: {message.content}", style=READ))
    elif number and (before := turns[number - 1].step) is not None:
        console.print(Text(before.observation, style=READ))
    console.print(Text("> ").append(_sampled(turn, decode)))


def _sampled(turn: Turn, decode: Decode | None) -> Text:
    """The sampled tokens, each with its log-prob behind it, coloured by how sure the policy was."""
    from rich.text import Text  # noqa: PLC0415

    text = Text()
    if decode is None:
        text.append(turn.completion.text, style=UNTRAINED if not turn.deliberate else "bold")
    for token, logprob in zip(turn.completion.ids, turn.completion.logprobs, strict=True):
        if decode is not None:
            text.append(decode(token).rstrip(), style=colour(logprob) if turn.deliberate else UNTRAINED)
        else:
            text.append(f"  {token}", style=FAINT)
        if not math.isnan(logprob):
            text.append(f"·{logprob:.2f} ", style=FAINT)
    return text


def colour(logprob: float) -> str:
    """Green for a sure token, red for a surprising one, yellow for one that nobody sampled.

    >>> colour(-0.05), colour(-1.0), colour(-4.0), colour(float("nan"))
    ('bold green', 'bold cyan', 'bold red', 'yellow')
    """
    if math.isnan(logprob):
        return UNTRAINED
    return "bold green" if logprob > -0.4 else "bold cyan" if logprob > -2.0 else "bold red"


def _legend() -> Text:
    from rich.text import Text  # noqa: PLC0415

    return Text.assemble(
        ("read (mask 0)", READ),
        "  ",
        ("sampled (mask 1): sure", colour(-0.1)),
        " ",
        ("likely", colour(-1.0)),
        " ",
        ("surprising", colour(-3.0)),
        "  ",
        ("scripted or not learnt", UNTRAINED),
        "  token·log-prob",
    )

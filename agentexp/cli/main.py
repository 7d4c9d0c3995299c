"""The command line. Importing this file and asking for help imports neither torch nor Hydra."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from agentexp.errors import AgentexpError, ConfigError

_ABOUT = """Train language-model agents by reinforcement learning, and measure them.

  agentexp train                                     the default: LOOP from a shipped warm start, about six minutes
  agentexp train algorithm=rloo seed=1               one run with overrides
  agentexp train -m seed=0,1,2 algorithm=loop,grpo   a sweep: 6 members, one after another
  agentexp train --explain algorithm.learner.lr      a value and every file that sets it
  agentexp evaluate runs/default/0                   measure a finished run (any split, any checkpoint)
  agentexp report runs/default                       the seeds of a recipe as one table
  agentexp show runs/default/0                       one trajectory with rewards, masks and log-probs
  agentexp data alfworld                             how to get the official games; checks those you have
"""
_TRAIN = """Overrides: group=option chooses a file of conf/; some.key=value sets one value; +key=value adds one.
The same command again resumes an unfinished run, or says that it is done."""
_EVALUATE = """With a run folder: its configuration and its checkpoint, changed by the overrides.
Without: the model of the overrides, such as model.weights=FOLDER (a saved model or adapter).
Examples: evaluation=valid_seen environment=alfworld; evaluation.trials=5; evaluation.temperature=0."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status. Errors of agentexp are said without a traceback, with status 2."""
    try:
        options, rest = _parser().parse_known_args(arguments)
        options.overrides = [*getattr(options, "overrides", []), *_overrides(rest)]
        status: int = options.command(options)
    except AgentexpError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; the same command resumes where it can", file=sys.stderr)
        return 130
    except BrokenPipeError:  # such as `agentexp show … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return status


def _overrides(rest: Sequence[str]) -> list[str]:
    """Overrides that argparse left over since options stood between them."""
    strange = [r for r in rest if r.startswith("-")]
    if strange:
        raise ConfigError(f"unknown option {strange[0]}; agentexp --help lists what there is")
    return list(rest)


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="agentexp", description=_ABOUT, formatter_class=raw)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, run: Any, about: str, epilog: str = "", *, add_help: bool = True) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name, help=about, description=f"{about}.\n{epilog}", formatter_class=raw, add_help=add_help
        )
        made.set_defaults(command=run)
        return made

    train = command("train", _train, "Train an agent", _TRAIN, add_help=False)
    train.add_argument("-h", "--help", action=_TrainHelp, nargs=0, help="show this, all groups and their options")
    train.add_argument("-m", "--multirun", action="store_true", help="a sweep: keys with several values (seed=0,1,2)")
    train.add_argument("--jobs", type=int, default=1, metavar="N", help="members of a sweep that run at a time")
    train.add_argument("--explain", metavar="KEY", help="print the value of KEY and who set it; run nothing")
    train.add_argument("--check", action="store_true", help="print the whole checked configuration; run nothing")
    train.add_argument("overrides", nargs="*", metavar="KEY=VALUE")

    measure = command("evaluate", _evaluate, "Measure a policy on a split, without training", _EVALUATE)
    measure.add_argument("--checkpoint", default="latest", metavar="latest|best|N", help="of the run folder")
    measure.add_argument("overrides", nargs="*", metavar="RUN or KEY=VALUE")

    show = command("show", _show, "Print a run and one of its trajectories")
    show.add_argument("run", type=Path, metavar="RUN")
    show.add_argument("--task", metavar="ID", help="whose trajectory; default: the first")
    show.add_argument("--iteration", metavar="N", help="of which iteration or measurement; default: the newest")
    show.add_argument("--sample", type=int, metavar="K", help="which rollout of the task")

    report = command("report", _report, "Print the table of finished runs that differ by their seed")
    report.add_argument("places", type=Path, nargs="+", metavar="FOLDER", help="run folders, or folders that hold them")

    data = command("data", _data, "Say how to get a benchmark's data, and check what is there")
    data.add_argument("name", choices=["alfworld"])
    data.add_argument("--dir", type=Path, metavar="FOLDER", help="the folder to check; default: ALFWORLD_DATA")
    return parser


class _TrainHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        from agentexp.cli.tree import options_text, tree

        print(parser.format_help())
        print(f"Groups and options:\n{options_text(tree())}")
        print("\nEvery key, with its value: agentexp train --check. Who set it: agentexp train --explain KEY.")
        parser.exit()


def _train(options: argparse.Namespace) -> int:
    from agentexp.cli import train

    if options.explain is not None:
        return train.explain_key(options.overrides, options.explain)
    if options.check:
        return train.check(options.overrides)
    if options.multirun:
        from agentexp.cli.sweep import sweep

        return sweep(options.overrides, options.jobs)
    if options.jobs != 1:
        raise ConfigError("--jobs is for a sweep; give -m, and keys with several values")
    return train.train(options.overrides)


def _evaluate(options: argparse.Namespace) -> int:
    from agentexp.cli.measure import measure

    runs = [o for o in options.overrides if "=" not in o and not o.startswith("~")]
    if len(runs) > 1:
        raise ConfigError(f"evaluate takes one run folder, not {len(runs)}: {', '.join(runs)}")
    overrides = [o for o in options.overrides if o not in runs]
    return measure(Path(runs[0]) if runs else None, overrides, options.checkpoint)


def _show(options: argparse.Namespace) -> int:
    from agentexp.cli.words import decoder
    from agentexp.show import show

    _overrides([f"-{o}" for o in options.overrides])
    iteration = int(options.iteration) if (options.iteration or "").isdigit() else options.iteration
    show(options.run, task=options.task, iteration=iteration, sample=options.sample, decode=decoder(options.run))
    return 0


def _report(options: argparse.Namespace) -> int:
    from agentexp.cli.report import report

    _overrides([f"-{o}" for o in options.overrides])
    return report(options.places)


def _data(options: argparse.Namespace) -> int:
    from agentexp.data import alfworld_report

    status, text = alfworld_report(options.dir)
    print(text)
    return status

"""The rows of a table from finished runs that differ by their seed alone. Reads result.json; measures nothing.

A row's interval is a bootstrap over whole games: the seeds played the same games, so their results on
one game are not independent and are drawn together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentexp.errors import DataError
from agentexp.folder import RunFolder, read_json
from agentexp.seeding import seed_for
from agentexp.stats import Estimate, bootstrap


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A measurement, over all seeds. won[seed]: successes of each game, of `trials` each."""

    name: str
    won: Mapping[int, tuple[int, ...]]
    trials: int

    @property
    def success(self) -> Estimate:
        """Mean over seeds and games, with its interval over games."""
        values = [w / self.trials for games in self.won.values() for w in games]
        games = [n for games in self.won.values() for n in range(len(games))]
        return bootstrap(values, clusters=games, seed=seed_for("report", self.name))

    def above(self, other: Row) -> Estimate:
        """This row's success minus the other's, on the same games and seeds; in [-1, 1]."""
        if self.won.keys() != other.won.keys():
            raise DataError(f"{self.name} has seeds {sorted(self.won)} and {other.name} has {sorted(other.won)}")
        values: list[float] = []
        games: list[int] = []
        for seed, mine in self.won.items():
            theirs = other.won[seed]
            if len(mine) != len(theirs):
                raise DataError(f"{self.name} has {len(mine)} games and {other.name} has {len(theirs)}")
            values += [a / self.trials - b / other.trials for a, b in zip(mine, theirs, strict=True)]
            games += range(len(mine))
        return bootstrap(values, clusters=games, seed=seed_for("report", self.name, other.name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """The rows of one recipe on one split."""

    recipe: str
    split: str
    label: str
    rows: tuple[Row, ...]


def find_runs(places: Sequence[Path]) -> list[Path]:
    """The finished runs at or under these folders. None at all, or a folder that is missing: DataError."""
    found = []
    for place in places:
        if not place.is_dir():
            raise DataError(f"{place} is no folder; give run folders, or a folder that holds some")
        here = sorted(f.parent for f in place.rglob("result.json") if "curve" in read_json(f))
        if not here:
            raise DataError(f"{place} holds no finished training run (a folder with result.json)")
        found += here
    return list(dict.fromkeys(found))


def tables(runs: Sequence[Path]) -> list[Table]:
    """One table for each recipe and split; a recipe is the folder that its seeds stand in."""
    recipes: dict[Path, list[dict[str, Any]]] = {}
    for run in runs:
        recipes.setdefault(run.parent, []).append(read_json(RunFolder(run).result))
    found = []
    for place, results in recipes.items():
        found.append(_table(str(place), results))
        beside = [r["also"] and {**r["also"], "seed": r["seed"], "label": r["label"]} for r in results]
        if all(beside):
            found.append(_table(str(place), beside))
    return found


def _table(recipe: str, results: Sequence[Mapping[str, Any]]) -> Table:
    first = results[0]
    for result in results:
        for key in ("split", "games_sha256"):
            if result[key] != first[key]:
                raise DataError(
                    f"the runs in {recipe} measured different games: {key} of seed {result['seed']} is {result[key]}, "
                    f"of seed {first['seed']} it is {first[key]}; report them one by one"
                )
    seen: dict[str, dict[int, Mapping[str, Any]]] = {}
    for result in sorted(results, key=lambda r: int(r["seed"])):
        for name, measured in measurements(result).items():
            if "won" not in measured:
                raise DataError(
                    f"{recipe}, seed {result['seed']} was made by an older agentexp that did not record which "
                    "games were won; run it again to report it"
                )
            seen.setdefault(name, {})[int(result["seed"])] = measured
    rows = tuple(
        Row(
            name=name,
            won={seed: tuple(m["won"]) for seed, m in by_seed.items()},
            trials=next(iter(by_seed.values()))["trials"],
        )
        for name, by_seed in seen.items()
    )
    return Table(recipe=recipe, split=first["split"], label=first.get("label", ""), rows=rows)


def measurements(result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Every measurement of a run by its row's name, policies first in the order of iterations; each
    best of n stands behind its policy."""
    found: dict[str, Mapping[str, Any]] = {}
    chosen = dict(result["beside"])
    for point in result["curve"]:
        policy = f"pi_{point['iteration']}"
        found[policy] = point
        for name in [n for n in chosen if n.startswith(f"BoN({policy},")]:
            found |= {f"{name} n={n}": measured for n, measured in chosen.pop(name).items()}
    for name, by_n in chosen.items():
        found |= {f"{name} n={n}": measured for n, measured in by_n.items()}
    return found


def text(table: Table) -> str:
    """The table in words and numbers."""
    seeds = sorted({seed for row in table.rows for seed in row.won})
    games = len(next(iter(table.rows[0].won.values())))
    lines = [f"{table.recipe}: success on {games} games of {table.split}, {len(seeds)} seeds"]
    if table.label:
        lines.append(f"({table.label})")
    width = max(len(row.name) for row in table.rows)
    lines.append("  ".join([" " * width, *(f"{f'seed {s}':>8}" for s in seeds), "all, with its 95 % interval"]))
    for row in table.rows:
        each = [
            f"{sum(row.won[s]) / len(row.won[s]) / row.trials:8.3f}" if s in row.won else f"{'–':>8}" for s in seeds
        ]
        lines.append("  ".join([f"{row.name:<{width}}", *each, str(row.success)]))
    return "\n".join(lines)


def learned(table: Table) -> str:
    """The last line: the last policy beside the first, on the same games."""
    policies = [row for row in table.rows if row.name.startswith("pi_")]
    if len(policies) < 2:
        return ""
    first, last = policies[0], policies[-1]
    gain = last.above(first)
    word = "above" if gain.low > 0 else "below" if gain.high < 0 else "not apart from"
    return f"{table.split}: {last.name} is {word} {first.name}: {gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"

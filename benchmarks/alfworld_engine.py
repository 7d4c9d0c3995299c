"""Play the same games with our ALFWorld engine and the real one (extra `alfworld`), the same commands
in both, and compare every observation, admissible list, score and done to the letter.

    python benchmarks/alfworld_engine.py --games DIR [--walks N] [--steps M] [--limit K] [--jobs J]

The last line of standard output is JSON: games, walks, steps, mismatches, step_speedup, reset_speedup,
load_speedup and more. Each game is walked N times at random for M steps, then by the scripted expert.
Walks take turns: any command; rare commands first; errands (carry, cut, heat, cool, clean, misplace).
All mix in commands that a game should refuse, and go on after the game is won.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agentexp.envs.alfworld.engine import Engine
from agentexp.envs.alfworld.expert import Searcher
from agentexp.envs.alfworld.games import Game
from agentexp.envs.alfworld.textworld import TextWorldPlay
from agentexp.errors import ConfigError, DataError
from agentexp.seeding import seed_for

T = TypeVar("T")
Walk = Generator[str, str, None]  # yields commands, is sent the answers
RARE = ("take", "put", "move", "use", "heat", "cool", "clean", "slice", "open", "close", "examine")
EXPERT_STEPS = 50
SHOWN = 20  # mismatches printed in full


class Comparison:
    """What was compared, what differed, and how long each engine took."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.counts: Counter[str] = Counter()
        self.verbs: Counter[str] = Counter()
        self.mismatches: list[str] = []

    def timed(self, name: str, run: Callable[[], T]) -> T:
        """Run and add the time to `name`."""
        start = time.perf_counter()
        result = run()
        self.seconds[name] += time.perf_counter() - start
        self.counts[name] += 1
        return result

    def same(self, what: str, real: object, ours: object, where: str) -> None:
        """Note a difference."""
        if real != ours:
            self.mismatches.append(f"{what} at {where}\n  real: {real!r}\n  ours: {ours!r}")


def compare(path: Path, walks: int, steps: int, seed: int) -> Comparison:
    """Play one game with both engines."""
    out = Comparison()
    real = TextWorldPlay()

    def first_real() -> str:
        real.load(path)
        return real.reset()

    def first_ours() -> tuple[Engine, str, list[str]]:
        engine = Engine(Game.load(path))
        return engine, engine.reset(), engine.admissible()

    opening = out.timed("real load", first_real)
    try:
        engine, told, _ = out.timed("our load", first_ours)
    except DataError as error:  # the real engine plays it and ours does not
        out.mismatches.append(str(error))
        return out
    out.same("opening", opening, told, str(path))
    for walk in range(walks + 1):
        if walk:
            opening = out.timed("real reset", real.reset)
        told, _ = out.timed("our reset", lambda: (engine.reset(), engine.admissible()))
        out.same("opening", opening, told, f"{path} walk {walk}")
        rng = random.Random(seed_for(seed, path.parent.name, walk))
        commands = expert_walk(engine, told, rng) if walk == walks else random_walk(engine, rng, walk % 3, steps)
        out.same("admissible", real.admissible(), engine.admissible(), f"{path} walk {walk} start")
        command = next(commands)
        for number in count():
            where = f"{path} walk {walk} step {number} {command!r}"
            expected = out.timed("real step", partial(real.step, command))
            answer, offered = out.timed("our step", partial(play, engine, command))
            for what, a, b in zip(("observation", "score", "done"), expected, answer, strict=True):
                out.same(what, a, b, where)
            out.same("admissible", real.admissible(), offered, where)
            out.same("inventory", real.inventory(), engine.inventory(), where)
            refused = answer[0] == "Nothing happens."
            out.verbs["refused" if refused else command.split()[0]] += 1
            out.verbs["won"] += answer[2]
            try:
                command = commands.send(answer[0])
            except StopIteration:
                break
    return out


def play(engine: Engine, command: str) -> tuple[tuple[str, int, bool], list[str]]:
    """One step as the real engine takes it: the answer and what may be done next."""
    return engine.step(command), engine.admissible()


def expert_walk(engine: Engine, opening: str, rng: random.Random) -> Walk:
    """The expert's commands, then what undoes the win, then a few at random."""
    task = engine.game.task.partition(":")[2].strip()
    try:
        expert = Searcher(instruction=task, seed=rng.getrandbits(60), noise=0.03, explore=0.1)
    except DataError:  # a person worded this task
        yield from random_walk(engine, rng, 2, EXPERT_STEPS)
        return
    heard = opening
    for _ in range(EXPERT_STEPS):
        heard = yield expert.act(heard, engine.admissible())[0]
        if engine.won:
            break
    for _ in range(8):
        undo = [c for c in engine.local() if c.startswith(("take", "use", "put", "move", "heat", "cool", "clean"))]
        yield rng.choice(undo or engine.admissible())


def random_walk(engine: Engine, rng: random.Random, style: int, steps: int) -> Walk:
    """`steps` commands in one of three styles."""
    errands = errand(engine, rng)
    for _ in range(steps):
        offered = engine.admissible()
        if rng.random() < 0.06:
            yield strange(engine, rng, offered)
        elif style == 2:
            command = next(errands, None)
            if command is None:
                errands = errand(engine, rng)
                command = next(errands, "look")
            yield command
        elif style == 1 and (rare := [c for c in offered if c.startswith(RARE)]) and rng.random() < 0.7:
            best = [c for c in rare if c.startswith(("use", "heat", "cool", "clean", "slice"))]
            yield rng.choice(best if best and rng.random() < 0.5 else rare)
        else:
            local = [c for c in offered if not c.startswith("go ")]
            yield rng.choice(local if rng.random() < 0.6 else offered)


def strange(engine: Engine, rng: random.Random, offered: list[str]) -> str:
    """A command that a game should refuse, or read in spite of its spaces."""
    command = rng.choice(offered)
    here = [engine.game.names[r] for r in engine.game.receptacles_at.get(engine.location, ())]
    anything = rng.choice(list(engine.game.names.values()))
    place = rng.choice([engine.game.names[r] for r in engine.game.places])
    return rng.choice(
        ["", " ", "dance", "help", "take", "go to", "go to nowhere 9", "\tlook\n", "  inventory", "LOOK", "look around"]
        + [command + " ", f"  {command}", command.upper(), command.replace(" ", "  ", 1), command[:-1], command + "."]
        + [f"{verb} {anything}" for verb in ("open", "close", "use", "examine", "take", "go to")]
        + [f"take {anything} from {place}", f"put {anything} in/on {place}", f"move {anything} to {place}"]
        + [f"heat {anything} with {place}", f"go to {here[0]}" if here else "go", f"slice {anything} with {anything}"]
    )


def errand(engine: Engine, rng: random.Random) -> Iterator[str]:
    """Fetch something (often a knife or a goal object), treat it or cut something, put it away."""
    game = engine.game
    names = game.names
    if engine.held is None:
        inside = sorted(engine.fluents["inreceptacle"].rows)
        liked = [row for row in inside if row[0] in game.knives or row[0] in game.goal_objects]
        movable = [row for row in (liked if liked and rng.random() < 0.7 else inside) if row[0] in game.pickupable]
        if not movable:
            return
        item, receptacle = rng.choice(movable)
        yield from visit(engine, receptacle)
        yield f"take {names[item]} from {names[receptacle]}"
    held = engine.held
    if held is None:
        return
    yield f"examine {names[held]}"
    if held in game.knives:
        near = sorted(row for row in engine.fluents["objectatlocation"].rows if row[0] in game.sliceable)
        for item, location in rng.sample(near, min(2, len(near))):
            there = game.receptacles_at.get(location)
            if there:
                yield from visit(engine, there[0])
            yield f"slice {names[item]} with {names[held]}"
    for verb in rng.sample(["heat", "cool", "clean"], 2):
        kinds = {"heat": "microwavetype", "cool": "fridgetype", "clean": "sinkbasintype"}
        tools = [r for r, types in game.receptacle_types.items() if kinds[verb] in types]
        if tools and held in game.able[verb]:
            yield from visit(engine, rng.choice(tools), opening=rng.random() < 0.3)
            yield next((c for c in engine.local() if c.startswith(verb)), "look")
            yield f"examine {names[held]}"
    lamps = [row for row in sorted(engine.fluents["inreceptacle"].rows) if row[0] in game.toggleable]
    if lamps and rng.random() < 0.6:
        yield from visit(engine, lamps[0][1])
        yield f"use {names[lamps[0][0]]}"
    targets = [r for r in game.places if game.fits(held, r)]
    goals = [r for r in targets if r in game.goal_receptacles]
    if targets:
        target = rng.choice(goals if goals and rng.random() < 0.6 else targets)
        yield from visit(engine, target)
        yield next((c for c in engine.local() if c.startswith(("put", "move")) and c.endswith(names[target])), "look")
        yield "look"


def visit(engine: Engine, receptacle: str, *, opening: bool = True) -> Iterator[str]:
    """Go to a receptacle and open it."""
    name = engine.game.names[receptacle]
    yield f"go to {name}"
    if opening and f"open {name}" in engine.local():
        yield f"open {name}"


def choose(folder: Path, limit: int | None, seed: int) -> list[Path]:
    """Game files in a fixed random order that takes turns over task type and wording."""
    files = sorted(folder.rglob("*.tw-pddl"))
    random.Random(seed).shuffle(files)
    groups: dict[tuple[str, bool, bool], list[Path]] = defaultdict(list)
    for path in files:
        text = path.read_text(encoding="utf-8")
        groups[path.parent.parent.name.partition("-")[0], "You pick up" in text, "in/on {r}" in text].append(path)
    order: list[Path] = []
    while any(groups.values()):
        order += [groups[key].pop(0) for key in sorted(groups) if groups[key]]
    return order[:limit]


def result(outs: list[Comparison], walks: int) -> dict[str, object]:
    """The line of JSON."""
    seconds: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    verbs: Counter[str] = Counter()
    for out in outs:
        for name, spent in out.seconds.items():
            seconds[name] += spent
        counts.update(out.counts)
        verbs.update(out.verbs)
    mean = {name: seconds[name] / max(1, counts[name]) for name in counts}
    speedup = {k: round(mean.get(f"real {k}", 0.0) / mean.get(f"our {k}", 1.0), 1) for k in ("step", "reset", "load")}
    return {
        "games": len(outs),
        "walks": len(outs) * (walks + 1),
        "steps": counts["real step"],
        "mismatches": sum(len(out.mismatches) for out in outs),
        **{f"{k}_speedup": v for k, v in speedup.items()},
        **{f"{name.replace(' ', '_')}_us": round(1e6 * value, 1) for name, value in sorted(mean.items())},
        "commands": dict(verbs.most_common()),
    }


def main() -> int:
    """Compare and print; status 1 where anything differed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=Path, required=True, help="folder with game.tw-pddl files, searched deeply")
    parser.add_argument("--walks", type=int, default=3, help="random walks a game; the expert's comes on top")
    parser.add_argument("--steps", type=int, default=30, help="steps of a random walk")
    parser.add_argument("--limit", type=int, help="so many games, of all types and wordings")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    files = choose(args.games, args.limit, args.seed)
    if not files:
        parser.error(f"no game.tw-pddl file under {args.games}")
    try:
        TextWorldPlay()
    except ConfigError as error:
        parser.error(str(error))
    rest = ([args.walks] * len(files), [args.steps] * len(files), [args.seed] * len(files))
    outs: list[Comparison] = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for out in pool.map(compare, files, *rest):
            outs.append(out)
            for text in out.mismatches[:3] if sum(len(o.mismatches) for o in outs) < SHOWN else []:
                print("MISMATCH", text, file=sys.stderr, flush=True)
            if len(outs) % 10 == 0:
                print(
                    f"{len(outs)}/{len(files)} games {json.dumps(result(outs, args.walks))}",
                    file=sys.stderr,
                    flush=True,
                )
    print(json.dumps(result(outs, args.walks)), flush=True)
    return int(any(out.mismatches for out in outs))


if __name__ == "__main__":
    raise SystemExit(main())

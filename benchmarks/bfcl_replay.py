"""Conversations per second of BFCL's multi-turn categories: the right calls of all 800, played and scored.

No model is in it, so this is what an episode costs beside sampling. Seconds are processor time, since
other work on the machine must not count. Prints one line of JSON for each release.

    python benchmarks/bfcl_replay.py [--releases v3 v4]
"""

from __future__ import annotations

import argparse
import json
import time

from agentexp.envs.bfcl.environment import Bfcl
from agentexp.envs.bfcl.release import MULTI_TURN
from agentexp.types import Action, ToolCall


def action(command: str) -> Action:
    calls = tuple(ToolCall(**json.loads(line)) for line in command.split("\n")) if command.startswith("{") else ()
    return Action(text=command, command=command, calls=calls)


def replay(release: str) -> dict[str, object]:
    env = Bfcl(release=release, variants=MULTI_TURN, responses=False, empty_turns="no_call", max_steps_per_turn=20)
    tasks = env.tasks("all")
    won = steps = calls = 0
    start = time.process_time()
    for task in tasks:
        session, expert = env.start(task, 0), env.expert(task, 0, 0.0)
        step = session.first
        while not step.done:
            step = session.step(action(expert.act(step)[0]))
            steps += 1
        won += session.outcome().success
        calls += int(session.outcome().metrics["calls"])
        session.close()
    seconds = time.process_time() - start
    return {
        "release": release,
        "tasks": len(tasks),
        "won": won,
        "steps": steps,
        "calls": calls,
        "episodes_per_second": round(len(tasks) / seconds, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", nargs="+", default=["v3", "v4"])
    for name in parser.parse_args().releases:
        print(json.dumps(replay(name)))

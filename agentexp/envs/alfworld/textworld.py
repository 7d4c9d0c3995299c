"""The real TextWorld engine behind the same face as ours (optional extra `alfworld`). Slow: half a
second a reset, 40 ms a step. It is what ours is compared with, and a way to play without ours.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from agentexp.envs.alfworld.games import Game
from agentexp.envs.alfworld.generate import problem_text
from agentexp.envs.alfworld.rules import domain_text, grammar_text
from agentexp.errors import ConfigError

_INSTALL = "engine: textworld needs the extra `alfworld`: pip install 'agentexp[alfworld]'; or set engine: pure"


class TextWorldPlay:
    """One real engine; plays one game after another."""

    def __init__(self) -> None:
        self._env: Any = _make_env()
        self._state: Any = None
        self.won = False

    @classmethod
    def of(cls, game: Game) -> TextWorldPlay:
        """A real engine that has loaded a game, however the game was made."""
        play = cls()
        with tempfile.TemporaryDirectory(prefix="agentexp-") as folder:
            path = Path(folder) / "game.tw-pddl"
            path.write_text(json.dumps(game_data(game)), encoding="utf-8")
            play.load(path)
        return play

    def load(self, path: Path) -> None:
        """Load a game file; `reset` comes next."""
        self._env.load(str(path))

    def reset(self) -> str:
        """Back to the start; returns the opening text."""
        self._state = self._env.reset()
        self.won = bool(self._state["won"])
        return str(self._state.feedback)

    def step(self, command: str) -> tuple[str, int, bool]:
        """(observation, score, done) after a command."""
        self._state, score, done = self._env.step(command)
        self.won = bool(self._state["won"])
        return str(self._state.feedback), int(score), bool(done)

    def admissible(self) -> list[str]:
        """Every command that the game accepts now, sorted."""
        return list(self._state["admissible_commands"])

    def inventory(self) -> str:
        """What is held: "apple 1", or "nothing"."""
        held = [fact.arguments[1].name for fact in self._state["_facts"] if fact.name == "holds"]
        return str(self._state["_entity_infos"][held[0]].name) if held else "nothing"


def game_data(game: Game) -> dict[str, Any]:
    """The contents of a game file for a game in memory: its facts and goal, with the rules of its
    own file, or ours where it was generated."""
    facts = {p: relation.rows for p, relation in {**game.static, **game.start}.items() if relation.rows}
    problem = problem_text(facts, game.goal)
    if game.source == "generated":
        return {"pddl_domain": domain_text(), "grammar": grammar_text(game.task), "pddl_problem": problem}
    data: dict[str, Any] = json.loads(Path(game.source).read_text(encoding="utf-8"))
    return data if not game.rearranged else {**data, "pddl_problem": problem}


def _make_env() -> Any:
    # alfworld makes a cache folder in the home directory when it is imported, unless told where.
    os.environ.setdefault("ALFWORLD_DATA", tempfile.gettempdir())
    try:
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler  # noqa: PLC0415  (an extra)
        from textworld.core import EnvInfos  # noqa: PLC0415
        from textworld.envs.pddl import PddlEnv  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(f"{_INSTALL} ({error})") from error
    return AlfredDemangler(PddlEnv(EnvInfos(won=True, admissible_commands=True)), shuffle=False)

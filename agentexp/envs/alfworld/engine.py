"""The moving part of an ALFWorld game: what an action does, what may be done, whether it is won.

To the letter what the TextWorld engine answers, without its planner: `benchmarks/alfworld_engine.py`
and `tests/real` play both side by side. Surprises of the original are kept and marked (quirk).
"""

from __future__ import annotations

from agentexp.envs.alfworld.facts import Facts
from agentexp.envs.alfworld.games import Game, Move

REFUSED = "Nothing happens."
CHANGES = {  # action -> the state it gives, the state it takes
    "cleanobject": ("isclean", None),
    "heatobject": ("ishot", "iscool"),
    "coolobject": ("iscool", "ishot"),
    "toggleobject": ("istoggled", None),
    "sliceobject": ("issliced", None),
}
_HERE = frozenset({"look", "openobject", "closeobject", "pickupobject", "putobject", *CHANGES})
_MOVING = frozenset({"gotolocation", "openobject", "closeobject", "pickupobject", "putobject"})


class Engine:
    """One play of a game. `reset` first; then `step` as often as you like, even when it is won."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.reset()

    def reset(self) -> str:
        """Back to the start; returns the opening text."""
        game = self.game
        self.fluents = {p: relation.copy() for p, relation in game.start.items()}
        self._facts: Facts = {**game.static, **self.fluents}
        self.location = next(iter(self.fluents["atlocation"].rows))[1]
        self.held = next((row[1] for row in self.fluents["holds"].rows), None)
        self.moves = 0
        self._local: dict[str, Move] | None = None
        self.won = self._is_won()
        if game.opening is None:
            game.opening = self._tell("intro", {})
        return game.opening

    def step(self, command: str) -> tuple[str, int, bool]:
        """(observation, score, done) after a command. An unknown one changes nothing."""
        move = self.find(command.strip())
        if move is None:
            return REFUSED, int(self.won), self.won
        before = self.location
        self._apply(move)
        self.moves += 1
        if move.action in _MOVING:
            self._local = None
        self.won = self._is_won()
        bound = {**move.names, "a": self.game.agent}
        if move.action in _HERE:
            bound["l"] = self.location
        elif move.action == "gotolocation":
            bound["lstart"] = before
        return self._tell(self.game.grammar.actions[move.action].feedback, bound), int(self.won), self.won

    def admissible(self) -> list[str]:
        """Every command that the game accepts now, sorted."""
        return sorted([*self.local(), *self.game.journeys(self.location)])

    def find(self, command: str) -> Move | None:
        """The move that a command means now, or None where the game would refuse it."""
        return self.local().get(command) or self.game.journeys(self.location).get(command)

    def local(self) -> dict[str, Move]:
        """The commands that do not leave this place."""
        if self._local is None:
            self._local = {move.command: move for move in self._local_moves()}
        return self._local

    def inventory(self) -> str:
        """What is held: "apple 1", or "nothing"."""
        return "nothing" if self.held is None else self.game.names[self.held]

    def _tell(self, rule: str, bound: dict[str, str]) -> str:
        return self.game.grammar.tell(rule, self._facts, self.game.names, bound, self.game.task)

    def _local_moves(self) -> list[Move]:
        game, held, move = self.game, self.held, self.game.move
        moves = [move("look"), move("inventory")]
        if game.rules.help:
            moves.append(move("help"))
        for receptacle in game.receptacles_at.get(self.location, ()):
            moves.append(move("examinereceptacle", "", receptacle))
            shut = receptacle in game.openable and (receptacle,) not in self.fluents["opened"].rows
            if receptacle in game.openable:
                moves.append(move("openobject" if shut else "closeobject", "", receptacle))
            for item, _ in self.fluents["inreceptacle"].where(1, receptacle):
                if held is None and not shut and item in game.pickupable:
                    moves.append(move("pickupobject", item, receptacle))
                if item in game.toggleable:  # quirk: a lamp in a closed receptacle can be used
                    moves.append(move("toggleobject", item, receptacle))
            if held is not None:
                if not shut and game.fits(held, receptacle):
                    moves.append(move("putobject", held, receptacle))
                for verb, tools in game.rules.tools.items():  # quirk: a closed appliance works as well
                    if held in game.able[verb] and game.receptacle_types[receptacle] & tools:
                        moves.append(move(verb + "object", held, receptacle))
        if held is not None:  # quirk: only what is held can be examined
            moves.append(move("examineobject", held))
            if held in game.knives:
                near = self.fluents["objectatlocation"].where(1, self.location)
                moves.extend(move("sliceobject", o, held) for o, _ in near if o in game.sliceable)
        return moves

    def _apply(self, move: Move) -> None:
        fluents, agent, names = self.fluents, self.game.agent, move.names
        action, item, receptacle = move.action, names.get("o", ""), names.get("r", "")
        if action == "gotolocation":
            fluents["atlocation"].discard((agent, self.location))
            self.location = names["lend"]
            fluents["atlocation"].add((agent, self.location))
        elif action == "openobject":
            fluents["opened"].add((receptacle,))
        elif action == "closeobject":
            fluents["opened"].discard((receptacle,))
        elif action == "pickupobject":
            self.held = item
            fluents["inreceptacle"].discard((item, receptacle))
            fluents["not_inreceptacle"].add((item, receptacle))  # quirk: only an action makes a negated fact
            fluents["objectatlocation"].discard((item, self.location))
            fluents["holds"].add((agent, item))
            fluents["holdsany"].add((agent,))
        elif action == "putobject":
            self.held = None
            fluents["inreceptacle"].add((item, receptacle))
            fluents["not_inreceptacle"].discard((item, receptacle))
            fluents["objectatlocation"].add((item, self.location))
            fluents["holds"].discard((agent, item))
            fluents["holdsany"].discard((agent,))
        elif action in CHANGES:
            gained, lost = CHANGES[action]
            item = names.get("co", item)
            fluents[gained].add((item,))
            if lost:
                fluents[lost].discard((item,))

    def _is_won(self) -> bool:
        game, goal, fluents = self.game, self.game.goal, self.fluents
        inside = fluents["inreceptacle"]
        if goal.lamp_type:
            if self.held not in game.goal_objects:
                return False
            lit = [lamp for lamp in game.lamps if (lamp,) in fluents["istoggled"].rows]
            here = game.receptacles_at.get(self.location, ())
            return any((lamp, receptacle) in inside.rows for lamp in lit for receptacle in here)
        for receptacle in game.goal_receptacles:
            found = 0
            for item, _ in inside.where(1, receptacle):
                if item in game.goal_objects and all((item,) in fluents[s].rows for s in goal.states):
                    found += 1
            if found >= goal.count:
                return True
        return False

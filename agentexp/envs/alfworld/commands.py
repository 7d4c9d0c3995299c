"""The kinds of commands of ALFWorld, of both grammars: `put X in/on Y` and `move X to Y`."""

from __future__ import annotations


def templates() -> dict[str, str]:
    """Verb to the words of its command."""
    return {
        "look": "look",
        "inventory": "inventory",
        "help": "help",
        "go": "go to {receptacle}",
        "open": "open {receptacle}",
        "close": "close {receptacle}",
        "examine": "examine {thing}",
        "take": "take {object} from {receptacle}",
        "put": "put {object} in/on {receptacle}",
        "move": "move {object} to {receptacle}",
        "use": "use {object}",
        "clean": "clean {object} with {receptacle}",
        "heat": "heat {object} with {receptacle}",
        "cool": "cool {object} with {receptacle}",
        "slice": "slice {object} with {tool}",
    }

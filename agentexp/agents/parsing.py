"""Reading an action in generated text. Pure functions on strings: nothing is evaluated, nothing raises."""

from __future__ import annotations

import re
from typing import Literal

from agentexp.types import Action

Several = Literal["first", "last", "error"]

# "ACTION: …", "**Action:** …" or "> action 3: …" at the start of a line.
_LABEL = re.compile(r"^[\s>*_#`-]*action[ \t]*\d*[*_` \t]*:[*_` \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
_ANY_LABEL = re.compile(r"^[\s>*_#`-]*(?:reason|thought|observation)[*_` \t]*:", re.IGNORECASE)
_HIDDEN = re.compile(r"<think>.*?</think>", re.DOTALL)


def strip_hidden(text: str) -> str:
    """Text without `<think>…</think>` blocks. A block that never ends hides all that follows; a
    block whose start stood in the prompt hides all that precedes.

    >>> strip_hidden("<think>the mug?</think>ACTION: look")
    'ACTION: look'
    >>> strip_hidden("the mug?</think>look"), strip_hidden("<think>the mug?")
    ('look', '')
    """
    if "think>" not in text:
        return text
    text = _HIDDEN.sub("", text)
    text = text.rpartition("</think>")[2]
    return text.partition("<think>")[0]


def plain_command(text: str) -> str:
    r"""The whole text as one line, single spaces; empty if there is nothing.

    >>> plain_command("  go to   drawer 1\n")
    'go to drawer 1'
    """
    return " ".join(text.split())


def labelled_commands(text: str) -> list[str]:
    r"""What stands behind each `ACTION:` label, in order. A label alone on its line is followed by
    its command on the next line that holds anything, unless that line is a label itself.

    >>> labelled_commands("REASON: it may be cold.\nACTION: open fridge 1")
    ['open fridge 1']
    >>> labelled_commands("ACTION:\nopen fridge 1"), labelled_commands("open the fridge")
    (['open fridge 1'], [])
    """
    commands = []
    for match in _LABEL.finditer(text):
        command = plain_command(match.group(1))
        if not command:
            following = text[match.end() :].lstrip().partition("\n")[0]
            if not _LABEL.match(following) and not _ANY_LABEL.match(following):
                command = plain_command(following)
        commands.append(command.strip("*_`\"'").strip())
    return commands


def read_thought(command: str) -> str | None:
    """The thought in `think: …`, else None.

    >>> read_thought("think: where is a mug?"), read_thought("think of it")
    ('where is a mug?', None)
    """
    head, colon, rest = command.partition(":")
    return rest.strip() if colon and head.strip().lower() == "think" else None


def choose(text: str, commands: list[str], several: Several) -> Action:
    """One action out of the labelled commands of `text`.

    >>> choose("…", ["look", "open fridge 1"], "last").command
    'open fridge 1'
    >>> choose("…", ["look", "open fridge 1"], "error").error
    'found 2 ACTION lines; write exactly one'
    """
    if not commands:
        return Action(text=text, command=None, error="found no ACTION line; write `ACTION: <command>`")
    if len(commands) > 1 and several == "error":
        return Action(text=text, command=None, error=f"found {len(commands)} ACTION lines; write exactly one")
    command = commands[0] if several == "first" else commands[-1]
    if not command:
        return Action(text=text, command=None, error="the ACTION line is empty; write `ACTION: <command>`")
    return Action(text=text, command=command)

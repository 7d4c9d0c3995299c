"""The words of ALFWorld for a word-level tokenizer: one fixed list that covers official and generated
games. Lower-case; a named thing such as "drawer 3" is one word."""

from __future__ import annotations

import re
from functools import lru_cache

from agentexp.envs.alfworld.generate import TASK_TYPES
from agentexp.envs.alfworld.rules import grammar_text
from agentexp.envs.alfworld.tables import CONTAINS, OBJECTS, PLACES, RECEPTACLES

WORD = re.compile(r"[a-z]+ \d+|[a-z/'-]+|\d+")  # how lower-cased text falls into words
_NUMBERED = {"drawer": 30, "cabinet": 30, "shelf": 16}  # how many names of a kind; 8 of all others
_SCENERY = """
    bathtub blinds chair curtains floorlamp footstool laundryhamperlid lightswitch mirror painting plunger poster
    scrubbrush showerdoor showerglass sink stoveknob window baseballbat basketball boots tennisracket
"""  # named in official games, though never moved
_ALSO = """
    take from open is closed move to you don't see any switch on off the sliced with not carrying anything normal
    nothing happens help turn your task hold holding held can ok think inventory welcome textworld alfred ' / 0
"""  # other wordings of official games, the `move` grammar, refusals, and what an agent says


@lru_cache(maxsize=1)
def _kinds() -> tuple[str, ...]:
    kinds = {*CONTAINS, *PLACES, *_SCENERY.split(), *(key.split()[1] for key in RECEPTACLES)}
    kinds |= {word for words in OBJECTS.values() for word in words[::3]}
    return tuple(sorted(kinds))


def vocabulary() -> list[str]:
    """Every word of any observation, command or task, each once, always in the same order."""
    wordings = [w.format(o="", r="") for task in TASK_TYPES.values() for w in task.wordings]
    told = re.sub(r"\{[^{}]*\}|#[^#]*#|\[|\]", " ", " ".join(_strings(grammar_text(" ".join(wordings)))))
    words = set(WORD.findall(told.lower().replace("\\n", " ")))
    words |= {*_ALSO.split(), *_kinds()}
    named = [f"{kind} {n}" for kind in _kinds() for n in range(1, _NUMBERED.get(kind, 8) + 1)]
    return sorted(words) + named


# What calls of commands are written with, without spaces (agents/views.py, compact): JSON, Hermes, Python.
_MARKS = """
    [{"name":" {"name":" ","arguments":{" ","arguments":{}} ","arguments":{}}] ":" "," "}} "}}] "}},{"name":"
    <tool_call>{"name":" "}}</tool_call> ","arguments":{}}</tool_call> [ ( (" =" ", ") ()] ")]
"""
_FIELDS = "object receptacle thing tool command json hermes python react"  # names of arguments, and of views
_VERBS = """
    assist advise belongings carried carve chill cook cut fetch glance grab inspect observe operate place refrigerate
    rinse seal set shift shut study toggle transfer travel unlock unseal walk warm wash
"""  # other names of verbs (agents/naming.py)


def view_words() -> list[str]:
    """What views of commands need beyond `vocabulary`: punctuation, names of arguments, other verbs."""
    known = set(vocabulary())
    extra = dict.fromkeys([*_MARKS.split(), *_FIELDS.split(), *_VERBS.split()])
    return [word for word in extra if word not in known]


def vocabulary_of_views() -> list[str]:
    """`vocabulary`, then `view_words`: for a model that learns commands in several views."""
    return [*vocabulary(), *view_words()]


def _strings(grammar: str) -> list[str]:
    texts = re.findall(r'"rhs": "((?:[^"\\]|\\.)*)"', grammar)
    return texts + re.findall(r'template :: "(.*?)"', grammar)

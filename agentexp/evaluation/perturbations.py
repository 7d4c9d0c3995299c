"""Nine ways to disturb what a model is shown without changing what is right, and the gap that opens.

Each operator is a pure function of what is shown, a level and a random stream. level 0 changes nothing,
1 all that can be changed. The right call stays sayable: `Shown.said` gives it in the disturbed words,
`Shown.latent` takes them back.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentexp.agents.naming import STYLES, SYNONYMS, Names
from agentexp.agents.renderings import RENDERINGS
from agentexp.agents.schemas import Schema, Style, function_of, name_of, properties_of, required_of, with_function
from agentexp.seeding import seed_for
from agentexp.stats import Estimate, bootstrap, wilson
from agentexp.types import Message, ToolCall


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """What a model sees at a decision. tools: their schemas; style: how they are written; messages: all
    that was said, in `format` (`agents/renderings.py`); names: shown name to latent name, of the
    tools that have another.
    """

    tools: tuple[Schema, ...]
    messages: tuple[Message, ...]
    format: str
    style: Style
    names: Mapping[str, str] = field(default_factory=dict)

    def latent(self, call: ToolCall) -> ToolCall:
        """What a call decides, by the tool's own name."""
        return replace(call, name=self.names.get(call.name, call.name))

    def said(self, call: ToolCall) -> ToolCall:
        """A latent call in the words that are shown."""
        new = {old: shown for shown, old in self.names.items()}
        return replace(call, name=new.get(call.name, call.name))


Operator = Callable[[Shown, float, random.Random], Shown]


def perturb(operator: str, shown: Shown, *, level: float, seed: int) -> Shown:
    """What is shown, disturbed by the operator of this name. Equal seeds give equal results."""
    if operator not in OPERATORS or not 0.0 <= level <= 1.0:
        raise ValueError(f"perturbation {operator!r} at level {level}; there are {', '.join(OPERATORS)}, levels 0 to 1")
    return OPERATORS[operator](shown, level, random.Random(seed_for(seed, operator))) if level > 0 else shown


# -- names


def rename_tools(shown: Shown, level: float, rng: random.Random) -> Shown:
    """Synonyms and other styles for the names of some tools, in the history too."""
    names = Names(seed=rng.getrandbits(32), styles=STYLES)
    everyone = [name_of(t) for t in shown.tools]
    names.learn(everyone)
    return _renamed(shown, {name: names.new[name] for name in _some(everyone, level, rng)})


def typos(shown: Shown, level: float, rng: random.Random) -> Shown:
    """Two letters swapped: in the names of some tools, and in as many words of all descriptions."""
    everyone = [name_of(t) for t in shown.tools]
    taken, new = set(everyone), {}
    for name in _some([n for n in everyone if n != "Finish"], level, rng):
        wrong = _swapped(name, rng)
        if wrong not in taken:
            taken.add(wrong)
            new[name] = wrong

    def mistyped(text: str) -> str:
        return _WORD.sub(lambda m: _swapped(m.group(), rng) if rng.random() < level else m.group(), text)

    return replace(_renamed(shown, new), tools=tuple(_described(t, mistyped) for t in _renamed(shown, new).tools))


# -- schemas


def reorder(shown: Shown, level: float, rng: random.Random) -> Shown:
    """Some tools, two at least, change places; their parameters are shuffled."""
    places = rng.sample(range(len(shown.tools)), min(len(shown.tools), max(2, math.ceil(level * len(shown.tools)))))
    tools = list(shown.tools)
    for place, source in zip(places, [*places[1:], *places[:1]], strict=True):  # nobody stays where it was
        tools[place] = _parameters_shuffled(shown.tools[source], rng)
    return replace(shown, tools=tuple(tools))


def drop_descriptions(shown: Shown, level: float, rng: random.Random) -> Shown:
    """Some tools have no description, nor have their parameters."""
    chosen = _some(range(len(shown.tools)), level, rng)
    return replace(shown, tools=tuple(_described(t, None) if i in chosen else t for i, t in enumerate(shown.tools)))


def paraphrase_descriptions(shown: Shown, level: float, rng: random.Random) -> Shown:
    """Some tools are described in other words, by rules: synonyms, and another beginning."""

    def reworded(text: str) -> str:
        said = _WORD.sub(lambda m: rng.choice(SYNONYMS.get(m.group(), (m.group(),))), text)
        return f"{rng.choice(_OPENINGS)} {said}"

    chosen = _some(range(len(shown.tools)), level, rng)
    return replace(shown, tools=tuple(_described(t, reworded) if i in chosen else t for i, t in enumerate(shown.tools)))


def distractor_tools(shown: Shown, level: float, rng: random.Random) -> Shown:
    """Up to as many other tools again, which no right answer needs."""
    taken = {name_of(t) for t in shown.tools} | set(shown.names)
    free = [t for t in _DISTRACTORS if name_of(t) not in taken]
    tools = list(shown.tools)
    for extra in rng.sample(free, min(len(free), math.ceil(level * len(shown.tools)))):
        tools.insert(rng.randrange(len(tools) + 1), extra)
    return replace(shown, tools=tuple(tools))


def schema_style(shown: Shown, level: float, rng: random.Random) -> Shown:
    """Schemas as signatures instead of JSON, or the other way; any level is all of it."""
    return replace(shown, style="text" if shown.style == "json" else "json")


# -- messages


def extra_history(shown: Shown, level: float, rng: random.Random) -> Shown:
    """Up to four exchanges that have nothing to do with it, before the conversation begins."""
    talk = rng.sample(_TALK, math.ceil(level * len(_TALK)))
    start = next((i for i, m in enumerate(shown.messages) if m.role != "system"), len(shown.messages))
    extra = [Message(role=role, content=words) for pair in talk for role, words in zip(_SPEAKERS, pair, strict=True)]
    return replace(shown, messages=(*shown.messages[:start], *extra, *shown.messages[start:]))


def error_observation(shown: Shown, level: float, rng: random.Random) -> Shown:
    """Up to three passing errors in front of the last observation."""
    lines = rng.sample(_ERRORS, math.ceil(level * len(_ERRORS)))
    *earlier, last = shown.messages
    return replace(shown, messages=(*earlier, replace(last, content="\n".join([*lines, last.content]))))


OPERATORS: Mapping[str, Operator] = {
    f.__name__: f
    for f in (
        rename_tools,
        typos,
        reorder,
        drop_descriptions,
        paraphrase_descriptions,
        distractor_tools,
        schema_style,
        extra_history,
        error_observation,
    )
}


# -- what they share

_WORD = re.compile(r"(?<![\w.{<`'\"])[a-z]{4,}(?![\w.}>`'\"])")  # no name, number, value or quotation
_OPENINGS = ("In short:", "What it does:", "Purpose:", "Summary:")
_SPEAKERS: tuple[Any, Any] = ("user", "assistant")
_TALK = (
    ("Good morning!", "Good morning! What can I do for you?"),
    ("Are you there?", "Yes, I am here."),
    ("Thanks for your help last week.", "You are welcome."),
    ("One moment, please.", "Take your time."),
)
_ERRORS = (
    "Warning: the previous request timed out and was sent again.",
    "Error 503: service unavailable. Retried; the answer follows.",
    "Error: connection reset by peer. Reconnected.",
)
_DISTRACTORS: tuple[Schema, ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
        },
    }
    for name, description, key in (
        ("convert_currency", "Converts an amount to another currency.", "amount"),
        ("get_weather_forecast", "Tells tomorrow's weather in a city.", "city"),
        ("translate_text", "Translates a text to English.", "text"),
        ("play_song", "Plays a song by its title.", "title"),
        ("get_moon_phase", "Tells the phase of the moon on a day.", "day"),
        ("roll_dice", "Rolls dice such as 2d6.", "dice"),
        ("lookup_zip_code", "Tells the city of a postal code.", "zip"),
        ("set_alarm", "Rings at a time.", "time"),
        ("define_word", "Explains a word.", "word"),
        ("count_letters", "Counts the letters of a text.", "text"),
        ("find_recipe", "Finds a recipe for an ingredient.", "ingredient"),
        ("shorten_link", "Makes a link short.", "link"),
        ("identify_plant", "Names the plant in a picture.", "picture"),
        ("get_tide_table", "Tells the tides of a harbour.", "harbour"),
        ("random_quote", "Quotes an author.", "author"),
        ("plan_workout", "Plans a workout for a muscle.", "muscle"),
    )
)


def _some(items: Sequence[Any], level: float, rng: random.Random) -> list[Any]:
    """A share of the items: at least one where there are any."""
    return rng.sample(list(items), min(len(items), math.ceil(level * len(items))))


def _swapped(word: str, rng: random.Random) -> str:
    """Two neighbouring inner letters that differ change places; none do where there are none."""
    spots = [
        i for i in range(1, len(word) - 2) if word[i].isalpha() and word[i + 1].isalpha() and word[i] != word[i + 1]
    ]
    if not spots:
        return word
    i = rng.choice(spots)
    return f"{word[:i]}{word[i + 1]}{word[i]}{word[i + 2 :]}"


def _described(tool: Schema, change: Callable[[str], str] | None) -> Schema:
    """The tool with its descriptions changed, or without them."""

    def changed(schema: Mapping[str, Any]) -> dict[str, Any]:
        if change is None or not isinstance(schema.get("description"), str):
            return {k: v for k, v in schema.items() if k != "description"}
        return {**schema, "description": change(schema["description"])}

    described = function_of(tool).get("description")
    said = change(str(described)) if change is not None and described else None
    parameters = function_of(tool).get("parameters")
    if not parameters:
        return with_function(tool, description=said)
    properties = {key: changed(schema) for key, schema in properties_of(tool).items()}
    return with_function(tool, description=said, parameters={**parameters, "properties": properties})


def _parameters_shuffled(tool: Schema, rng: random.Random) -> Schema:
    parameters = function_of(tool).get("parameters")
    if not parameters:
        return tool
    properties = properties_of(tool)
    order = rng.sample(list(properties), len(properties))
    changed = {**parameters, "properties": {key: properties[key] for key in order}}
    if "required" in parameters:
        changed["required"] = [key for key in order if key in set(required_of(tool))]
    return with_function(tool, parameters=changed)


def _renamed(shown: Shown, new: Mapping[str, str]) -> Shown:
    """Other names for tools: in schemas, in calls of the history, and in words where nothing else is meant."""
    names = Names(seed=0, styles=STYLES)
    names.new, names.old = dict(new), {v: k for k, v in new.items()}

    def message(m: Message) -> Message:
        calls = RENDERINGS[shown.format].read(m.content).calls if m.role == "assistant" else ()
        if not calls:
            return replace(m, content=names.text(m.content))
        called = [replace(c, name=new.get(c.name, c.name)) for c in calls]
        return replace(m, content=RENDERINGS[shown.format].say(called, compact=False))

    def schema(tool: Schema) -> Schema:
        described = function_of(tool).get("description")
        said = names.text(str(described)) if described else described
        return with_function(tool, name=new.get(name_of(tool), name_of(tool)), description=said)

    back = {shown_name: shown.names.get(old, old) for old, shown_name in new.items()}
    kept = {shown_name: old for shown_name, old in shown.names.items() if shown_name not in new}
    return replace(
        shown,
        tools=tuple(map(schema, shown.tools)),
        messages=tuple(map(message, shown.messages)),
        names={**kept, **back},
    )


# -- what it costs


def gap(canonical: Sequence[float], perturbed: Sequence[float], *, clusters: Sequence[Hashable], seed: int) -> Estimate:
    """Mean of canonical − perturbed over the same decisions, with a bootstrap over whole clusters (tasks).

    Where every decision changed alike, resampling sees no spread; then the interval reaches as far to both
    sides as Wilson's does from 0 of so many clusters.
    """
    if len(canonical) != len(perturbed):
        raise ValueError(f"gap: {len(canonical)} canonical results, {len(perturbed)} perturbed; it needs pairs")
    lost = [c - p for c, p in zip(canonical, perturbed, strict=True)]
    if lost and max(lost) - min(lost) < 1e-12:
        width = wilson(0, len(set(clusters))).high
        method = "wilson over clusters"
        return Estimate(value=lost[0], low=lost[0] - width, high=lost[0] + width, n=len(lost), method=method)
    return bootstrap(lost, clusters=clusters, seed=seed)


def gaps(
    canonical: Sequence[float],
    perturbed: Mapping[str, Sequence[float]],
    *,
    clusters: Sequence[Hashable],
    seed: int,
) -> dict[str, Estimate]:
    """The gap of each operator, and "all": of each decision's mean over the operators."""
    if not perturbed:
        raise ValueError("gaps: no operator has results")
    each = {name: gap(canonical, results, clusters=clusters, seed=seed) for name, results in perturbed.items()}
    mean = [math.fsum(one) / len(one) for one in zip(*perturbed.values(), strict=True)]
    return {**each, "all": gap(canonical, mean, clusters=clusters, seed=seed)}

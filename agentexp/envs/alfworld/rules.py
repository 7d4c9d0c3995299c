"""The rules of a generated game, in the two languages that game files use: the domain in PDDL and the
texts in TextWorld's grammar. Our own compact writing of the same game: the real engine loads it, and
its texts are those of the official release json_2.1.1.
"""

from __future__ import annotations

import json
from functools import lru_cache

# action: parameters / precondition / effect. ?a agent, ?l location, ?r receptacle, ?o object
_HERE = "(atLocation ?a ?l) (receptacleAtLocation ?r ?l)"
_OPEN = "(or (not (openable ?r)) (opened ?r))"
_ACTIONS = (
    ("look", "?a - agent ?l - location", "(atLocation ?a ?l)", "(checked ?l)"),
    ("inventory", "?a - agent", "", "(checked ?a)"),
    (
        "examineReceptacle",
        "?a - agent ?r - receptacle",
        f"(exists (?l - location) (and {_HERE}))",
        "(checked ?r)",
    ),
    ("examineObject", "?a - agent ?o - object", "(holds ?a ?o)", "(checked ?o)"),
    (
        "GotoLocation",
        "?a - agent ?lStart - location ?lEnd - location ?r - receptacle",
        "(atLocation ?a ?lStart) (receptacleAtLocation ?r ?lEnd)",
        "(not (atLocation ?a ?lStart)) (atLocation ?a ?lEnd)",
    ),
    (
        "OpenObject",
        "?a - agent ?l - location ?r - receptacle",
        f"(openable ?r) {_HERE} (not (opened ?r))",
        "(opened ?r)",
    ),
    (
        "CloseObject",
        "?a - agent ?l - location ?r - receptacle",
        f"(openable ?r) {_HERE} (opened ?r)",
        "(not (opened ?r))",
    ),
    (
        "PickupObject",
        "?a - agent ?l - location ?o - object ?r - receptacle",
        f"(pickupable ?o) {_HERE} (inReceptacle ?o ?r) (not (holdsAny ?a)) {_OPEN}",
        "(not (inReceptacle ?o ?r)) (holds ?a ?o) (holdsAny ?a) (not (objectAtLocation ?o ?l))",
    ),
    (
        "PutObject",
        "?a - agent ?l - location ?o - object ?r - receptacle ?ot - otype ?rt - rtype",
        f"(holds ?a ?o) {_HERE} {_OPEN} (objectType ?o ?ot) (receptacleType ?r ?rt) (canContain ?rt ?ot)",
        "(inReceptacle ?o ?r) (objectAtLocation ?o ?l) (not (holds ?a ?o)) (not (holdsAny ?a))",
    ),
    (
        "CleanObject",
        "?a - agent ?l - location ?r - receptacle ?o - object",
        f"(cleanable ?o) (or (receptacleType ?r SinkType) (receptacleType ?r SinkBasinType)) {_HERE} (holds ?a ?o)",
        "(isClean ?o)",
    ),
    (
        "HeatObject",
        "?a - agent ?l - location ?r - receptacle ?o - object",
        f"(heatable ?o) (receptacleType ?r MicrowaveType) {_HERE} (holds ?a ?o)",
        "(isHot ?o) (not (isCool ?o))",
    ),
    (
        "CoolObject",
        "?a - agent ?l - location ?r - receptacle ?o - object",
        f"(coolable ?o) (receptacleType ?r FridgeType) {_HERE} (holds ?a ?o)",
        "(isCool ?o) (not (isHot ?o))",
    ),
    (
        "ToggleObject",
        "?a - agent ?l - location ?o - object ?r - receptacle",
        f"(toggleable ?o) {_HERE} (inReceptacle ?o ?r)",
        "(when (isOn ?o) (not (isOn ?o))) (when (not (isOn ?o)) (isOn ?o)) (isToggled ?o)",
    ),
    (
        "SliceObject",
        "?a - agent ?l - location ?co - object ?ko - object",
        "(sliceable ?co) (or (objectType ?ko KnifeType) (objectType ?ko ButterKnifeType)) "
        "(atLocation ?a ?l) (objectAtLocation ?co ?l) (holds ?a ?ko)",
        "(isSliced ?co)",
    ),
)
_PREDICATES = (
    "atLocation ?a - agent ?l - location",
    "receptacleAtLocation ?r - receptacle ?l - location",
    "objectAtLocation ?o - object ?l - location",
    "inReceptacle ?o - object ?r - receptacle",
    "receptacleType ?r - receptacle ?t - rtype",
    "canContain ?rt - rtype ?ot - otype",
    "objectType ?o - object ?t - otype",
    "holds ?a - agent ?o - object",
    "holdsAny ?a - agent",
    "checked ?r - receptacle",
    *(f"{p} ?r - receptacle" for p in ("openable", "opened")),
    *(f"is{p} ?o - object" for p in ("Clean", "Hot", "Cool", "On", "Toggled", "Sliced")),
    *(f"{p} ?o - object" for p in ("cleanable", "heatable", "coolable", "pickupable", "toggleable", "sliceable")),
)

_CONTENT = "[{o.indefinite + ' ' + o.name | inreceptacle(o:object, r:receptacle)}]"
_NEAR = (
    "atlocation(a:agent, l:location) & objectatlocation(o:object, l:location) & "
    "receptacleatlocation(r:receptacle, l:location) & not_inreceptacle(o:object, r:receptacle)"
)
_FACING = "atlocation(a:agent, l:location) & receptacleatlocation(r:receptacle, l:location)"
_EXAMINED = (  # states that must hold, how the object is then described
    ("clean hot sliced", "This is a hot and clean sliced {o.name}."),
    ("clean cool sliced", "This is a cool and clean sliced {o.name}."),
    ("clean sliced", "This is a clean sliced {o.name}."),
    ("hot sliced", "This is a hot sliced {o.name}."),
    ("cool sliced", "This is a cool sliced {o.name}."),
    ("clean hot", "This is a hot and clean {o.name}."),
    ("clean cool", "This is a cool and clean {o.name}."),
    ("hot", "This is a hot {o.name}."),
    ("clean", "This is a clean {o.name}."),
    ("cool", "This is a cold {o.name}."),
    ("toggled", "This {o.name} is on."),
    ("sliced", "This is a sliced {o.name}."),
    ("", "There's nothing special about {o.name}."),
)
# rule: (condition, text) …; the first condition that holds is used
_RULES: dict[str, list[tuple[str, str]]] = {
    "intro": [("", "-= Welcome to TextWorld, ALFRED! =-\n\n#look.feedback#\n\n#task#")],
    "GotoLocation.feedback": [("", "You arrive at {lend.name}. #examineReceptacle.feedback#")],
    "OpenObject.feedback": [("", "You open the {r.name}. #examineReceptacle.feedback#")],
    "CloseObject.feedback": [("", "You close the {r.name}.")],
    "PickupObject.feedback": [("", "You pick up the {o.name} from the {r.name}.")],
    "PutObject.feedback": [("", "You put the {o.name} in/on the {r.name}.")],
    "CleanObject.feedback": [("", "You clean the {o.name} using the {r.name}.")],
    "HeatObject.feedback": [("", "You heat the {o.name} using the {r.name}.")],
    "CoolObject.feedback": [("", "You cool the {o.name} using the {r.name}.")],
    "ToggleObject.feedback": [("", "You turn on the {o.name}.")],
    "SliceObject.feedback": [("", "You sliced the {co.name} with the {ko.name}.")],
    "inventory.feedback": [
        ("holdsany(a:agent)", "You are carrying: [{o.indefinite + ' ' + o.name | holds(a:agent, o:object)}]."),
        ("", "You are not carrying anything."),
    ],
    "examineReceptacle.feedback": [
        ("openable(r:receptacle) & opened(r:receptacle)", f"The {{r.name}} is open. In it, you see {_CONTENT}."),
        ("openable(r:receptacle)", "The {r.name} is closed."),
        ("", f"On the {{r.name}}, you see {_CONTENT}."),
    ],
    "examineObject.feedback": [
        (" & ".join(f"is{s}(o:object)" for s in states.split()), text) for states, text in _EXAMINED
    ],
    "look.feedback": [
        (_FACING, f"You are facing the [{{r.name | {_FACING}}}]. Next to it, you see #near#."),
        ("", "You are in the middle of a room. Looking quickly around you, you see #around#."),
    ],
    "near": [(_NEAR, f"[{{#a(o)# | {_NEAR}}}]"), ("", "nothing")],
    "around": [("", "[{#a(r)# | receptacleatlocation(r:receptacle, l:location)}]")],
    "a(o)": [("", "{o.indefinite} {o.name}")],
    "a(r)": [("", "{r.indefinite} {r.name}")],
    "list_empty": [("", "nothing")],
    "list_separator": [("", ", ")],
    "list_last_separator": [("", ", and ")],
}
_COMMANDS = {
    "GotoLocation": "go to [{r.name | receptacleatlocation(r:receptacle, lend:location)}]",
    "OpenObject": "open {r}",
    "CloseObject": "close {r}",
    "PickupObject": "take {o} from {r}",
    "PutObject": "put {o} in/on {r}",
    "inventory": "inventory",
    "examineReceptacle": "examine {r}",
    "examineObject": "examine {o}",
    "ToggleObject": "use {o}",
    "HeatObject": "heat {o} with {r}",
    "CleanObject": "clean {o} with {r}",
    "CoolObject": "cool {o} with {r}",
    "SliceObject": "slice {co} with {ko}",
    "look": "look",
}


@lru_cache(maxsize=1)
def domain_text() -> str:
    """The rules as a PDDL domain."""
    lines = ["(define (domain alfred)", "(:requirements :adl :action-costs :typing)"]
    lines += ["(:types agent location receptacle object rtype otype)", "(:predicates"]
    lines += [f"  ({p})" for p in _PREDICATES] + [")", "(:functions (total-cost) - number)"]
    for name, parameters, before, after in _ACTIONS:
        condition = f"(and {before})" if before else "()"
        lines += [f"(:action {name}", f"  :parameters ({parameters})", f"  :precondition {condition}"]
        lines += [f"  :effect (and {after}))"]
    return "\n".join([*lines, ")"]) + "\n"


def grammar_text(task: str) -> str:
    """The texts as a TextWorld grammar, with the wording of one task ("Your task is to: …")."""
    rules = {name: [_alternative(*a) for a in rows] for name, rows in {**_RULES, "task": [("", task)]}.items()}
    blocks = [f'grammar :: """\n{json.dumps(rules, indent=1)}\n""";']
    blocks += [
        f'action {action} {{\n    template :: "{command}";\n    feedback :: "#{action}.feedback#";\n}}'
        for action, command in _COMMANDS.items()
    ]
    return "\n\n".join(blocks) + "\n"


def _alternative(condition: str, text: str) -> dict[str, str]:
    return {"condition": condition, "rhs": text} if condition else {"rhs": text}

"""One question, one answer; and the schemas that are shown."""

from __future__ import annotations

import pickle

import pytest

from agentexp.envs.bfcl.single_turn import OVER
from agentexp.envs.bfcl.tools import openai_tool
from agentexp.errors import ConfigError
from agentexp.types import Action
from tests.tool_actions import calls, says
from tests.toy_bfcl import OPTIONS, ToyBfcl, ToySingleTurn

ENV = ToySingleTurn(release="toy", responses=False)
UNREADABLE = Action(text="<tool", command=None, error="no closing tag")


@pytest.mark.parametrize(
    ("split", "number", "action", "reward"),
    [
        ("simple", 0, calls(("geo_find", {"name": "mount cook"})), 1.0),
        ("simple", 0, calls(("geo_find", {"name": "Aoraki", "radius": 10})), 1.0),
        ("simple", 0, calls(("geo_find", {"name": "Oslo"})), 0.0),
        ("simple", 0, says("Mount Cook is in New Zealand."), 0.0),
        ("simple", 0, UNREADABLE, 0.0),
        ("simple", 1, calls(("geo_find", {"name": "Oslo"})), 0.0),  # within 5 km
        ("parallel", 0, calls(("geo_find", {"name": "Bergen"}), ("geo_find", {"name": "Oslo"})), 1.0),
        ("parallel", 0, calls(("geo_find", {"name": "Bergen"})), 0.0),
        ("irrelevance", 0, says("La la la."), 1.0),
        ("irrelevance", 0, calls(("geo_find", {"name": "song"})), 0.0),
        ("irrelevance", 0, UNREADABLE, 1.0),  # as upstream: what cannot be read is no call
    ],
)
def test_one_answer(split: str, number: int, action: Action, reward: float) -> None:
    session = ENV.start(ENV.tasks(split)[number], 0)
    assert session.outcome().reward == 0.0
    step = session.step(action)
    assert step.done
    assert step.observation == (action.error or OVER)
    assert (step.reward, session.outcome().reward, session.outcome().success) == (reward, reward, reward == 1.0)
    with pytest.raises(RuntimeError, match="ended"):
        session.step(action)
    session.close()
    session.close()


def test_tasks() -> None:
    tasks = ENV.tasks("simple")
    assert [task.instruction for task in tasks] == [
        "Find Mount Cook.",
        "System: Be brief.\n\nUser: Find Oslo within 5 km.",
    ]
    assert pickle.loads(pickle.dumps(tasks)) == tasks
    assert ENV.start(tasks[0], 0).first.observation == "Find Mount Cook."
    with pytest.raises(ConfigError, match=r"allowed: simple, parallel, irrelevance.*Did you mean 'simple'"):
        ENV.tasks("simpl")
    assert ENV.version()["release"] == "toy"


def test_schemas_are_json_schemas_with_names_without_dots() -> None:
    (tool,) = ENV.start(ENV.tasks("simple")[0], 0).first.info["tools"]
    assert tool["function"]["name"] == "geo_find"
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name."},
            "radius": {"type": "number", "description": "The radius."},
        },
        "required": ["name"],
    }
    assert "response" not in tool["function"]
    (tool,) = ToySingleTurn(release="toy", responses=True).start(ENV.tasks("simple")[0], 0).first.info["tools"]
    assert tool["function"]["response"]["type"] == "object"
    multi = ToyBfcl(**{**OPTIONS, "responses": True})
    first = multi.start(multi.tasks("train")[0], 0).first
    assert all("response" in tool["function"] for tool in first.info["tools"])


def test_types_are_converted_at_every_depth() -> None:
    leaf = {"type": "float"}
    node = {"type": "array", "items": {"type": "dict", "properties": {"type": leaf, "k": {"type": "tuple"}}}}
    parameters = {"type": "dict", "properties": {"x": node, "y": {"type": "any", "enum": ["a"]}}, "required": []}
    document = {"name": "f", "description": "", "parameters": parameters}
    tool = openai_tool(document, language="python", responses=False)
    x, y = tool["function"]["parameters"]["properties"].values()
    assert x["items"]["properties"] == {"type": {"type": "number"}, "k": {"type": "array"}}
    assert (x["type"], x["items"]["type"], y) == ("array", "object", {"type": "string", "enum": ["a"]})
    assert leaf == {"type": "float"}  # the document is left alone


def test_java_values_are_asked_for_as_text() -> None:
    kinds = {"x": {"type": "ArrayList", "items": {"type": "long"}, "description": "Ids."}, "y": {"type": "any"}}
    parameters = {"type": "dict", "properties": kinds, "required": ["x"]}
    tool = openai_tool({"name": "f", "description": "", "parameters": parameters}, language="java", responses=False)
    assert tool["function"]["parameters"]["properties"] == {
        "x": {
            "type": "string",
            "description": "Ids. Given as a Java ArrayList with elements of type long, in source text.",
        },
        "y": {"type": "string", "description": "Given as a Java value, in source text."},
    }


def test_the_floor_is_the_share_that_silence_passes() -> None:
    simple, irrelevant = ENV.tasks("simple"), ENV.tasks("irrelevance")
    assert (ENV.floor(simple), ENV.floor(irrelevant)) == (0.0, 1.0)
    assert ENV.floor([*simple, *irrelevant]) == len(irrelevant) / (len(simple) + len(irrelevant))
    for task in [*simple, *irrelevant]:
        session = ENV.start(task, 0)
        session.step(Action(text="hm", command="hm"))
        assert session.outcome().success == (task.split == "irrelevance")

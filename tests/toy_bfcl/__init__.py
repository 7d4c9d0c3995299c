"""A made-up release of BFCL, of our own writing, in the form of the real ones: for tests that must run
without the packages. Light, since child processes import it too."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from agentexp.envs.bfcl.environment import Bfcl
from agentexp.envs.bfcl.release import Release
from agentexp.envs.bfcl.single_turn import BfclSingleTurn

TOY = Release(
    package="tests.toy_bfcl",
    install="nothing to install",
    prefix="TOY_",
    backends="apis",
    wording="wording",
    converters="converters",
    renamed={"simple": "simple_python"},
    apis={"LampAPI": "lamps", "SumAPI": "sums"},
    categories=("simple", "parallel", "irrelevance"),
    manifest=Path(__file__).with_name("manifest.json"),
)


class ToyBfcl(Bfcl):
    releases: ClassVar = {"toy": TOY}


class ToySingleTurn(BfclSingleTurn):
    releases: ClassVar = {"toy": TOY}


OPTIONS: dict[str, Any] = {
    "release": "toy",
    "variants": ["base", "miss_func", "miss_param", "long_context"],
    "responses": False,
    "empty_turns": "no_call",
    "max_steps_per_turn": 20,
}

"""Binding nodes to signatures that are read from source, and building them with injected parts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from agentexp.building import Binder, Bound, build
from agentexp.errors import ConfigError
from agentexp.signatures import find_target
from agentexp.source import lacking, load, source_file

PACKAGE = {
    "__init__.py": "raise RuntimeError('binding must not import')\n",
    "words.py": "from typing import Literal\n\nTone = Literal['low', 'high']\nPair = tuple[int, int]\n",
    "shapes.py": '''
from __future__ import annotations
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Optional, Protocol, Union
from bindme.words import Pair, Tone as Sound
import bindme.words as w

class Rings(Protocol):
    volume: int
    def ring(self) -> str: ...

class Bell:
    """Rings."""
    def __init__(self, *, tone: Sound, volume: int | None, names: list[str], weights: Sequence[float]) -> None:
        self.tone, self.volume, self.names, self.weights = tone, volume, names, weights
    def ring(self) -> str:
        return self.tone

class Loud(Bell):
    """Takes what Bell takes."""

@dataclass(frozen=True, kw_only=True)
class Stone:
    """No ring."""
    weight: float
    pair: Pair = (1, 2)
    parts: list[Stone] = field(default_factory=list)

class Tower:
    def __init__(self, *, bell: Rings, spare: Bell | None, all_bells: list[Rings], by_name: dict[str, Rings], seed: int,
                 place: Optional[Path], either: Union[int, str], noted: Annotated[float, "unit"], tone: w.Tone,
                 table: Mapping[str, int], free: Any) -> None:
        self.given = dict(locals())

def make_bell(*, loud: bool) -> Bell:
    return Bell(tone="high" if loud else "low", volume=1, names=[], weights=[])

def numbers(n: int = 3) -> list[float]:
    return [float(n)]

def unfit(*, n: int) -> Bell:
    raise ValueError(f"n is {n}")

constant = 3
''',
}  # fmt: skip


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bindme"
    folder.mkdir()
    for name, text in PACKAGE.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    load.cache_clear()
    yield folder
    load.cache_clear()
    for name in [m for m in sys.modules if m.partition(".")[0] == "bindme"]:
        del sys.modules[name]


BELL = {"_target_": "bindme.shapes.Bell", "tone": "low", "volume": None, "names": ["a"], "weights": [1, 0.5]}
TOWER = {
    "_target_": "bindme.shapes.Tower", "bell": BELL, "spare": None, "all_bells": [BELL, BELL], "by_name": {"x": BELL},
    "place": "/tmp/x", "either": "word", "noted": 1, "tone": "high", "table": {"a": 1}, "free": {"any": [None]},
}  # fmt: skip


def bind(node: Any, *, parts: tuple[str, ...] = ("seed",), packages: tuple[str, ...] = ("bindme",)) -> Bound:
    binder = Binder(parts=parts, packages=packages, where=lambda key: f"file.yaml:{len(key)}")
    bound = binder.bind(node, "tower")
    binder.finish()
    assert bound is not None
    return bound


def test_nothing_is_imported_and_everything_is_checked(package: Path) -> None:
    bound = bind(TOWER)
    assert "bindme" not in sys.modules
    assert bound.injected == ("seed",)
    assert bound.values["place"] == Path("/tmp/x")
    assert bound.values["noted"] == 1.0
    assert bound.values["all_bells"][1].values["weights"] == [1.0, 0.5]


def test_built_with_nested_nodes_and_injected_parts(package: Path) -> None:
    (package / "__init__.py").write_text("")
    given = build(bind(TOWER), {"seed": 7}).given
    assert given["seed"] == 7
    assert given["bell"].ring() == "low"
    assert [b.names for b in given["all_bells"]] == [["a"], ["a"]]
    assert given["by_name"]["x"].tone == "low"
    assert given["free"] == {"any": [None]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bell": "foo"}, ["tower.bell is 'foo' (file.yaml:10)", "_target_", "bindme.shapes.Rings"]),
        ({"bell": {"_target_": "bindme.shapes.Stone", "weight": 1}}, ["it lacks volume, ring"]),
        ({"spare": {"_target_": "bindme.shapes.Stone", "weight": 1}}, ["it is no bindme.shapes.Bell"]),
        ({"spare": {"_target_": "bindme.shapes.numbers"}}, ["gives list[float], not bindme.shapes.Bell"]),
        ({"bell": {**BELL, "tone": "lov"}}, ["tower.bell.tone is 'lov'", "low | high", "Did you mean 'low'"]),
        ({"bell": {**BELL, "tonne": 1}}, ["tower.bell.tonne", "Did you mean 'tone'"]),
        ({"bell": {"_target_": "bindme.shapes.Bell"}}, ["tower.bell.tone is missing", "tower.bell.weights is missing"]),
        ({"noted": {"_target_": "bindme.shapes.numbers"}}, ["gives list[float], not float"]),
        ({"all_bells": [BELL, 3]}, ["tower.all_bells.1 is 3"]),
        ({"all_bells": BELL}, ["list[Rings]"]),
        ({"by_name": {"x": "y"}}, ["tower.by_name.x is 'y'"]),
        ({"table": {"a": "b"}}, ["tower.table.a is 'b'"]),
        ({"noted": "1.0"}, ["tower.noted is '1.0'", "float"]),
        ({"noted": True}, ["tower.noted is True"]),
        ({"either": 1.5}, ["tower.either is 1.5", "int | str"]),
        ({"place": None, "tone": None}, ["tower.tone is None"]),
        ({"bell": {"_target_": "bindme.shapes.Bel"}}, ["has no class or function 'Bel'", "Did you mean 'Bell'"]),
        ({"bell": {"_target_": "bindme.shape.Bell"}}, ["no module 'shape'", "Did you mean 'shapes'"]),
        ({"bell": {"_target_": "bindme.shapes.constant"}}, ["neither a class nor a function"]),
        ({"bell": {"_target_": "shutil.rmtree", "path": "/"}}, ["only targets of agentexp", "plugins=[shutil]"]),
        ({"bell": {"_target_": "bindme"}}, ["only targets"]),
        ({"bell": {"_target_": 3}}, ["_target_"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(package: Path, change: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        bind({**TOWER, **change})
    for part in said:
        assert part in str(caught.value)
    assert "bindme" not in sys.modules


def test_functions_dataclasses_and_heirs_are_targets(package: Path) -> None:
    assert set(find_target("bindme.shapes.Loud").parameters) == {"tone", "volume", "names", "weights"}
    stone = find_target("bindme.shapes.Stone").parameters
    assert {n: p.required for n, p in stone.items()} == {"weight": True, "pair": False, "parts": False}
    bind({**TOWER, "bell": {"_target_": "bindme.shapes.make_bell", "loud": True}})
    bind({**TOWER, "spare": {**BELL, "_target_": "bindme.shapes.Loud"}})
    pair = bind({"_target_": "bindme.shapes.Stone", "weight": 2, "pair": [3, 4]})
    assert pair.values["pair"] == (3, 4)


def test_an_injected_name_that_is_no_part_is_missing(package: Path) -> None:
    with pytest.raises(ConfigError, match=r"tower\.seed is missing"):
        bind(TOWER, parts=())


def test_a_constructor_s_own_refusal_names_the_key_but_a_bug_keeps_its_traceback(package: Path) -> None:
    (package / "__init__.py").write_text("")
    with pytest.raises(ConfigError, match=r"tower \(bindme\.shapes\.unfit\): n is 3"):
        build(bind({"_target_": "bindme.shapes.unfit", "n": 3}), {})
    (package / "deep.py").write_text(
        "def deep(*, n: int):\n    return int('x' * n)\n\n\ndef outer(*, n: int):\n    return deep(n=n)\n"
    )
    with pytest.raises(ValueError, match="invalid literal"):
        build(bind({"_target_": "bindme.deep.outer", "n": 3}), {})


def test_a_package_that_cannot_be_imported_says_what_to_do(package: Path) -> None:
    (package / "__init__.py").write_text("import no_such_library\n")
    with pytest.raises(ConfigError, match=r"no_such_library.*pip install"):
        build(bind({"_target_": "bindme.shapes.Stone", "weight": 1}), {})


def test_sources_are_found_without_import(package: Path) -> None:
    assert source_file("bindme.shapes") == package / "shapes.py"
    assert source_file("bindme") == package / "__init__.py"
    assert source_file("bindme.nothing") is None
    assert source_file("no_such_package_at_all") is None
    assert lacking("bindme.shapes.Loud", "bindme.shapes.Bell") is None
    assert lacking("bindme.shapes.Bell", "bindme.shapes.Rings") is None


def test_source_that_is_no_python_is_said(package: Path) -> None:
    (package / "broken.py").write_text("def f(:\n")
    with pytest.raises(ConfigError, match=r"broken\.py:1 is not Python"):
        bind({"_target_": "bindme.broken.f"})

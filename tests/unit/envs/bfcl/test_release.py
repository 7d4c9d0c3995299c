"""Packages, manifests and splits."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentexp.envs.base import Teaches
from agentexp.envs.bfcl.environment import Bfcl
from agentexp.envs.bfcl.release import RELEASES, Suite
from agentexp.envs.bfcl.splits import leaks, make_manifest, manifest_text, stratified
from agentexp.errors import ConfigError, DataError
from tests.toy_bfcl import OPTIONS, TOY, ToyBfcl


def test_a_missing_package_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = dataclasses.replace(RELEASES["v3"], package="not_installed_here")
    monkeypatch.setattr(Bfcl, "releases", {"v3": missing})
    with pytest.raises(ConfigError, match=r"pip install --no-deps nvidia-bfcl==26\.3 mpmath"):
        Bfcl(**{**OPTIONS, "release": "v3"})


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"release": "v5"}, "release is 'v5'; allowed: toy"),
        ({"variants": []}, "allowed: some of base, miss_func, miss_param, long_context"),
        ({"variants": ["base", "base"]}, "each once"),
        ({"variants": ["bas"]}, "variants are"),
        ({"empty_turns": "never"}, "allowed: no_call, unchecked"),
        ({"max_steps_per_turn": 0}, "at least 1"),
    ],
)
def test_bad_options_are_refused(changes: dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigError) as error:
        ToyBfcl(**{**OPTIONS, **changes})
    assert part in str(error.value)


def changed_toy(tmp_path: Path, file: str, expected: str) -> Suite:
    manifest = json.loads(TOY.manifest.read_text())
    manifest["files"][file] = expected
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest))
    return Suite(dataclasses.replace(TOY, manifest=path))


def test_data_and_code_that_differ_from_the_manifest_are_refused(tmp_path: Path) -> None:
    suite = changed_toy(tmp_path, "data/TOY_multi_turn_base.json", "0" * 64)
    with pytest.raises(DataError, match="another version, or was changed"):
        suite.questions("multi_turn_base")
    assert suite.questions("multi_turn_miss_func")  # control: the others are as they were
    with pytest.raises(DataError, match="another version"):
        changed_toy(tmp_path, "apis/lamps.py", "0" * 64).api("LampAPI")
    assert changed_toy(tmp_path, "apis/sums.py", "0" * 64).api("LampAPI").__name__ == "LampAPI"


def test_the_toy_s_manifest_is_what_would_be_made_now() -> None:
    made = make_manifest(Suite(TOY), made_from="tests/toy_bfcl", test=2, seed=0)
    assert manifest_text(made) == TOY.manifest.read_text()
    assert Suite(TOY).digest != Suite(dataclasses.replace(TOY, manifest=RELEASES["v3"].manifest)).digest


def test_the_variants_of_a_scenario_are_on_one_side() -> None:
    env = ToyBfcl(**OPTIONS)
    sides = {split: {task.scenario for task in env.tasks(split)} for split in ("train", "test", "all")}
    assert not sides["train"] & sides["test"]
    assert sides["train"] | sides["test"] == sides["all"] == {f"scenario_{k}" for k in range(4)}
    assert Counter(task.scenario for task in env.tasks("all")) == dict.fromkeys(sides["all"], 4)
    assert Counter(task.kind for task in env.tasks("test")) == dict.fromkeys(OPTIONS["variants"], 2)
    firsts = [task.scenario for task in env.tasks("all")[:4]]
    assert len(set(firsts)) == 4  # the first tasks are of different scenarios
    assert {task.kind for task in env.tasks("all")[:4]} == set(OPTIONS["variants"])
    assert {t.kind for t in ToyBfcl(**{**OPTIONS, "variants": ["base"]}).tasks("all")} == {"base"}
    assert isinstance(env, Teaches)


def test_a_leaked_split_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = json.loads(TOY.manifest.read_text())
    manifest["test"] = [*manifest["test"], manifest["train"][0]]
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest))
    monkeypatch.setattr(ToyBfcl, "releases", {"toy": dataclasses.replace(TOY, manifest=path)})
    with pytest.raises(DataError, match="in train and in test: \\[0\\]"):
        ToyBfcl(**OPTIONS)
    assert leaks([1, 2], [2, 3]) == [2]


@given(
    st.dictionaries(st.integers(0, 300), st.sampled_from("abcde"), min_size=1),
    st.integers(0, 300),
    st.integers(0, 3),
)
def test_stratified_keeps_proportions(strata: dict[int, str], test: int, seed: int) -> None:
    """Each stratum has its exact share in test, rounded down or up; together exactly `test`."""
    test = min(test, len(strata))
    split = stratified(strata, test=test, seed=seed)
    assert sorted([*split["train"], *split["test"]]) == sorted(strata)
    assert len(split["test"]) == test
    sizes, chosen = Counter(strata.values()), Counter(strata[k] for k in split["test"])
    for name, size in sizes.items():
        assert abs(chosen[name] - test * size / len(strata)) < 1.0
    assert split == stratified(strata, test=test, seed=seed)


def test_the_seed_chooses() -> None:
    strata = {k: "ab"[k % 2] for k in range(40)}
    assert stratified(strata, test=10, seed=0) != stratified(strata, test=10, seed=1)


@pytest.mark.parametrize("release", list(RELEASES))
def test_the_committed_manifests_hold_150_and_50(release: str) -> None:
    manifest = json.loads(RELEASES[release].manifest.read_text())
    assert (len(manifest["train"]), len(manifest["test"])) == (150, 50)
    assert sorted([*manifest["train"], *manifest["test"]]) == list(range(200))
    # one split for both, so that training on one release leaks nothing into the other's test
    other = json.loads(RELEASES["v3"].manifest.read_text())
    assert manifest["test"] == other["test"]


def test_version_says_what_it_is() -> None:
    version = ToyBfcl(**OPTIONS).version()
    assert "not leaderboard results" in version["label"]
    assert version["manifest"] == Suite(TOY).digest
    assert version["empty_turns"] == "no_call"

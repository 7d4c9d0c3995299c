"""The split of a release's 200 scenarios into train and test, and the manifest that fixes it.

The leaderboard has no train split. Ours keeps the four variants of a scenario (base, miss_func,
miss_param, long_context: the same world, the same wishes) on one side, and has in each side the same
mixture of APIs.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from agentexp.envs.bfcl.release import Suite
from agentexp.seeding import seed_for


def stratified(strata: Mapping[int, str], *, test: int, seed: int) -> dict[str, list[int]]:
    """`test` of the keys for test and the rest for train, each stratum in proportion (largest
    remainders).

    >>> stratified({0: "a", 1: "a", 2: "b", 3: "b"}, test=2, seed=0)["test"]
    [1, 3]
    """
    members: dict[str, list[int]] = defaultdict(list)
    for key in sorted(strata):
        members[strata[key]].append(key)
    exact = {name: test * len(keys) / len(strata) for name, keys in members.items()}
    counts = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(members, key=lambda name: (counts[name] - exact[name], name))
    for name in by_remainder[: test - sum(counts.values())]:
        counts[name] += 1
    chosen: list[int] = []
    for name in sorted(members):
        rng = random.Random(seed_for("bfcl split", seed, name))
        chosen += rng.sample(members[name], counts[name])
    return {"train": sorted(set(strata) - set(chosen)), "test": sorted(chosen)}


def make_manifest(suite: Suite, *, made_from: str, test: int, seed: int) -> dict[str, Any]:
    """The manifest of an installed release, as it is committed beside this file. The hashes are of
    what is installed now: look at what changed before committing another one."""
    path = suite.folder / "data" / f"{suite.release.prefix}multi_turn_base.json"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    strata = {scenario_of(row["id"]): "+".join(sorted(row["involved_classes"])) for row in rows}
    return {
        "made_from": made_from,
        "seed": seed,
        **stratified(strata, test=test, seed=seed),
        "files": {file: suite.sha256(file) for file in suite.files()},
    }


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """The manifest as committed: a line for each key, a line for each file."""
    files: Mapping[str, str] = manifest["files"]
    head = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in manifest.items() if k != "files"]
    listed = ",\n".join(f"    {json.dumps(f)}: {json.dumps(h)}" for f, h in files.items())
    return "{\n" + ",\n".join([*head, f'  "files": {{\n{listed}\n  }}']) + "\n}\n"


def scenario_of(row_id: str) -> int:
    """The scenario's number: "multi_turn_miss_func_17" is 17."""
    return int(row_id.rpartition("_")[2])


def leaks(train: Sequence[int], test: Sequence[int]) -> list[int]:
    """Scenarios on both sides: none, or the manifest is wrong."""
    return sorted(set(train) & set(test))

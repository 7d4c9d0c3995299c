"""`agentexp data`: how to get data that agentexp cannot ship, and whether what is there is whole."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from pathlib import Path

from agentexp.envs.alfworld.environment import RELEASE, SPLITS, find_games, kind_of_folder
from agentexp.envs.alfworld.games import Game
from agentexp.errors import DataError

OFFICIAL_COUNTS = {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
KNOWN_HASHES = {"valid_seen": "71bc5b9d70ec996b"}  # of complete official splits, as seen by us
_HOW = f"""\
ALFWorld's games (MIT licence) are downloaded by its own package:
    pip install 'agentexp[alfworld]'
    export ALFWORLD_DATA=$HOME/alfworld-data     # any folder; agentexp reads the same variable
    alfworld-download
Afterwards $ALFWORLD_DATA/{RELEASE} holds the folders {", ".join(SPLITS)}; check them with
    agentexp data alfworld --dir $ALFWORLD_DATA
Without them, play generated games: agentexp train environment=alfworld_generated (not ALFWorld scores)."""


def alfworld_report(folder: Path | None) -> tuple[int, str]:
    """(exit status, text): how to get the official games, and what is in `folder` (None: the
    environment variable ALFWORLD_DATA). Status 0: complete and readable; 1: incomplete or corrupt;
    2: nothing there."""
    where = folder or (Path(os.environ["ALFWORLD_DATA"]) if os.environ.get("ALFWORLD_DATA") else None)
    if where is None:
        return 2, f"{_HOW}\n\nNo folder to check: ALFWORLD_DATA is not set and no --dir was given."
    found = {split: find_games(where, split) for split in SPLITS}
    if not any(found.values()):
        return 2, f"{_HOW}\n\nNo games under {where} (looked for {RELEASE}/<split>/*/*/game.tw-pddl)."
    lines = [f"ALFWorld games in {where}"]
    status = 0
    for split, files in found.items():
        official = OFFICIAL_COUNTS[split]
        corrupt = [problem for path in files if (problem := _problem_of(path))]
        verdict = "complete" if len(files) == official and not corrupt else "incomplete"
        status = status if verdict == "complete" else 1
        kinds = Counter(kind_of_folder(path.parent.parent.name) for path in files)
        by_kind = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        digest = contents_hash(files)
        known = KNOWN_HASHES.get(split)
        compared = "" if verdict != "complete" else " (as known)" if digest == known else f" (known: {known or 'none'})"
        if known and digest != known and verdict == "complete":
            status = 1
        lines.append(f"  {split:13} {len(files):4} of {official} games  {verdict}  sha256 {digest}{compared}")
        lines.extend([f"  {'':13} {by_kind}"] if files else [])
        lines.extend(f"    corrupt: {problem}" for problem in corrupt[:5])
        if len(corrupt) > 5:
            lines.append(f"    and {len(corrupt) - 5} more corrupt games")
    if status:
        lines += ["", "Some games are missing or corrupt; what is there can be played.", _HOW]
    return status, "\n".join(lines)


def contents_hash(files: list[Path]) -> str:
    """One hash over the folder names and bytes of game files, whatever folder they lie in."""
    digest = hashlib.sha256()
    for path in sorted(files, key=lambda p: p.parts[-3:]):
        digest.update("/".join(path.parts[-3:]).encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16] if files else "-"


def _problem_of(path: Path) -> str | None:
    """What is wrong with a game file, or None."""
    try:
        Game.load(path)
    except DataError as error:
        return str(error)
    return None

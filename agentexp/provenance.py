"""Where a result came from: code, packages, hardware, configuration, environment. Knows no run and
imports no torch of its own (it asks the one that is loaded).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

MAX_DIFF_BYTES = 1_000_000
GIT_TIMEOUT_S = 20


def provenance(config: Mapping[str, Any], environment_version: Mapping[str, str]) -> dict[str, Any]:
    """Everything that is known about how a result is being made."""
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": sys.argv,
        "config_sha256": config_hash(config),
        "environment": dict(environment_version),
        "git": git_state(Path(__file__).resolve().parent),
        "packages": package_versions(),
        "hardware": hardware(),
    }


def changes(first: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two provenances that could change a number: code, packages, machine."""
    code = [k for k in ("commit", "diff_sha256") if first["git"].get(k) != now["git"].get(k)]
    names = sorted({*first["packages"], *now["packages"]})
    packages = [n for n in names if first["packages"].get(n) != now["packages"].get(n)]
    machine = [k for k in ("cpu", "python", "gpus") if first["hardware"].get(k) != now["hardware"].get(k)]
    return [f"git {k}" for k in code] + [f"package {n}" for n in packages] + machine


def config_hash(config: Mapping[str, Any]) -> str:
    """SHA-256 of a resolved configuration; the order of its keys does not matter.

    >>> config_hash({"a": 1, "b": 2}) == config_hash({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()


def git_state(folder: Path) -> dict[str, Any]:
    """Commit, branch, the difference to it and the names of untracked files; or why there is none."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return {"commit": None, "why": f"{folder} is not in a git repository with a commit, or git is not installed"}
    top = Path(_git(folder, "rev-parse", "--show-toplevel") or folder)
    diff = _git(top, "diff", "HEAD", "--no-color", "--no-ext-diff") or ""
    untracked = _git(top, "ls-files", "--others", "--exclude-standard") or ""
    return {
        "commit": commit,
        "branch": _git(folder, "rev-parse", "--abbrev-ref", "HEAD"),
        "dirty": bool(diff),
        "diff": diff[:MAX_DIFF_BYTES],
        "diff_cut_chars": max(0, len(diff) - MAX_DIFF_BYTES),
        "diff_sha256": hashlib.sha256(diff.encode()).hexdigest(),
        "untracked": untracked.splitlines()[:1000],
    }


def package_versions() -> dict[str, str]:
    """Name and version of every installed distribution."""
    found = {str(d.metadata["Name"]): d.version for d in metadata.distributions() if d.metadata["Name"]}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def hardware() -> dict[str, Any]:
    """Machine, processor, memory, and the accelerators that torch sees."""
    about: dict[str, Any] = {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_gb": _memory_gb(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "gpus": [],
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        about["torch_threads"] = torch.get_num_threads()
        about["cuda"] = torch.version.cuda
        about["gpus"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return about


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints, or None where it cannot say: a result without git is still a result."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace").rstrip("\n") if done.returncode == 0 else None


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (ValueError, OSError, AttributeError):
        return None

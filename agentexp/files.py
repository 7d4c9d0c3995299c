"""Files that are whole or absent. A file is written beside its place under a temporary name, flushed
to the disk, and renamed; what the disk refuses becomes a StorageError that says what to do. Knows no
run, no tensor. Standard library only.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from agentexp.errors import StorageError

TEMPORARY = ".tmp-"  # every half-written file or folder starts so; such names are never read

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_FOLDER = {errno.ENOTDIR, errno.EEXIST}


def storage_error(error: OSError, path: Path, doing: str) -> StorageError:
    """The StorageError for what the operating system said while `doing` something at `path`.

    >>> str(storage_error(OSError(errno.EROFS, "Read-only file system"), Path("/x/y"), "making the folder"))
    'making the folder /x/y was refused (Read-only file system). Give a place that you may write to: output_dir=FOLDER.'
    """
    why = error.strerror or str(error)
    if error.errno in _FULL:
        return StorageError(
            f"The disk is full: {doing} {path} failed ({why}; {_free(path)} free). Nothing half-written was kept and "
            "the last checkpoint is whole. Free some space and run the same command again: it resumes."
        )
    if error.errno in _REFUSED:
        return StorageError(
            f"{doing} {path} was refused ({why}). Give a place that you may write to: output_dir=FOLDER."
        )
    if error.errno in _NOT_FOLDER:
        return StorageError(
            f"{doing} {path} failed: a part of that path is a file, not a folder ({why}). Move the file away or give "
            "another place: output_dir=FOLDER."
        )
    return StorageError(f"{doing} {path} failed: {why}. Check the disk, then run the same command again: it resumes.")


def _free(path: Path) -> str:
    for folder in (path, *path.parents):
        if folder.is_dir():
            return f"{shutil.disk_usage(folder).free / 1e6:.1f} MB"
    return "unknown space"


@contextmanager
def storing(path: Path, doing: str) -> Iterator[None]:
    """Turn an OSError inside the block into a StorageError about `path`."""
    try:
        yield
    except OSError as error:
        raise storage_error(error, path, doing) from error


def make_folder(path: Path) -> Path:
    """Make a folder and its parents, and prove that it can be written to."""
    with storing(path, "making the folder"):
        path.mkdir(parents=True, exist_ok=True)
    probe = path / f"{TEMPORARY}probe-{os.getpid()}"
    with storing(path, "writing into the folder"):
        try:
            probe.write_bytes(b"can this folder be written to?")
        finally:
            probe.unlink(missing_ok=True)
    return path


def sync_folder(path: Path) -> None:
    """Make the renames inside a folder last through a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, write: bytes | str | Callable[[BinaryIO], object]) -> None:
    """Write a file so that `path` is either the old one or the whole new one."""
    aside = path.parent / f"{TEMPORARY}{os.getpid()}-{path.name}"
    with storing(path, "writing"):
        try:
            with aside.open("wb") as file:
                if callable(write):
                    write(file)
                else:
                    file.write(write.encode() if isinstance(write, str) else write)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
            sync_folder(path.parent)
        finally:
            aside.unlink(missing_ok=True)


def sweep(folder: Path) -> int:
    """Delete what a killed process left half-written in a folder; how many things that were."""
    leftovers = list(folder.glob(f"{TEMPORARY}*")) if folder.is_dir() else []
    for path in leftovers:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return len(leftovers)

"""A run's folder as a whole: its lock, and the deletion of a run."""

from __future__ import annotations

import re
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import InputError, OptionError
from ..locks import Claiming, Lock, take_lock
from ..records.run_folder import DAMAGED, MANIFEST, SUPERSEDED
from .attempts import ATTEMPTS
from .resume import RecordKind

LOCK = ".lock"
CLAIM = "claim.json"


def take_folder_lock(folder: Path, claiming: Claiming | None = None) -> Lock:
    """Keeps other processes out of a folder, which is made when missing.

    Args:
        folder: The folder.
        claiming: Kind of claim; None for a lock of the operating system.

    Returns:
        What is to be closed.

    Raises:
        InputError: If it can't be written.
        OptionError: If another process is in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be made: {error.strerror}") from None
    busy = f"--out: another process is writing {folder}"
    if claiming is not None and claiming.by == "file":
        return take_lock(folder / CLAIM, folder, busy=busy, claiming=claiming)
    if (folder / CLAIM).exists():
        raise OptionError(f"{busy}, or was: it holds {CLAIM}, which --claim file obeys")
    instead = ": --claim file works on any file system"
    return take_lock(folder / LOCK, folder, busy=busy, instead=instead)


def clear_run(folder: Path, kind: RecordKind[Any], claiming: Claiming | None = None) -> None:
    """Deletes a run: the files that it writes into its folder, and no others.

    Raises:
        OptionError: If another process writes it.
        InputError: If the folder can't be written.
    """
    lock = take_folder_lock(folder, claiming)
    try:
        clear_locked(folder, kind, claiming)
    finally:
        lock.close()


def clear_locked(folder: Path, kind: RecordKind[Any], claiming: Claiming | None = None) -> None:
    """Deletes a run whose lock is held; its manifest last."""
    if kind.runs_below is not None:
        for run in sorted((folder / kind.runs_below).glob(f"*/{MANIFEST}")):
            clear_run(run.parent, kind, claiming)
            _remove(run.parent, re.compile(re.escape(LOCK)))
        _remove(folder / kind.runs_below, None)
    below = (folder / name for name in kind.folders)
    locked = [of for of in below if (of / LOCK).exists() or (of / CLAIM).exists()]
    locks = [take_folder_lock(of, claiming) for of in locked]
    try:
        for name, files in kind.folders.items():
            _remove(folder / name, files)
        for of in locked:
            _remove(of, re.compile(re.escape(LOCK)))
    finally:
        for lock in locks:
            lock.close()
    temporary = Path(kind.file).with_suffix(".tmp").name
    for name in (*kind.figures, ATTEMPTS, SUPERSEDED, DAMAGED, temporary, kind.file, MANIFEST):
        (folder / name).unlink(missing_ok=True)


def discard(folder: Path, names: Set[str]) -> None:
    """Deletes files of a run that was refused, unless batches or runs are below its folder.

    Cached replies stay, so that later runs with the same requests can use them.
    """
    if any(path.name in (MANIFEST, "batches.json") for path in folder.glob("*/**/*.json")):
        return
    for name in (LOCK, CLAIM, MANIFEST, *names):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _remove(folder: Path, files: re.Pattern[str] | None) -> None:
    """Deletes some files of a folder, and the folder when nothing else is in it."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in folder.iterdir():
        if files is not None and files.fullmatch(path.name) and not path.is_dir():
            path.unlink()
    with suppress(OSError):
        folder.rmdir()

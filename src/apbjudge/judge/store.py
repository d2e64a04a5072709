"""A run's folder: append-only judgements, the lock and the manifest.

Nothing that was paid for is deleted. A judgement that the input no longer asks for moves to
``superseded.jsonl`` and comes back from there when it is asked for again; a damaged line moves to
``damaged.txt``. What is moved is on disk in its new place before it leaves the old one, so that a
kill at any time leaves it in one of them or in both.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ..errors import InputError, OtherRunError, RowError
from ..jsonl import Appender, object_of, read_line_at, read_lines, take_lock, write_atomically
from ..records import Unscored, Verdict, judgement_row
from ..records.keys import KeySet, short_key
from ..records.run_folder import DAMAGED, FIGURES, JUDGEMENTS, MANIFEST, SUPERSEDED
from .earlier import (
    PASSING_REASONS,
    PLACE,
    Inputs,
    Keys,
    judged_lines,
    judgement_key,
    look_into,
    place_key,
)
from .source import Source

__all__ = [
    "PASSING_REASONS",
    "PLACE",
    "Store",
    "clear_run",
    "finished_keys",
    "judgement_key",
]

_BATCH_FILES = re.compile(r"batches\.json|(requests|answers)-[0-9]+(-[0-9]+)?\.jsonl")
_CACHE_FILES = re.compile(r"(cache|replies)\.db(-wal|-shm|-journal)?")


class Store:
    """Keeps judgements in a folder; a second start of the same run continues in it.

    Args:
        folder: The run's folder, created when missing.
        identity: Settings that must be the same for judgements to be in one file.
        flush_every: Rows per write: 1 where a row was paid for.
        partial: Whether a session asks for some of the rows only; what others asked for stays.
        source: The input, to refuse a folder that holds a run of another one; None compares none.
        overwrite: Whether another run in the folder is deleted instead of refused.
        note: Receives what the user should know of earlier judgements.

    Raises:
        OptionError: If the folder holds another run or files that are no run's, or another
            process writes it.
        InputError: If the folder can't be written.
    """

    def __init__(
        self,
        folder: Path,
        identity: dict[str, Any],
        *,
        flush_every: int,
        partial: bool = False,
        source: Source | None = None,
        overwrite: bool = False,
        note: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.folder = folder
        self._partial = partial
        self._note = note
        self._path = folder / JUDGEMENTS
        self._is_derived = "several" in identity  # votes of a panel: nobody paid for these rows
        self._lock = _locked(folder)
        try:
            self._start(identity, source, flush_every, overwrite=overwrite)
        except OSError as error:
            os.close(self._lock)
            raise InputError(f"{error.filename or folder}: {error.strerror}") from None
        except BaseException:
            os.close(self._lock)
            raise

    def _start(
        self, identity: dict[str, Any], source: Source | None, flush_every: int, *, overwrite: bool
    ) -> None:
        """Reads what an earlier session left and opens the file for more."""
        try:
            earlier = look_into(self.folder, identity, source)
        except OtherRunError:
            if not overwrite:
                raise
            _clear(self.folder)
            earlier = look_into(self.folder, identity, source)
        self.inputs: Inputs = earlier.inputs
        """The input files, as the manifest is to have them."""
        if not earlier.is_sound:
            self._mend()
        if n := earlier.n_by_kind.get("damaged", 0):
            more = f" (and {n - 1} more lines)" if n > 1 else ""
            self._note(
                f"{earlier.first_damage}{more}: the line is damaged and now in "
                f"{self.folder / DAMAGED}; its row is judged again"
            )
        self._finished, self._places = earlier.keys, earlier.places
        self._met = np.zeros(len(self._finished), dtype=bool)
        self._moved: dict[int, Mapping[str, Any]] = {}
        self._added: set[int] | None = set() if self._partial else None
        self._archive = _Archive(self.folder / SUPERSEDED)
        self._out = Appender(self._path, every=flush_every)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the judgements written so far, as JSON rows.

        Raises:
            InputError: If a line of the file was damaged by someone else meanwhile.
        """
        return (row for _, row in self._lines())

    def _lines(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """The lines with their judgements: whole ones, as the start of the session left them."""
        for line in read_lines(self._path, any_format=True):
            if isinstance(line.values, RowError):
                raise InputError(f"{self._path}:{line.number}: {line.values}")
            yield line.raw, line.values

    @property
    def is_fresh(self) -> bool:
        """Whether no earlier session left anything to continue from."""
        return len(self._finished) == 0 and len(self._archive) == 0

    def is_finished(self, key: int, place: dict[str, Any]) -> bool:
        """Whether a judgement of this key is already there; remembers that it was asked for.

        A superseded one is taken back.

        Args:
            key: See ``judgement_key``.
            place: The PLACE fields of the row as it is now: they may have changed since.
        """
        at = int(np.searchsorted(self._finished, np.uint64(key)))
        if at == len(self._finished) or int(self._finished[at]) != key:
            return self._is_taken_back(key, place)
        self._met[at] = True
        if int(self._places[at]) != place_key(place):
            self._moved[key] = place
        return True

    def _is_taken_back(self, key: int, place: Mapping[str, Any]) -> bool:
        row = self._archive.row_of(key)
        if row is None:
            return False
        self._out.append({**row, **place})
        if self._added is not None:
            self._added.add(key)
        return True

    def add(self, judgement: Verdict | Unscored) -> None:
        """Appends a judgement."""
        row = judgement_row(judgement)
        self._out.append(row)
        if self._added is not None:
            self._added.add(judgement_key(row))

    def current(self) -> Iterator[dict[str, Any]]:
        """Yields the judgements that this session asked for, found or made."""
        self._out.flush()
        if self._added is None:
            yield from self.rows()
            return
        asked = self._added | {int(key) for key in self._finished[self._met]}
        yield from (row for row in self.rows() if judgement_key(row) in asked)

    def replace_all(self, judgements: Iterable[Verdict | Unscored]) -> None:
        """Puts other judgements in the place of all there are, in one step.

        Only for judgements that are computed from those of other runs: nothing is kept of the
        earlier ones.
        """
        self._out.flush()
        self._write_anew(orjson.dumps(judgement_row(each)) for each in judgements)

    def settle(self) -> None:
        """Supersedes judgements of rows that are no longer in the input, moves those that moved."""
        self._out.flush()
        if self._partial:
            return
        strays = KeySet()
        for key in self._finished[~self._met]:
            strays.add(int(key))
        if self._met.all() and not self._moved:
            return
        n = 0
        for raw, row in self._lines():
            if judgement_key(row) in strays and row["reason"] != "bad_input":
                self._archive.add(raw)
                n += 1
        self._archive.sync()
        self._write_anew(self._lines_without(strays))
        if n:
            self._note(
                f"{n} earlier judgements are of rows that are not in the input any more, or are "
                f"different now; they are in {self.folder / SUPERSEDED}"
            )

    def _lines_without(self, strays: KeySet) -> Iterator[bytes]:
        for raw, row in self._lines():
            key = judgement_key(row)
            if key in self._moved:
                yield orjson.dumps({**row, **self._moved[key]})
            elif key not in strays:
                yield raw

    def _mend(self) -> None:
        """Leaves only judgements that count in the file; what they cost stays known.

        Damaged lines move to DAMAGED. Failures that are tried again, if they cost a call, and
        second judgements of one row are superseded.
        """
        archive = _Archive(self.folder / SUPERSEDED)
        damaged = bytearray()
        for line in judged_lines(self._path):
            if line.kind == "damaged":
                damaged += line.raw + b"\n"
            elif line.kind != "current" and isinstance(line.row, dict) and self._cost(line.row):
                archive.add(line.raw)
        archive.sync()
        if damaged:
            _append_synced(self.folder / DAMAGED, bytes(damaged))
        self._write_anew(line.raw for line in judged_lines(self._path) if line.kind == "current")

    def _cost(self, row: Mapping[str, Any]) -> bool:
        """Whether a judgement cost a call, or may have."""
        if self._is_derived or row["reason"] == "bad_input":
            return False
        usage = row["usage"]
        return row["reason"] not in PASSING_REASONS or (usage is not None and usage["calls"] > 0)

    def _write_anew(self, lines: Iterable[bytes]) -> None:
        temporary = self._path.with_suffix(".tmp")
        try:
            with temporary.open("wb") as file:
                for line in lines:
                    file.write(line + b"\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            raise InputError(f"{self._path}: can't be written: {error.strerror}") from None

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Replaces the manifest."""
        data = orjson.dumps(manifest, option=orjson.OPT_INDENT_2, default=str)
        write_atomically(self.folder / MANIFEST, data + b"\n")

    def close(self) -> None:
        """Flushes, closes and lets go of the lock."""
        try:
            self._out.close()
        finally:
            os.close(self._lock)


class _Archive:
    """The superseded judgements: a line each, never changed or removed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending: list[bytes] = []
        self._lines = KeySet()
        keys, offsets = array("Q"), array("Q")
        for line in judged_lines(path):
            self._lines.add(_line_key(line.raw))
            if line.kind == "current" and isinstance(line.row, dict):
                keys.append(judgement_key(line.row))
                offsets.append(line.offset)
        order = np.argsort(np.asarray(keys), kind="stable")
        self._keys: Keys = np.asarray(keys)[order]
        self._offsets: Keys = np.asarray(offsets)[order]

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def keys(self) -> Keys:
        """Sorted keys of the judgements."""
        return self._keys

    def row_of(self, key: int) -> dict[str, Any] | None:
        """The judgement of a key, None where there is none."""
        at = int(np.searchsorted(self._keys, np.uint64(key)))
        if at == len(self._keys) or int(self._keys[at]) != key:
            return None
        return object_of(read_line_at(self._path, int(self._offsets[at])))

    def add(self, raw: bytes) -> None:
        """Takes in a line, once."""
        if self._lines.add(_line_key(raw)):
            self._pending.append(raw + b"\n")

    def sync(self) -> None:
        """Writes what was taken in, and waits until it has reached the disk."""
        if self._pending:
            _append_synced(self._path, b"".join(self._pending))
            self._pending.clear()


def _line_key(raw: bytes) -> int:
    return short_key(raw.decode(errors="surrogateescape"))


def _append_synced(path: Path, data: bytes) -> None:
    """Appends whole lines, also behind a last line without end, and waits for the disk."""
    try:
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                data = data if file.read(1) == b"\n" else b"\n" + data
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"{path}: can't be written: {error.strerror}") from None


def finished_keys(folder: Path, identity: Mapping[str, Any], source: Source | None) -> Keys:
    """Sorted keys of the judgements that a further session would not make again; only reads.

    Raises:
        OtherRunError: If the folder holds another run.
        OptionError: If it holds files that are no run's.
        InputError: If a file can't be read.
    """
    keys = look_into(folder, identity, source).keys
    return np.union1d(keys, _Archive(folder / SUPERSEDED).keys)


# Replacing a run ----------------------------------------------------------------------------------


def _locked(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be made: {error.strerror}") from None
    busy = f"--out: another process is writing {folder}"
    return take_lock(folder / ".lock", folder, busy=busy)


def clear_run(folder: Path) -> None:
    """Deletes a run: what ``grade`` writes into its folder, and no other file.

    Raises:
        OptionError: If another process writes it.
        InputError: If the folder can't be written.
    """
    lock = _locked(folder)
    try:
        _clear(folder)
    finally:
        os.close(lock)


def _clear(folder: Path) -> None:
    """Deletes a run whose lock is held; its manifest last."""
    for run in sorted((folder / "judges").glob(f"*/{MANIFEST}")):
        clear_run(run.parent)
        _remove(run.parent, re.compile(r"\.lock"))
    _remove(folder / "judges", None)
    lock = _locked(folder / "batch") if (folder / "batch").is_dir() else None
    try:
        _remove(folder / "batch" / "answers", _CACHE_FILES)
        _remove(folder / "batch", _BATCH_FILES)
    finally:
        if lock is not None:
            _remove(folder / "batch", re.compile(r"\.lock"))
            os.close(lock)
    names = (*FIGURES, SUPERSEDED, DAMAGED, f"{Path(JUDGEMENTS).stem}.tmp", JUDGEMENTS, MANIFEST)
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _remove(folder: Path, files: re.Pattern[str] | None) -> None:
    """Deletes some files of a folder, and the folder when nothing else is in it."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in folder.iterdir():
        if files is not None and files.fullmatch(path.name) and not path.is_dir():
            path.unlink()
    with suppress(OSError):
        folder.rmdir()

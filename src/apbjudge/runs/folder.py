"""A run's folder: append-only records, the lock and the manifest.

Nothing that was paid for is deleted. A record that the input no longer asks for moves to
``superseded.jsonl`` and comes back from there when it is asked for again; a damaged line moves to
``damaged.txt``. What is moved is on disk in its new place before it leaves the old one, so that a
kill at any time leaves it in one of them or in both.
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Generic, TypeVar

import numpy as np
import orjson

from ..errors import InputError, OtherRunError, PausedError, RowError, UsageError
from ..jsonl import Appender, object_of, read_line_at, read_lines, write_atomically
from ..locks import Claiming
from ..records.keys import KeyMap, KeySet, bytes_key
from ..records.own_runs import SEAL, is_own, sealed
from ..records.run_folder import DAMAGED, MANIFEST, SUPERSEDED
from .attempts import ATTEMPTS, Attempt, KnownRow
from .clearing import clear_locked, discard, take_folder_lock
from .resume import Inputs, RecordKind, read_earlier, record_key, record_lines
from .rows import RowSource

T = TypeVar("T")


class RecordLog(Generic[T]):
    """Keeps records in a folder; a second start of the same run continues in it.

    As a context it is closed at its end; of a run that was refused before anything was recorded
    that cost a call, nothing stays that would be in the way of another one.

    Args:
        folder: The run's folder, created when missing.
        kind: The records.
        identity: Settings that must be the same for records to be in one file.
        flush_every: Rows per write; 1 if rows are paid for.
        is_partial: True if a session asks for only some of the rows; records of the others stay.
        is_derived: True if the records are computed from those of other runs, for nothing.
        source: The input, to refuse a folder that holds a run of another one; None compares none.
        settings: Digest of all that a record depends on besides its row, for the ledger; empty
            where it depends on more, and no ledger is written.
        overwrite: True if another run in the folder is deleted instead of refused.
        claiming: Kind of claim on the folder; None for a lock of the operating system.
        note: Receives remarks on earlier records for the user.

    Raises:
        OptionError: If the folder holds another run or files that are no run's, or another
            process writes it.
        InputError: If the folder can't be written.
    """

    def __init__(
        self,
        folder: Path,
        kind: RecordKind[T],
        identity: Mapping[str, Any],
        *,
        flush_every: int = 1,
        is_partial: bool = False,
        is_derived: bool = False,
        source: RowSource | None = None,
        settings: str = "",
        overwrite: bool = False,
        claiming: Claiming | None = None,
        note: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.folder = folder
        self.kind = kind
        self._is_partial = is_partial
        self._has_cost = False
        self._is_derived = is_derived
        self._note = note
        self._path = folder / kind.file
        self._claiming = claiming
        self._lock = take_folder_lock(folder, claiming)
        try:
            self._start(identity, source, settings, flush_every, overwrite=overwrite)
        except OSError as error:
            self._lock.close()
            raise InputError(f"{error.filename or folder}: {error.strerror}") from None
        except BaseException:
            self._lock.close()
            raise

    def _start(
        self,
        identity: Mapping[str, Any],
        source: RowSource | None,
        settings: str,
        flush_every: int,
        *,
        overwrite: bool,
    ) -> None:
        """Reads the records of earlier sessions and opens the file for more."""
        try:
            earlier = read_earlier(self.folder, self.kind, identity, source, settings)
        except OtherRunError:
            if not overwrite:
                raise
            clear_locked(self.folder, self.kind, self._claiming)
            earlier = read_earlier(self.folder, self.kind, identity, source, settings)
        self.inputs: Inputs = earlier.inputs
        """The input files, as the manifest is to have them."""
        if not earlier.is_sound:
            self._mend(earlier.attempts and earlier.attempts.records)
        if n := earlier.n_by_kind.get("damaged", 0):
            more = f" (and {n - 1} more lines)" if n > 1 else ""
            self._note(
                f"{earlier.first_damage}{more}: the line is damaged and now in "
                f"{self.folder / DAMAGED}; its row is run again"
            )
        self._finished = earlier.finished
        self._met = np.zeros(len(self._finished), dtype=bool)
        self._moved: dict[int, Mapping[str, Any]] = {}
        self._attempts = earlier.attempts
        if self._attempts is not None:
            self._attempts.records = KeyMap()  # all that it was needed for is read
        self._added: set[int] | None = set() if self._is_partial else None
        self._archive = _Archive(self.folder / SUPERSEDED, self.kind)
        self._out = Appender(self._path, every=flush_every)
        self._failures: Appender | None = None
        if self.kind.failures is not None:
            self._retire_failures(self.folder / self.kind.failures)

    def _retire_failures(self, path: Path) -> None:
        """Removes the failures of the last session; their costs remain recorded."""
        for line in record_lines(path, self.kind):
            if isinstance(line.row, dict) and self._cost(line.row):
                self._archive.add(line.raw)
        self._archive.sync()
        path.unlink(missing_ok=True)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yields the records written so far, as JSON rows, without failures in their own file.

        Raises:
            InputError: If a line of the file was damaged by someone else meanwhile.
        """
        return (row for _, row in self._lines(self._path))

    def _lines(self, path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """The lines with their records: whole ones, as the start of the session left them."""
        for line in read_lines(path, any_format=True):
            if isinstance(line.values, RowError):
                raise InputError(f"{path}:{line.number}: {line.values}")
            yield line.raw, line.values

    @property
    def is_fresh(self) -> bool:
        """True if no earlier session left anything to continue from."""
        return len(self._finished) == 0 and len(self._archive.offsets) == 0

    def finished_row(self, row: bytes) -> KnownRow | None:
        """A row that comes as it came before, by its SHA-256, if the record of then is there."""
        known = None if self._attempts is None else self._attempts.of_row(row)
        if known is None or (at := self._finished.index(known.key)) is None:
            return None
        return known if self._finished.value(at) == known.line_key else None

    def carry(self, known: KnownRow, line: int) -> None:
        """Remembers that the record of a finished row was asked for; the row is on a line now."""
        self._met[self._finished.index(known.key)] = True
        if line != known.line:
            self._moved[known.key] = {"line": line}

    def is_finished(self, row: Mapping[str, Any], attempt: Attempt | None = None) -> bool:
        """True if a record is already there; remembers that it was asked for.

        A superseded one is taken back.

        Args:
            row: The fields that a record's key is made of, and those of its place as they are
                now: they may have changed since.
            attempt: The row, for the ledger.
        """
        key, place = record_key(row), self.kind.place_of(row)
        if (at := self._finished.index(key)) is not None:
            self._met[at] = True
            line_key, place_key = self._finished.values(at)
            if place_key != self.kind.place_key(place):
                self._moved[key] = place
            elif attempt is not None and self._attempts is not None:
                self._attempts.add(attempt, key=key, line_key=line_key, line=row["line"])
            return True
        if (superseded := self._archive.row_of(key)) is None:
            return False
        self._append({**superseded, **place}, attempt)
        return True

    def _append(self, row: dict[str, Any], attempt: Attempt | None) -> None:
        """Appends a record, to the ledger only if it counts in the next session too."""
        self._lock.check()
        line = self._out.append(row)
        if self._added is not None:
            self._added.add(record_key(row))
        counts = row.get("reason") not in self.kind.retried
        if attempt is not None and self._attempts is not None and counts:
            key, line_key = record_key(row), bytes_key(line)
            self._attempts.add(attempt, key=key, line_key=line_key, line=row["line"])

    def add(self, record: T, attempt: Attempt | None = None) -> dict[str, Any]:
        """Appends a record, to the ledger too if its row is stated; returns it as JSON."""
        row = self.kind.to_json(record)
        self._has_cost = self._has_cost or self._cost(row)
        if self.kind.failures is None or row.get("reason") is None:
            self._append(row, attempt)
        else:
            if self._failures is None:  # no file where there are none
                self._failures = Appender(self.folder / self.kind.failures, every=1)
            self._failures.append(row)
        return row

    def current(self) -> Iterator[dict[str, Any]]:
        """Yields the records that this session asked for, old or new; its failures come last."""
        self._out.flush()
        if self._added is None:
            yield from self.rows()
        else:
            asked = self._added | {int(key) for key in self._finished.keys[self._met]}
            yield from (row for row in self.rows() if record_key(row) in asked)
        if self.kind.failures is not None and self._failures is not None:
            self._failures.flush()
            yield from (row for _, row in self._lines(self.folder / self.kind.failures))

    def replace_all(
        self, rows: Iterable[Mapping[str, Any]], *, superseded: Iterable[bytes] = ()
    ) -> None:
        """Puts other records in the place of all there are, in one step.

        Only for records from other runs: the earlier ones are lost.

        Args:
            rows: The records.
            superseded: Lines of superseded records, which join those of this folder.
        """
        self._out.flush()
        for line in superseded:
            self._archive.add(line)
        self._archive.sync()
        self._write_anew(map(orjson.dumps, rows))

    def supersede(self) -> None:
        """Supersedes records of rows that left the input; moves those of rows that moved."""
        self._out.flush()
        if self._is_partial:
            return
        strays = KeySet()
        for key in self._finished.keys[~self._met]:
            strays.add(int(key))
        if self._met.all() and not self._moved:
            return
        n = 0
        for raw, row in self._lines(self._path):
            if record_key(row) in strays and row.get("reason") not in self.kind.free:
                self._archive.add(raw)
                n += 1
        self._archive.sync()
        moved: dict[int, tuple[int, int]] = {}
        self._write_anew(self._lines_without(strays, moved))
        if self._attempts is not None:
            self._attempts.add_moved(moved)
        if n:
            self._note(
                f"{n} earlier {self.kind.name}s are of rows that are not in the input any more, or "
                f"are different now; they are in {self.folder / SUPERSEDED}"
            )

    def _lines_without(self, strays: KeySet, moved: dict[int, tuple[int, int]]) -> Iterator[bytes]:
        """Yields the lines of records that stay, and fills in those of unchanged rows that move."""
        for raw, row in self._lines(self._path):
            key = record_key(row)
            if (place := self._moved.get(key)) is not None:
                line = orjson.dumps({**row, **place})
                if set(place) == {"line"}:
                    moved[bytes_key(raw)] = bytes_key(line), place["line"]
                yield line
            elif key not in strays:
                yield raw

    def _mend(self, known: KeyMap | None) -> None:
        """Leaves only records that count in the file; what they cost stays known.

        Damaged lines move to ``damaged.txt``. Failures that are tried again, if they cost a call,
        and second records of one row are superseded.
        """
        archive = _Archive(self.folder / SUPERSEDED, self.kind)
        damaged = bytearray()
        for line in record_lines(self._path, self.kind, known):
            if line.kind == "damaged":
                damaged += line.raw + b"\n"
            elif line.kind != "current" and self._cost(object_of(line.raw)):
                archive.add(line.raw)
        archive.sync()
        if damaged:
            _append_synced(self.folder / DAMAGED, bytes(damaged))
        self._write_anew(
            line.raw
            for line in record_lines(self._path, self.kind, known)
            if line.kind == "current"
        )

    def _cost(self, row: Mapping[str, Any]) -> bool:
        """True if a record cost a call, or may have."""
        reason, usage = row.get("reason"), row["usage"]
        if self._is_derived or reason in self.kind.free:
            return False
        return reason not in self.kind.retried or (usage is not None and usage["calls"] > 0)

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
        """Replaces the manifest, and seals it as this user's."""
        self._lock.check()
        _write_manifest(self.folder, manifest)

    def __enter__(self) -> RecordLog[T]:
        return self

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        try:
            if isinstance(error, UsageError) and self.is_fresh and not self._has_cost:
                self._lock.check()  # else the files are another's
                discard(self.folder, {self.kind.file, ATTEMPTS, *self.kind.figures})
        finally:
            self.close()

    def close(self) -> None:
        """Flushes, closes and lets go of the lock."""
        try:
            self._out.close()
            if self._failures is not None:
                self._failures.close()
            if self._attempts is not None:
                self._attempts.close()
        finally:
            self._lock.close()


class _Archive:
    """The superseded records: a line each, never changed or removed."""

    def __init__(self, path: Path, kind: RecordKind[Any]) -> None:
        self._path = path
        self._pending: list[bytes] = []
        self._lines = KeySet()
        self.offsets = KeyMap()
        for line in record_lines(path, kind):
            self._lines.add(bytes_key(line.raw))
            if line.kind == "current":
                self.offsets.add(line.key, line.offset)
        self.offsets.sort()

    def row_of(self, key: int) -> dict[str, Any] | None:
        """The record of a key; None if there is none."""
        at = self.offsets.index(key)
        if at is None:
            return None
        return object_of(read_line_at(self._path, self.offsets.value(at)))

    def add(self, raw: bytes) -> None:
        """Adds a line, once."""
        if self._lines.add(bytes_key(raw)):
            self._pending.append(raw + b"\n")

    def sync(self) -> None:
        """Writes the added lines and waits until they are on the disk."""
        if self._pending:
            _append_synced(self._path, b"".join(self._pending))
            self._pending.clear()


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


def finished_in(
    folder: Path, kind: RecordKind[Any], identity: Mapping[str, Any], source: RowSource | None
) -> Callable[[Mapping[str, Any]], bool]:
    """Tells whether a further session would not make a record again; only reads.

    Returns:
        A function of the fields that a record's key is made of.

    Raises:
        OtherRunError: If the folder holds another run.
        OptionError: If it holds files that are no run's.
        InputError: If a file can't be read.
    """
    finished = read_earlier(folder, kind, identity, source).finished
    superseded = _Archive(folder / SUPERSEDED, kind).offsets

    def is_finished(row: Mapping[str, Any]) -> bool:
        key = record_key(row)
        return finished.index(key) is not None or superseded.index(key) is not None

    return is_finished


@contextmanager
def manifest_states(logs: Iterable[tuple[RecordLog[Any], dict[str, Any]]]) -> Generator[None]:
    """Writes manifests as ``running``; as ``paused`` or ``interrupted`` when an exception leaves.

    Args:
        logs: Each with its manifest.
    """
    pairs = list(logs)
    for log, manifest in pairs:
        log.write_manifest(manifest | {"state": "running"})
    try:
        yield
    except BaseException as error:
        for log, manifest in pairs:
            log.write_manifest(manifest | {"state": _state_after(error)})
        raise


@contextmanager
def state_of_work_below(folder: Path) -> Generator[None]:
    """Writes the state into the manifest of a run that works in folders below it.

    Not if that work is refused: another process may be doing it, or the folder is empty.
    """
    try:
        yield
    except UsageError:
        if not any(path.stat().st_size for path in folder.glob("*.jsonl")):
            discard(folder, set())
        raise
    except BaseException as error:
        with suppress(UsageError, OSError, ValueError):
            manifest = orjson.loads((folder / MANIFEST).read_bytes())
            if is_own(manifest):  # else it stays a stranger's, of which nothing is opened
                del manifest[SEAL]
            _write_manifest(folder, manifest | {"state": _state_after(error)})
        raise


def _state_after(error: BaseException) -> str:
    return "paused" if isinstance(error, PausedError) else "interrupted"


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    data = orjson.dumps(sealed(manifest), option=orjson.OPT_INDENT_2)
    write_atomically(folder / MANIFEST, data + b"\n")


def temporary_folder(
    owner: object, files: Mapping[str, Iterable[Mapping[str, Any]]], manifest: Mapping[str, Any]
) -> Path:
    """Writes a run in memory into a folder that is deleted with its owner.

    Args:
        owner: Object that represents the folder; the files are removed with it.
        files: Rows by name of file.
        manifest: The manifest.
    """
    folder = Path(mkdtemp(prefix="apbjudge-run-"))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    for name, rows in files.items():
        lines = (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        (folder / name).parent.mkdir(exist_ok=True)
        write_atomically(folder / name, b"".join(lines))
    write_atomically(folder / MANIFEST, orjson.dumps(sealed(manifest)))
    return folder

"""Reads a run's folder before a session begins; writes nothing.

A folder belongs to one run: equal settings and one input. The input is the same when it is the
same file, perhaps edited, or begins with the content that was worked on: moved, copied or appended
to. Anything else is another run, whose records were paid for, and is refused.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

import orjson

from ..errors import InputError, OptionError, OtherRunError, RowError, path_text, visible
from ..jsonl import read_lines
from ..records.keys import KeyMap, KeySet, bytes_key, short_key
from ..records.run_folder import MANIFEST
from ..remote import address_in, named_place
from .attempts import ATTEMPTS, Attempts
from .rows import RowSource
from .shards import PieceIndex

T = TypeVar("T")

BAD_INPUT = "bad_input"
"""Reason of the record of a row that can't be used."""

_BLOCK = 1 << 20
_HINT = "choose another folder, or --overwrite to replace that run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKind(Generic[T]):
    """Description of a run's records for the loop and the folder.

    As JSON, each has ``item_id`` (or ``id``), ``tested_model`` where rows are of one, ``line`` and
    ``fingerprint`` of its row; ``reason``, null or not there where it succeeded; and ``usage`` and
    ``cost_usd``, null where not known.

    Attributes:
        name: Word for a record, for messages.
        file: Name of their file.
        to_json: A record as JSON values.
        check: The JSON values of a line, if it is whole; raises RowError otherwise.
        place: Fields with the place of a record's row, which are not part of its content.
        retried: Reasons of failures that may have passed when the run is resumed.
        free: Reasons of failures that cost nothing, whose records are not preserved.
        failures: Name of a file of their own for the failures of the last session, all of which are
            tried again; None keeps failures among the records.
        figures: Further files that a run writes, which can be computed again.
        folders: Folders of further files below the run's, with the names of these.
        runs_below: Folder of the runs that this one consists of; None without.
    """

    name: str
    file: str
    to_json: Callable[[T], dict[str, Any]]
    check: Callable[[Mapping[str, Any] | RowError], dict[str, Any]]
    place: tuple[str, ...]
    retried: tuple[str, ...]
    free: tuple[str, ...] = (BAD_INPUT,)
    failures: str | None = None
    figures: tuple[str, ...] = ()
    folders: Mapping[str, re.Pattern[str]] = field(default_factory=dict[str, re.Pattern[str]])
    runs_below: str | None = None

    def place_of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The place fields of a record."""
        return {name: row.get(name) for name in self.place}

    def place_key(self, row: Mapping[str, Any]) -> int:
        """Hash of the place fields."""
        return bytes_key(orjson.dumps(self.place_of(row), option=orjson.OPT_SORT_KEYS))


def record_key(row: Mapping[str, Any]) -> int:
    """Key of a record: item, tested model and fingerprint.

    A row without usable id is identified by its line and its content.
    """
    if row.get("reason") == BAD_INPUT:
        return short_key("bad", str(row["line"]), row["fingerprint"])
    return short_key(*_name_of(row), row["fingerprint"])


def _name_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """Item and tested model; the latter empty for rows without one."""
    return row["item_id"] if "item_id" in row else row["id"], row.get("tested_model", "")


# Lines --------------------------------------------------------------------------------------------

LineKind = Literal["current", "passing", "again", "damaged"]


class RecordLine(NamedTuple):
    """A line of a file of records.

    Attributes:
        number: 1-based line number.
        offset: Byte offset of the line's start.
        raw: The line without its end.
        kind: ``current``; ``passing``: failed for a reason that may have passed; ``again``: an
            earlier line answers the same; ``damaged``: no record.
        key: Key of the record; 0 if there is none.
        row: The record; of a damaged line, what is wrong with it; None where the ledger knows the
            line, which is not parsed then.
        item: Key of item and tested model, for a line that the ledger knows.
    """

    number: int
    offset: int
    raw: bytes
    kind: LineKind
    key: int
    row: dict[str, Any] | RowError | None
    item: int = 0


def record_lines(
    path: Path, kind: RecordKind[Any], known: KeyMap | None = None
) -> Iterator[RecordLine]:
    """Yields the lines of a file of records, classified; none if there is no file.

    Args:
        path: The file.
        kind: The records.
        known: Lines that a ledger knows, each a whole record that counts; see ``Attempts.records``.

    Raises:
        InputError: If the file can't be read.
    """
    if not path.exists():
        return
    seen = KeySet()
    for line in read_lines(path, any_format=True):
        place = line.number, line.offset, line.raw
        if known and (at := known.index(bytes_key(line.raw))) is not None:
            key, item = known.values(at)
            yield RecordLine(*place, "current" if seen.add(key) else "again", key, None, item)
            continue
        try:
            row = kind.check(line.values)
        except RowError as error:
            yield RecordLine(*place, "damaged", 0, error)
            continue
        key, line_kind = record_key(row), cast("LineKind", "current")
        if row.get("reason") in kind.retried:
            line_kind = "passing"
        elif not seen.add(key):
            line_kind = "again"
        yield RecordLine(*place, line_kind, key, row)


# The input ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMark:
    """Absolute path, bytes and SHA-256 of an input; the latter two None if not a file."""

    path: str
    bytes: int | None = None
    sha256: str | None = None


Inputs = Mapping[str, InputMark | None]
"""The files of a run by their names: the rows (None for rows in memory) and ``cases``."""


def inputs_json(inputs: Inputs) -> dict[str, Any]:
    """The input files as the manifest has them."""
    return {name: mark and asdict(mark) for name, mark in inputs.items()}


def read_mark(path: Path, *, prefix: int | None = None) -> tuple[InputMark, str | None]:
    """Identity of an input file, and the hash of its first ``prefix`` bytes, if it has so many.

    Raises:
        InputError: If it can't be read.
    """
    name = path_text(os.path.realpath(path))
    if not path.is_file():  # a pipe can be read only once
        return InputMark(path=name), None
    digest, size, begins = hashlib.sha256(), 0, None
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                if prefix is not None and size <= prefix <= size + len(block):
                    head = digest.copy()
                    head.update(block[: prefix - size])
                    begins = head.hexdigest()
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    return InputMark(path=name, bytes=size, sha256=digest.hexdigest()), begins


def inputs_before(manifest: Mapping[str, Any], names: Iterable[str]) -> Inputs | None:
    """Files as the manifest states them; None if it states nothing usable."""
    stated = manifest.get("inputs")
    if not isinstance(stated, dict):
        return None
    return {name: _mark_of(cast("dict[str, Any]", stated).get(name)) for name in names}


def _mark_of(values: object) -> InputMark | None:
    if not isinstance(values, dict):
        return None
    of = cast("dict[str, Any]", values)
    path, size, sha256 = of.get("path"), of.get("bytes"), of.get("sha256")
    if not isinstance(path, str):
        return None
    return InputMark(
        path=path if address_in(path) else os.path.realpath(path),
        bytes=size if type(size) is int else None,
        sha256=sha256 if isinstance(sha256, str) else None,
    )


# The folder ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """Records and inputs that earlier sessions left in a folder.

    Attributes:
        inputs: The input files of the session that begins.
        finished: Keys of the records that count, each with the key of its line and the hash of
            its place fields, 0 if these were not read.
        attempts: The ledger; None if none is written.
        n_by_kind: Lines of the file by kind.
        first_damage: Place and fault of the first damaged line; empty without one.
        is_ended: True if the last line of the file has its end.
    """

    inputs: Inputs
    finished: KeyMap
    attempts: Attempts | None
    n_by_kind: Mapping[LineKind, int]
    first_damage: str
    is_ended: bool

    @property
    def is_sound(self) -> bool:
        """True if more records can be appended to the file as it is."""
        return self.is_ended and set(self.n_by_kind) <= {"current"}


def read_earlier(
    folder: Path,
    kind: RecordKind[Any],
    identity: Mapping[str, Any],
    source: RowSource | None,
    settings: str = "",
) -> Earlier:
    """Reads a folder and checks that a session may continue there.

    Args:
        folder: The run's folder, which need not exist.
        kind: The records.
        identity: Settings that must be the same for records to be in one file.
        source: The session's input; None does not compare inputs.
        settings: As for ``RecordLog``; empty does without the ledger.

    Raises:
        OtherRunError: If it holds a run with other settings or of another input.
        OptionError: If it holds files that are no run's.
        InputError: If a file can't be read.
    """
    manifest = read_manifest(folder, kind)
    if manifest is not None:
        now = orjson.loads(orjson.dumps(identity))
        if changed := changed_settings(manifest["identity"], now):
            settings = visible(", ".join(changed))
            raise OtherRunError(
                f"--out: {folder} holds a run with other settings ({settings}); {_HINT}"
            )
    before = inputs_before(manifest or {}, source.files) if source else None
    marks = _read_marks(source, before)
    attempts, (cases, _) = None, marks.get("cases", (None, None))
    if settings and (cases is None or cases.sha256):
        # with other cases all rows are read again: any of them may be joined with another case
        of_cases = cases.sha256 if cases and cases.sha256 else ""
        attempts = Attempts(folder / ATTEMPTS, settings + of_cases)
    path = folder / kind.file
    finished, names = KeyMap(2), KeyMap(0)
    n_by_kind: dict[LineKind, int] = {}
    first_damage = ""
    for line in record_lines(path, kind, attempts and attempts.records):
        n_by_kind[line.kind] = n_by_kind.get(line.kind, 0) + 1
        if isinstance(line.row, RowError):
            first_damage = first_damage or f"{path}:{line.number}: {line.row}"
            continue
        if line.row is None:
            names.add(line.item)
        elif line.row.get("reason") != BAD_INPUT:
            names.add(short_key(*_name_of(line.row)))
        if line.kind == "current":
            place = 0 if line.row is None else kind.place_key(line.row)
            finished.add(line.key, bytes_key(line.raw), place)
    finished.sort()
    names.sort()
    return Earlier(
        inputs=_checked_inputs(folder, source, before if len(names) else None, marks, names),
        finished=finished,
        attempts=attempts,
        n_by_kind=n_by_kind,
        first_damage=first_damage,
        is_ended=_is_ended(path),
    )


def read_manifest(folder: Path, kind: RecordKind[Any]) -> dict[str, Any] | None:
    """The manifest of a run; None in a folder without one.

    Raises:
        OptionError: If the manifest or other files there are no run's.
    """
    path = folder / MANIFEST
    if path.exists():
        try:
            manifest: object = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError:
            manifest = None
        fields = cast("dict[str, Any]", manifest) if isinstance(manifest, dict) else {}
        if not isinstance(fields.get("identity"), dict):
            raise OptionError(f"--out: {path} is not a manifest of apbjudge; choose another folder")
        return fields
    for name in (kind.file, *kind.figures):
        file = folder / name
        if file.exists() and (name != kind.file or file.stat().st_size):
            raise OptionError(
                f"--out: {folder} has {name} but no {MANIFEST}, so no run of apbjudge wrote it; "
                "choose another folder"
            )
    return None


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Names of the settings that differ, such as ``protocol`` or ``judge.seed``."""
    changed: list[str] = []
    for name in sorted({*before, *now}):
        one, other = before.get(name), now.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            inner = changed_settings(
                cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
            )
            changed += [f"{name}.{key}" for key in inner]
        elif one != other or (name in before) != (name in now):
            changed.append(name)
    return changed


def _is_ended(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            return file.read(1) in (b"", b"\n")
    except FileNotFoundError:
        return True


_Marks = Mapping[str, tuple[InputMark | None, str | None]]


def _read_marks(source: RowSource | None, before: Inputs | None) -> _Marks:
    """The input files by name, each with the hash of as much as there was of it before."""
    marks: dict[str, tuple[InputMark | None, str | None]] = {}
    pieces = source.shard.pieces if source and source.shard else None
    for name, path in source.files.items() if source else ():
        old = before.get(name) if before else None
        if path and pieces and source and name == source.rows_name:  # nobody reads the whole file
            marks[name] = _stated_mark(path, pieces), None
            continue
        marks[name] = read_mark(path, prefix=old and old.bytes) if path else (None, None)
    return marks


def _stated_mark(path: Path, pieces: PieceIndex) -> InputMark:
    """Identity of a file as its index states it; of a copy, that of the file that was copied."""
    origin = pieces.origin
    if origin is None or origin.sha256 is None:
        real = path_text(os.path.realpath(path))
        return InputMark(path=real, bytes=pieces.bytes, sha256=pieces.sha256)
    real = path_text(os.path.realpath(named_place(origin.path)))
    return InputMark(path=real, bytes=origin.bytes, sha256=origin.sha256)


def _checked_inputs(
    folder: Path, source: RowSource | None, before: Inputs | None, marks: _Marks, names: KeyMap
) -> Inputs:
    """The input files of the session, unless they are another run's.

    Args:
        folder: The run's folder.
        source: The session's input.
        before: The files of the present run; None if none of them count.
        marks: The files of the session.
        names: Keys of item and tested model of all records of rows that could be used.
    """
    inputs = {name: mark for name, (mark, _) in marks.items()}
    if source is None or before is None:
        return inputs
    is_known_content = True
    for name, (mark, begins) in marks.items():
        old = before.get(name)
        if name == "cases" and old is None:
            continue
        same_content = bool(mark and old and old.sha256 and old.sha256 in (mark.sha256, begins))
        same_place = (mark and mark.path) == (old and old.path)
        if not same_content and not same_place:
            was, now = (_shown(name, each, source.rows_name) for each in (old, mark))
            raise OtherRunError(f"--out: {folder} holds a run of {was}, not of {now}; {_HINT}")
        is_known_content = is_known_content and (same_content or name == "cases")
    if not is_known_content and not _shares_row(source, names):
        rows = _shown(source.rows_name, inputs[source.rows_name], source.rows_name)
        raise OtherRunError(
            f"--out: {folder} holds a run of other rows: none of those recorded there is in "
            f"{rows} any more; {_HINT}"
        )
    return inputs


def _shown(name: str, mark: InputMark | None, rows_name: str) -> str:
    if mark is not None:
        return visible(mark.path)
    return "rows in memory" if name == rows_name else f"{rows_name} without --cases"


def _shares_row(source: RowSource, names: KeyMap) -> bool:
    """True if a row of the input, by item and tested model, has a record."""
    if isinstance(source.rows, Path) and not (source.rows.is_file() or source.rows.is_dir()):
        return True  # a pipe can be read only once
    return any(names.index(short_key(*key)) is not None for key in source.row_keys())

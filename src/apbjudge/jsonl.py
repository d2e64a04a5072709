"""Streaming read with line numbers; append-only write that survives a kill."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import shutil
import stat
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

import orjson

from .errors import InputError, RowError, visible

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_WHOLE_BYTES = 128 * 1024 * 1024
"""Limit of a file that is read as a whole: parsed, it takes about ten times as much memory."""
_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"


class Digest(Protocol):
    """A running hash."""

    def update(self, data: bytes, /) -> None:
        """Adds bytes."""
        ...


@dataclass(slots=True)
class Line:
    """One line of a JSONL file, parsed when its values are asked for.

    Attributes:
        number: 1-based line number.
        offset: Byte offset of the line's start.
        raw: The bytes without line end; for a line over the limit, only its beginning.
        parsed: The values, if already known; always set for a line over the limit.
    """

    number: int
    offset: int
    raw: bytes
    parsed: dict[str, Any] | RowError | None = None

    @property
    def values(self) -> dict[str, Any] | RowError:
        """The JSON object, or the RowError that says why there is none."""
        if self.parsed is None:
            self.parsed = parse_object(self.raw)
        return self.parsed

    @property
    def exact(self) -> dict[str, Any] | RowError:
        """``values``, or a RowError if the parser has rounded an integer of more than 64 bits."""
        if _LONG in self.raw.translate(_DIGITS) and (fault := _number_in(self.raw)):
            return fault
        return self.values


class Span(NamedTuple):
    """Consecutive lines of a file.

    Attributes:
        start: Offset of the first byte, where a line begins.
        end: Offset after the last byte.
        first_line: Number of the first line in the file, from 1.
    """

    start: int
    end: int
    first_line: int


def file_size(path: Path) -> int:
    """Bytes of a file.

    Raises:
        InputError: If it can't be read.
    """
    try:
        return path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


def read_lines(
    path: Path,
    *,
    digest: Digest | None = None,
    any_format: bool = False,
    span: Span | None = None,
) -> Iterator[Line]:
    """Yields the lines of a JSONL file, blank ones skipped; memory stays at one line.

    Args:
        path: The file; a UTF-8 byte order mark and CRLF line ends are accepted.
        digest: Updated with every byte read, when given.
        any_format: True if even a file that is evidently not JSONL is read line by line.
        span: The lines to read; None for all.

    Raises:
        InputError: If the file can't be opened or read, or is evidently in another format.
    """
    try:
        with open_buffered(path, None if span is None else span.end - span.start) as file:
            number, offset, end = 0, 0, inf
            if span is not None:  # of a file whose other lines were read before
                number, offset, end = span.first_line - 1, span.start, span.end
                file.seek(offset)
            elif not any_format and (format_ := other_format(file.peek())):
                raise InputError(f"{path}: expected one JSON object a line in UTF-8, got {format_}")
            while offset < end and (raw := file.readline(MAX_LINE_BYTES + 1)):
                number += 1
                start, size = offset, len(raw)
                if digest is not None:
                    digest.update(raw)
                if size > MAX_LINE_BYTES and not raw.endswith(b"\n"):
                    size += _skip_line(file, digest)
                    limit = f"at most {MAX_LINE_BYTES // 2**20} MiB"
                    yield Line(number, start, raw[:256], RowError("line", limit, "a longer line"))
                elif body := _body(raw, first=number == 1):
                    yield Line(number, start, body)
                offset += size
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


# Other formats ------------------------------------------------------------------------------------

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "a gzip file: decompress it first (gunzip FILE)"),
    (b"\x28\xb5\x2f\xfd", "a zstd file: decompress it first (unzstd FILE)"),
    (b"BZh", "a bzip2 file: decompress it first (bunzip2 FILE)"),
    (b"\xfd7zXZ\x00", "an xz file: decompress it first (unxz FILE)"),
    (b"PK\x03\x04", "a ZIP file or an Excel workbook: export or unpack it as text first"),
    (b"\xd0\xcf\x11\xe0", "a file of an older Microsoft Office: export it as text first"),
    (b"PAR1", "a Parquet file: export it as JSON lines first"),
    (b"ARROW1", "an Arrow file: export it as JSON lines first"),
    (b"Obj\x01", "an Avro file: export it as JSON lines first"),
    (b"SQLite format 3\x00", "an SQLite database: export it as JSON lines first"),
    (b"%PDF", "a PDF file"),
)
_WIDE: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (
        re.compile(rb"\xff\xfe\x00\x00|[^\x00]\x00\x00\x00|\x00\x00(?:\xfe\xff|\x00[^\x00])"),
        "UTF-32",
    ),
    (re.compile(rb"\xff\xfe|\xfe\xff|(?:[^\x00]\x00){2}|(?:\x00[^\x00]){2}"), "UTF-16"),
)
_MARKUP = re.compile(rb"<[!?a-z]", re.IGNORECASE)
ARRAY = "a JSON array: write each of its elements on a line (jq -c '.[]' FILE)"
SPREAD = "JSON spread over several lines: write each object on one (jq -c . FILE)"
TABLE = "a table such as CSV: convert it to JSON lines"
_OPEN = (b",", b"[", b"{")
_MEMBER = re.compile(rb'"[^"]*"\s*:')
_TEXTS: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"---$|- |[\w.-]+:( |$)"), "YAML: convert it to JSON (yq -o=json -I=0 FILE)"),
    (
        re.compile(rb"[^\[{\"].{0,63}?[\x00-\x08\x0e-\x1f]"),
        "a binary file: export it as JSON (traces of OpenTelemetry: otlp_json, not protobuf)",
    ),
    (re.compile(rb"[\w .\"-]+([,;\t][\w .\"-]*)+$"), TABLE),
)
"""Kinds of texts of several lines, by the first of them."""


def other_encoding(head: bytes) -> str:
    """The kind of a file that can't be UTF-8 text, by its first bytes; empty if it may be UTF-8."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    for start, name in _WIDE:
        if start.match(head):
            return f"{name} text: convert it first (iconv -f {name} -t UTF-8 FILE)"
    return ""


def other_format(head: bytes) -> str:
    """The kind of a file that is evidently not JSONL, by its first bytes; empty if it may be JSONL.

    Bad lines alone prove nothing, since they affect no other line: a file with a JSON object on any
    line of its beginning is JSONL, unless its first line begins an object that continues on the
    next.

    Args:
        head: The beginning of the file, about a megabyte or all of it.
    """
    if name := other_encoding(head):
        return name
    lines = [body for raw in head.removeprefix(_BOM).split(b"\n") if (body := raw.strip(b" \t\r"))]
    first = lines[0] if lines else b""
    goes_on = b"".join(lines[1:2]).endswith((b",", b"]"))
    if first == b"[" or (first.startswith(b"[") and first.endswith(b",") and goes_on):
        return ARRAY
    if first.startswith(b"{") and first.endswith(_OPEN) and _MEMBER.match(b"".join(lines[1:2])):
        return SPREAD  # an object in one of its lists may be a line by itself
    if any(line.startswith(b"{") and isinstance(parse_object(line), dict) for line in lines):
        return ""
    return _other_text(first, is_alone=len(lines) == 1)


def _other_text(first: bytes, *, is_alone: bool) -> str:
    """The kind of a text without any JSON object on a line, by its first line."""
    if re.match(rb"\[\s*\{", first):
        return ARRAY
    runs_on = first.endswith(_OPEN) and not is_alone
    if first == b"{" or (first.startswith(b"{") and runs_on):
        return SPREAD
    if _MARKUP.match(first):
        return "an HTML or XML page: save the data itself, as JSON"
    return "" if is_alone else next((kind for of, kind in _TEXTS if of.match(first)), "")


# Lines --------------------------------------------------------------------------------------------


def open_buffered(path: Path, n_bytes: int | None = None) -> io.BufferedReader:
    """Opens a file; ``peek`` gives its beginning, a megabyte or all of it.

    Args:
        path: The file.
        n_bytes: Number of bytes to be read, so that no block goes beyond them; None if unknown.
    """
    size = _BLOCK
    if n_bytes is not None:
        n_blocks = max(1, -(-n_bytes // _BLOCK))
        size = max(io.DEFAULT_BUFFER_SIZE, -(-n_bytes // n_blocks))
    return cast("io.BufferedReader", path.open("rb", buffering=size))


def parse_object(raw: bytes) -> dict[str, Any] | RowError:
    """Parses one line into a JSON object, or returns a RowError with the reason."""
    try:
        value: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        return _number_in(raw) or RowError("line", "one JSON object", json_fault(raw, error))
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if isinstance(value, list) and cast("list[Any]", value)[:1] == [_UNREADABLE]:
        return RowError(*cast("list[Any]", value)[1:])
    return RowError("line", "one JSON object", cast("Any", value))


def json_fault(raw: bytes, error: orjson.JSONDecodeError) -> str:
    """The reason why bytes can't be read as JSON; orjson names no place of invalid UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError as bad:
        return f"invalid UTF-8 at byte {bad.start}"
    return str(error)


_UNREADABLE = "a row that can't be read"


def line_of(row: Mapping[str, Any] | RowError) -> bytes:
    """A row as a line; an error as a line that is read as the same error; see ``parse_object``."""
    if isinstance(row, RowError):
        return orjson.dumps([_UNREADABLE, row.field, row.expected, row.got.strip("'")]) + b"\n"
    return orjson.dumps(row, default=_json_of, option=orjson.OPT_APPEND_NEWLINE)


def _json_of(value: object) -> str | None:
    """A value that JSON lacks, as text; None for bytes, such as pictures."""
    return None if isinstance(value, bytes) else str(value)


_DIGITS = bytes(48 if chr(byte).isdecimal() else 32 for byte in range(256))
_LONG = b"0" * 19
"""As many digits as the shortest integer that does not fit into 64 bits has."""


def _number_in(raw: bytes) -> RowError | None:
    """The first number of a line that would change; None without, or if the line is not JSON."""
    try:
        value: Any = json.loads(raw)
        row: dict[str, Any] = value if raw.startswith(b"{") else {}
        texts = {name: of for name, of in row.items() if name.endswith("_json") and of}
        row |= {name: json.loads(of) for name, of in texts.items() if isinstance(of, str)}
        return lost_number(value)
    except (ValueError, RecursionError):
        return None


def lost_number(value: object) -> RowError | None:
    """The first number in JSON values that JSON can't hold, or that most readers round.

    Returns:
        The error for NaN, an infinity or an integer of more than 64 bits, with its field; None if
        there is none, or if the values are nested too deeply to be checked.
    """
    try:
        return _lost_number(value, "")
    except RecursionError:
        return None


def _lost_number(value: object, field: str) -> RowError | None:
    if isinstance(value, float) and not isfinite(value):
        return RowError(field, "a number that JSON has", value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        got = f"one of {value.bit_length() + (value < 0)} bits"
        return RowError(field, "a whole number of at most 64 bits, or text", got)
    inner: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        inner = cast("dict[object, object]", value).items()
    elif isinstance(value, list | tuple):
        inner = enumerate(cast("list[object]", value))
    names = ((visible(str(name))[:60], each) for name, each in inner)
    errors = (_lost_number(each, f"{field}.{name}".lstrip(".")) for name, each in names)
    return next(filter(None, errors), None)


def object_of(raw: bytes) -> dict[str, Any]:
    """Parses one line into a JSON object.

    Raises:
        RowError: If it is not one.
    """
    values = parse_object(raw)
    if isinstance(values, RowError):
        raise values
    return values


def _body(raw: bytes, *, first: bool) -> bytes:
    if first and raw.startswith(_BOM):
        raw = raw[len(_BOM) :]
    return raw.strip(b" \t\r\n")


def _skip_line(file: Any, digest: Digest | None) -> int:
    skipped = 0
    while part := file.readline(1 << 20):
        skipped += len(part)
        if digest is not None:
            digest.update(part)
        if part.endswith(b"\n"):
            break
    return skipped


def read_line_at(path: Path, offset: int) -> bytes:
    """Reads the line that starts at a byte offset."""
    with path.open("rb") as file:
        file.seek(offset)
        return _body(file.readline(MAX_LINE_BYTES), first=offset == 0)


def unwritable(path: Path, error: OSError) -> InputError:
    """The error for a path that can't be written."""
    return InputError(f"{path}: can't be written: {error.strerror}")


class Appender:
    """Appends JSON rows to a file; each flush is one write of whole lines.

    A process killed between flushes loses the rows not yet flushed; one killed inside a write
    leaves a torn last line, which the next opening cuts off.

    Args:
        path: The file; created when missing.
        every: Rows per flush; 1 when each row was paid for.

    Raises:
        InputError: If the file can't be opened for writing.
    """

    def __init__(self, path: Path, *, every: int = 1) -> None:
        self._path = path
        self._every = every
        self._pending: list[bytes] = []
        try:
            cut_torn_line(path)
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise unwritable(path, error) from None

    def append(self, row: dict[str, Any]) -> bytes:
        """Adds one row; returns it as a line without its end."""
        line = orjson.dumps(row, default=str)
        self._pending.append(line + b"\n")
        if len(self._pending) >= self._every:
            self.flush()
        return line

    def flush(self) -> None:
        """Writes what is pending.

        Raises:
            InputError: If the disk is full or the file is gone.
        """
        data = memoryview(b"".join(self._pending))
        self._pending.clear()
        start = os.fstat(self._fd).st_size
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as error:
            os.ftruncate(self._fd, start)  # half a row must not precede the next one
            raise unwritable(self._path, error) from None

    def sync(self) -> None:
        """Flushes, and waits until all of it has reached the disk.

        Raises:
            InputError: If the disk is full or the file is gone.
        """
        self.flush()
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise unwritable(self._path, error) from None

    def close(self) -> None:
        """Flushes and closes."""
        try:
            self.flush()
        finally:
            os.close(self._fd)


def cut_torn_line(path: Path) -> None:
    """Removes an unfinished last line, such as a kill in the middle of a write leaves."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        keep = end
        while keep > 0:
            start = max(0, keep - (1 << 16))
            file.seek(start)
            block = file.read(keep - start)
            newline = block.rfind(b"\n")
            if newline >= 0:
                keep = start + newline + 1
                break
            keep = start
        if keep < end:
            file.truncate(keep)


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file in one step, so that a reader never sees half of it; see ``replacing``."""
    with replacing(path) as file:
        file.write(data)


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Replaces a file in one step with rows, one per line; see ``replacing``."""
    with replacing(path) as file:
        for row in rows:
            file.write(orjson.dumps(row) + b"\n")


def read_small(path: Path) -> bytes:
    """Reads a file as a whole.

    Raises:
        InputError: If it can't be read or has more than MAX_WHOLE_BYTES.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_WHOLE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    if len(data) > MAX_WHOLE_BYTES:
        raise InputError(f"{path}: expected at most {MAX_WHOLE_BYTES // 2**20} MiB")
    return data


def is_replaceable(path: Path) -> bool:
    """True if a new file may replace a path: it is a plain file, or nothing is there.

    False for a link, even to a plain file, since ``/dev/stdout`` may be one.
    """
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True


def temporary_beside(path: Path) -> Path:
    """A temporary name next to a path; what killed processes left under such names is removed."""
    prefix, suffix = f".{path.name}.{platform.node()[:16]}-", ".tmp"
    with suppress(OSError), os.scandir(path.parent) as files:
        for left in files:
            if left.name.startswith(prefix) and left.name.endswith(suffix):
                with suppress(ValueError, OSError):
                    if not is_running(int(left.name[len(prefix) : -len(suffix)])):
                        shutil.rmtree(left) if left.is_dir() else Path(left).unlink()
    return path.with_name(f"{prefix}{os.getpid()}{suffix}")


def is_running(pid: int) -> bool:
    """True if this machine has a process with that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return True


@contextmanager
def replacing(path: Path) -> Generator[IO[bytes]]:
    """A file that replaces a path in one step, once it is written without an error.

    A path that is not ``is_replaceable`` (a link, a pipe, ``/dev/stdout``) is written in place.

    Raises:
        InputError: If it can't be written.
    """
    temporary = temporary_beside(path)
    try:
        if not is_replaceable(path):
            with path.open("wb") as file:
                yield file
            return
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)

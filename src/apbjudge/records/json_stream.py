"""JSON files of any size, one element at a time.

Elements are separated by their brackets before they are parsed, so one that is not JSON affects no
other; the parser is that of JSONL, so a value means the same in both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
import orjson

from ..errors import InputError, RowError
from ..jsonl import (
    MAX_LINE_BYTES,
    json_fault,
    open_buffered,
    other_encoding,
    parse_object,
    read_lines,
)
from .loose_json import as_object

MAX_ELEMENT_BYTES = MAX_LINE_BYTES
_LIMIT = f"at most {MAX_ELEMENT_BYTES // 2**20} MiB"
_BLOCK = 1 << 18
_LONG_LINE = 1 << 20
_BOM = b"\xef\xbb\xbf"

Layout = Literal["lines", "array", "object"]


class Element(NamedTuple):
    """An element of a file.

    Attributes:
        number: 1-based line of a JSONL file, else its number among the elements.
        offset: Bytes of the file read so far.
        digest: SHA-256 of its text; if that is over the limit, of its beginning or of nothing.
        value: The JSON value, or the RowError that says why there is none.
        start: Byte at which its line begins; None if it is not a line.
        text: Its text, if it is part of an array or one of several objects.
    """

    number: int
    offset: int
    digest: bytes
    value: Any
    start: int | None = None
    text: bytes = b""


def layout_of(path: Path) -> Layout:
    """The layout of a file, by its beginning: JSON lines, or one array or object.

    A single line with an array or an object is taken for the latter.

    Raises:
        InputError: If the file is empty, can't be read, or is not UTF-8 text.
    """
    try:
        with open_buffered(path) as file:
            if encoding := other_encoding(file.peek()):
                raise InputError(f"{path}: expected JSON in UTF-8, got {encoding}")
            lines = [line for _, line in zip(range(4), _filled_lines(file), strict=False)]
    except OSError as error:
        raise _unreadable(path, error) from None
    if not lines:
        raise InputError(f"{path}: expected trajectories of agents, got an empty file")
    first, *following = lines
    value = _OPENINGS.get(first.start, "lines")
    if not following:
        return value
    # Within one value, no two lines in a row are values themselves, and lines are broken after
    # one of these. A first line that is broken otherwise affects no other.
    if first.is_json or any(a.is_json and b.is_json for a, b in pairwise(following)):
        return "lines"
    runs_on = first.end in {b",", b"[", b"{"}
    return "lines" if not runs_on and any(line.is_json for line in following) else value


_OPENINGS: Mapping[bytes, Layout] = {b"[": "array", b"{": "object"}


class _JsonLine(NamedTuple):
    """First and last byte of a line, and true if it is a JSON value."""

    start: bytes
    end: bytes
    is_json: bool


def _filled_lines(file: IO[bytes]) -> Iterator[_JsonLine]:
    """Nonblank lines; a long one, which may be all of the file, counts as JSON by its two ends."""
    is_first = True
    while raw := file.readline(_LONG_LINE):
        line = (raw.removeprefix(_BOM) if is_first else raw).strip()
        is_first = False
        if len(raw) < _LONG_LINE or raw.endswith(b"\n"):
            if line:
                yield _JsonLine(line[:1], line[-1:], not isinstance(parsed(line, "line"), RowError))
            continue
        end, size = line[-1:], len(raw)
        while size <= MAX_ELEMENT_BYTES and (raw := file.readline(_LONG_LINE)):
            size += len(raw)
            end = raw.strip()[-1:] or end
            if raw.endswith(b"\n"):
                break
        yield _JsonLine(line[:1], end, line[:1] + end in {b"{}", b"[]"})
        if size > MAX_ELEMENT_BYTES:
            return


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: can't be read: {error.strerror}")


# Lines and whole files ---------------------------------------------------------------------------


def read_values(path: Path) -> Iterator[Element]:
    """Yields the lines of a JSONL file, each an object or an array.

    Raises:
        InputError: If the file can't be read.
    """
    for line in read_lines(path, any_format=True):
        raw, value = line.raw, line.values
        if isinstance(value, RowError) and raw[:1] == b"[" and value.expected == "one JSON object":
            value = parsed(raw, "line")
        end, digest = line.offset + len(raw), hashlib.sha256(raw).digest()
        yield Element(line.number, end, digest, value, line.offset)


def read_whole(path: Path) -> Element:
    """The value that the file as a whole is.

    Raises:
        InputError: If the file can't be read.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_ELEMENT_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    digest = hashlib.sha256(raw).digest()
    if len(raw) > MAX_ELEMENT_BYTES:
        return Element(1, len(raw), digest, RowError("file", f"a run of {_LIMIT}", "a larger one"))
    return Element(1, len(raw), digest, parsed(raw.removeprefix(_BOM), "file"))


def read_object(path: Path) -> tuple[dict[str, Any], bytes]:
    """The JSON object in a file of a run, and the file's SHA-256.

    Raises:
        RowError: With the file's name, if it can't be read or is not an object.
    """
    try:
        element = read_whole(path)
    except InputError:
        raise RowError(path.name, "a file that can be read", None) from None
    if isinstance(element.value, RowError):
        raise RowError(path.name, element.value.expected, element.value.got)
    if (value := as_object(element.value)) is None:
        raise RowError(path.name, "a JSON object", element.value)
    return value, element.digest


_NO_NUMBERS = (b"NaN", b"Infinity")


def parsed(text: bytes, field: str, *, has_nan: bool = False) -> Any:
    """The JSON value of a text, or the RowError that says why it is not one.

    Args:
        text: The text.
        field: Its name, for the error.
        has_nan: True if NaN and the infinities, which JSON lacks, are read as null.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if has_nan and any(name in text for name in _NO_NUMBERS):
            with suppress(ValueError, RecursionError):
                return json.loads(text, parse_constant=lambda _: None)
        return RowError(field, "a JSON value", json_fault(text, error))


# Elements of an array ----------------------------------------------------------------------------


def read_array(path: Path) -> Iterator[Element]:
    """Yields the elements of a file that is one JSON array.

    If the file breaks off or continues after the array, the last element is that error.

    Raises:
        InputError: If the file can't be read.
    """
    tokens = _tokens(path, 1)
    if fault := _fault_of_start(next(tokens), "["):
        yield fault
        return
    number = yield from _elements(tokens, 1)
    yield from _after(tokens, number)


def read_objects(path: Path) -> Iterator[Element]:
    """Yields the JSON objects of a file that has them one after the other, on any lines.

    Raises:
        InputError: If the file can't be read.
    """
    number, text, is_long = 0, bytearray(), False
    for token in _tokens(path, 1):
        is_long = is_long or token.text is None or len(text) > MAX_ELEMENT_BYTES
        text += b"" if is_long else (token.text or b"") + token.mark.encode()
        if (token.depth > 0) if token.mark else not (text or is_long):
            continue
        number += 1
        raw = bytes(text)
        value = RowError("object", _LIMIT, "a longer one") if is_long else parse_object(raw)
        digest = hashlib.sha256(raw).digest()
        yield Element(number, token.offset, digest, value, text=raw)
        text.clear()
        is_long = False


def read_member(path: Path, key: str, *, has_nan: bool = False) -> Iterator[Element]:
    """Yields the elements of an array that is a member of the file's object.

    If the file breaks off or continues after the object, the last element is that error.

    Args:
        path: The file.
        key: Name of the member, as ``array_members`` finds it.
        has_nan: As in ``parsed``.

    Raises:
        InputError: If the file can't be read.
    """
    number = 0
    tokens = _tokens(path, 2)
    token = next(tokens)
    if fault := _fault_of_start(token, "{"):
        yield fault
        return
    is_key = True
    for token in tokens:
        if is_key and token.mark == "[" and _key(token.text) == key:
            number = yield from _elements(tokens, 2, has_nan=has_nan)
        is_key = token.depth == 1 and token.mark == ","
        if token.depth < 1:
            yield from _after(tokens, number)
            return
    if not token.mark:
        yield _fault(number + 1, token, "the end of the object")


def array_members(path: Path, keys: frozenset[str]) -> Iterator[str]:
    """Yields those of these members of the file's object that hold an array.

    Raises:
        InputError: If the file can't be read.
    """
    is_key = False
    for token in _tokens(path, 2):
        if is_key and token.mark == "[" and (key := _key(token.text)) in keys:
            yield key
        is_key = token.depth == 1 and token.mark in ("{", ",")


def members_around(path: Path, key: str, *, has_nan: bool = False) -> dict[str, Any]:
    """The other members of the file's object.

    Members after an array too long for a single run are left out if an object precedes it: logs
    begin with facts of all their runs.

    Args:
        path: The file.
        key: Name of the array that is left out.
        has_nan: As in ``parsed``.

    Raises:
        InputError: If the file can't be read, or a member is not JSON or over the limit.
    """
    around: dict[str, Any] = {}
    tokens = _tokens(path, 2)
    next(tokens)
    for member in _members(path, tokens, key):
        if member is not None:
            values = parsed(b"{" + member + b"}", "file", has_nan=has_nan)
            if isinstance(values, RowError):
                raise InputError(f"{path}: {values}")
            around |= values
            continue
        is_first = any(isinstance(value, dict) for value in around.values())
        for token in tokens:
            if token.depth < 2:
                break
            if is_first and token.offset > MAX_ELEMENT_BYTES:
                return around
    return around


class _Token(NamedTuple):
    """A bracket or comma of the outer levels with the text before it.

    Attributes:
        text: Text since the previous token, stripped; None if over the limit.
        mark: The character; empty at the end of the file.
        depth: Number of brackets open after it.
        offset: Bytes read so far.
    """

    text: bytes | None
    mark: str
    depth: int
    offset: int


def _elements(
    tokens: Iterator[_Token], level: int, *, has_nan: bool = False
) -> Generator[Element, None, int]:
    """The elements up to the end of an array whose own depth is ``level``; returns their number."""
    number = 0
    for token in tokens:
        is_end = token.depth < level
        if token.mark == "]" and number == 0 and token.text == b"":
            return 0
        number += 1
        text = token.text or b""
        if not token.mark:
            value: Any = RowError("file", "the end of the array", "a file that breaks off before")
        elif token.text is None:
            value = RowError("element", _LIMIT, "a longer one")
        else:
            value = parsed(text, "element", has_nan=has_nan)
        yield Element(number, token.offset, hashlib.sha256(text).digest(), value, text=text)
        if is_end:
            if token.mark != "]":
                number += 1
                yield _fault(number, token, "an array that ends with ]")
            break
    return number


def _members(path: Path, tokens: Iterator[_Token], key: str) -> Iterator[bytes | None]:
    """The texts of an object's members; None at the beginning of the array of that name.

    The caller that receives the None has to read the tokens up to the end of that array.
    """
    text = bytearray()
    for token in tokens:
        if not text and token.mark == "[" and token.depth == 2 and _key(token.text) == key:
            yield None
            continue
        if token.text is None or len(text) > MAX_ELEMENT_BYTES:
            raise InputError(
                f"{path}: expected members of {_LIMIT} besides {key}, got a longer one"
            )
        text += token.text
        if token.depth < 1 or (token.depth == 1 and token.mark == ","):
            if text:
                yield bytes(text)
            text.clear()
            if token.depth < 1:
                return
        else:
            text += token.mark.encode()


def _key(text: bytes | None) -> str:
    """The key in ``"key":``; empty if it is not one."""
    value = parsed(text[:-1], "key") if text is not None and text.endswith(b":") else None
    return value if isinstance(value, str) else ""


def _fault_of_start(token: _Token, mark: str) -> Element | None:
    if token.mark == mark and token.text == b"":
        return None
    kind = {"[": "a JSON array", "{": "a JSON object"}[mark]
    return _fault(1, token, kind)


def _after(tokens: Iterator[_Token], number: int) -> Iterator[Element]:
    """The fault at the end of the file, if there is one."""
    token = next(tokens, None)
    if token is not None and (token.mark or token.text != b""):
        yield _fault(number + 1, token, "nothing after the end of the JSON value")


def _fault(number: int, token: _Token, expected: str) -> Element:
    got = ((token.text or b"")[:80] + token.mark.encode()).decode(errors="replace")
    error = RowError("file", expected, got or "the end of the file")
    return Element(number, token.offset, hashlib.sha256(b"").digest(), error)


# Brackets and commas -----------------------------------------------------------------------------

_QUOTE, _OPEN, _CLOSE, _COMMA = 1, 2, 3, 4
_KIND = {'"': _QUOTE, "{": _OPEN, "[": _OPEN, "}": _CLOSE, "]": _CLOSE, ",": _COMMA}
_KINDS = bytes(_KIND.get(chr(byte), 0) for byte in range(256))
_STEPS = np.array([0, 0, 1, -1, 0], dtype=np.int8)


def _tokens(path: Path, level: int) -> Iterator[_Token]:
    """The brackets and commas outside of strings, down to a depth, and the end of the file.

    Args:
        path: The file.
        level: Commas at this depth or less are yielded, and brackets between it and less.
    """
    pending: list[bytes] = []
    size = depth = offset = 0
    in_text = False
    carry = b""

    def text(piece: bytes) -> bytes | None:
        if size + len(piece) > MAX_ELEMENT_BYTES:
            return None
        return b"".join((*pending, piece)).strip() if pending else piece.strip()

    try:
        with path.open("rb") as file:
            block = file.read(_BLOCK).removeprefix(_BOM)
            offset = file.tell() - len(block)
            while block:
                block = carry + block
                # A backslash and what it escapes stay in one block.
                carry = b"\\" * ((len(block) - len(block.rstrip(b"\\"))) % 2)
                block = block[: len(block) - len(carry)]
                plain = block.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
                kinds = np.frombuffer(plain.translate(_KINDS), dtype=np.uint8)
                at = np.flatnonzero(kinds)
                kinds = kinds[at]
                is_quote = kinds == _QUOTE
                is_inside = np.logical_xor.accumulate(is_quote) ^ in_text
                in_text ^= bool(is_quote.sum() % 2)
                is_outside = ~(is_inside | is_quote)
                at, kinds = at[is_outside], kinds[is_outside]
                depths = np.cumsum(_STEPS[kinds], dtype=np.int64) + depth
                depth = int(depths[-1]) if len(depths) else depth
                is_outer = depths <= level - (kinds == _CLOSE)
                start = 0
                ends: list[int] = at[is_outer].tolist()
                for end, now in zip(ends, depths[is_outer].tolist(), strict=True):
                    mark = chr(block[end])
                    yield _Token(text(block[start:end]), mark, now, offset + end + 1)
                    pending.clear()
                    size, start = 0, end + 1
                offset += len(block)
                size += len(block) - start
                if size <= MAX_ELEMENT_BYTES:
                    pending.append(block[start:])
                else:
                    pending.clear()
                block = file.read(_BLOCK)
    except OSError as error:
        raise _unreadable(path, error) from None
    size += len(carry)
    yield _Token(text(carry), "", depth, offset + len(carry))

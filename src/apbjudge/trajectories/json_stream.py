"""JSON files of any size, one element at a time; memory stays at one element.

NaN and infinities are read, since Inspect writes them.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, RowError, shorten
from ..jsonl import MAX_LINE_BYTES

_BLOCK = 1 << 20
_BLANK = " \t\r\n"
_LONGEST_MARK = 16
"""An error so near to the end of what is read may come from its being cut off there."""


class Element(NamedTuple):
    """An element of an array.

    Attributes:
        number: From 1.
        offset: Bytes of the file read so far.
        digest: SHA-256 of its text; of what could be read, where it is no JSON.
        value: The value, or why there is none.
    """

    number: int
    offset: int
    digest: bytes
    value: Any


def read_array(path: Path) -> Iterator[Element]:
    """Yields the elements of a file that is one JSON array.

    What can't be read ends the file with an element that says so; those before it are good.

    Raises:
        InputError: If the file can't be read.
    """
    with _Text(path) as text:
        yield from text.elements(1)


def read_object(path: Path, keys: Collection[str], around: dict[str, Any]) -> Iterator[Element]:
    """Yields the elements of the arrays under some keys of the object that a file is.

    Args:
        path: The file.
        keys: Members whose elements are yielded.
        around: Gets the members that come before them; with none at all, all others, for which the
            file is read twice.

    Raises:
        InputError: If the file can't be read, or is no JSON outside of these elements.
    """
    with _Text(path) as text:
        for key in text.members():
            if key in keys and text.next_is("["):
                if not around:
                    around.update(_others(path, key))
                yield from text.elements(1)
            else:
                around[key] = text.value()


def _others(path: Path, skipped: str) -> dict[str, Any]:
    around: dict[str, Any] = {}
    with _Text(path) as text:
        for key in text.members():
            if key == skipped and text.next_is("["):
                for _ in text.elements(1):
                    pass
            else:
                around[key] = text.value()
    return around


class _Text:
    """A file as text that is read as far as it is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder()
        self._text, self._at, self._bytes, self._is_whole = "", 0, 0, False
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise InputError(f"{path}: can't be read: {error.strerror}") from None

    def __enter__(self) -> _Text:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _more(self) -> bool:
        """Reads on; False at the end of the file. What was used is forgotten."""
        if self._is_whole:
            return False
        left = len(self._text) - self._at
        block = self._file.read(max(_BLOCK, left))
        self._bytes += len(block)
        try:
            new = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise InputError(f"{self._path}: expected UTF-8, got {error.reason}") from None
        self._text, self._at = self._text[self._at :] + new, 0
        self._is_whole = not block
        return bool(block)

    def _skip(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANK:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def next_is(self, mark: str) -> bool:
        return self._skip() == mark

    def _take(self, *marks: str) -> str:
        """Takes one of some characters; raises RowError where another one comes."""
        found = self._skip()
        if found not in marks or not found:
            wanted = " or ".join(repr(mark) for mark in marks)
            rest = self._text[self._at : self._at + 40]
            raise RowError("file", wanted, rest or "the end of the file")
        self._at += 1
        return found

    def _value(self) -> tuple[Any, str]:
        """The next value and its text; raises RowError where it is none."""
        self._skip()
        while True:
            problem = ""
            try:
                value, end = self._json.raw_decode(self._text, self._at)
                if end < len(self._text) or not self._more():  # else a number may go on
                    text = self._text[self._at : end]
                    self._at = end
                    return value, text
                continue
            except json.JSONDecodeError as error:
                problem = f"{error.msg} at {shorten(self._text[error.pos : error.pos + 40])}"
                is_cut = "Unterminated" in error.msg or len(self._text) - error.pos < _LONGEST_MARK
                if not is_cut:
                    raise RowError("line", "JSON", problem) from None
            except RecursionError:
                message = "JSON nested at most a few hundred levels deep"
                raise RowError("line", message, "deeper nesting") from None
            if len(self._text) - self._at > MAX_LINE_BYTES:
                limit = f"at most {MAX_LINE_BYTES // 2**20} MiB"
                raise RowError("line", limit, "a longer element")
            if not self._more():
                raise RowError("line", "JSON", problem)

    def _unusable(self, error: RowError) -> InputError:
        return InputError(f"{self._path}: expected {error.expected}, got {error.got}")

    def value(self) -> Any:
        try:
            return self._value()[0]
        except RowError as error:
            raise self._unusable(error) from None

    def elements(self, number: int) -> Iterator[Element]:
        """Yields the elements of an array that begins here, and what is wrong with it."""
        digest = sha256(b"")
        try:
            self._take("[")
            if self.next_is("]"):
                self._take("]")
                return
            while True:
                value, text = self._value()
                digest = sha256(text.encode(errors="surrogatepass"))
                left = len(self._text) - self._at
                yield Element(number, max(0, self._bytes - left), digest.digest(), value)
                number += 1
                if self._take(",", "]") == "]":
                    return
        except RowError as error:
            digest.update(b"broken")
            yield Element(number, self._bytes, digest.digest(), error)
            self._text, self._at, self._is_whole = "", 0, True

    def members(self) -> Iterator[str]:
        """Yields the keys of an object that begins here; the caller takes each value.

        Raises:
            InputError: If it is none.
        """
        try:
            self._take("{")
            if self.next_is("}"):
                return
            while True:
                key, _ = self._value()
                self._take(":")
                yield str(key)
                if self._is_whole and not self._text:
                    return  # an element was broken, and is reported
                if self._take(",", "}") == "}":
                    return
        except RowError as error:
            raise self._unusable(error) from None

"""Compressed blocks of data that travel inside the page.

A block is JSON, compressed with gzip, in base64, inside a ``script`` element of a type that no
browser runs. Base64 has no character that could end the element, so nothing in the data can.
"""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass, field
from typing import IO, Any

import orjson

BLOCK_TYPE = "application/octet-stream"
"""Type of the script elements that hold data."""

ENTRIES_PER_CHUNK = 100
BYTES_PER_CHUNK = 1_500_000
"""A chunk ends with the record that reaches this many bytes of JSON."""

_LEVEL = 6


def block(name: str, data: bytes) -> bytes:
    """One element with the data in it.

    Args:
        name: Its id in the page: letters, digits and hyphens.
        data: JSON.
    """
    packed = base64.b64encode(gzip.compress(data, compresslevel=_LEVEL, mtime=0))
    return f'<script type="{BLOCK_TYPE}" id="{name}">'.encode() + packed + b"</script>\n"


def dumped(value: object) -> bytes:
    """A value as JSON; NaN becomes null."""
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


@dataclass(slots=True, kw_only=True)
class Chunks:
    """Writes records to blocks of about a hundred each, as they come.

    Attributes:
        name: What the blocks are called, before a hyphen and their number.
        file: Where they are written.
        most: Records of a block at most.
        starts: Number of the first record of each block written or begun.
        count: Records so far.
    """

    name: str
    file: IO[bytes]
    most: int = ENTRIES_PER_CHUNK
    starts: list[int] = field(default_factory=list[int])
    count: int = 0
    _held: list[bytes] = field(default_factory=list[bytes])
    _size: int = 0

    def add(self, record: bytes) -> int:
        """Adds a record, which is JSON; its number among all of them is returned."""
        if not self._held:
            self.starts.append(self.count)
        self._held.append(record)
        self._size += len(record)
        self.count += 1
        if len(self._held) >= self.most or self._size >= BYTES_PER_CHUNK:
            self.close()
        return self.count - 1

    def close(self) -> None:
        """Writes what is still held."""
        if self._held:
            name = f"{self.name}-{len(self.starts) - 1}"
            self.file.write(block(name, b"[" + b",".join(self._held) + b"]"))
        self._held.clear()
        self._size = 0


def opened(value: bytes) -> Any:
    """What a block's text holds; for tests and tools that read a page again."""
    return orjson.loads(gzip.decompress(base64.b64decode(value)))

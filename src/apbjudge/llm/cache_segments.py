"""The reply cache as append-only files, one for each process, for network disks.

The index of an SQLite database in WAL mode is memory that the processes of one machine share, so
one database can't serve two machines. Here no two processes write the same file, and nothing is
locked. A process reads the segments of others as they were when it opened the cache.

A segment is a series of blocks, each written at once. A block is a zstd frame with a JSON line for
each reply, after a frame that decoders skip: it has the length of the zstd frame and the hashes of
its keys, so that an index is made without reading the replies. If ``zstandard`` is not installed, a
segment is JSON lines alone. An unfinished end, left by a kill, is not read.
"""

from __future__ import annotations

import json
import os
import platform
import re
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from errno import EACCES, EPERM, EROFS
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from ..records.keys import KeyMap, bytes_key
from .cache import CHECK_BYTES, MOST_BUFFERED, ReplyCache, is_at

SUFFIXES = (".jsonl.zst", ".jsonl")
_SKIPPED = 0x184D2A50
"""The number of a zstd frame that decoders skip."""
_HEAD = struct.Struct("<III")  # that number, the bytes after the next number, the frame's length
_LONGEST = 2 * MOST_BUFFERED


class SegmentCache(ReplyCache):
    """Replies by request key, in a file of its own for each process; see ``ReplyCache``."""

    _index: KeyMap
    _segments: list[Path]
    _own: dict[str, int]
    _file: IO[bytes] | None
    _zstd: Any
    _block: tuple[Path, int, dict[str, bytes]] | None

    def _open(self) -> None:
        self._own, self._file, self._zstd = {}, None, None
        with suppress(ImportError):
            self._zstd = import_module("zstandard")
        self._read_index()

    def _refresh(self) -> None:
        if self._file is None or is_at(Path(self._file.name), os.fstat(self._file.fileno())):
            self._read_index()
        else:
            self._closing.close()
            self._open()

    def _read_index(self) -> None:
        """Reads which replies the segments of other processes hold now."""
        self._index, self._segments, self._block = KeyMap(2), [], None
        own = self._file and Path(self._file.name)
        for path in segments_in(self._folder):
            if path == own:
                continue
            if path.suffix == ".zst" and self._zstd is None:
                self._say("has segments that need zstandard: pip install 'apbjudge[zstd]'")
                continue
            for offset, keys in _blocks(path):
                for key in keys:
                    self._index.add(key, len(self._segments), offset)
            self._segments.append(path)
        self._index.sort(last_counts=True)

    def _load(self, key: str) -> bytes | None:
        if (offset := self._own.get(key)) is not None and self._file is not None:
            return self._replies_at(Path(self._file.name), offset).get(key)
        at = self._index.index(_hash(key))
        if at is None:
            return None
        segment, offset = self._index.values(at)
        return self._replies_at(self._segments[segment], offset).get(key)

    def _replies_at(self, path: Path, offset: int) -> dict[str, bytes]:
        """The replies of a block; those of the last block are held in memory."""
        if self._block is None or self._block[:2] != (path, offset):
            lines = self._lines_at(path, offset).splitlines()
            self._block = path, offset, dict(filter(None, map(_reply_of, lines)))
        return self._block[2]

    def _lines_at(self, path: Path, offset: int) -> bytes:
        with _opened(path) as file:
            file.seek(offset)
            if path.suffix != ".zst":
                return file.readline(_LONGEST)
            _, rest, length = _HEAD.unpack(file.read(_HEAD.size))
            file.seek(rest - 4, os.SEEK_CUR)
            frame = file.read(length)
        try:
            # Never more than the limit, whatever the frame states.
            size = self._zstd.get_frame_parameters(frame).content_size
            return self._zstd.ZstdDecompressor().decompress(frame) if size <= _LONGEST else b""
        except self._zstd.ZstdError:
            return b'{"key": "damaged"}'

    def _store(self, entries: Mapping[str, bytes]) -> None:
        if (file := self._file or self._created()) is None:
            return
        lines = [_line_of(key, data) for key, data in entries.items()]
        start = file.seek(0, os.SEEK_END)
        if self._zstd is None:
            offsets = np.cumsum([start, *map(len, lines)]).tolist()
            file.write(b"".join(lines))
            self._own.update(zip(entries, offsets, strict=False))
            return
        frame = self._zstd.ZstdCompressor(level=3).compress(b"".join(lines))
        keys = struct.pack(f"<{len(entries)}Q", *map(_hash, entries))
        file.write(_HEAD.pack(_SKIPPED, len(keys) + 4, len(frame)) + keys + frame)
        self._own.update(dict.fromkeys(entries, start))

    def _created(self) -> IO[bytes] | None:
        """A new file of this process; None if the folder is read-only."""
        host = re.sub(r"[^A-Za-z0-9.]+", "-", platform.node())[:64]
        name, suffix = f"replies-{host}-{os.getpid()}", SUFFIXES[self._zstd is None]
        for n in range(1000):  # process ids are reused, and a process may have several caches
            try:
                path = self._folder / f"{name}{f'-{n}' if n else ''}{suffix}"
                self._file = cast("IO[bytes]", path.open("xb", buffering=0))
            except FileExistsError:
                continue
            except OSError as error:
                if error.errno not in (EACCES, EPERM, EROFS):
                    raise
                self._is_copy = True
                self._say("can't be written: it is read, and new replies are not kept")
                return None
            self._closing.callback(self._file.close)
            return self._file
        raise FileExistsError(f"there are 1,000 files {name}")

    def _count(self) -> int:
        known = set(self._index.keys.tolist())
        return len(known | {_hash(key) for key in self._own})

    def _paths(self) -> list[Path]:
        return segments_in(self._folder)

    def _remove_all(self) -> int:
        count = self._count()
        self._closing.close()
        for path in segments_in(self._folder):
            path.unlink()
        self._open()
        return count


def segments_in(folder: Path) -> list[Path]:
    """The segments of a cache, the newest last, without links and pipes."""
    found: list[tuple[int, Path]] = []
    for path in folder.glob("replies-*"):
        with suppress(OSError):
            status = path.lstat()
            if path.name.endswith(SUFFIXES) and stat.S_ISREG(status.st_mode):
                found.append((status.st_mtime_ns, path))
    return [path for _, path in sorted(found)]


def _blocks(path: Path) -> Iterator[tuple[int, list[int]]]:
    """The offset and the hashes of the keys of each whole block."""
    with _opened(path) as file:
        end, offset = os.fstat(file.fileno()).st_size, 0
        if path.suffix != ".zst":
            while (line := file.readline(_LONGEST)).endswith(b"\n"):
                if (reply := _reply_of(line)) is not None:
                    yield offset, [_hash(reply[0])]
                offset += len(line)
            return
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            number, rest, length = _HEAD.unpack(head)
            after = offset + 8 + rest + length
            if number != _SKIPPED or rest % 8 != 4 or after > end:  # not ours, or unfinished
                return
            yield offset, list(struct.unpack(f"<{rest // 8}Q", file.read(rest - 4)))
            offset = file.seek(after)


def _opened(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def _hash(key: str) -> int:
    return bytes_key(key.encode(errors="surrogatepass"))


def _line_of(key: str, data: bytes) -> bytes:
    """A reply after its checksum as a line; bytes that are not text survive as well."""
    reply = data[CHECK_BYTES:].decode(errors="surrogateescape")
    of = {"key": key, "check": data[:CHECK_BYTES].hex(), "reply": reply}
    return json.dumps(of).encode() + b"\n"


def _reply_of(line: bytes) -> tuple[str, bytes] | None:
    """The key of a line, and its reply after the checksum; None for a damaged line."""
    try:
        of = json.loads(line)
        return of["key"], bytes.fromhex(of["check"]) + of["reply"].encode(errors="surrogateescape")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None

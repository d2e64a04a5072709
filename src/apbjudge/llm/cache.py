"""Replies stored on disk by request key, so that nothing is paid for twice.

The folder may come from a stranger: nothing in it is unpickled, executed, opened by name or removed
by name. An unusable cache causes one warning, never the end of the run; a read-only one is read
from a temporary copy. Each value begins with a checksum of itself and its key, since SQLite has
none: a flipped bit could be another verdict.

It uses diskcache, whose ``Disk`` would load pickles and the files that entries name. diskcache also
obeys triggers in a database and settings that become pragmas or its own attributes: a database with
anything that diskcache did not make for us is refused first.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, NamedTuple

from diskcache import DEFAULT_SETTINGS, Cache, Disk, Timeout

from ..errors import OptionError, visible

DATABASE = "cache.db"
LOCK_WAIT_S = 5.0
BUFFER_BYTES = 4 * 1024 * 1024
MOST_BUFFERED = 16 * BUFFER_BYTES
"""Bytes that are held in memory while another process holds the database."""
LONGEST_REST_S = 300.0
CHECK_BYTES = 16

_SETTINGS: dict[str, Any] = {
    **DEFAULT_SETTINGS,
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": 2**60,
    "disk_min_file_size": 2**60,  # no value has a file of its own
    "disk_pickle_protocol": 0,  # the default depends on the version of Python
    "sqlite_mmap_size": 0,  # no slower, and a truncated file does not crash
    "sqlite_cell_size_check": 1,
    "sqlite_trusted_schema": 0,
}
_COUNTS = ("count", "size", "hits", "misses")
"""Settings of diskcache that it changes by itself."""


def default_cache_folder() -> Path:
    """The default folder.

    Returns:
        ``$APBJUDGE_CACHE_DIR``, else ``$XDG_CACHE_HOME/apbjudge``, else ``~/.cache/apbjudge``.
        A relative ``$XDG_CACHE_HOME`` counts as unset, as its specification says.

    Raises:
        OptionError: If the user has no home folder and neither variable is set.
    """
    try:
        if named := os.environ.get("APBJUDGE_CACHE_DIR"):
            return Path(named).expanduser()
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        return (base if base.is_absolute() else Path.home() / ".cache") / "apbjudge"
    except RuntimeError:
        raise OptionError("APBJUDGE_CACHE_DIR: set it, no home folder is known") from None


class CacheStats(NamedTuple):
    """The content of a cache: its folder, number of replies (0 if unusable), bytes on disk."""

    folder: Path
    entries: int
    bytes: int


class ReplyCache:
    """Replies by request key, on disk, shared between runs and processes.

    Not for several threads at once; within a running event loop, as in a notebook, one thread makes
    it and another one uses it. No method raises for faults of the folder, its content or the disk:
    the cache is then off, returns nothing and stores nothing. While another process holds the
    database, replies stay in memory.

    Args:
        folder: Created when missing, readable by its owner only.
        every: Replies written in one transaction; a kill loses at most that many.
        warn: Called once with a sentence for each fault.

    Attributes:
        take_back: Called in place of closing a sound cache; set by a ``Pool``.
    """

    def __init__(self, folder: Path, *, every: int = 64, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._every = every
        self._warn = warn
        self._warned_of: set[str] = set()
        self.take_back: Callable[[ReplyCache], None] | None = None
        self._pending: dict[str, bytes] = {}
        self._pending_bytes = 0
        self._cache: Any = None
        self._status: os.stat_result | None = None
        self._closing = ExitStack()
        self._is_off = self._is_copy = False
        self._rest_s = self._rests_until = 0.0
        with self._guarded():
            if folder.exists() and not folder.is_dir():
                raise NotADirectoryError("there is no folder but a file")
            self._make_folder()
            self._open()

    def get(self, key: str) -> bytes | None:
        """The reply under a key, written or still buffered, or None."""
        value = self._pending.get(key)
        if value is not None or self._is_off or self._is_resting:
            return value
        data = None
        with self._guarded():
            data = self._load(key)
        if data is None:
            return None
        value = data[CHECK_BYTES:]
        if data[:CHECK_BYTES] == _checksum(key, value):
            return value
        self._say("has damaged replies, which are asked for again")
        return None

    def put(self, key: str, value: bytes) -> None:
        """Buffers a reply; at ``every`` replies or 4 MiB the buffer is written."""
        if self._is_off:
            return
        if self._is_copy:
            self._say("can't be written: it is read, and new replies are not kept")
            return
        self._pending[key] = value
        self._pending_bytes += len(value)
        if len(self._pending) >= self._every or self._pending_bytes >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is buffered, in one transaction; waits at most 5 s for another writer."""
        if self._is_off or not self._pending or self._is_resting:
            return
        with self._guarded():
            self._store({key: _checksum(key, of) + of for key, of in self._pending.items()})
            self._rest_s = 0.0
            self._clear_buffer()

    def close(self) -> None:
        """Writes what is buffered and closes the files; closing twice is harmless."""
        self._rests_until = 0.0
        self.flush()
        if self._pending:
            self._say(f"lacks the last {len(self._pending)} replies: another process holds it")
        elif self.take_back is not None and not (self._is_off or self._is_copy):
            self.take_back(self)
            return
        self._release()

    def renew(self, warn: Callable[[str], None]) -> None:
        """Prepares an open cache for another run, which sees all changes by others.

        Args:
            warn: As for a new one.
        """
        self._warn, self._warned_of = warn, set()
        with self._guarded():
            self._make_folder()
            self._refresh()

    def stats(self) -> CacheStats:
        """Counts entries and bytes, after a flush."""
        self.flush()
        count = size = 0
        with self._guarded():
            count = 0 if self._is_off else self._count()
        for path in self._paths():
            with suppress(OSError):
                size += path.lstat().st_size
        return CacheStats(self._folder, count, size)

    def clear(self) -> int:
        """Removes every entry, the buffered ones too.

        Returns:
            The number of entries removed; 0 if the cache can't be used or written.
        """
        self.flush()
        with self._guarded():
            if not (self._is_off or self._is_copy):
                return self._remove_all()
        return 0

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _open(self) -> None:
        """Opens the content of the folder, which exists."""
        self._opened()

    def _refresh(self) -> None:
        """Opens the present database if another one replaced it; other changes are seen anyway."""
        if self._status is None or not is_at(self._folder / DATABASE, self._status):
            self._closing.close()
            self._cache = None
            self._open()

    def _load(self, key: str) -> bytes | None:
        """The checksum and the reply under a key; None if there is none."""
        return self._opened().get(key)

    def _store(self, entries: Mapping[str, bytes]) -> None:
        """Writes checksums and replies by key, all or none."""
        with self._opened().transact():
            for key, data in entries.items():
                self._cache.set(key, data)

    def _count(self) -> int:
        return len(self._opened())

    def _paths(self) -> list[Path]:
        """The files, some of which may be missing."""
        return _files(self._folder)

    def _remove_all(self) -> int:
        """Removes all entries, and returns their number."""
        count = self._opened().clear()
        self._cache.close()  # empties the log
        return count

    def _opened(self) -> Any:
        """The diskcache cache, which makes one connection per thread when needed."""
        if self._cache is None:
            folder = self._folder.absolute()
            try:
                _screen(folder)
            except sqlite3.Error as error:
                if _code(error) not in _UNWRITABLE or not (folder / DATABASE).exists():
                    raise
                copy = Path(self._closing.enter_context(TemporaryDirectory(prefix="apbjudge-")))
                for path in _files(folder)[:2]:
                    if path.exists():
                        shutil.copyfile(path, copy / path.name)
                _screen(folder := copy)
                self._is_copy = True
            self._cache = _cache_of_diskcache(folder)
            self._status = (folder / DATABASE).stat()
            self._closing.callback(self._cache.close)
        return self._cache

    @property
    def _is_resting(self) -> bool:
        """True if another process held the database a moment ago: each attempt may take 5 s."""
        return monotonic() < self._rests_until

    @contextmanager
    def _guarded(self) -> Generator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a stranger's database can do anything
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Gives up, unless another process only holds the database for now."""
        while isinstance(error, Timeout) and error.__context__ is not None:
            error = error.__context__
        if _code(error) in _BUSY and self._pending_bytes < MOST_BUFFERED:
            self._say("is held by another process: new replies are kept in memory meanwhile")
            self._rest_s = min(max(LOCK_WAIT_S, 2 * self._rest_s), LONGEST_REST_S)
            self._rests_until = monotonic() + self._rest_s
            return
        self._release()
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        self._say(f"is not used: {visible(reason or type(error).__name__)}")

    def _say(self, what: str) -> None:
        if what not in self._warned_of:
            self._warned_of.add(what)
            self._warn(f"the reply cache in {self._folder} {what}")

    def _release(self) -> None:
        self._is_off = True
        self._clear_buffer()
        with suppress(Exception):
            self._closing.close()

    def _clear_buffer(self) -> None:
        self._pending = {}
        self._pending_bytes = 0


class _Bytes(Disk):
    """Values as bytes in the database; pickles and files that an entry names are never opened."""

    def fetch(self, mode: object, filename: object, value: object, read: object) -> bytes:
        """The value of an entry; b"" if it is not bytes."""
        return value if isinstance(value, bytes) else b""

    def remove(self, file_path: object) -> None:
        """Removes nothing: our entries have no files."""


def _files(folder: Path) -> list[Path]:
    return [folder / f"{DATABASE}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")]


def is_at(path: Path, status: os.stat_result) -> bool:
    """True if a file, by its status when it was opened, is still at a path."""
    try:
        return os.path.samestat(path.stat(), status)
    except OSError:
        return False


def _checksum(key: str, value: bytes) -> bytes:
    name = key.encode(errors="surrogatepass")
    return blake2b(name + b"\0" + value, digest_size=CHECK_BYTES).digest()


_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def _code(error: BaseException) -> int:
    """SQLite's primary code of an error; 0 for others."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master"


def _screen(folder: Path) -> None:
    """Refuses the database that diskcache would open, unless it is new or diskcache made it for us.

    Raises:
        OSError: If it is not a plain file, or has tables or settings of something else.
        sqlite3.Error: If there is no database, another process holds it, or it can't be written:
            diskcache writes while it opens, and waits a minute for a lock.
    """
    if os.path.expandvars(folder) != str(folder):
        raise OSError("the folder's name holds a variable, which diskcache would replace")
    for path in _files(folder):
        # SQLite writes through a link and waits forever at a pipe.
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            raise OSError(f"{path.name} is no regular file")
    place = folder / DATABASE
    with closing(sqlite3.connect(place, timeout=LOCK_WAIT_S, isolation_level=None)) as con:
        con.execute("PRAGMA trusted_schema = OFF")
        con.execute("BEGIN IMMEDIATE")  # a read-only file treats it as BEGIN
        con.execute("PRAGMA user_version = 0")
        objects = set(con.execute(_OBJECTS))
        is_ours = not objects or objects <= _objects()
        settings = con.execute("SELECT key, value FROM Settings") if objects and is_ours else ()
        known = _SETTINGS.items()
        if not is_ours or any(row not in known and row[0] not in _COUNTS for row in settings):
            raise OSError("it holds tables, triggers or settings of something else")


@cache
def _objects() -> set[Any]:
    """The tables, indexes and triggers of a new cache."""
    with TemporaryDirectory(prefix="apbjudge-") as folder:
        _cache_of_diskcache(Path(folder))
        with closing(sqlite3.connect(Path(folder, DATABASE))) as con:
            return set(con.execute(_OBJECTS))


def _cache_of_diskcache(folder: Path) -> Cache:
    """A cache without a connection: the thread that uses it makes one."""
    settings: dict[str, Any] = {"timeout": LOCK_WAIT_S, "disk": _Bytes, **_SETTINGS}
    cache = Cache(str(folder), **settings)
    cache.close()
    return cache

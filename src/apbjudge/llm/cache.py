"""Replies kept on disk by request key, so that nothing is paid for twice.

The folder may come from a stranger: nothing in it is unpickled, executed, opened by name or
removed by name. A cache that can't be used costs one warning, never the run.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import diskcache
from diskcache.core import METADATA, MODE_RAW

from ..errors import OptionError, visible

DATABASE = "cache.db"
LOCK_WAIT_S = 5.0
BUFFER_BYTES = 4 * 1024 * 1024

# Every setting is given: one that is left out would be read from the folder.
_SETTINGS: dict[str, Any] = diskcache.DEFAULT_SETTINGS | {
    "eviction_policy": "none",
    "cull_limit": 0,
    "statistics": 0,
    "disk_min_file_size": sys.maxsize,
}
_PRAGMAS = (
    "auto_vacuum = FULL",
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "mmap_size = 0",  # no slower, and a file cut short by others is an error, not a crash
    "cache_size = -8192",
)
_FAILURES = (sqlite3.Error, diskcache.Timeout, OSError, ValueError, OverflowError)
_Schema = frozenset[tuple[str, str, str, str | None]]
# diskcache carries no types; these two names are where that ends.
_AnyCache: Any = diskcache.Cache
_AnyDisk: Any = diskcache.Disk


def default_cache_folder() -> Path:
    """The folder used when none is named.

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
    """What a cache holds.

    Attributes:
        folder: Where it is.
        entries: Replies in it; 0 when it can't be used.
        bytes: Size of its files on disk.
    """

    folder: Path
    entries: int
    bytes: int


class ReplyCache:
    """Replies by request key, on disk, shared between runs and processes.

    Made for one thread. No method raises for what is wrong with the folder, its content or the
    disk: the cache is then off, finds nothing and keeps nothing.

    Args:
        folder: Created when missing, readable by its owner only.
        every: Replies written in one transaction; a kill loses at most that many.
        warn: Told once, in one sentence, when the cache can't be used (any longer).
    """

    def __init__(self, folder: Path, *, every: int = 64, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._every = every
        self._warn = warn
        self._pending: dict[str, bytes] = {}
        self._pending_bytes = 0
        self._store: _Store | None = None
        try:
            self._store = _open(folder)
        except _FAILURES as error:
            self._give_up(error)

    def get(self, key: str) -> bytes | None:
        """The reply put under a key, written or still buffered, or None."""
        if self._store is None:
            return None
        value = self._pending.get(key)
        if value is not None:
            return value
        try:
            return self._store.get(key)
        except _FAILURES as error:
            self._give_up(error)
            return None

    def put(self, key: str, value: bytes) -> None:
        """Buffers a reply; at ``every`` replies or 4 MiB the buffer is written."""
        if self._store is None:
            return
        self._pending[key] = value
        self._pending_bytes += len(value)
        if len(self._pending) >= self._every or self._pending_bytes >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is buffered, in one transaction; waits at most 5 s for another writer."""
        if self._store is None or not self._pending:
            return
        try:
            self._store.write(self._pending)
        except _FAILURES as error:
            self._give_up(error)
        self._forget_pending()

    def close(self) -> None:
        """Writes what is buffered and lets go of the files; closing twice is harmless."""
        self.flush()
        self._release()

    def stats(self) -> CacheStats:
        """Counts entries and bytes, after a flush."""
        self.flush()
        entries = 0
        if self._store is not None:
            try:
                entries = self._store.entries()
            except _FAILURES as error:
                self._give_up(error)
        return CacheStats(self._folder, entries, _size(self._folder))

    def clear(self) -> int:
        """Removes every entry, the buffered ones too.

        Returns:
            How many there were; 0 when the cache can't be used.
        """
        self.flush()
        if self._store is None:
            return 0
        try:
            return self._store.empty()
        except _FAILURES as error:
            self._give_up(error)
            return 0

    def _give_up(self, error: BaseException) -> None:
        self._release()
        reason = visible(_reason(error))
        self._warn(f"the reply cache in {self._folder} is not used: {reason}")

    def _release(self) -> None:
        self._forget_pending()
        store, self._store = self._store, None
        if store is not None:
            with contextlib.suppress(*_FAILURES):
                store.close()

    def _forget_pending(self) -> None:
        self._pending = {}
        self._pending_bytes = 0


class _ForeignError(OSError):
    """The folder holds something that this module would not have made."""


class _RawDisk(_AnyDisk):
    """Text keys and raw bytes only; no pickles, no files."""

    def put(self, key: object) -> tuple[str, bool]:
        if not isinstance(key, str):
            _refuse("a key that is no text")
        return key, True

    def get(self, key: object, raw: object) -> str:
        if not raw or not isinstance(key, str):
            _refuse("a key that is no text")
        return key

    def store(self, value: object, read: object, key: object = None) -> tuple[Any, ...]:
        if read or not isinstance(value, bytes):
            _refuse("a value that is not bytes")
        return 0, MODE_RAW, None, value

    def fetch(self, mode: object, filename: object, value: object, read: object) -> bytes:
        if mode != MODE_RAW or read or filename is not None or not isinstance(value, bytes):
            _refuse("a value that is not raw bytes")  # an OSError: diskcache calls it a miss
        return value

    def filename(self, key: object = None, value: object = None) -> NoReturn:
        _refuse("a value in a file")

    def remove(self, file_path: object) -> None:
        """Leaves the file alone: the name is the database's, and none of ours is in use."""


class _Store(_AnyCache):
    """A diskcache whose every connection is screened, and that takes no setting from its file."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        try:
            # Files lie where connect says; of a name, diskcache would expand $ and ~.
            _AnyCache.__init__(self, os.sep, disk=_RawDisk, **_SETTINGS)
        except BaseException:
            self.close()
            raise

    @property
    def _con(self) -> sqlite3.Connection:
        local = self._local
        if getattr(local, "pid", None) != os.getpid():  # forked: the parent's connection is its own
            self.close()
            local.pid = os.getpid()
        con = getattr(local, "con", None)
        if con is None:
            con = local.con = self._connect()
        return con

    @property
    def _sql_retry(self) -> Callable[..., Any]:
        return self._con.execute  # SQLite waits by itself, and not for a minute

    def reset(self, key: str, *args: Any, **kwargs: Any) -> Any:
        # Pragmas are set on connecting; diskcache would splice them into SQL.
        return None if key.startswith("sqlite_") else _AnyCache.reset(self, key, *args, **kwargs)

    def write(self, values: dict[str, bytes]) -> None:
        with self.transact():
            for key, value in values.items():
                self.set(key, value)

    def entries(self) -> int:
        return self._con.execute("SELECT count(*) FROM Cache").fetchone()[0]

    def empty(self) -> int:
        removed: int = self.clear()
        self._con.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return removed


def _refuse(what: str) -> NoReturn:
    raise _ForeignError(f"it holds {what}")


def _open(folder: Path) -> _Store:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError("there is no folder but a file")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _Store(partial(_connect, folder))


def _connect(folder: Path) -> sqlite3.Connection:
    for path in _files(folder):
        # SQLite writes through a link and waits for ever at a pipe.
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            raise _ForeignError(f"{path.name} is no regular file")
    con = sqlite3.connect(folder / DATABASE, timeout=LOCK_WAIT_S, isolation_level=None)
    try:
        _screen(con)
        for pragma in _PRAGMAS:
            con.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        con.close()
        raise
    return con


def _screen(con: sqlite3.Connection) -> None:
    """Turns away a database with tables, views, triggers or settings that are not ours."""
    con.text_factory = partial(str, encoding="utf-8", errors="replace")
    con.execute("PRAGMA trusted_schema = OFF")
    con.execute("PRAGMA cell_size_check = ON")
    schema = _schema(con)
    if schema - _own_schema():
        _refuse("tables, views or triggers of something else")
    if any(kind == "table" and name == "Settings" for kind, name, _, _ in schema):
        known = _SETTINGS.keys() | METADATA.keys()
        if any(key not in known for (key,) in con.execute("SELECT key FROM Settings")):
            _refuse("settings of something else")


def _schema(con: sqlite3.Connection) -> _Schema:
    return frozenset(con.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


@cache
def _own_schema() -> _Schema:
    """What diskcache, as installed and with our settings, puts into an empty database."""
    con = sqlite3.connect(":memory:", isolation_level=None, factory=_Unclosed)
    try:
        _Store(lambda: con)
        return _schema(con)
    finally:
        sqlite3.Connection.close(con)


class _Unclosed(sqlite3.Connection):
    """A database in memory, which would be gone with diskcache's first connection."""

    def close(self) -> None:
        """Stays open."""


def _files(folder: Path) -> list[Path]:
    return [folder / f"{DATABASE}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")]


def _size(folder: Path) -> int:
    total = 0
    for path in _files(folder):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total


def _reason(error: BaseException) -> str:
    # The first failure tells; diskcache hides it behind Timeout, or behind a failed rollback.
    while isinstance(error.__context__, sqlite3.Error | diskcache.Timeout):
        error = cast("BaseException", error.__context__)
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__

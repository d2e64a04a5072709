"""Replies kept on disk by request key, so that nothing is paid for twice.

The folder may come from a stranger: nothing in it is unpickled, executed, opened by name or removed
by name. A cache that can't be used costs one warning, never the run.

It is one table of SQLite, by the standard library. diskcache can't hold these promises by its
public names: it loads pickles and files that entries name unless every method of its ``Disk`` is
replaced, splices settings found in the database into SQL, expands ``$`` and ``~`` in the folder's
name, and waits up to a minute for a lock.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..errors import OptionError, visible

DATABASE = "replies.db"
LOCK_WAIT_S = 5.0
BUFFER_BYTES = 4 * 1024 * 1024

_SCHEMA = "CREATE TABLE replies (key TEXT PRIMARY KEY, value BLOB NOT NULL)"
_OBJECTS = {
    ("table", "replies", "replies", _SCHEMA),
    ("index", "sqlite_autoindex_replies_1", "replies", None),
}
_PRAGMAS = (
    "auto_vacuum = FULL",
    "journal_mode = WAL",
    "synchronous = NORMAL",
    "mmap_size = 0",  # no slower, and a file cut short by others is an error, not a crash
    "cache_size = -8192",
)
_FAILURES = (sqlite3.Error, OSError, ValueError, OverflowError)


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
    """The content of a cache: its folder, replies in it (0 when unusable), bytes on disk."""

    folder: Path
    entries: int
    bytes: int


class ReplyCache:
    """Replies by request key, on disk, shared between runs and processes.

    Not for several threads at once; beside a running event loop, as in a notebook, one thread makes
    it and another one uses it. No method raises for what is wrong with the folder, its content or
    the disk: the cache is then off, returns nothing and stores nothing.

    Args:
        folder: Created when missing, readable by its owner only.
        every: Replies written in one transaction; a kill loses at most that many.
        warn: Called once, with one sentence, when the cache can't be used (any longer).
    """

    def __init__(self, folder: Path, *, every: int = 64, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._every = every
        self._warn = warn
        self._pending: dict[str, bytes] = {}
        self._pending_bytes = 0
        self._con: sqlite3.Connection | None = None
        self._pid = os.getpid()
        try:
            if folder.exists() and not folder.is_dir():
                raise NotADirectoryError("there is no folder but a file")
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._con = _connect(folder)
        except _FAILURES as error:
            self._give_up(error)

    def get(self, key: str) -> bytes | None:
        """The reply put under a key, written or still buffered, or None."""
        if self._con is None:
            return None
        if (value := self._pending.get(key)) is not None:
            return value
        try:
            rows = self._connection().execute("SELECT value FROM replies WHERE key = ?", (key,))
            row = rows.fetchone()
        except _FAILURES as error:
            self._give_up(error)
            return None
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def put(self, key: str, value: bytes) -> None:
        """Buffers a reply; at ``every`` replies or 4 MiB the buffer is written."""
        if self._con is None:
            return
        self._pending[key] = value
        self._pending_bytes += len(value)
        if len(self._pending) >= self._every or self._pending_bytes >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is buffered, in one transaction; waits at most 5 s for another writer."""
        if self._con is None or not self._pending:
            return
        try:
            _write(self._connection(), self._pending)
        except _FAILURES as error:
            self._give_up(error)
        self._clear_buffer()

    def close(self) -> None:
        """Writes what is buffered and closes the files; closing twice is harmless."""
        self.flush()
        self._release()

    def stats(self) -> CacheStats:
        """Counts entries and bytes, after a flush."""
        self.flush()
        size = 0
        for path in _files(self._folder):
            with contextlib.suppress(OSError):
                size += path.lstat().st_size
        return CacheStats(self._folder, self._count(), size)

    def clear(self) -> int:
        """Removes every entry, the buffered ones too.

        Returns:
            The number of entries removed; 0 when the cache can't be used.
        """
        self.flush()
        count = self._count()
        if self._con is None:
            return 0
        try:
            self._connection().execute("DELETE FROM replies")
            self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except _FAILURES as error:
            self._give_up(error)
            return 0
        return count

    def _count(self) -> int:
        if self._con is None:
            return 0
        try:
            return self._connection().execute("SELECT count(*) FROM replies").fetchone()[0]
        except _FAILURES as error:
            self._give_up(error)
            return 0

    def _connection(self) -> sqlite3.Connection:
        if self._con is None or self._pid != os.getpid():  # forked: the parent's stays its own
            self._pid, self._con = os.getpid(), _connect(self._folder)
        return self._con

    def _give_up(self, error: BaseException) -> None:
        self._release()
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        reason = visible(reason or type(error).__name__)
        self._warn(f"the reply cache in {self._folder} is not used: {reason}")

    def _release(self) -> None:
        self._clear_buffer()
        con, self._con = self._con, None
        if con is not None:
            with contextlib.suppress(*_FAILURES):
                con.close()

    def _clear_buffer(self) -> None:
        self._pending = {}
        self._pending_bytes = 0


def _files(folder: Path) -> list[Path]:
    return [folder / f"{DATABASE}{suffix}" for suffix in ("", "-wal", "-shm", "-journal")]


def _connect(folder: Path) -> sqlite3.Connection:
    """Opens the database, and refuses one with tables, views or triggers that are not ours."""
    for path in _files(folder):
        # SQLite writes through a link and waits for ever at a pipe.
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            raise OSError(f"{path.name} is no regular file")
    con = sqlite3.connect(
        folder / DATABASE, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False
    )
    try:
        con.text_factory = partial(str, encoding="utf-8", errors="replace")
        con.execute("PRAGMA trusted_schema = OFF")
        con.execute("PRAGMA cell_size_check = ON")
        is_new = _screen(con)
        for pragma in _PRAGMAS:
            con.execute(f"PRAGMA {pragma}").fetchall()
        if is_new:
            con.execute(_SCHEMA.replace("TABLE", "TABLE IF NOT EXISTS", 1))
    except BaseException:
        con.close()
        raise
    return con


def _screen(con: sqlite3.Connection) -> bool:
    """Refuses a database with anything but our table; returns whether it is empty."""
    objects = set(con.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
    if not objects <= _OBJECTS:
        raise OSError("it holds tables, views or triggers of something else")
    return not objects


def _write(con: sqlite3.Connection, values: Mapping[str, bytes]) -> None:
    con.execute("BEGIN IMMEDIATE")
    try:
        con.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", values.items())
        con.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            con.execute("ROLLBACK")
        raise

"""Replies kept on disk by request key, so that nothing is paid for twice.

The folder may come from a stranger: nothing in it is unpickled, executed, opened by name or removed
by name. A cache that can't be used costs one warning, never the run; one that can't be written is
read. Each value begins with a checksum of itself and its key, since SQLite has none: a bit that
flipped on the disk would be another verdict.

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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from ..errors import OptionError, visible

DATABASE = "replies.db"
LOCK_WAIT_S = 5.0
BUFFER_BYTES = 4 * 1024 * 1024
MOST_BUFFERED = 16 * BUFFER_BYTES
"""So much is held in memory while another process holds the database."""
LONGEST_REST_S = 300.0
CHECK_BYTES = 16

_SCHEMA = "CREATE TABLE replies (key TEXT PRIMARY KEY, value BLOB NOT NULL)"
_OBJECTS = {
    ("table", "replies", "replies", _SCHEMA),
    ("index", "sqlite_autoindex_replies_1", "replies", None),
}
_PRAGMAS = (
    "auto_vacuum = FULL",
    "journal_mode = WAL",
    "synchronous = NORMAL",
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
    the disk: the cache is then off, returns nothing and stores nothing. While another process holds
    the database, replies are kept in memory.

    Args:
        folder: Created when missing, readable by its owner only.
        every: Replies written in one transaction; a kill loses at most that many.
        warn: Called with a sentence for each thing that is wrong, once.
    """

    def __init__(self, folder: Path, *, every: int = 64, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._every = every
        self._warn = warn
        self._said: set[str] = set()
        self._pending: dict[str, bytes] = {}
        self._pending_bytes = 0
        self._con: sqlite3.Connection | None = None
        self._pid = os.getpid()
        self._is_off = self._is_read_only = False
        self._rest_s = self._rests_until = 0.0
        try:
            if folder.exists() and not folder.is_dir():
                raise NotADirectoryError("there is no folder but a file")
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection()
        except _FAILURES as error:
            self._fail(error)

    def get(self, key: str) -> bytes | None:
        """The reply put under a key, written or still buffered, or None."""
        value = self._pending.get(key)
        if value is not None or self._is_off or self._is_resting:
            return value
        try:
            rows = self._connection().execute("SELECT value FROM replies WHERE key = ?", (key,))
            row = rows.fetchone()
        except _FAILURES as error:
            self._fail(error)
            return None
        if row is None:
            return None
        data = row[0] if isinstance(row[0], bytes) else b""
        value = data[CHECK_BYTES:]
        if data[:CHECK_BYTES] == _checksum(key, value):
            return value
        self._say("has damaged replies, which are asked for again")
        return None

    def put(self, key: str, value: bytes) -> None:
        """Buffers a reply; at ``every`` replies or 4 MiB the buffer is written."""
        if self._is_off or self._is_read_only:
            return
        self._pending[key] = value
        self._pending_bytes += len(value)
        if len(self._pending) >= self._every or self._pending_bytes >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is buffered, in one transaction; waits at most 5 s for another writer."""
        if self._is_off or not self._pending or self._is_resting:
            return
        try:
            _write(self._connection(), self._pending)
        except _FAILURES as error:
            self._fail(error)
        else:
            self._rest_s = 0.0
            self._clear_buffer()

    def close(self) -> None:
        """Writes what is buffered and closes the files; closing twice is harmless."""
        self._rests_until = 0.0
        self.flush()
        if self._pending:
            self._say(f"lacks the last {len(self._pending)} replies: another process holds it")
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
        if self._is_off:
            return 0
        try:
            self._connection().execute("DELETE FROM replies")
            self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except _FAILURES as error:
            self._fail(error)
            return 0
        return count

    def _count(self) -> int:
        if self._is_off:
            return 0
        try:
            return self._connection().execute("SELECT count(*) FROM replies").fetchone()[0]
        except _FAILURES as error:
            self._fail(error)
            return 0

    def _connection(self) -> sqlite3.Connection:
        if self._con is None or self._pid != os.getpid():  # forked: the parent's stays its own
            self._pid, (self._con, self._is_read_only) = os.getpid(), _connect(self._folder)
            if self._is_read_only:
                self._say("can't be written: it is read, and new replies are not kept")
        return self._con

    @property
    def _is_resting(self) -> bool:
        """Whether another process held the database a moment ago: each try may take 5 s."""
        return monotonic() < self._rests_until

    def _fail(self, error: BaseException) -> None:
        """Gives up, unless another process only holds the database for now."""
        if _code(error) in _BUSY and self._pending_bytes < MOST_BUFFERED:
            self._say("is held by another process: new replies are kept in memory meanwhile")
            self._rest_s = min(max(LOCK_WAIT_S, 2 * self._rest_s), LONGEST_REST_S)
            self._rests_until = monotonic() + self._rest_s
            return
        self._release()
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        self._say(f"is not used: {visible(reason or type(error).__name__)}")

    def _say(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            self._warn(f"the reply cache in {self._folder} {what}")

    def _release(self) -> None:
        self._is_off = True
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


def _checksum(key: str, value: bytes) -> bytes:
    name = key.encode(errors="surrogatepass")
    return blake2b(name + b"\0" + value, digest_size=CHECK_BYTES).digest()


_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNWRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def _code(error: BaseException) -> int:
    """SQLite's primary code of an error; 0 for others."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _connect(folder: Path) -> tuple[sqlite3.Connection, bool]:
    """Opens the database; says whether it can only be read."""
    for path in _files(folder):
        # SQLite writes through a link and waits for ever at a pipe.
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            raise OSError(f"{path.name} is no regular file")
    path, log, *_ = _files(folder)
    place = path.absolute().as_uri()
    try:
        return _opened(place, _PRAGMAS), False
    except sqlite3.Error as error:
        if _code(error) not in _UNWRITABLE or not path.exists():
            raise
    # without a log nothing is missing from the file, so that its index, which would have to be
    # written, is not needed
    return _opened(f"{place}?mode=ro{'' if log.exists() else '&immutable=1'}", ()), True


def _opened(place: str, pragmas: Sequence[str]) -> sqlite3.Connection:
    """Opens the database, and refuses one with tables, views or triggers that are not ours."""
    con = sqlite3.connect(
        place, timeout=LOCK_WAIT_S, isolation_level=None, check_same_thread=False, uri=True
    )
    try:
        con.text_factory = partial(str, encoding="utf-8", errors="replace")
        con.execute("PRAGMA trusted_schema = OFF")
        con.execute("PRAGMA cell_size_check = ON")
        con.execute("PRAGMA mmap_size = 0")  # no slower, and a file cut short is no crash
        is_new = _screen(con)
        for pragma in pragmas:
            con.execute(f"PRAGMA {pragma}").fetchall()
        if is_new and pragmas:
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
        rows = ((key, _checksum(key, value) + value) for key, value in values.items())
        con.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?)", rows)
        con.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            con.execute("ROLLBACK")
        raise

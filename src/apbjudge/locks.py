"""Claims on files and folders: one process writes, any other one is refused.

A claim is a lock of the operating system or, on file systems where these do not work, a file that
only one process can create. Its holder changes the file's time at intervals; a claim whose holder
is gone is taken over once some of these beats are missing.
"""

from __future__ import annotations

import fcntl
import os
import platform
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol
from uuid import uuid4

import orjson

from .errors import BusyError, InputError, OptionError, visible
from .jsonl import is_running, parse_object, unwritable

BEAT_S = 30.0
SILENCE_S = 3 * BEAT_S
"""Three missed beats: no holder is silent for so long while it runs."""
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Claiming:
    """Settings of a process's claims on what it writes.

    Attributes:
        by: ``lock`` of the operating system, or ``file``.
        take_over: True if a claim by a file is taken over from a holder on another machine too.
        now: Function that returns seconds since the epoch.
        sleep: Function that waits a number of seconds.
    """

    by: Literal["lock", "file"] = "lock"
    take_over: bool = False
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


class Lock(Protocol):
    """The claims of a process."""

    def check(self) -> None:
        """Raises OptionError if another process has taken it over."""
        ...

    def close(self) -> None:
        """Releases the claims."""
        ...


def take_lock(
    lock: Path, of: Path, *, busy: str, claiming: Claiming | None = None, instead: str = ""
) -> Lock:
    """Claims something that no other process can hold meanwhile.

    Args:
        lock: File of the lock, created when missing; under a lock of the operating system it
            remains.
        of: The claimed path, for messages.
        busy: The message when another process holds it.
        claiming: Settings of the claim; None for a lock of the operating system.
        instead: Advice for a file system without locks, for messages.

    Raises:
        InputError: If the lock's file can't be written, or its file system has no locks.
        OptionError: If another process holds it.
    """
    if claiming is not None and claiming.by == "file":
        return ClaimFile(lock, of, busy, claiming)
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise unwritable(of, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BusyError(busy) from None
    except OSError as error:
        os.close(descriptor)
        raise InputError(
            f"{of}: can't be locked against other processes: {error.strerror}: expected a file "
            "system with flock (Lustre needs the mount option flock), got "
            f"{_file_system(lock)}{instead}"
        ) from None
    return _Flock(descriptor)


@dataclass(frozen=True, slots=True)
class _Flock:
    """A lock of the operating system, which ends with the process."""

    descriptor: int

    def check(self) -> None:
        """Does nothing, since nobody can take such a lock over."""

    def close(self) -> None:
        os.close(self.descriptor)


class _Holder(NamedTuple):
    """A process that has claimed something; fields that its file does not state are empty or 0.

    Attributes:
        token: Unique name of this claim.
        host: The machine.
        boot: Id of the machine's start.
        pid: Id of the process.
        born: Start of the process, since ids of processes are reused.
        beat: Time of its last beat, by its own clock.
    """

    token: str
    host: str
    boot: str
    pid: int
    born: str
    beat: float = 0.0

    @property
    def is_gone(self) -> bool:
        """True if it has certainly ended."""
        if self.host != platform.node() or not self.pid:
            return False
        if self.boot != _boot() or not is_running(self.pid):
            return True
        return self.born != _process_start(self.pid)


class ClaimFile:
    """A claim by a file that exactly one process can create.

    A claim whose holder is gone (or any claim, with ``take_over``) passes to exactly one successor:
    the process that creates the file named after the claim, and then replaces the claim with it.

    Args:
        path: The file; it is deleted when the claim ends.
        of: The claimed path, for messages.
        busy: The message when another process holds it.
        claiming: The rule by which a claim is taken over.

    Raises:
        InputError: If the file can't be written.
        OptionError: If another process holds it.
    """

    def __init__(self, path: Path, of: Path, busy: str, claiming: Claiming) -> None:
        self._path, self._of, self._busy, self._claiming = path, of, busy, claiming
        pid = os.getpid()
        self._own = _Holder(uuid4().hex, platform.node(), _boot(), pid, _process_start(pid))
        self._is_lost = False
        try:
            self._take()
        except OSError as error:
            raise unwritable(of, error) from None
        self._ended = threading.Event()
        threading.Thread(target=self._beat_on, name="claim", daemon=True).start()

    def check(self) -> None:
        """See ``Lock``."""
        if self._is_lost:
            raise OptionError(f"--claim file: another process has taken over {self._of}")

    def beat(self) -> None:
        """Shows that the holder runs, and checks that it still has the claim."""
        try:
            holder = _holder_in(self._path)
            if holder is not None and holder.token == self._own.token:
                now = self._claiming.now()
                os.utime(self._path, (now, now))
            else:
                self._is_lost = True
        except OSError:
            return  # a missed beat; the next one may reach the disk

    def close(self) -> None:
        """See ``Lock``."""
        self._ended.set()
        with suppress(OSError):
            holder = _holder_in(self._path)
            if holder is not None and holder.token == self._own.token:
                self._path.unlink()

    def _beat_on(self) -> None:
        while not self._ended.wait(BEAT_S):
            self.beat()

    def _take(self) -> None:
        """Creates the file, or waits until another claim may be taken over and does so."""
        seen: _Holder | None = None
        while not self._create(self._path):
            holder = _holder_in(self._path)
            if holder is None:  # it was released meanwhile
                continue
            may_replace = holder.is_gone or self._claiming.take_over
            if not may_replace or (seen is not None and holder != seen):
                raise BusyError(self._refusal(holder))
            age = self._claiming.now() - holder.beat
            # The clock of another machine may differ: its silence is measured by waiting.
            if holder == seen or (holder.is_gone and age >= SILENCE_S):
                self._replace(holder)
                return
            seen = holder
            self._claiming.sleep(min(SILENCE_S, SILENCE_S - age) if holder.is_gone else SILENCE_S)

    def _replace(self, holder: _Holder) -> None:
        successor = self._path.with_name(f"{self._path.stem}-{holder.token or 'unreadable'}.json")
        if not self._create(successor):
            raise BusyError(f"{self._busy}: it is taking over the claim with {successor.name}")
        if _holder_in(self._path) != holder:  # it beats again, or another one was quicker
            successor.unlink()
            raise BusyError(self._busy)
        successor.replace(self._path)

    def _create(self, path: Path) -> bool:
        """Writes this claim into a new file; False if the file already exists."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        try:
            fields = {name: of for name, of in self._own._asdict().items() if name != "beat"}
            os.write(descriptor, orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE))
            now = self._claiming.now()
            os.utime(descriptor, (now, now))
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        return True

    def _refusal(self, holder: _Holder) -> str:
        age = max(0, round(self._claiming.now() - holder.beat))
        who = f"process {holder.pid} on {visible(holder.host)}" if holder.pid else "an unknown one"
        text = f"{self._busy}: {self._path.name} is of {who}, last beat {age} s ago"
        if age < SILENCE_S or self._claiming.take_over:
            return text
        return f"{text}; if it does not run any more, --take-over continues in its place"


def _holder_in(path: Path) -> _Holder | None:
    """The holder that a claim states; None without a claim."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for a writer
    except FileNotFoundError:
        return None
    try:
        data, beat = os.read(descriptor, _MOST_BYTES), os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
    stated = parse_object(data)
    of = stated if isinstance(stated, dict) else {}
    token, host, boot, born = (str(of.get(name, "")) for name in ("token", "host", "boot", "born"))
    pid = of.get("pid")
    pid = pid if isinstance(pid, int) and 0 < pid < 2**31 else 0
    return _Holder(token if token.isalnum() else "", host, boot, pid, born, beat)


def _boot() -> str:
    """Id of this start of the machine; empty if the system states none."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _process_start(pid: int) -> str:
    """The time of a process's start; empty if the system does not state it."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    return ""


def _file_system(path: Path) -> str:
    """The kind of file system that a path is on, such as nfs4."""
    place, kinds = path.resolve(), dict[Path, str]()
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(errors="replace").splitlines():
            _, mount, kind, *_ = line.split(" ")
            kinds[Path(mount.replace("\\040", " "))] = kind
    return next((kinds[at] for at in (place, *place.parents) if at in kinds), "one of unknown kind")

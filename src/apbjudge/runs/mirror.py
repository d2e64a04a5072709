"""A run whose folder is at an address: it works on this machine and uploads its files.

Objects can't be appended to. So the lines that were added to a file go up as a segment that nobody
changes any more: ``judgements/part-00001/000123.jsonl.zst``. A file that was written anew begins
another part with all of its lines, and the last part is what counts. A manifest goes up last.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from shutil import copyfile, copyfileobj
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import IO, Any

from ..errors import ApbJudgeError, InputError, OptionError
from ..jsonl import read_lines, replacing
from ..records.keys import KeySet, bytes_key
from ..records.run_folder import MANIFEST, SUPERSEDED
from ..remote import UPLOAD_EVERY, Store, get_folder, target_of, unpacked_segment
from .clearing import take_folder_lock

_WHOLE = frozenset(".json .csv .txt .md .html .toml".split())
"""Suffixes of files that go up as a whole."""
_BLOCK = 1 << 20
_TAIL = 4096


@dataclass(slots=True)
class _Lines:
    """A file of lines, and what of it is up.

    Attributes:
        part: Number of the part that its segments are in.
        segment: Number of the last segment.
        size: Bytes of the file that are up.
        inode: The file that these are of.
        tail: The last of these bytes.
    """

    part: int = 1
    segment: int = 0
    size: int = 0
    inode: int = 0
    tail: bytes = b""


class Mirror:
    """The files of a run's folder at an address.

    Args:
        folder: The folder on this machine.
        store: Destination of the files.
    """

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder, self._store = folder, store
        self._lines: dict[str, _Lines] = {}
        self._whole: dict[str, bytes] = {}  # digests

    def restore(self) -> None:
        """Fetches the uploaded files into the folder; lines that only the folder has stay.

        Raises:
            InputError: If the address can't be read.
            OptionError: If another process writes the folder.
        """
        lock = take_folder_lock(self._folder)
        try:
            names = self._store.listed()
            with TemporaryDirectory(prefix="apbjudge-") as folder:
                last = get_folder(self._store, names, Path(folder))
                for path in sorted(Path(folder).rglob("*")):
                    if path.is_file():
                        own = path.relative_to(folder).as_posix()
                        self._take(path, own, last.get(own))
        finally:
            lock.close()

    def _take(self, path: Path, own: str, last: tuple[int, int] | None) -> None:
        """Fetches an uploaded file into the folder; without lines only if it is the later one."""
        to = self._folder / own
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".jsonl":
            self._whole[own] = _digest(path.read_bytes())
            if not to.exists() or self._is_later(f"{self._store.path}/{own}", to):
                copyfile(path, to)
            return
        size, tail = path.stat().st_size, _tail(path)
        if to.exists():
            known = KeySet()
            for line in read_lines(path, any_format=True):
                known.add(bytes_key(line.raw))
            with path.open("ab") as file:
                for line in read_lines(to, any_format=True):
                    if known.add(bytes_key(line.raw)):
                        file.write(line.raw + b"\n")
        inode = 0
        if path.stat().st_size:
            with replacing(to) as file, path.open("rb") as source:
                copyfileobj(source, file)
            inode = to.stat().st_ino
        if last is not None:
            self._lines[own] = _Lines(*last, size, inode, tail)

    def _is_later(self, name: str, path: Path) -> bool:
        """True if the uploaded file changed after the local one, or if this is unknown."""
        try:
            modified: datetime = self._store.files.modified(name)
        except Exception:  # noqa: BLE001 - each file system has errors of its own
            return True
        if modified.tzinfo is None:
            modified = modified.replace(tzinfo=UTC)
        return modified.timestamp() >= path.stat().st_mtime

    def push(self) -> None:
        """Uploads everything written since the last time.

        Raises:
            InputError: If the address can't be written.
            OptionError: If another process writes there.
        """
        contents = self._changed()  # read first, so that no manifest states more lines than are up
        paths = {p.relative_to(self._folder).as_posix() for p in self._folder.rglob("*.jsonl")}
        # records move to the superseded ones: these are opened last and go up first
        names = sorted(
            paths | self._lines.keys(), key=lambda own: (Path(own).name == SUPERSEDED, own)
        )
        with ExitStack() as stack:
            files = [(own, stack.enter_context(_opened(self._folder / own))) for own in names]
            for own, file in reversed(files):
                self._push_lines(own, file)
        self._push_whole(contents)

    def push_figures(self) -> None:
        """Uploads the files without lines."""
        self._push_whole(self._changed())

    def _changed(self) -> dict[str, bytes]:
        """The contents of files without lines that changed since their upload."""
        contents: dict[str, bytes] = {}
        for path in self._folder.rglob("*"):
            if path.suffix in _WHOLE and (data := _content(path)) is not None:
                contents[path.relative_to(self._folder).as_posix()] = data
        known = self._whole
        return {own: data for own, data in contents.items() if known.get(own) != _digest(data)}

    def _push_whole(self, contents: Mapping[str, bytes]) -> None:
        """Brings up files, manifests last."""
        for own in sorted(contents, key=lambda own: (Path(own).name == MANIFEST, own)):
            digest = _digest(contents[own])
            if self._whole.get(own) != digest:
                with TemporaryDirectory(prefix="apbjudge-") as folder:
                    copy = Path(folder, "file")
                    copy.write_bytes(contents[own])
                    self._store.put(copy, own)
                self._whole[own] = digest

    def _push_lines(self, own: str, file: IO[bytes]) -> None:
        """Brings up the whole lines behind those that are; all of them of a file written anew."""
        of, now = self._lines.get(own, _Lines()), os.fstat(file.fileno())
        file.seek(at := max(0, of.size - _TAIL))
        is_same = now.st_ino == of.inode and file.read(of.size - at) == of.tail
        if of.segment and not is_same and (of.size or now.st_size):
            of = _Lines(of.part + 1)
        end = _end_of_lines(file, of.size)
        if end == of.size and (of.segment or of.part == 1):  # an emptied file has an empty segment
            return
        name = f"{own.removesuffix('.jsonl')}/part-{of.part:05}/{of.segment + 1:06}.jsonl"
        up = self._push_segment(name, file, of.size, end)
        file.seek(max(0, up - _TAIL))
        tail = file.read(min(up, _TAIL))
        self._lines[own] = _Lines(of.part, of.segment + 1, up, now.st_ino, tail)
        if up < end:
            self._push_lines(own, file)

    def _push_segment(self, name: str, file: IO[bytes], start: int, end: int) -> int:
        """Brings up a segment; returns the offset up to which it reaches.

        One that is there is ours if it has the same lines: the answer to the upload was lost.
        """
        with TemporaryDirectory(prefix="apbjudge-") as folder:
            packed = Path(folder, "segment")
            name += _pack(file, start, end, packed)
            if not self._store.has(name):
                self._store.put(packed, name)
                return end
            there = Path(folder, Path(name).name)
            self._store.get(f"{self._store.path}/{name}", there)
            with unpacked_segment(there) as segment:
                data = segment.read()
            file.seek(start)
            if not data or file.read(len(data)) != data:
                raise OptionError(f"--out: another process is writing {self._store.address}")
            return start + len(data)


def _opened(path: Path) -> IO[bytes]:
    """A file for reading; an empty one if it was deleted."""
    with suppress(FileNotFoundError):
        return path.open("rb")
    return Path(os.devnull).open("rb")


def _digest(data: bytes) -> bytes:
    return sha256(data).digest()


def _content(path: Path) -> bytes | None:
    """The content of a file; None if it was deleted."""
    with suppress(OSError):
        return path.read_bytes()
    return None


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        return file.read()


def _end_of_lines(file: Any, start: int) -> int:
    """Offset behind the last complete line, from an offset at which a line begins."""
    end = file.seek(0, os.SEEK_END)
    while end > start:
        begin = max(start, end - _BLOCK)
        file.seek(begin)
        if (at := file.read(end - begin).rfind(b"\n")) >= 0:
            return begin + at + 1
        end = begin
    return start


def _pack(file: Any, start: int, end: int, to: Path) -> str:
    """Packs some bytes of a file; returns the suffix, of zstd if it is installed."""
    try:
        opened, suffix = import_module("zstandard").open, ".zst"
    except ImportError:
        opened, suffix = gzip.open, ".gz"
    file.seek(start)
    with opened(to, "wb") as out:
        while block := file.read(min(_BLOCK, end - file.tell())):
            out.write(block)
    return suffix


def bring_up(folder: Path) -> None:
    """Uploads the files without lines of a run's folder, if it has an address.

    Before the first row, since lines without a manifest are no run's; and after the last session.

    Raises:
        InputError: If the address can't be written.
    """
    if address := target_of(folder):
        Mirror(folder, Store.at(address)).push_figures()


@contextmanager
def mirrored(
    folder: Path,
    note: Callable[[str], None] = lambda message: None,
) -> Generator[None]:
    """Continues the run at the address of a folder, and uploads everything that is written.

    Does nothing for a folder without an address.

    Args:
        folder: The folder.
        note: Receives remarks for the user.

    Raises:
        InputError: If the address can't be read, or at the end can't be written.
        OptionError: If another process works on the run.
    """
    if not (address := target_of(folder)):
        yield
        return
    mirror, stop, every = Mirror(folder, Store.at(address)), Event(), UPLOAD_EVERY.get()
    mirror.restore()

    def keep_up() -> None:
        while not stop.wait(every):
            try:
                mirror.push()
            except (ApbJudgeError, OSError) as error:
                note(f"{error}; it is tried again in {every:g} s")

    thread = Thread(target=keep_up, daemon=True)
    thread.start()
    failure: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failure = error
        raise
    finally:
        stop.set()
        thread.join()
        try:
            mirror.push()
            note(f"the run is at {address}")
        except (ApbJudgeError, OSError) as error:
            text = f"{error}; all is in {folder}, and the same command brings it up"
            if failure is None:
                raise InputError(text) from None
            note(text)

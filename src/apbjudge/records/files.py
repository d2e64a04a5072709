"""The files of a log, whose path is a file, a folder, a pattern, a packed file or a stream."""

from __future__ import annotations

import glob
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import lru_cache
from gzip import GzipFile
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, NamedTuple
from weakref import finalize

from ..errors import InputError, OptionError
from ..remote import zstandard

STDIN = Path("-")
"""Standard input, in place of a file."""

SUFFIXES = (".json", ".jsonl", ".ndjson", ".eval", ".traj")
"""Suffixes of the files that are read in a folder, perhaps followed by one of ``PACKED``."""
PACKED = (".gz", ".zst")

_CUT = b'\n"the packed file breaks off here"\n'  # a line that is not a run
_LONGEST = 3500  # bytes of a path: with the working directory before it, 4,096 are the most
_BRACES = re.compile(r"(.*?)\{(.*)\}(.*)", re.DOTALL)


class LogFile(NamedTuple):
    """A file of a log, or a folder that is a log by itself.

    Attributes:
        path: Its path.
        name: Its name within the log.
    """

    path: Path
    name: str


def log_path(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Path:
    """One path for several, such as ``{a.jsonl,b.jsonl}`` for two.

    Raises:
        OptionError: If they are too many for one path.
    """
    if isinstance(paths, str | os.PathLike):
        return Path(paths)
    if len(paths) == 1:
        return Path(paths[0])
    # "./", since no part of a path between slashes may be longer than a name
    names = [os.fspath(path) for path in paths]
    names = [name if os.sep in name else f".{os.sep}{name}" for name in names]
    several = "{" + ",".join(re.sub(r"[][,{}*?]", r"[\g<0>]", name) for name in names) + "}"
    if len(os.fsencode(several)) > _LONGEST:
        raise OptionError(
            f"expected one log, got the names of {len(paths)} files: name their folder, or quote "
            "the pattern ('logs/*.jsonl')"
        )
    return Path(several)


def name_of(path: Path) -> str:
    """A name for the output of a log, without the special characters of a pattern."""
    stem = "stdin" if path == STDIN else path.stem
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "log"


def is_there(path: Path) -> bool:
    """True if a path leads to something that can be read again."""
    try:
        return path != STDIN and bool(_named(path))
    except InputError:
        return False


def files_of(path: Path, is_log: Callable[[Path], bool]) -> list[LogFile]:
    """The files of a log in the order of their paths, those of subfolders included.

    Args:
        path: A file, a folder, ``-``, or a pattern of ``*``, ``?``, ``[]``, ``**`` and ``{a,b}``.
        is_log: True if a folder is a log by itself.

    Raises:
        InputError: If there is none.
    """
    files: list[LogFile] = []
    for top in _named(path):
        is_folder = top.is_dir() and not is_log(top)
        try:
            paths = list(_inside(top, is_log)) if is_folder else [top]
        except OSError as error:
            raise InputError(f"{error.filename}: can't be read: {error.strerror}") from None
        if not paths:
            raise InputError(
                f"{top}: expected a folder of JSON files, got none in it ({', '.join(SUFFIXES)}, "
                f"and packed as {' or '.join(PACKED)})"
            )
        for each in paths:
            name = each.with_name(_plain_name(each))
            if top == path:
                name = name.relative_to(top if is_folder else name.parent)
            files.append(LogFile(each, name.as_posix()))
    return files


def _named(path: Path) -> list[Path]:
    """The paths that match a pattern; a path that exists matches itself only."""
    try:
        if path == STDIN or path.exists():
            return [path]
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None
    paths: list[Path] = []
    for text in _alternatives(str(path)):
        names = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - it may be absolute
        if not names:
            raise InputError(f"{text}: no such file or folder")
        paths += map(Path, names)
    return list(dict.fromkeys(paths))


def _alternatives(text: str) -> Iterator[str]:
    match = _BRACES.fullmatch(text)
    if match is None:
        yield text
        return
    for middle in re.split(r",(?!\])", match[2]):
        yield f"{match[1]}{middle}{match[3]}"


def _inside(folder: Path, is_log: Callable[[Path], bool]) -> Iterator[Path]:
    """The files of a folder and its subfolders, without names that begin with a dot."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_file():
            if Path(_plain_name(path)).suffix.lower() in SUFFIXES:
                yield path
        elif path.is_dir() and not path.is_symlink():
            yield from [path] if is_log(path) else _inside(path, is_log)


# Packed files and streams ------------------------------------------------------------------------


def unpacked(path: Path) -> Path:
    """The file itself, or a temporary one with the content of a packed file or a stream.

    It is made once and exists until the program ends, or until several others have been made.

    Raises:
        InputError: If it can't be read or unpacked.
    """
    is_stream = path == STDIN or path.is_fifo()
    if not is_stream and path.suffix.lower() not in PACKED:
        return path
    stamp = (sys.stdin,) if is_stream else (path.stat().st_mtime_ns, path.stat().st_size)
    return _unpacked(path, stamp).path


def _plain_name(path: Path) -> str:
    return "stdin" if path == STDIN else path.stem if path.suffix.lower() in PACKED else path.name


class TemporaryFile:
    """A file that exists as long as this object does.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        folder = mkdtemp(prefix="apbjudge-")
        finalize(self, rmtree, folder, ignore_errors=True)
        self.path = Path(folder, name)


@lru_cache(maxsize=16)
def _unpacked(path: Path, _: tuple[Any, ...]) -> TemporaryFile:
    """A copy of the content of a packed file, or of a stream."""
    copy = TemporaryFile(_plain_name(path))
    try:
        with copy.path.open("wb") as out:
            try:
                for block in _blocks(path):
                    out.write(block)
            except (EOFError, zlib.error):
                if not out.tell():
                    raise
                out.write(_CUT)
    except (OSError, EOFError, zlib.error) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: can't be unpacked: {problem}") from None
    return copy


def _blocks(path: Path) -> Iterator[bytes]:
    kind = path.suffix.lower()
    opened: Any = GzipFile if kind == ".gz" else open
    opening: Any = nullcontext(sys.stdin.buffer) if path == STDIN else opened(path, "rb")
    with opening as file:
        blocks: Iterator[bytes] = iter(lambda: file.read1(1 << 18), b"")
        yield from _unzstd(path, blocks) if kind == ".zst" else blocks


def _unzstd(path: Path, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The content of zstd frames; EOFError if a frame breaks off, OSError if it is not one."""
    zstd, frame = zstandard(path), None
    for block in blocks:
        rest = block
        while rest:
            frame = frame or zstd.ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(rest)
            except zstd.ZstdError as error:
                raise OSError(str(error)) from None
            rest, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("the file breaks off")

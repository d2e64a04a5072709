"""Files and folders at addresses such as ``s3://bucket/rows.jsonl``, opened with fsspec.

An address is opened because the user named it, as an argument or an option. Its content is fetched
once to this machine, to a path that ends in the address, so that readers of files only deal with
paths. Folders of runs come in segments, see ``runs.mirror``.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from shutil import copyfileobj, rmtree
from tempfile import gettempdir, mkdtemp
from typing import IO, Any, cast
from weakref import finalize

from .errors import FETCHED, InputError, OptionError, needs, path_text

_ADDRESS = re.compile(
    r"([^=:/]*=)?([a-z][a-z0-9+.-]+):(?:/{1,2}|(?<=file:)///)(?=[^/])(.*)",
    re.IGNORECASE | re.DOTALL,
)
_WEB = ("http", "https")
_SEGMENT = re.compile(r"(.+)/part-(\d{5})/(\d{6})\.jsonl\.(gz|zst)")
_STAMPS = ("size", "ETag", "etag", "LastModified", "last_modified", "mtime", "updated", "created")
"""Facts that show a change of a remote file, by the names that file systems use for them."""


def address_in(value: object, *, is_path: bool = True) -> str:
    """The address in a text or path, with both slashes; empty for a place on this machine.

    Args:
        value: The text, perhaps after ``NAME=``, or the path, in which one of the slashes is lost.
        is_path: True if it is certainly a path; other values may be links, such as a licence.
    """
    match = _ADDRESS.fullmatch(str(value)) if isinstance(value, str | Path) else None
    if match is None or os.path.lexists(str(value)) or (not is_path and match[2].lower() in _WEB):
        return ""
    root = "/" * (match[2].lower() == "file")  # the third slash, which begins a path
    return f"{match[2]}://{root}{match[3]}"


def here(path: str | os.PathLike[str]) -> Path:
    """A path on this machine: the path itself or, for an address, its fetched copy.

    Raises:
        InputError: If the address can't be read.
    """
    address = address_in(path := Path(path))
    return fetched(address) if address else path


def named_place(name: str) -> Path:
    """The path that a file was read from, by its name; for an address a path that is shown as it.

    There is no file at the latter: what was fetched is gone.
    """
    address = address_in(name)
    return _below(Path(gettempdir(), f"{FETCHED}gone"), address) if address else Path(name)


def is_fetched(path: Path) -> bool:
    """True if a path is a copy fetched from an address, which is deleted when the process ends."""
    return address_in(path_text(path)) != ""


def place_of(path: Path) -> str:
    """A text that identifies the place of a file, whatever the bytes of its path."""
    return os.fsencode(path_text(path) if is_fetched(path) else path.resolve()).hex()


def local_value(value: Any, *, is_path: bool = True) -> Any:
    """A setting in which fetched copies replace addresses, alone or in lists of any depth."""
    if isinstance(value, list | tuple):
        each = [local_value(one, is_path=is_path) for one in cast("list[Any]", value)]
        return tuple(each) if isinstance(value, tuple) else each
    if not (address := address_in(value, is_path=is_path)):
        return value
    before, is_named, _ = str(value).partition("=")
    is_named = is_named and "/" not in before and ":" not in before
    path = fetched(address)
    return f"{before}={path}" if is_named else path if isinstance(value, Path) else str(path)


@dataclass(frozen=True, slots=True)
class Store:
    """A place at an address.

    Attributes:
        address: The address.
        files: Its fsspec file system.
        path: Its path there.
    """

    address: str
    files: Any = field(repr=False)
    path: str

    @classmethod
    def at(cls, address: str) -> Store:
        """The place.

        Raises:
            InputError: If the libraries for it are not installed.
        """
        try:
            opened: Any = import_module("fsspec.core").url_to_fs
        except ImportError:
            raise InputError(needs(f"{shown(address)}: opening it", "fsspec")) from None
        try:
            files, path = opened(address)
        except (ImportError, ValueError) as error:
            raise InputError(f"{shown(address)}: can't be opened: {error}") from None
        return cls(address, files, str(path))

    def listed(self) -> dict[str, str]:
        """Stamps of a file, or of the files of a folder or pattern, by their paths there.

        A stamp changes when the file does. Empty if nothing is there.
        """
        self.files.invalidate_cache()
        with _as_input_error(self.address):
            try:
                known = self.files.info(self.path)
            except FileNotFoundError:
                is_pattern = set("*?[") & set(self.path)
                names = cast("list[str]", self.files.glob(self.path) if is_pattern else [])
                return {name: _stamp(self.files.info(name)) for name in names}
            if known.get("type") != "directory":
                return {self.path: _stamp(known)}
            below = self.files.find(self.path, detail=True)
            return {str(name): _stamp(of) for name, of in below.items()}

    def get(self, name: str, to: Path) -> None:
        """Fetches a file."""
        to.parent.mkdir(parents=True, exist_ok=True)
        with _as_input_error(self.address):
            self.files.get_file(name, str(to))

    def has(self, name: str) -> bool:
        """True if there is a file of a name below the place."""
        self.files.invalidate_cache()
        with _as_input_error(self.address):
            return bool(self.files.exists(f"{self.path}/{name}"))

    def put(self, path: Path, name: str) -> None:
        """Uploads a file to a name below the place."""
        target = f"{self.path}/{name}"
        with _as_input_error(self.address, "written"):
            self.files.makedirs(target.rpartition("/")[0], exist_ok=True)
            self.files.put_file(str(path), target)


@contextmanager
def _as_input_error(address: str, done: str = "read") -> Generator[None]:
    """Turns whatever a file system raises into an InputError that names the address."""
    try:
        yield
    except (InputError, OptionError):
        raise
    except Exception as error:  # noqa: BLE001 - each file system has errors of its own
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InputError(f"{shown(address)}: can't be {done}: {text}") from None


def shown(address: str) -> str:
    """An address without what may be secret: the text before ``@`` or after ``?``."""
    scheme, _, rest = address.partition("://")
    if scheme.lower() not in _WEB:
        return address
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _stamp(known: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={known[name]}" for name in _STAMPS if name in known)


# In ----------------------------------------------------------------------------------------------


def fetched(address: str) -> Path:
    """The file, folder or pattern at an address, on this machine until the program ends.

    It is fetched again if it has changed meanwhile.

    Raises:
        InputError: If nothing is there, it can't be read, or a library for it is not installed.
    """
    store = Store.at(address)
    names = store.listed()
    if not names:
        raise InputError(f"{shown(address)}: no such file or folder")
    copy = _copy(store.address, tuple(names.items()))
    path = _below(Path(copy.path), address)
    if not copy.is_whole:
        if [*names] == [store.path]:
            store.get(store.path, path)
        else:
            scheme, _, rest = shown(address).partition("://")
            _get_all(store, names, Path(copy.path, f"{scheme}:"), rest)
        copy.is_whole = True
    return path


class _Copy:
    """A folder that is deleted when the process ends."""

    def __init__(self) -> None:
        self.path = mkdtemp(prefix=FETCHED)
        self.is_whole = False
        finalize(self, rmtree, self.path, ignore_errors=True)


@cache
def _copy(*_: Any) -> _Copy:
    return _Copy()


def _below(folder: Path, address: str) -> Path:
    """The path in a folder that ends in an address."""
    scheme, _, rest = shown(address).partition("://")
    return Path(folder, f"{scheme}:", *_parts(rest))


def _parts(name: str) -> list[str]:
    """The parts of a name, none of which leads out of a folder."""
    return [part for part in PurePosixPath(name).parts if part not in ("/", "..")]


def _get_all(store: Store, names: Mapping[str, str], root: Path, rest: str) -> None:
    """Fetches the files of a folder or pattern to their places below a folder."""
    first = re.split(r"[*?[]", store.path)[0] if set("*?[") & set(store.path) else store.path
    top = first if first == store.path else first.rpartition("/")[0]
    depth = len(_parts(store.path)) - len(_parts(top))
    place = Path(root, *_parts(rest)[: len(_parts(rest)) - depth])
    get_folder(store, names, place, top=top)


def get_folder(
    store: Store, names: Mapping[str, str], folder: Path, *, top: str = ""
) -> dict[str, tuple[int, int]]:
    """Fetches the files of a folder; those that are stored in segments are joined.

    Args:
        store: The place.
        names: Paths of its files there.
        folder: Folder that they are written to.
        top: Path of the folder, if it differs from that of the place.

    Returns:
        Part and number of the last segment of each file stored in segments, by its name.

    Raises:
        InputError: If a file can't be read, or a segment is missing.
    """
    depth = len(_parts(top or store.path))
    segments: dict[str, list[tuple[int, int, str]]] = {}
    for name in sorted(names):
        own = "/".join(_parts(name)[depth:])
        if match := _SEGMENT.fullmatch(own):
            segments.setdefault(f"{match[1]}.jsonl", []).append(
                (int(match[2]), int(match[3]), name)
            )
        elif own:
            store.get(name, folder / own)
    last: dict[str, tuple[int, int]] = {}
    for own, there in segments.items():
        part = max(there)[0]
        of_part = sorted((number, name) for each, number, name in there if each == part)
        if [number for number, _ in of_part] != [*range(1, len(of_part) + 1)]:
            raise InputError(f"{store.address}: a segment of {own} is missing in part {part}")
        (folder / own).parent.mkdir(parents=True, exist_ok=True)
        with (folder / own).open("wb") as out:
            for _, name in of_part:
                packed = folder / f"{own}{Path(name).suffix}"
                store.get(name, packed)
                with unpacked_segment(packed) as file:
                    copyfileobj(file, out)
                packed.unlink()
        last[own] = part, len(of_part)
    return last


def unpacked_segment(path: Path) -> IO[bytes]:
    """A packed file, opened for reading its content."""
    opened: Any = gzip.open if path.suffix == ".gz" else zstandard(path).open
    return cast("IO[bytes]", opened(path, "rb"))


def zstandard(name: object) -> Any:
    """The library of that name, for reading a file.

    Raises:
        InputError: If it is not installed.
    """
    try:
        return import_module("zstandard")
    except ImportError:
        raise InputError(needs(f"{name}: reading zstd", "zstandard")) from None


# Out ---------------------------------------------------------------------------------------------


def state_folder() -> Path:
    """The folder for the state that this user's runs leave on this machine.

    Raises:
        RuntimeError: If no home folder is known.
    """
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "state") / "apbjudge"


_UPLOADED = "apbjudge-upload"
"""Name of a folder whose subfolders are uploaded to the addresses that their paths end in."""
UPLOAD_EVERY: ContextVar[float] = ContextVar("upload_every", default=60.0)
"""Seconds between two uploads of a run."""


def work_folder(address: str, work: Path | None) -> Path:
    """The folder on this machine in which a run with an address as its output works.

    Args:
        address: The address.
        work: Its parent folder; None for the user's state folder.

    Raises:
        OptionError: If there is no state folder.
        InputError: If a library for the address is not installed.
    """
    Store.at(address)  # fails at once if a library is missing
    scheme, _, rest = address.partition("://")
    try:
        return Path(work or state_folder(), _UPLOADED, f"{scheme}:", *_parts(rest))
    except RuntimeError as error:
        raise OptionError(f"--work: expected a folder: {error}") from None


def target_of(folder: Path) -> str:
    """The address that a folder is uploaded to; empty for one that stays on this machine."""
    _, mark, place = os.path.abspath(folder).rpartition(f"/{_UPLOADED}/")  # noqa: PTH100
    scheme, is_address, rest = place.partition(":/")
    return f"{scheme}://{rest}" if mark and is_address else ""

"""Files of a case: read from the data folders only, bounded in size; pictures become data URLs."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from ..errors import RowError, visible
from ..records import FileRef, Item, Record

_T = TypeVar("_T")

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


class ImagePart(Record):
    """One picture: its path as the row has it, and its content as a data URL."""

    path: str
    url: str


def is_image(file: FileRef) -> bool:
    """Whether a file of a case is a picture or a video frame, by its extension."""
    return Path(file.path).suffix.lower() in MEDIA_TYPES


def load_images(
    item: Item, roots: Sequence[Path], *, max_images: int, max_bytes: int
) -> tuple[ImagePart, ...]:
    """Reads the pictures of an item.

    Args:
        item: The item.
        roots: The data folders, at least one; a path is looked for in each in turn, and may not
            lead out of all of them, by ``..``, links or otherwise.
        max_images: Of a longer list this many are taken, evenly spaced, first and last included.
        max_bytes: Largest size of one picture on disk.

    Raises:
        RowError: If a picture is missing, outside the folders or too large.
    """
    pictures = [(i, file) for i, file in enumerate(item.files) if is_image(file)]
    return tuple(
        image_part(
            file.path,
            read_file(roots, file.path, f"files[{i}].path", max_bytes=max_bytes, hint=_WITHOUT),
        )
        for i, file in sample(pictures, max_images)
    )


_WITHOUT = "--no-images judges without"


def image_part(path: str, data: bytes) -> ImagePart:
    """A picture, of its path as the row has it and its content."""
    kind = MEDIA_TYPES[Path(path).suffix.lower()]
    return ImagePart(path=path, url=f"data:{kind};base64,{base64.b64encode(data).decode()}")


def sample(values: list[_T], n: int) -> list[_T]:
    """At most ``n`` values, evenly spaced, the first and the last included."""
    if len(values) <= n:
        return values
    if n == 1:
        return values[:1]
    return [values[round(i * (len(values) - 1) / (n - 1))] for i in range(n)]


def read_file(
    roots: Sequence[Path], name: str, field: str, *, max_bytes: int, hint: str = ""
) -> bytes:
    """Reads a file of a case.

    Args:
        roots: The data folders; see ``load_images``.
        name: Its path as the row has it.
        field: The row's field, for messages.
        max_bytes: Its largest size on disk.
        hint: What else the user can do where it can't be read.

    Raises:
        RowError: If it is missing, outside the folders, too large or a picture without content.
    """
    path, size = find_file(roots, name, field, hint=hint)
    what = _kind(name)
    if size > max_bytes:
        raise RowError(field, f"a {what} of at most {max_bytes} bytes", f"{size} bytes")
    if not size and what == "picture":
        raise RowError(field, f"a picture{hint and f' ({hint})'}", f"{name}, an empty file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(roots, name, field, hint, error) from None


def find_file(roots: Sequence[Path], name: str, field: str, *, hint: str = "") -> tuple[Path, int]:
    """Where a file of a case is, and its bytes on disk; see ``read_file``.

    Raises:
        RowError: If it is missing, outside the folders or no regular file.
    """
    path = _place(roots, name, field)
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(roots, name, field, hint, error) from None
    if not stat.S_ISREG(status.st_mode):
        raise RowError(field, f"a regular file{hint and f' ({hint})'}", name)
    return path, status.st_size


def _kind(name: str) -> str:
    return "picture" if Path(name).suffix.lower() in MEDIA_TYPES else "file"


def _unreadable(
    roots: Sequence[Path], name: str, field: str, hint: str, error: OSError
) -> RowError:
    ways = "--data-root names another folder" + (hint and f", {hint}")
    expected = f"a readable {_kind(name)} in {_listed(roots)} ({ways})"
    return RowError(field, expected, f"{name}: {error.strerror}")


def _place(roots: Sequence[Path], name: str, field: str) -> Path:
    """Where a picture is: in the first folder that has it; in the first one when none has."""
    bases = [root.resolve() for root in roots]
    inside: list[Path] = []
    leads_out = False
    for base in bases:
        try:
            path = (base / name).resolve()
            exists = _exists(path)
        except (OSError, ValueError, RuntimeError):  # a NUL byte, a loop of links
            continue
        if not any(path.is_relative_to(allowed) for allowed in bases):
            leads_out = leads_out or exists
        elif exists:
            return path
        else:
            inside.append(path)
    if leads_out or not inside:
        raise RowError(field, f"a path inside the data folder {_listed(roots)}", name)
    return inside[0]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name longer than names may be
        return False


def _listed(folders: Sequence[Path]) -> str:
    names = (os.fsencode(folder).decode(errors="backslashreplace") for folder in folders)
    return " or ".join(map(visible, names))

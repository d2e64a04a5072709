"""Pictures of a case: found inside the data folder, bounded in size and number, as data URLs."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from typing import TypeVar

from ..errors import RowError
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
    item: Item, root: Path, *, max_images: int, max_bytes: int
) -> tuple[ImagePart, ...]:
    """Reads the pictures of an item.

    Args:
        item: The item.
        root: The data folder; no path may lead out of it, by ``..``, links or otherwise.
        max_images: Of a longer list this many are taken, evenly spaced, first and last included.
        max_bytes: Largest size of one picture on disk.

    Raises:
        RowError: If a picture is missing, outside the folder or too large.
    """
    pictures = [(i, file) for i, file in enumerate(item.files) if is_image(file)]
    return tuple(
        ImagePart(path=file.path, url=_data_url(root, file.path, f"files[{i}].path", max_bytes))
        for i, file in sample(pictures, max_images)
    )


def sample(values: list[_T], n: int) -> list[_T]:
    """At most ``n`` values, evenly spaced, the first and the last included."""
    if len(values) <= n:
        return values
    if n == 1:
        return values[:1]
    return [values[round(i * (len(values) - 1) / (n - 1))] for i in range(n)]


def _data_url(root: Path, name: str, field: str, max_bytes: int) -> str:
    base = root.resolve()
    try:
        path = (base / name).resolve()
        inside = path.is_relative_to(base)
    except (OSError, ValueError, RuntimeError):  # a NUL byte, a loop of links
        inside = False
        path = base
    if not inside:
        raise RowError(field, "a path inside the data folder", name)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise RowError(field, "a regular file (or --no-images)", name)
        size = status.st_size
        if size > max_bytes:
            raise RowError(field, f"a picture of at most {max_bytes} bytes", f"{size} bytes")
        data = path.read_bytes()
    except OSError as error:
        got = f"{name}: {error.strerror}"
        raise RowError(field, "a readable picture (or --no-images)", got) from None
    return f"data:{MEDIA_TYPES[Path(name).suffix.lower()]};base64,{base64.b64encode(data).decode()}"

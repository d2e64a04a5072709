"""Files of a case: read from the data folders only, bounded in size; pictures become data URLs.

A tested model is shown all files in full; a case for which that is impossible is a bad row. A judge
is shown as many as possible, with a note on the others.
"""

from __future__ import annotations

import base64
import stat
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ..errors import RowError, path_text, visible
from ..records import FileRef, Item, Record
from .fence import fence
from .video import Frame, frames_of

_T = TypeVar("_T")

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}

TEXT_FILES = frozenset(
    ".txt .md .csv .tsv .json .jsonl .yaml .yml .xml .html .htm .py .js .ts .java .c .h .cpp .sh "
    ".sql .log .ini .toml .tex .rst .srt .vtt".split()
)
"""Extensions of files that are shown as text."""
_VIDEOS = frozenset(".mp4 .m4v .mov .avi .mkv .webm .mpg .mpeg .wmv .flv .3gp .ogv".split())


class ImagePart(Record):
    """One picture: its path as the row has it, and its content as a data URL.

    Attributes:
        label: The text above it for a judge; empty for none.
        seconds: Time of a frame that was cut from a video; else None.
    """

    path: str
    url: str
    label: str = ""
    seconds: float | None = None


class ShownFiles(Record):
    """The files of a case, as shown to a judge.

    Attributes:
        listed: Type and path of each file that is shown.
        images: The pictures that are shown.
        images_of: Pictures of the case, shown or not.
        texts: Path and whole content of each text file.
        not_shown: Type and path, and kind (see ``kind_of``), of each file that is not shown.
            Pictures left out of a longer list are not among them.
    """

    listed: tuple[str, ...] = ()
    images: tuple[ImagePart, ...] = ()
    images_of: int = 0
    texts: tuple[str, ...] = ()
    not_shown: dict[str, str] = {}

    @property
    def left_out(self) -> int:
        """Pictures that were left out of a longer list."""
        return self.images_of - len(self.images) if self.images else 0

    @cached_property
    def kinds(self) -> Counter[str]:
        """Numbers of the files that are not shown, by kind."""
        return Counter(self.not_shown.values())

    @cached_property
    def unseen(self) -> dict[str, Any]:
        """The fields of a judgement on the files that its judge was not shown."""
        shown = {"images_shown": len(self.images), "images_of": self.images_of}
        return {**shown, "not_shown": tuple(self.kinds)}

    @cached_property
    def account(self) -> dict[str, Any]:
        """The fields of a judgement on the files that its judge was shown, and was not."""
        times: dict[str, list[float]] = {}
        for image in self.images:
            if image.seconds is not None:
                times.setdefault(image.path, []).append(image.seconds)
        return {**self.unseen, "frame_times": times or None}

    @cached_property
    def values(self) -> dict[str, Any]:
        """All values by name, for templates: a sandbox is slow to admit attributes of objects."""
        return {**dict(self), "left_out": self.left_out, "kinds": self.kinds}


NO_FILES = ShownFiles()


def kind_of(file: FileRef) -> str:
    """``picture``, ``text file``, ``video`` or ``other file``, by its extension, then its type."""
    suffix = Path(file.path).suffix.lower()
    if suffix in MEDIA_TYPES:
        return "picture"
    if suffix in TEXT_FILES:
        return "text file"
    return "video" if suffix in _VIDEOS or file.type.lower() == "video" else "other file"


def is_image(file: FileRef) -> bool:
    """True if a file of a case is a picture or a video frame, by its extension."""
    return kind_of(file) == "picture"


def show_files(
    item: Item,
    roots: Sequence[Path],
    *,
    max_images: int,
    max_image_bytes: int,
    max_text_bytes: int,
    frames: int = 0,
    requires_all: bool = False,
) -> ShownFiles:
    """Reads the files of an item that a judge is shown.

    Args:
        item: The item.
        roots: The data folders; see ``load_images``.
        max_images: See ``load_images``; 0 shows no pictures.
        max_image_bytes: Largest size of one picture on disk.
        max_text_bytes: Largest size of one text file; a larger one is not shown.
        frames: Number of frames that a video is cut into, which then count as pictures; 0 for none.
        requires_all: True if a row with a file that is not shown is unusable.

    Raises:
        RowError: If a picture to be shown is missing, outside the folders or too large.
    """
    if not item.files:
        return NO_FILES
    pictures = list[_Picture]()
    texts, not_shown, listed = list[str](), dict[str, str](), dict[int, str]()
    for i, file in enumerate(item.files):
        field, kind, name = f"files[{i}].path", kind_of(file), visible(f"{file.type}: {file.path}")
        try:
            if max_images and (cut := _pictures_of(roots, file, i, frames)):
                pictures += cut
                continue
            text = read_text(roots, file, field, max_bytes=max_text_bytes)
        except RowError:
            if requires_all:
                raise
            not_shown[name] = kind
            continue
        listed[i] = name
        texts.append(f"{visible(file.path)}:\n{text}")
    taken = sample([*enumerate(pictures, 1)], max_images)
    for _, picture in taken:
        file = item.files[picture.at]
        listed[picture.at] = visible(f"{file.type}: {file.path}")
    return ShownFiles(
        listed=tuple(listed[i] for i in sorted(listed)),
        images=_shown(taken, len(pictures), roots, max_bytes=max_image_bytes),
        images_of=len(pictures) or sum(map(is_image, item.files)),
        texts=tuple(texts),
        not_shown=not_shown,
    )


class _Picture(NamedTuple):
    """A picture of a case that may be shown.

    Attributes:
        at: Place of its file.
        path: Its path, as the row has it.
        frame: The frame of a video; None for a picture file, which is read when it is shown.
    """

    at: int
    path: str
    frame: Frame | None = None


def _pictures_of(roots: Sequence[Path], file: FileRef, at: int, frames: int) -> list[_Picture]:
    """The picture in a file, or the frames of a video; none for another file.

    Raises:
        RowError: If a video to be cut can't be read.
    """
    if is_image(file):
        return [_Picture(at, file.path)]
    if not frames or kind_of(file) != "video":
        return []
    path, _ = find_file(roots, file.path, f"files[{at}].path")
    return [_Picture(at, file.path, of) for of in frames_of(path, f"files[{at}].path", frames)]


def cut_video(roots: Sequence[Path], file: FileRef, field: str, frames: int) -> list[ImagePart]:
    """The frames of a video as pictures, named by its path and their times.

    Raises:
        RowError: If it can't be read.
    """
    path, _ = find_file(roots, file.path, field)
    return [_frame_part(file.path, frame) for frame in frames_of(path, field, frames)]


def _frame_part(path: str, frame: Frame, label: str = "") -> ImagePart:
    url = f"data:image/jpeg;base64,{base64.b64encode(frame.jpeg).decode()}"
    return ImagePart(path=path, url=url, label=label, seconds=frame.seconds)


def load_images(
    item: Item, roots: Sequence[Path], *, max_images: int, max_bytes: int
) -> tuple[ImagePart, ...]:
    """Reads the pictures of an item; several have a label each.

    Args:
        item: The item.
        roots: The data folders, at least one; a path is searched in each in turn, and must not lead
            out of all of them, by ``..``, links or otherwise.
        max_images: Number taken of a longer list, evenly spaced, first and last included.
        max_bytes: Largest size of one picture on disk.

    Raises:
        RowError: If a picture is missing, outside the folders or too large.
    """
    pictures = [_Picture(i, file.path) for i, file in enumerate(item.files) if is_image(file)]
    taken = sample([*enumerate(pictures, 1)], max_images)
    return _shown(taken, len(pictures), roots, max_bytes=max_bytes)


def _shown(
    taken: Sequence[tuple[int, _Picture]], n_pictures: int, roots: Sequence[Path], *, max_bytes: int
) -> tuple[ImagePart, ...]:
    """Pictures, each with a label if a case has several; see ``load_images``."""
    parts: list[ImagePart] = []
    for number, (place, (i, path, frame)) in enumerate(taken, 1):
        time = "" if frame is None else f" at {frame.seconds:.2f} s"
        at = f" (place {place} of {n_pictures})" if len(taken) < n_pictures else ""
        label = fence("picture", f"picture {number} of {len(taken)}: {visible(path)}{time}{at}")
        label = label if n_pictures > 1 else ""
        if frame is None:
            data = read_file(roots, path, f"files[{i}].path", max_bytes=max_bytes, hint=_WITHOUT)
            parts.append(image_part(path, data, label))
        else:
            parts.append(_frame_part(path, frame, label))
    return tuple(parts)


_WITHOUT = "--no-images judges without"


def image_part(path: str, data: bytes, label: str = "") -> ImagePart:
    """A picture with its path as in the row, its content and its label."""
    kind = MEDIA_TYPES[Path(path).suffix.lower()]
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return ImagePart(path=path, url=url, label=label)


def content_of(parts: Sequence[str | ImagePart]) -> str | list[dict[str, Any]]:
    """The content of a message: a text, or content parts if there are pictures."""
    if all(isinstance(part, str) for part in parts):
        return "".join(map(str, parts))
    return [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else {"type": "image_url", "image_url": {"url": part.url}}
        for part in parts
    ]


def characters(messages: Sequence[dict[str, Any]]) -> int:
    """Length of all texts of chat messages."""
    return sum(
        len(content)
        if isinstance(content := message["content"], str)
        else sum(len(part.get("text", "")) for part in content)
        for message in messages
    )


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
        hint: Advice to the user if it can't be read.

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


def read_text(roots: Sequence[Path], file: FileRef, field: str, *, max_bytes: int) -> str:
    """The text of a file of a case; see ``read_file``.

    Raises:
        RowError: If it is not text, or can't be read.
    """
    if (kind := kind_of(file)) != "text file":
        which = "a model that can see" if kind == "picture" else "a picture or a text file"
        raise RowError(field, which, file.path)
    try:
        return read_file(roots, file.path, field, max_bytes=max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RowError(field, "a text file in UTF-8", file.path) from None


def find_file(roots: Sequence[Path], name: str, field: str, *, hint: str = "") -> tuple[Path, int]:
    """Path of a file of a case, and its bytes on disk; see ``read_file``.

    Raises:
        RowError: If it is missing, outside the folders or not a regular file.
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
    """Path of a picture: in the first folder that has it; in the first one if none has."""
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
    except OSError:  # a name that is too long
        return False


def _listed(folders: Sequence[Path]) -> str:
    return " or ".join(visible(path_text(folder)) for folder in folders)

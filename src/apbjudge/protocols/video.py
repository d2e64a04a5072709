"""Frames of videos: evenly spaced pictures of a file, with the times that they show.

PyAV decodes them (``pip install "apbjudge[video]"``); it is imported at the first video.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import OptionError, RowError, needs

LONGEST_SIDE = 1024
"""Largest longer side of a frame in pixels; larger frames are scaled down."""


class Frame(NamedTuple):
    """A frame.

    Attributes:
        seconds: The time that it shows, from the beginning of the video.
        jpeg: Its content.
    """

    seconds: float
    jpeg: bytes


def check_decoder() -> None:
    """Raises OptionError if no library that reads videos is installed."""
    if find_spec("av") is None:
        raise OptionError(needs("--frames", "av"))


def frames_of(path: Path, field: str, n: int) -> tuple[Frame, ...]:
    """The frames in the middle of n equal parts of a video; fewer if it has fewer.

    Args:
        path: The file.
        field: The row's field, for messages.
        n: Number of frames.

    Raises:
        RowError: If the file is not a readable video.
    """
    status = path.stat()
    try:
        frames = _frames(path, n, status.st_size, status.st_mtime_ns)
    except (ValueError, ArithmeticError, OSError) as error:  # PyAV's errors derive from these
        reason = getattr(error, "strerror", None) or error
        raise RowError(field, "a video that can be read", f"{path.name}: {reason}") from None
    if not frames:
        raise RowError(field, "a video with pictures", path.name)
    return frames


@lru_cache(maxsize=8)
def _frames(path: Path, n: int, size: int, changed: int) -> tuple[Frame, ...]:
    """The frames of a file in this version; cached, since a case's responses are consecutive."""
    av: Any = import_module("av")
    with av.open(str(path)) as container:
        if not container.streams.video:
            return ()
        stream = container.streams.video[0]
        start = float((stream.start_time or 0) * stream.time_base)
        if stream.duration is not None:
            duration = float(stream.duration * stream.time_base)
        elif container.duration is not None:
            duration = container.duration / av.time_base
        else:
            raise ValueError("it does not say how long it is")
        taken: dict[float, Frame] = {}
        for part in range(n):
            at = start + duration * (part + 0.5) / n
            container.seek(int(at / stream.time_base), stream=stream)
            frame = _shown_at(at, container.decode(stream))
            if frame is not None:
                seconds = round(frame.time - start, 3)
                taken.setdefault(seconds, Frame(seconds, _jpeg(av, frame)))
    return tuple(taken[seconds] for seconds in sorted(taken))


def _shown_at(at: float, frames: Iterator[Any]) -> Any:
    """The last frame that begins no later than a time, else the first one; None without any."""
    last = None
    for frame in frames:
        if last is not None and frame.time > at:
            break
        last = frame
    return last


def _jpeg(av: Any, frame: Any) -> bytes:
    """A frame as JPEG, scaled down if it is large."""
    scale = min(1.0, LONGEST_SIDE / max(frame.width, frame.height))
    width, height = (max(2, round(side * scale / 2) * 2) for side in (frame.width, frame.height))
    picture = frame.reformat(width=width, height=height, format="yuvj420p")
    codec = av.CodecContext.create("mjpeg", "w")
    codec.width, codec.height, codec.pix_fmt = width, height, "yuvj420p"
    codec.time_base = frame.time_base
    packets = [*codec.encode(picture), *codec.encode(None)]
    return b"".join(map(bytes, packets))

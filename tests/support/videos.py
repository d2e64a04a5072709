"""Small videos for tests, of grey pictures that tell their time."""

from __future__ import annotations

from pathlib import Path

import pytest


def make_video(path: Path, *, seconds: int = 4, rate: int = 10) -> Path:
    """Writes a video; the test is skipped where nothing can."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for at in range(seconds * rate):
            frame = av.VideoFrame(64, 48, "gray")
            plane = frame.planes[0]
            plane.update(bytes([6 * at]) * plane.buffer_size)
            container.mux(stream.encode(frame.reformat(format="yuv420p")))
        container.mux(stream.encode())
    return path

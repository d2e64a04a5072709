"""A picture that anybody who sees can name."""

from __future__ import annotations

import struct
import zlib


def red_png(side: int = 64) -> bytes:
    """A plain red picture; smaller ones are turned away by some models."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0)  # 8 bits, RGB
    lines = zlib.compress((b"\0" + b"\xff\0\0" * side) * side)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", lines), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)

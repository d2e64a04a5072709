"""Markdown of texts from data: none of them is read as Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..errors import visible

_SPECIAL = re.compile(r"([\\`*_\[\]<>|&~$#@]|:(?=[\w/+-]))")
_ADDRESS = re.compile(r"(?i)\bwww\.")


def table(heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """A Markdown table.

    Args:
        heads: Headings, as plain text.
        rows: Cells as plain text, each row as long as the headings.
    """
    lines = [heads, ["---"] * len(heads), *rows]
    escaped = [line if i == 1 else [plain(c) for c in line] for i, line in enumerate(lines)]
    return [f"| {' | '.join(cells)} |" for cells in escaped]


def plain(text: str) -> str:
    r"""Text that Markdown shows as it is: on one line, nothing in it a mark, link or tag.

    Args:
        text: Any text; what can't be printed comes out escaped, such as a line break as ``\n``.
    """
    escaped = _SPECIAL.sub(r"\\\1", visible(text)).strip()
    return _ADDRESS.sub(lambda found: f"{found[0][:-1]}\\.", escaped)

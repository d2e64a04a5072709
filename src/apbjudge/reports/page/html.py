"""The report as one HTML file that needs no network: overview first, data last."""

from __future__ import annotations

import base64
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...jsonl import is_replaceable, replacing
from ..paper import formatting
from ..templating import environment
from . import overview
from .blocks import Details, block, to_json
from .entries import ReportInput, ReportSize
from .index import Index

if TYPE_CHECKING:
    from jinja2 import Environment

_SHARED: Mapping[str, Callable[..., Any]] = {
    "by_judge": overview.by_judge,
    "columns_of": formatting.columns_of,
    "figure_of": formatting.figure_of,
    "judge_facts": overview.judge_facts,
    "scored": formatting.scored,
    "table_notes": overview.table_notes,
}
"""Functions that the template calls."""

_REPORTS = Path(__file__).parent.parent
_SCRIPTS = (
    *("nodes.js", "keys.js", "calls.js", "verdicts.js", "item.js"),
    *("blocks.js", "index.js", "asking.js", "facets.js", "list.js", "rows.js"),
    *("address.js", "form.js", "report.js"),
)
_STYLES = ("base.css", "item.css", "report.css")
_SHOWN_FIRST = 1_000_000
"""Bytes of details before the scripts. A browser that reads as much pauses and shows the overview;
without them it would run the scripts first."""


def write_report(report: ReportInput, path: Path) -> ReportSize:
    """Writes the page to a file next to ``path``, then moves it there.

    Entries are read once, one at a time: memory grows by some dozens of bytes an entry. Equal
    input gives equal bytes.

    Args:
        report: What is shown; all of its texts are escaped.
        path: The file.

    Raises:
        InputError: If the file can't be written.
        ValueError: If an entry has not one judgement, or None, for each judge.
    """
    spool = path.parent if is_replaceable(path) else None  # beside no device
    with replacing(path) as page, tempfile.TemporaryFile(dir=spool) as data:
        details = Details(Index(len(report.judges)), data, report.pictures)
        for entry in report.entries:
            details.add(entry)
        details.close()
        n_bytes = _write(page, report, details, data)
    return ReportSize(entries=details.index.count, cases=details.cases.count, bytes=n_bytes)


def _write(page: IO[bytes], report: ReportInput, details: Details, data: IO[bytes]) -> int:
    """Overview, some details, index, scripts, and last what a reader need not wait for.

    Returns:
        How many bytes were written.
    """
    script, style = concatenated("web", _SCRIPTS), concatenated("web", _STYLES)
    data.seek(0)
    parts = (
        _overview(report, details, script, style).encode(),
        b"".join(data.readlines(_SHOWN_FIRST)),  # a block is a line
        block("index", to_json(_index(report, details))),
        f"<script>{script}</script>\n".encode(),
    )
    for part in parts:
        page.write(part)
    at = data.tell()
    shutil.copyfileobj(data, page, 1 << 20)
    end = b"</body>\n</html>\n"
    page.write(end)
    return sum(map(len, parts)) + data.tell() - at + len(end)


def _overview(report: ReportInput, details: Details, script: str, style: str) -> str:
    template = _environment().get_template("report.html.j2")
    return template.render(
        report=report,
        changed=None if report.changed is None else overview.changed_list(report.changed),
        count=details.index.count,
        leads=overview.leads([judge.name for judge in report.judges], details.index.tally()),
        figures=[overview.figure_facts(figure) for figure in report.figures],
        policy=_policy(script, style),
        style=style,
    )


def _index(report: ReportInput, details: Details) -> dict[str, Any]:
    names = [judge.name for judge in report.judges]
    pair = report.changes or tuple(names[:2])
    return {
        **details.index.to_json(),
        "title": report.title,
        "names": names,
        "changes": [names.index(name) for name in pair] if len(pair) == 2 else None,
        "blocks": details.contents(),
    }


def concatenated(folder: str, names: tuple[str, ...]) -> str:
    """Files of one kind as one text that can be part of a page.

    Args:
        folder: Their folder beneath ``reports``.
        names: The files, in the order in which they are needed.

    Raises:
        ValueError: If the text could end its element, or begin a comment.
    """
    text = "".join((_REPORTS / folder / name).read_text(encoding="utf-8") for name in names)
    for forbidden in ("</script", "</style", "<!--"):
        if forbidden in text.lower():
            raise ValueError(f"{', '.join(names)}: expected no {forbidden}")
    return text


def _policy(script: str, style: str) -> str:
    """The content security policy: this script, this style, pictures in the page, nothing else."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from markupsafe import Markup

    return environment(calls=_SHARED, filters={"minus": overview.minus, "raw": Markup})

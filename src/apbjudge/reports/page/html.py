"""The report as one HTML file that needs no network: overview first, data last."""

from __future__ import annotations

import base64
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlencode

from ...calibration.changes import KINDS, Changes, ItemScore
from ...document.model import MetricCell
from ...document.numbers import level_text
from ...document.templating import environment
from ...jsonl import is_replaceable, replacing
from ...statistics.estimates import CONFIDENCE_LEVEL
from ..changes import changes_summary, score_text
from ..paper.formatting import best_note
from ..paper.table import PaperTable
from .blocks import Details, block, to_json
from .entries import JudgeFacts, ReportInput, ReportSize
from .index import Index

if TYPE_CHECKING:
    from jinja2 import Environment

_REPORTS = Path(__file__).parent.parent
_SCRIPTS = (
    *("nodes.js", "keys.js", "steps.js", "calls.js", "verdicts.js", "trajectories.js", "item.js"),
    *("blocks.js", "index.js", "asking.js", "facets.js", "list.js", "rows.js"),
    *("address.js", "form.js", "report.js"),
)
_STYLES = ("base.css", "item.css", "trajectories.css", "report.css")
_SHOWN_FIRST = 1_000_000
"""Bytes of details before the scripts: after so much data, a browser shows the overview; without
them, it would run the scripts first."""
_MOST_CHANGES = 200


def write_report(report: ReportInput, path: Path) -> ReportSize:
    """Writes the page to a file next to ``path``, then moves it there.

    Entries are read once, one at a time: memory grows by some dozens of bytes an entry. Equal
    input gives equal bytes.

    Args:
        report: The report; all of its texts are escaped.
        path: The file.

    Raises:
        InputError: If the file can't be written.
        ValueError: If an entry does not have one judgement, or None, for each judge.
    """
    spool = path.parent if is_replaceable(path) else None  # not next to a device
    with replacing(path) as page, tempfile.TemporaryFile(dir=spool) as data:
        index = Index(len(report.judges))
        details = Details(index, data, report.pictures, report.code_names)
        for entry in report.entries:
            details.add(entry)
        details.close()
        n_bytes = _write(page, report, details, data)
    return ReportSize(entries=index.count, cases=details.cases.count, bytes=n_bytes)


def _write(page: IO[bytes], report: ReportInput, details: Details, data: IO[bytes]) -> int:
    """Writes overview, some details, index, scripts, and last the parts that are needed later.

    Returns:
        The number of bytes written.
    """
    script, style = concatenated("web", _SCRIPTS), concatenated("web", _STYLES)
    names = [judge.name for judge in report.judges]
    compared = report.changes or tuple(names[:2])
    by_judge = {table.groups[0]: table for table in report.headlines}
    overview = (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            changed=None if report.changed is None else _changed_list(report.changed),
            count=details.index.count,
            leads=details.index.leads(names),
            first=details.index.first_looks(names, [judge.by_rule for judge in report.judges]),
            headlines={judge.name: by_judge.get(judge.name) for judge in report.judges},
            policy="default-src 'none'; "
            f"script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'",
            style=style,
            level=CONFIDENCE_LEVEL,
        )
    )
    index = {
        **details.index.to_json(),
        "title": report.title,
        "names": names,
        "changes": [names.index(name) for name in compared] if len(compared) == 2 else None,
        "blocks": details.contents(),
    }
    data.seek(0)
    parts = (
        overview.encode(),
        b"".join(data.readlines(_SHOWN_FIRST)),  # a block is a line
        block("index", to_json(index)),
        f"<script>{script}</script>\n".encode(),
    )
    for part in parts:
        page.write(part)
    at = data.tell()
    shutil.copyfileobj(data, page, 1 << 20)
    end = b"</body>\n</html>\n"
    page.write(end)
    return sum(map(len, parts)) + data.tell() - at + len(end)


def concatenated(folder: str, names: tuple[str, ...]) -> str:
    """Concatenates files of one kind to a text that can be part of a page.

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


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


# Values for the template -------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from markupsafe import Markup

    calls: tuple[Callable[..., Any], ...] = (
        *(_against_labels, _judge_facts, _table_notes),
        *(best_note, level_text),
    )
    by_name = {call.__name__.removeprefix("_"): call for call in calls}
    filters = {"raw": Markup, "data_url": _data_url}
    return environment(Path(__file__).parent, calls=by_name, filters=filters)


def _data_url(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _table_notes(table: PaperTable) -> list[str]:
    """The notes below a table, its legend first."""
    meanings: dict[str, dict[str, None]] = {}
    for column in table.columns:
        if column.kind and column.kind.meaning:
            meanings.setdefault(column.title, {})[column.kind.meaning] = None
    legend = "; ".join(f"{title}: {' / '.join(own)}" for title, own in meanings.items())
    how = f"Below a value: its {level_text(CONFIDENCE_LEVEL)} interval."
    rows = "pairs" if table.counted == "pairs" else "scored rows"
    of = f"After a slash: the number of rows, where it is not all {rows}."
    best = filter(None, [best_note(table, "★")])
    return [f"{legend}. Rates are in percent.", how, of, *best, *table.notes]


def _against_labels(judge: JudgeFacts) -> Iterator[tuple[str, str]]:
    """Metrics of a judge against labels, in pairs of a name and a text; empty without labels."""
    names = {"Corrected with labels": judge.corrected, "Agrees with humans": judge.agreement}
    for name, estimate in names.items():
        if estimate is not None and estimate.value is not None:
            cell = MetricCell(estimate=estimate, unit="percent", denominator=False)
            unit = "items" if estimate is judge.corrected else "labelled items"
            parts = (f"{cell.value} %", cell.interval, f"of {estimate.n_items:,} {unit}")
            yield name, " ".join(filter(None, parts))


def _judge_facts(judge: JudgeFacts) -> Iterator[tuple[str, str]]:
    """Facts about a judge: pairs of a name and a text."""
    yield "Scored", f"{judge.scored:,} of {judge.rows:,}"
    if judge.unscored:
        reasons = sorted(judge.unscored.items(), key=lambda pair: (-pair[1], pair[0]))
        yield "Unscored", ", ".join(f"{count:,} {reason}" for reason, count in reasons)
    if judge.rubrics:
        yield "Rubrics", ", ".join(judge.rubrics)
    if judge.calls:
        cost = "price not known" if judge.cost_usd is None else f"{judge.cost_usd:,.2f} US dollars"
        yield "Took", f"{judge.calls:,} calls, {cost}"
    yield from judge.settings
    if judge.source:
        yield "From", judge.source


def _changed_list(changes: Changes) -> dict[str, Any]:
    """The worst changes from one run to another, with links to their items.

    Returns:
        ``summary`` (sentences on the runs and on the number of changes by kind), ``rows`` and
        ``more`` (number of omitted rows). A row has kind, item_id, tested_model (empty if two
        tested models are compared, which the sides name), before, after (each with its verdict as
        text and the page's address of the item as fragment) and human (empty without label).
    """
    by_model = bool(changes.note)  # then both sides are separate items
    human = {None: "", True: "correct", False: "incorrect"}

    def verdict(item_id: str, side: ItemScore) -> dict[str, str]:
        model = side.tested_model or "not stated"
        address = {"view": "items", "item": item_id, "model": model}
        text = f"{model}: {score_text(side)}" if by_model else score_text(side)
        return {"text": text, "fragment": urlencode(address)}

    rows = [
        {
            "kind": KINDS[change.kind],
            "item_id": change.item_id,
            "tested_model": "" if by_model else change.before.tested_model or "",
            "before": verdict(change.item_id, change.before),
            "after": verdict(change.item_id, change.after),
            "human": human[change.human],
        }
        for change in changes.items[:_MOST_CHANGES]
    ]
    more = max(0, len(changes.items) - _MOST_CHANGES)
    return {"summary": changes_summary(changes), "rows": rows, "more": more}

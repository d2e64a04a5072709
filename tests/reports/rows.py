"""Judgement rows made by hand, as they stand in judgements.jsonl, and a look into a summary."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from apbjudge import Summary, Unscored, Verdict, summarize
from apbjudge.judge.summary import SummaryGroup
from apbjudge.records import ERROR_CODES, judgement_row
from apbjudge.statistics import Estimate

Row = dict[str, Any]
GOLDEN = Path(__file__).parents[1] / "golden"
_PLAIN = ("tool-broken", "unsolvable")
"""Protocols whose verdicts have neither flags nor a grade."""


def check_golden(name: str, text: str) -> None:
    """UPDATE_GOLDEN=1 writes the files anew; read the difference before it is committed."""
    if os.environ.get("UPDATE_GOLDEN") == "1":
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def _common(item: str, protocol: str, groups: dict[str, Any], fields: Row) -> Row:
    return {
        "item_id": item,
        "case_id": item,
        "tested_model": "m",
        "protocol": protocol,
        "rubric": "r@1",
        "judge": "j",
        "fingerprint": f"f-{item}",
        "line": 1,
        "groups": {"level": 0, **groups},
        **fields,
    }


def verdict(
    item: str,
    flags: str = "",
    *,
    protocol: str = "holistic",
    groups: dict[str, Any] | None = None,
    **fields: Any,
) -> Row:
    """A verdict; ``flags`` such as "E1 E5" make it wrong, and 0.2 unless a grade is given."""
    common = _common(item, protocol, groups or {}, fields)
    common.setdefault("is_correct", not flags)
    if protocol not in _PLAIN:
        common.setdefault("grade", 0.2 if flags else 1.0)
        common.setdefault("errors", {code: code in flags.split() for code in ERROR_CODES})
    return as_written(Verdict(**common))


def unscored(
    item: str,
    reason: str = "timeout",
    *,
    protocol: str = "holistic",
    groups: dict[str, Any] | None = None,
    **fields: Any,
) -> Row:
    """A judgement without verdict."""
    common = _common(item, protocol, groups or {}, fields)
    return as_written(Unscored(reason=reason, detail="made by hand", **common))  # type: ignore[arg-type]


def bad_row(line: int) -> Row:
    """The judgement of a line that never became an item."""
    unknown = dict.fromkeys(("item_id", "case_id", "tested_model", "protocol", "rubric"))
    said: Row = {"judge": "j", "fingerprint": f"bad-{line}", "line": line, "reason": "bad_input"}
    detail = "field id: expected a non-empty string, got nothing"
    return as_written(Unscored(detail=detail, **unknown, **said))


def as_written(judgement: Verdict | Unscored) -> Row:
    """The row after it was written to a file and read again."""
    row: Row = orjson.loads(orjson.dumps(judgement_row(judgement)))
    return row


def summary_of(rows: Iterable[Row], *by: str) -> Summary:
    """The summary of a run of the judge j."""
    return summarize(rows, judge="j", by=by)


def group(
    summary: Summary, *, model: str = "m", by: dict[str, str | None] | None = None, **which: str
) -> SummaryGroup:
    """The one group that is meant; it fails when there is none or there are several."""
    (result,) = (
        g
        for g in summary.groups
        if (g.tested_model, g.by) == (model, by or {})
        if all(getattr(g, name) == value for name, value in which.items())
    )
    return result


Points = dict[str, tuple[float | None, int]]


def points(figures: dict[str, Estimate], *names: str) -> Points:
    """Value and denominator of some figures, or of all."""
    return {name: (figures[name].value, figures[name].n_items) for name in names or figures}


def about(value: float, n: int) -> Any:
    """A value and its denominator, as ``points`` gives them."""
    return (pytest.approx(value, abs=1e-12), n)

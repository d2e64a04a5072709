"""Which rows to label next, and what the labels will be worth."""

from __future__ import annotations

from collections.abc import Iterator

from ..calibration.results import LabelPlan, Need
from ..errors import visible
from .tables import lined_up

_ON_SCALE = ("grade MAE",)


def label_plan_text(found: LabelPlan) -> str:
    """The whole plan but its rows: rates in percent points, grades on their scale of 0 to 1."""
    lines = [*_head(found), "", *_needs(found), "", *_strata(found), "", *_use(found)]
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join(lines) + "\n"


def _head(found: LabelPlan) -> Iterator[str]:
    rows = f"{found.n_rows} rows, {found.n_unscored} unscored, {found.n_labelled} labelled"
    yield f"judge {visible(found.judge)} ({visible(found.source)}): {rows}"
    source = {
        "option": "as told",
        "labels": "from the labels, kept off 0",
        "default": "a guess; --anticipated says otherwise",
    }[found.expected_from]
    share = f"{100 * found.disagreement:.1f} %"
    yield f"humans are expected to disagree with {share} of the verdicts ({source})"


def _needs(found: LabelPlan) -> list[str]:
    total = found.n_labelled + found.n_planned
    wanted = f"labels for ± {100 * found.half_width:g}"
    rows = [["", "± now", "sees now", f"± with {total:,}", "sees then", wanted, "from", ""]]
    rows += [_need(need) for need in found.needs]
    is_guess = any(need.basis == "anticipated" for need in found.needs)
    units = f"grade MAE on the scale of 0 to 1 (± {found.half_width:g})"
    return [
        *lined_up(rows),
        "",
        "±: half the width of a 95 % interval, rates in percent points, " + units,
        "sees: the smallest true difference between two such results found 8 times in 10",
        f"{wanted}: in all, drawn alike from all rows",
        *(["anticipated: rows of one case are taken as unrelated"] if is_guess else []),
    ]


def _need(need: Need) -> list[str]:
    halves = need.half_width_now, need.detectable_now, need.half_width_then, need.detectable_then
    return [
        need.measure,
        *(_points(value, need.measure) for value in halves),
        "-" if need.n_needed is None else f"{need.n_needed:,}",
        need.basis,
        need.note,
    ]


def _points(value: float | None, measure: str) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if measure in _ON_SCALE else f"{100 * value:.1f}"


def _strata(found: LabelPlan) -> list[str]:
    rows = [["stratum", "rows", "labelled", "planned", "expected to differ", "weight"]]
    for s in found.strata:
        numbers = [f"{s.size:,}", f"{s.labelled:,}", f"{s.planned:,}"]
        weight = f"{s.weight:.2f}" if s.weight else "-"
        rows.append([visible(s.name), *numbers, f"{100 * s.doubt:.0f} %", weight])
    return lined_up(rows)


def _use(found: LabelPlan) -> Iterator[str]:
    if not found.n_planned:
        yield "every row has a label: nothing is left to be planned"
        return
    rows = "row" if found.n_planned == 1 else "rows"
    if found.out is None:
        yield f"{found.n_planned} {rows} to label; --out plan.jsonl writes down which"
        return
    out = visible(found.out)
    yield f"{out}: {found.n_planned} {rows} to label; they stand first, in the order to keep to"
    yield f"then: apbjudge calibrate {visible(found.source)} labels.jsonl --design {out}"

"""Which rows to label next, and what the labels will be worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..calibration.selection import Stratum
from ..errors import visible
from .tables import lined_up

_ON_SCALE = ("grade MAE",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one measure needs.

    Attributes:
        measure: Its name.
        basis: What the figures are from: labels that are there, or what is anticipated.
        half_width_now: Half the width of the interval from the labels there are; None without.
        detectable_now: Smallest true difference between two results of that precision (other
            items each) that is found with a power of 0.8.
        half_width_then: Half the width once the planned labels are made as well.
        detectable_then: The same of the difference.
        n_needed: Labels in all for the width wished for; None where that can't be told.
        note: What makes the figures rough, or why there are none.
    """

    measure: str
    basis: Literal["labels", "anticipated"]
    half_width_now: float | None
    detectable_now: float | None
    half_width_then: float | None
    detectable_then: float | None
    n_needed: int | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One judged row in the plan.

    Attributes:
        item_id: The item.
        tested_model: Whose response.
        case_id: The benchmark record.
        stratum: What it was drawn within.
        stratum_size: Rows of that stratum.
        order: 1 for the row to be labelled first, and so on; 0 for a row that is labelled
            already and counts; None for a row that is not to be labelled.
        weight: Rows that its label stands for once all chosen ones are labelled; None where the
            row is not to be labelled.
    """

    item_id: str
    tested_model: str | None
    case_id: str | None
    stratum: str
    stratum_size: int
    order: int | None
    weight: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """What to label, and what for.

    Attributes:
        judge: The judge.
        source: File of its judgements.
        n_rows: Rows that labels can be drawn from.
        n_unscored: Those without verdict.
        n_labelled: Those with a label already.
        n_wanted: Labels asked for.
        n_planned: Labels planned.
        half_width: Half the width that intervals may have.
        disagreement: Share of verdicts that humans are expected not to share.
        expected_from: Where that is from: ``option``, ``labels`` or ``default``.
        by: Columns that strata were made of, beside verdict and doubt.
        strata: What rows were drawn within.
        needs: What each measure needs.
        seed: Seed of the draw.
        out: File of the plan; None where it was not written.
        notes: What must be said beside the figures.
        problems: Rows of the files that could not be used.
        rows: All rows, those to be labelled first and in their order.
    """

    judge: str
    source: str
    n_rows: int
    n_unscored: int
    n_labelled: int
    n_wanted: int
    n_planned: int
    half_width: float
    disagreement: float
    expected_from: Literal["option", "labels", "default"]
    by: tuple[str, ...]
    strata: tuple[Stratum, ...]
    needs: tuple[Need, ...]
    seed: int
    out: str | None
    notes: tuple[str, ...]
    problems: tuple[str, ...]
    rows: tuple[PlanRow, ...]

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values without the rows, which the plan's own file has."""
        names = (name for name in self.__slots__ if name not in {"rows", "strata", "needs"})
        return {
            **{name: getattr(self, name) for name in names},
            "strata": [asdict(stratum) for stratum in self.strata],
            "needs": [asdict(need) for need in self.needs],
        }


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

"""A calibration as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..calibration.results import CorrectedFigure, Reliability, ReliabilityReport
from ..statistics.analyses import Diversity
from ..statistics.estimates import Estimate
from ..statistics.measures import PAPER, Calibration
from .document import Cell, Document, Figure, Heading, Notes, Number, Part, Table
from .numbers import Unit, level_text, number
from .tables import across, difference, down, is_missing, matrix, reasons
from .text import render_text

JUDGES_ACROSS = 3
_BEYOND = (
    "kappa",
    "PABAK",
    "phi",
    "AC1",
    "grade bias",
    "grade kappa (quadratic)",
    "grade AC2 (quadratic)",
    "grade alpha (ordinal)",
)
_RATES = ("specificity", "judge CR", "human CR", "judge grade", "human grade", "Err-Type (all)")
_OF_JUDGE = ("scored", *PAPER, *_RATES, *_BEYOND)
_OF_CODE = ("judge rate", "human rate", "precision", "recall", "F1", "kappa", "AC1")
_OF_GROUP = ("agreement", "F1", "kappa", "AC1", "grade MAE", "grade bias")
_OF_PAIR = ("agreement", "kappa", "AC1", "grade MAE", "grade bias", "grade kappa (quadratic)")


def reliability_text(report: ReliabilityReport) -> str:
    """The report as text."""
    return render_text(reliability_document(report))


def reliability_document(report: ReliabilityReport) -> Document:
    """The whole report: rates in percent, grades and coefficients on their own scale."""
    parts: list[Part] = []
    for at in range(0, len(report.judges), JUDGES_ACROSS):
        judges = report.judges[at : at + JUDGES_ACROSS]
        columns = {name: _measures(judge.whole) for name, judge in _by_name(judges).items()}
        heads = dict.fromkeys(line for judge in judges for line in _head(judge))
        parts += [Notes(tuple(heads)), down(columns, _OF_JUDGE)]
    for judge in report.judges:
        if len(report.judges) > 1:
            parts.append(Heading(f"===== {judge.judge} =====", 1))
        for title, section in _sections(judge):
            if section:
                parts += [Heading(title), *section]
    return Document((*parts, Notes(tuple(_legend(report)))))


def _measures(part: Calibration) -> dict[str, Estimate]:
    return {"scored": part.scored, **part.measures}


def _by_name(judges: Sequence[Reliability]) -> dict[str, Reliability]:
    """Judges by the heading of their column."""
    found: dict[str, Reliability] = {}
    for i, judge in enumerate(judges):
        found[judge.judge if judge.judge not in found else f"{judge.judge} #{i + 1}"] = judge
    return found


def _head(judge: Reliability) -> Iterator[str]:
    raters = len(judge.raters)
    by = f"the majority of {raters} raters" if raters > 1 else "one rater"
    if judge.n_adjudicated:
        by = f"{by}, adjudicated on {judge.n_adjudicated} items"
    where = "" if judge.cluster == "none" else f" in {judge.n_clusters} clusters ({judge.cluster})"
    yield (
        f"{judge.judge} against {by}: {judge.n_labelled} labelled items{where}, of "
        f"{judge.n_rows} judgements, {judge.n_scored} of them scored"
    )
    if judge.n_ties:
        ties = ", ".join(f"{field} {n}" for field, n in sorted(judge.n_ties.items()))
        yield f"ties, which have no label: {ties}"
    yield from judge.notes


def _sections(judge: Reliability) -> Iterator[tuple[str, list[Part]]]:
    """Titles and bodies; an empty body where there is nothing to show."""
    whole = judge.whole
    yield "error codes", [across(whole.codes, _OF_CODE)] if whole.codes else []
    for field in ("is_correct", "grade"):
        table = whole.tables.get(field)
        yield f"confusion of {field}", [matrix(table)] if table else []
    yield "behaviours after a broken tool", _category(judge)
    yield "raters among themselves", _between(judge)
    yield "may the judge replace a rater? (alternative annotator test)", _stand_in(judge)
    yield "plans that humans found correct", _diversity(judge)
    yield "judge minus humans, by tested model", _self_evaluation(judge)
    for field in dict.fromkeys(group.field for group in judge.groups):
        rows = {
            group.value or "not stated": _measures(group.found)
            for group in judge.groups
            if group.field == field
        }
        yield f"by {field}", [across(rows, ("scored", *_OF_GROUP))]
    if judge.corrected:
        is_plain = judge.design in {"random", "other-population"}
        design = judge.design if is_plain else "drawn by plan"
        yield f"corrected for the judge's errors (labels: {design})", _corrected(judge)


def _category(judge: Reliability) -> list[Part]:
    found = judge.category
    if found is None:
        return []
    lines = tuple(f"{name} {Figure.named(name, e)}" for name, e in found.measures.items())
    return [Notes(lines), *([matrix(found.table)] if found.table else [])]


def _between(judge: Reliability) -> list[Part]:
    found = judge.between
    if found is None:
        return []
    pairs = _pairs(judge)
    whole = ", ".join(f"{name} {Figure.named(name, e)}" for name, e in found.together.items())
    head = Notes((f"over all pairs of raters: {whole}",))
    return [head, *([across(pairs, _OF_PAIR)] if pairs else [])]


def _pairs(judge: Reliability) -> dict[str, Mapping[str, Estimate]]:
    """Measures of two raters against each other, by their names."""
    return {
        f"{judge.raters[pair.first]} and {judge.raters[pair.second]}": pair.measures
        for pair in (judge.between.pairs if judge.between else ())
    }


def _stand_in(judge: Reliability) -> list[Part]:
    test = judge.stand_in
    if test is None:
        return []
    if test.passes is None:
        return [Notes((f"not tested: {test.reason}",))]
    answer = "it may" if test.passes else "not shown"
    rows: list[list[Cell]] = [
        [
            judge.raters[annotator.index],
            str(annotator.n_items),
            Figure(estimate=annotator.rho_judge, unit="percent"),
            Figure(estimate=annotator.rho_human, unit="percent"),
            Number(annotator.p_value, "p"),
            "yes" if annotator.rejected else "no",
        ]
        for annotator in test.annotators
    ]
    head = (
        f"{answer}: wins against {number(test.winning_rate, 'percent')} % of raters "
        f"(half are needed) with an allowance of {test.epsilon:g}; advantage probability "
        f"{Figure(estimate=test.advantage_probability, unit='grade')}"
    )
    titles = ("", "items", "judge as close", "rater as close", "p", "judge wins")
    reason = [Notes((test.reason,))] if test.reason else []
    return [Notes((head,)), Table.of(titles, rows), *reason]


def _diversity(judge: Reliability) -> list[Part]:
    found = judge.diversity
    if found is None:
        return []
    lines = [
        f"difference of agreement {difference(found.agreement, 'percent')}",
        f"difference of MAE {difference(found.error, 'grade')}",
    ]
    if found.n_unknown:
        lines.append(f"{found.n_unknown} more items whose chain is not known")
    return [across(_chains(found), ("agreement", "grade MAE")), Notes(tuple(lines))]


def _chains(found: Diversity) -> dict[str, dict[str, Estimate]]:
    groups = {"other chain": found.different, "reference's chain": found.standard}
    return {
        name: {"agreement": group.agreement, "grade MAE": group.error}
        for name, group in groups.items()
    }


def _self_evaluation(judge: Reliability) -> list[Part]:
    found = judge.self_evaluation
    if found is None:
        return []
    rows: list[list[Cell]] = [
        [
            model.tested_model + (" (itself)" if model.tested_model == found.own else ""),
            Number(model.human_rate.value, "percent"),
            Number(model.judge_rate.value, "percent"),
            Figure(estimate=model.rate.estimate, unit="points"),
            Figure(estimate=model.grade.estimate, unit="grade difference"),
        ]
        for model in found.models
    ]
    lines: list[str] = []
    if found.rate is not None:
        lines.append(f"itself minus others, CR bias: {difference(found.rate, 'percent')}")
    if found.grade is not None:
        lines.append(f"itself minus others, grade bias: {difference(found.grade, 'grade')}")
    table = Table.of(("", "human CR", "judge CR", "CR bias", "grade bias"), rows)
    return [table, *([Notes(tuple(lines))] if lines else [])]


def _corrected(judge: Reliability) -> list[Part]:
    rows: list[list[Cell]] = []
    for part in _shown_corrections(judge):
        unit: Unit = "grade" if part.figure == "Grade" else "percent"
        found = part.found
        note = found.rectified.note if found.rectified.value is None else ""
        rows.append(
            [
                _part(part.field, part.value),
                part.figure,
                Figure(estimate=found.raw, unit=unit),
                note or Figure(estimate=found.rectified, unit=unit),
                Figure(estimate=found.labelled_only, unit=unit),
                f"{found.n_labelled} of {found.n_judged}",
            ]
        )
    table = Table.of(("", "figure", "judge", "corrected", "labels alone", "labels"), rows)
    if any(part.field for part in judge.corrected):
        return [table, Notes(("error rates of the parts: --format json",))]
    return [table]


def _legend(report: ReliabilityReport) -> list[str]:
    level = report.judges[0].whole.scored.level
    policy = {
        "exclude": "unscored items do not count",
        "wrong": "unscored items count as wrong",
        "bounds": "intervals hold whatever the unscored items would have been",
    }[report.judges[0].whole.policy]
    shown = "rates in percent, differences in percentage points"
    lines = [f"value [{level_text(level)} interval] /n; {shown}; {policy}"]
    if report.problems:
        lines.append(f"rows left out because of problems: {len(report.problems)}")
    return [*lines, *_reasons(report), *_rough(report)]


def _reasons(report: ReliabilityReport) -> list[str]:
    """Why figures have no value or no interval."""
    several = len(report.judges) > 1
    return reasons(
        (estimate.note, figure, " ".join(filter(None, (name if several else "", place))))
        for name, judge in _by_name(report.judges).items()
        for figure, place, estimate in _shown(judge)
        if is_missing(estimate)
    )


def _rough(report: ReliabilityReport) -> list[str]:
    """What makes intervals of the first table rough; a reason of all but some, last."""
    several = len(report.judges) > 1
    notes = [
        (estimate.note, figure, name if several else "")
        for name, judge in _by_name(report.judges).items()
        for figure, estimate in judge.whole.measures.items()
        if estimate.low is not None and "as unscored items" not in estimate.note
    ]
    times = Counter(note for note, _, _ in notes if note)
    if not times:
        return []
    most, _ = times.most_common(1)[0]
    if all(note for note, _, _ in notes):
        others = reasons(entry for entry in notes if entry[0] != most)
        return [*others, f"{'all other' if others else 'all'} intervals above: {most}"]
    return reasons(entry for entry in notes if entry[0])


_Shown = tuple[str, str, Estimate]
"""Figure, what it is of, estimate."""


def _shown(judge: Reliability) -> Iterator[_Shown]:
    """Every estimate of the text."""
    whole = _measures(judge.whole)
    yield from ((name, "", whole[name]) for name in _OF_JUDGE if name in whole)
    for code, figures in judge.whole.codes.items():
        yield from ((name, code, figures[name]) for name in _OF_CODE if name in figures)
    for group in judge.groups:
        part = _measures(group.found)
        where = _part(group.field, group.value)
        yield from ((name, where, part[name]) for name in ("scored", *_OF_GROUP))
    if judge.category is not None:
        yield from ((name, "behaviours", e) for name, e in judge.category.measures.items())
    if judge.between is not None:
        yield from ((name, "all raters", e) for name, e in judge.between.together.items())
    for raters, measures in _pairs(judge).items():
        yield from ((name, raters, measures[name]) for name in _OF_PAIR)
    yield from _shown_of_analyses(judge)
    for part in _shown_corrections(judge):
        where = _part(part.field, part.value)
        yield f"{part.figure} by the judge", where, part.found.raw
        yield f"{part.figure} by labels alone", where, part.found.labelled_only
        if part.found.rectified.value is not None:  # else the reason stands in its place
            yield f"{part.figure} corrected", where, part.found.rectified


def _shown_of_analyses(judge: Reliability) -> Iterator[_Shown]:
    if (found := judge.diversity) is not None:
        for chain, figures in _chains(found).items():
            yield from ((name, chain, e) for name, e in figures.items())
        yield "difference of agreement", "", found.agreement.estimate
        yield "difference of MAE", "", found.error.estimate
    if (own := judge.self_evaluation) is not None:
        for model in own.models:
            yield "CR bias", model.tested_model, model.rate.estimate
            yield "grade bias", model.tested_model, model.grade.estimate
        for name, contrast in (("CR bias", own.rate), ("grade bias", own.grade)):
            if contrast is not None:
                yield name, "itself less others", contrast.estimate


def _shown_corrections(judge: Reliability) -> Iterator[CorrectedFigure]:
    """Of parts of the rows CR and grade alone: error rates would take a page."""
    return (c for c in judge.corrected if not c.field or c.figure in {"CR", "Grade"})


def _part(field: str, value: str | None) -> str:
    """A part of the rows."""
    return f"{field} {value or 'not stated'}" if field else "all"

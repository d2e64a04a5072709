"""A calibration as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..calibration.results import CorrectedFigure, Reliability, ReliabilityReport
from ..errors import visible
from ..statistics.intervals import Estimate
from ..statistics.measures import PAPER
from .tables import (
    across,
    cell,
    difference,
    down,
    is_missing,
    lined_up,
    matrix,
    named,
    number,
    p_value,
    reasons,
)

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
    """The whole report.

    Rates are in percent, grades and coefficients on their own scale; the interval stands in
    brackets and the denominator behind the slash.
    """
    lines: list[str] = []
    for at in range(0, len(report.judges), JUDGES_ACROSS):
        lines += [*_measures(report.judges[at : at + JUDGES_ACROSS]), ""]
    for judge in report.judges:
        if len(report.judges) > 1:
            lines += [f"===== {visible(judge.judge)} =====", ""]
        for title, body in _sections(judge):
            lines += [title, *body, ""]
    lines += _legend(report)
    return "\n".join(lines) + "\n"


def _measures(judges: Sequence[Reliability]) -> list[str]:
    heads = [*dict.fromkeys(line for judge in judges for line in _head(judge))]
    columns = {
        name: {"scored": judge.whole.scored, **judge.whole.measures}
        for name, judge in _by_name(judges).items()
    }
    return [*heads, "", *down(columns, _OF_JUDGE)]


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
        f"{visible(judge.judge)} against {by}: {judge.n_labelled} labelled items{where}, of "
        f"{judge.n_rows} judgements, {judge.n_scored} of them scored"
    )
    if judge.n_ties:
        ties = ", ".join(f"{field} {n}" for field, n in sorted(judge.n_ties.items()))
        yield f"ties, which have no label: {ties}"
    yield from judge.notes


def _sections(judge: Reliability) -> Iterator[tuple[str, list[str]]]:
    for title, section in _SECTIONS.items():
        if body := section(judge):
            yield title, body
    for field in dict.fromkeys(group.field for group in judge.groups):
        yield f"by {field}", _groups(judge, field)
    if judge.corrected:
        yield f"corrected for the judge's errors ({_design(judge)})", _corrected(judge)


def _codes(judge: Reliability) -> list[str]:
    return across(judge.whole.codes, _OF_CODE) if judge.whole.codes else []


def _of_correct(judge: Reliability) -> list[str]:
    table = judge.whole.tables.get("is_correct")
    return matrix(table) if table else []


def _of_grade(judge: Reliability) -> list[str]:
    table = judge.whole.tables.get("grade")
    return matrix(table) if table else []


def _category(judge: Reliability) -> list[str]:
    found = judge.category
    if found is None:
        return []
    figures = [f"{name} {named(name, estimate)}" for name, estimate in found.measures.items()]
    return [*figures, *(matrix(found.table) if found.table else [])]


def _groups(judge: Reliability, field: str) -> list[str]:
    rows = {
        "not stated" if group.value is None else group.value: {
            "scored": group.found.scored,
            **group.found.measures,
        }
        for group in judge.groups
        if group.field == field
    }
    return across(rows, ("scored", *_OF_GROUP))


def _between(judge: Reliability) -> list[str]:
    found = judge.between
    if found is None:
        return []
    pairs = {
        f"{judge.raters[pair.first]} and {judge.raters[pair.second]}": pair.measures
        for pair in found.pairs
    }
    whole = [f"{name} {named(name, e)}" for name, e in found.together.items()]
    lines = [f"over all pairs of raters: {', '.join(whole)}"]
    return [*lines, *across(pairs, _OF_PAIR)] if pairs else lines


def _stand_in(judge: Reliability) -> list[str]:
    test = judge.stand_in
    if test is None:
        return []
    if test.passes is None:
        return [f"not tested: {test.reason}"]
    answer = "it may" if test.passes else "not shown"
    rows = [["", "items", "judge as close", "rater as close", "p", "judge wins"]]
    rows += [
        [
            visible(judge.raters[annotator.index]),
            str(annotator.n_items),
            cell(annotator.rho_judge, percent=True),
            cell(annotator.rho_human, percent=True),
            p_value(annotator.p_value),
            "yes" if annotator.rejected else "no",
        ]
        for annotator in test.annotators
    ]
    head = (
        f"{answer}: wins against {number(test.winning_rate, percent=True)} % of raters "
        f"(half are needed) with an allowance of {test.epsilon:g}; advantage probability "
        f"{cell(test.advantage_probability, percent=False)}"
    )
    lines = [head, *lined_up(rows)]
    return [*lines, test.reason] if test.reason else lines


def _diversity(judge: Reliability) -> list[str]:
    found = judge.diversity
    if found is None:
        return []
    rows = [["", "agreement", "grade MAE"]]
    for name, group in (("other chain", found.different), ("reference's chain", found.standard)):
        rows.append([name, cell(group.agreement, percent=True), cell(group.error, percent=False)])
    lines = lined_up(rows)
    lines.append(f"difference of agreement {difference(found.agreement, percent=True)}")
    lines.append(f"difference of MAE {difference(found.error, percent=False)}")
    if found.n_unknown:
        lines.append(f"{found.n_unknown} more of which the chain is not known")
    return lines


def _self_evaluation(judge: Reliability) -> list[str]:
    found = judge.self_evaluation
    if found is None:
        return []
    rows = [["", "human CR", "judge CR", "CR bias", "grade bias"]]
    rows += [
        [
            visible(model.tested_model) + (" (itself)" if model.tested_model == found.own else ""),
            number(model.human_rate.value, percent=True),
            number(model.judge_rate.value, percent=True),
            cell(model.rate.estimate, percent=True, signed=True),
            cell(model.grade.estimate, percent=False, signed=True),
        ]
        for model in found.models
    ]
    lines = lined_up(rows)
    if found.rate is not None:
        lines.append(f"itself less others, CR bias: {difference(found.rate, percent=True)}")
    if found.grade is not None:
        lines.append(f"itself less others, grade bias: {difference(found.grade, percent=False)}")
    return lines


def _design(judge: Reliability) -> str:
    plain = judge.design in {"random", "other-population"}
    return f"labels: {judge.design}" if plain else "labels: drawn by plan"


def _corrected(judge: Reliability) -> list[str]:
    rows = [["", "figure", "judge", "corrected", "labels alone", "labels"]]
    for part in _shown_corrections(judge):
        where = _part(part.field, part.value)
        percent, found = part.figure != "Grade", part.found
        note = found.rectified.note if found.rectified.value is None else ""
        rows.append(
            [
                where,
                part.figure,
                cell(found.raw, percent=percent),
                note or cell(found.rectified, percent=percent),
                cell(found.labelled_only, percent=percent),
                f"{found.n_labelled} of {found.n_judged}",
            ]
        )
    lines = lined_up(rows)
    if any(part.field for part in judge.corrected):
        lines.append("error rates of the parts: --format json")
    return lines


def _legend(report: ReliabilityReport) -> list[str]:
    level = report.judges[0].whole.scored.level
    policy = {
        "exclude": "unscored items do not count",
        "wrong": "unscored items count as wrong",
        "bounds": "intervals hold whatever the unscored items would have been",
    }[report.judges[0].whole.policy]
    shown = "rates in percent, differences in percent points"
    lines = [f"value [{level * 100:g} % interval] /n; {shown}; {policy}"]
    if report.problems:
        lines.append(f"{len(report.problems)} complaints about rows that are left out")
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
    whole = {"scored": judge.whole.scored, **judge.whole.measures}
    yield from ((name, "", whole[name]) for name in _OF_JUDGE if name in whole)
    for code, figures in judge.whole.codes.items():
        yield from ((name, code, figures[name]) for name in _OF_CODE if name in figures)
    for group in judge.groups:
        part = {"scored": group.found.scored, **group.found.measures}
        where = _part(group.field, group.value)
        yield from ((name, where, part[name]) for name in ("scored", *_OF_GROUP))
    if judge.category is not None:
        yield from ((name, "behaviours", e) for name, e in judge.category.measures.items())
    yield from _shown_of_raters(judge)
    yield from _shown_of_analyses(judge)
    for part in _shown_corrections(judge):
        where = _part(part.field, part.value)
        yield f"{part.figure} by the judge", where, part.found.raw
        yield f"{part.figure} by labels alone", where, part.found.labelled_only
        if part.found.rectified.value is not None:  # else the reason stands in its place
            yield f"{part.figure} corrected", where, part.found.rectified


def _shown_of_raters(judge: Reliability) -> Iterator[_Shown]:
    if judge.between is None:
        return
    yield from ((name, "all raters", e) for name, e in judge.between.together.items())
    for pair in judge.between.pairs:
        names = f"{judge.raters[pair.first]} and {judge.raters[pair.second]}"
        yield from ((name, names, pair.measures[name]) for name in _OF_PAIR)


def _shown_of_analyses(judge: Reliability) -> Iterator[_Shown]:
    if (found := judge.diversity) is not None:
        parts = {"other chain": found.different, "reference's chain": found.standard}
        for name, of in parts.items():
            yield from (("agreement", name, of.agreement), ("grade MAE", name, of.error))
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
    return f"{field} {visible(value or 'not stated')}" if field else "all"


_SECTIONS: Mapping[str, Callable[[Reliability], list[str]]] = {
    "error codes": _codes,
    "confusion of is_correct": _of_correct,
    "confusion of grade": _of_grade,
    "behaviours after a broken tool": _category,
    "raters among themselves": _between,
    "may the judge stand in for a rater? (alternative annotator test)": _stand_in,
    "plans that humans found correct": _diversity,
    "judge less humans, by tested model": _self_evaluation,
}

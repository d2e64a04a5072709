"""A calibration as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace

from ..document.model import (
    Cell,
    Document,
    Heading,
    MetricCell,
    Notes,
    Number,
    Part,
    Table,
    missing,
    reasons,
)
from ..document.numbers import DASH, count, level_text, number, size
from ..statistics.analyses import Diversity
from ..statistics.confusion import Confusion
from ..statistics.differences import Contrast
from ..statistics.estimates import Estimate
from ..statistics.kinds import AGREEMENT, CR_BIAS, GRADE_BIAS, GRADE_MAE
from ..statistics.measures import Calibration
from ..statistics.metric import Metric, Unit, by_name
from ..statistics.raters import AltTest, BetweenRaters
from .results import Reliability, ReliabilityReport
from .scaled import Preferences

Figures = Mapping[str, Metric] | Mapping[str, Metric | str]
"""Metrics and counts by name."""
JUDGES_ACROSS = 3


def reliability_document(report: ReliabilityReport) -> Document:
    """The whole report, corrected rates first.

    Rates are in percent, grades and coefficients on their own scale.
    """
    several = len(report.judges) > 1
    by_name: dict[str, Reliability] = {}
    for i, judge in enumerate(report.judges):
        name = judge.judge if judge.judge not in by_name else f"{judge.judge} #{i + 1}"
        by_name[name] = judge
    parts: list[Part] = []
    names = list(by_name)
    for at in range(0, len(names), JUDGES_ACROSS):
        judges = {name: by_name[name] for name in names[at : at + JUDGES_ACROSS]}
        columns = {name: _measures(judge.whole) for name, judge in judges.items()}
        heads = dict.fromkeys(line for judge in judges.values() for line in _head(judge))
        parts.append(Notes(tuple(heads)))
        for name, judge in judges.items():
            parts += _corrected(judge, name if several else "")
        parts += [
            Heading("on the labelled items"),
            _down(columns, several=several),
        ]
    for name, judge in by_name.items():
        if several:
            parts.append(Heading(f"===== {judge.judge} =====", 1))
        for title, section in _sections(judge, name if several else ""):
            parts += [Heading(title), *section]
    level, policy = report.judges[0].whole.level, report.judges[0].whole.policy
    unscored = {
        "exclude": "unscored items do not count",
        "wrong": "unscored items count as wrong",
        "bounds": "intervals hold whatever the unscored items would have been",
    }[policy]
    units = "rates in percent, differences in percentage points"
    legend = [f"value [{level_text(level)} interval] /n; {units}; {unscored}"]
    if report.problems:
        legend.append(f"rows left out because of problems: {len(report.problems)}")
    legend += [*missing(parts, intervals=True), *_rough(by_name, several=several)]
    return Document((*parts, Notes(tuple(legend))))


def _measures(part: Calibration, without: Container[str] = ()) -> dict[str, Metric | str]:
    measures = {name: of for name, of in part.measures.items() if name not in without}
    return {"scored": f"{part.n_scored}/{part.n_items}", **measures}


def _down(columns: Mapping[str, Figures], *, several: bool) -> Table:
    """A table with one row a measure and one column a judge."""
    names = dict.fromkeys(name for figures in columns.values() for name in figures)
    rows = [
        [name, *(_cell(name, of, judge if several else "") for judge, of in columns.items())]
        for name in names
    ]
    return Table.of(["", *columns], rows)


def _across(rows: Mapping[str, Figures], *whose: str) -> Table:
    """A table with a column per measure; ``whose`` precedes the names of rows in notes."""
    titles = list(dict.fromkeys(name for figures in rows.values() for name in figures))
    body = [
        [heading, *(_cell(name, figures, _joined(*whose, heading)) for name in titles)]
        for heading, figures in rows.items()
    ]
    return Table.of(["", *titles], body)


def _cell(name: str, figures: Figures, place: str) -> Cell:
    figure = figures.get(name, "")
    return figure if isinstance(figure, str) else MetricCell.showing(figure, place)


def _estimate(of: Estimate, unit: Unit, name: str = "", *place: str) -> MetricCell:
    """A cell with an estimate that is not a metric; without a name it has no note."""
    return MetricCell(estimate=of, unit=unit, name=name, place=_joined(*place))


def _joined(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _matrix(confusion: Confusion) -> Table:
    """A confusion matrix, with the judge's answers as rows."""
    rows = [
        [name, *map(count, counts)]
        for name, counts in zip(confusion.first, confusion.counts, strict=True)
    ]
    return Table.of(["judge \\ human", *confusion.second], rows)


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


def _sections(judge: Reliability, whose: str) -> Iterator[tuple[str, list[Part]]]:
    """Titles and bodies; ``whose`` names the judge if there are several."""
    whole = judge.whole
    if whole.codes:
        title = "classes" if "class" in whole.tables else "error codes"
        yield title, [_across(whole.codes, whose)]
    for field in ("is_correct", "grade", "verdict", "score", "class"):
        if confusion := whole.tables.get(field):
            yield f"confusion of {field}", [_matrix(confusion)]
    if (category := judge.category) is not None:
        rows = {"behaviours": category.measures}
        matrix = [_matrix(category.table)] if category.table else []
        yield "behaviours after a broken tool", [_across(rows, whose), *matrix]
    yield from _preferences(judge.preferences, whose)
    if judge.between is not None:
        yield "raters among themselves", _between(judge.between, judge.raters, whose)
    if judge.stand_in is not None:
        title = "may the judge replace a rater? (alternative annotator test)"
        yield title, _annotator_test(judge.stand_in, judge.raters)
    if judge.diversity is not None:
        yield "plans that humans found correct", _diversity(judge.diversity, whose)
    if judge.self_evaluation is not None:
        yield "judge minus humans, by tested model", _self_evaluation(judge, whose)
    yield from _groups(judge, whose)


def _groups(judge: Reliability, whose: str) -> Iterator[tuple[str, list[Part]]]:
    """Tables by group, without metrics that have no items (the table of all items says why)."""
    empty = {name for name, metric in judge.whole.measures.items() if not metric.n_items}
    for field in dict.fromkeys(group.field for group in judge.groups):
        rows = {
            group.value or "not stated": _measures(group.result, without=empty)
            for group in judge.groups
            if group.field == field
        }
        yield f"by {field}", [_across(rows, whose, field)]


def _preferences(result: Preferences | None, whose: str) -> Iterator[tuple[str, list[Part]]]:
    if result is None:
        return
    if result.position:
        rows: list[list[Cell]] = [
            [title, _estimate(result.position[name], "percent", name, whose)]
            for name, title in _POSITION.items()
            if name in result.position
        ]
        yield "position", [Table.of(("", "share"), rows)]
    if result.wins:
        rows = [
            [
                of.system,
                _estimate(of.judge, "percent"),
                _estimate(of.human, "percent"),
                _estimate(of.difference.estimate, "points", "difference", whose, of.system),
            ]
            for of in result.wins
        ]
        titles = ("", "by the judge", "by humans", "judge minus humans")
        yield "win rates, a tie counting half", [Table.of(titles, rows)]


_POSITION = {
    "judge": "judge prefers what was shown first",
    "human": "humans prefer what was shown first",
    "same in both orders": "judge prefers the same in both orders",
}


def _between(between: BetweenRaters, raters: Sequence[str], whose: str) -> list[Part]:
    pairs = {f"{raters[pair.first]} and {raters[pair.second]}": pair for pair in between.pairs}
    rows = {who: pair.measures for who, pair in pairs.items()}
    table = _across({"all raters": between.together, **rows}, whose)
    codes = dict.fromkeys(code for pair in pairs.values() for code in pair.codes)
    if not codes:
        return [table]
    kappas: list[list[Cell]] = [
        [code, *(_cell(code, pair.codes, _joined(whose, who, code)) for who, pair in pairs.items())]
        for code in codes
    ]
    return [table, Table.of(["kappa of a code", *pairs], kappas)]


def _annotator_test(test: AltTest, raters: Sequence[str]) -> list[Part]:
    if test.passes is None:
        return [Notes((f"not tested: {test.reason}",))]
    answer = "it may" if test.passes else "not shown"
    rows: list[list[Cell]] = [
        [
            raters[annotator.index],
            str(annotator.n_items),
            _estimate(annotator.rho_judge, "percent"),
            _estimate(annotator.rho_human, "percent"),
            Number(annotator.p_value, "p"),
            "yes" if annotator.rejected else "no",
        ]
        for annotator in test.annotators
    ]
    head = (
        f"{answer}: wins against {number(test.winning_rate, 'percent')} % of raters "
        f"(half are needed) with an allowance of {test.epsilon:g}; advantage probability "
        f"{_estimate(test.advantage_probability, 'grade')}"
    )
    titles = ("", "items", "judge as close", "rater as close", "p", "judge wins")
    return [Notes((head,)), Table.of(titles, rows), Notes(tuple(filter(None, [test.reason])))]


def _diversity(result: Diversity, whose: str) -> list[Part]:
    groups = {"other chain": result.different, "reference's chain": result.standard}
    estimates = {
        name: by_name([AGREEMENT.of(group.agreement), GRADE_MAE.of(group.error)])
        for name, group in groups.items()
    }
    table = _across(estimates, whose)
    contrasts = {"agreement": result.agreement, "grade MAE": result.error}
    row, lines = _contrasts("difference", contrasts, whose)
    if result.n_unknown:
        lines.append(f"{result.n_unknown} more items whose chain is not known")
    return [replace(table, rows=(*table.rows, tuple(row))), Notes(tuple(lines))]


def _self_evaluation(judge: Reliability, whose: str) -> list[Part]:
    result = judge.self_evaluation
    if result is None:
        return []
    rows: list[list[Cell]] = [
        [
            model.tested_model + (" (itself)" if model.tested_model == result.own else ""),
            Number(model.human_rate.value, "percent"),
            Number(model.judge_rate.value, "percent"),
            *(
                MetricCell.showing(kind.of(test.estimate), _joined(whose, model.tested_model))
                for kind, test in ((CR_BIAS, model.rate), (GRADE_BIAS, model.grade))
            ),
        ]
        for model in result.models
    ]
    lines: list[str] = []
    if result.own is not None:
        contrasts = {"CR bias": result.rate, "grade bias": result.grade}
        (title, *cells), lines = _contrasts("itself minus others", contrasts, whose)
        rows.append([title, "", "", *cells])
    titles = ("", "human CR", "judge CR", "CR bias", "grade bias")
    if "grade bias" not in judge.whole.measures:  # scores of another tool's scale
        titles, rows = titles[:-1], [row[: len(titles) - 1] for row in rows]
    table = Table.of(titles, rows)
    return [table, Notes(tuple(lines))]


def _contrasts(
    title: str, contrasts: Mapping[str, Contrast | None], whose: str
) -> tuple[list[Cell], list[str]]:
    """A row of differences, and for each that may be 0, a line with the detectable size."""
    row: list[Cell] = [title]
    lines: list[str] = []
    for name, contrast in contrasts.items():
        if contrast is None:
            row.append("")
            continue
        estimate, detectable = contrast.estimate, contrast.detectable
        unit: Unit = "grade difference" if name.startswith("grade") else "points"
        row.append(_estimate(estimate, unit, name, whose, title))
        low, high = estimate.low, estimate.high
        if low is not None and high is not None and low <= 0 <= high and detectable is not None:
            lines.append(
                f"{title}, {name}: no difference seen, detectable: {size(detectable, unit)}"
            )
    return row, lines


def _corrected(judge: Reliability, whose: str) -> Iterator[Part]:
    """Corrected figures; for parts of the rows, CR and grade only, as error rates fill a page."""
    if not judge.corrected:
        return
    is_plan = judge.design not in {"random", "other-population"}
    how = f"labels: {'sampled by plan' if is_plan else judge.design}"
    yield Heading(f"corrected for the errors of {whose or 'the judge'} ({how})")
    rows: dict[str, list[list[Cell]]] = {}
    unaided: list[str] = []
    main = {"CR", "Grade", "Score"}
    for part in judge.corrected:
        if part.field and part.figure not in main:
            continue
        unit: Unit = "grade" if part.figure in {"Grade", "Score"} else "percent"
        result = part.result
        place = part.value or "not stated" if part.field else ""
        at = whose, part.field, place or "all"
        corrected = _estimate(result.rectified, unit, f"{part.figure} corrected", *at)
        labelled = _estimate(result.labelled_only, unit, f"{part.figure} by labels alone", *at)
        name = ", ".join(filter(None, (part.figure, place)))
        added = DASH if result.added is None else f"{count(round(result.added))} labels"
        if result.added == 0:
            added = "nothing"
            unaided.append(name)
        own = rows.setdefault(part.field, [])
        own.append([name, corrected, labelled, added, Number(result.raw.value, unit)])
    for field, own in rows.items():
        yield Table.of((field, "corrected", "labels alone", "judge adds", "judge"), own)
    notes = ["judge adds: how many more labels, chosen in the same way, would be as precise"]
    if unaided:
        to = f" to {', '.join(unaided)}" if len(unaided) < sum(map(len, rows.values())) else ""
        note = f"the judge added nothing{to}: labels alone are as precise, but for chance"
        strata = "; labels alone use its verdicts too, by the plan's strata"
        notes.append(note + (strata if is_plan else ""))
    if any(part.field and part.figure not in main for part in judge.corrected):
        notes.append("error rates of the parts: --format json")
    yield Notes(tuple(notes))


def _rough(judges: Mapping[str, Reliability], *, several: bool) -> list[str]:
    """Reasons why intervals of the first table are rough; if all are, the commonest comes last."""
    notes = [
        (estimate.note, figure, name if several else "")
        for name, judge in judges.items()
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

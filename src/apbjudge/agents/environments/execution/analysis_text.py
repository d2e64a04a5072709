"""The text of a report on plans and their success."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....document.model import (
    Cell,
    Document,
    Heading,
    MetricCell,
    Notes,
    Number,
    Part,
    Table,
    missing,
)
from ....document.numbers import DASH, count, level_text, number, size
from ....document.text import WIDTH, render_text
from ....statistics.estimates import FEW_CLUSTERS, Estimate
from ....statistics.metric import Unit
from .analysis import (
    PLAN_CELLS,
    PLAN_METRICS,
    ModeDifference,
    ModelOutcomes,
    PlanMetrics,
    TasksNeeded,
)
from .judged_plans import JudgedPart, Unmatched
from .validate import ValidationReport

_FEW = 5
"""Plans of a kind below which intervals hold the true value less often; docs/coverage.md."""
_WITHIN = "within a task"
_NOT_NULL = "success where doing nothing fails"
_OUTCOMES = (("succeeded", "success"), ("failed", "failure"))
_BY_CODE = (
    "code proves faults, never their absence: plans without a provable fault may be wrong too, so "
    "their shares are the most that correct plans can have (≤), and those with a provable fault "
    "the least that wrong plans have (≥)"
)
_NULL = (
    "null agent: does nothing; it succeeds where its reward is 1, and there the success of others "
    "says nothing of a plan"
)
_READING = (
    (
        "within a task: the difference between plans of one task, over tasks with plans of both "
        "verdicts (Mantel and Haenszel); free of how hard tasks are, which moves the plain one. "
        "The AUC within a task is over pairs of a success and a failure of one task; its /n are "
        "tasks"
    ),
    "correct, failed: the fault is in the execution, or in the plan and the judge missed it",
    "wrong, succeeded: the judge was wrong, or the agent left its plan or was lucky",
    (
        "good verdicts that go with success do not show that better plans cause it: for that, "
        "plans have to be assigned at random"
    ),
)
_NOT_WITHIN = (
    "no task has plans of both verdicts, or of both outcomes: nothing is said within tasks"
)


def validation_text(report: ValidationReport) -> str:
    """The report as text."""
    return render_text(validation_document(report), width=WIDTH)


def validation_document(report: ValidationReport) -> Document:
    """Modes and their differences, then plans against success by judge, for each tested model."""
    parts: list[Part] = []
    notes: list[str] = []
    for group in report.groups:
        own = [*_group(group)]
        parts += own
        place = f"{group.environment}, {group.tested_model}"
        notes += (f"{place}: {line}" for line in missing(own, intervals=True))
        notes += (f"{place}: {line}" for line in _counted(group))
    if report.judged:
        parts += _judged(report.judged)
    measured = (
        f"value [{level_text(report.level)} interval] /n; rates in percent, their differences in "
        "points; intervals over tasks"
    )
    about = [
        measured,
        _NULL,
        *(_READING if report.judged else ()),
    ]
    return Document((*parts, Heading("Notes"), Notes((*about, *notes))))


def _group(group: ModelOutcomes) -> Iterator[Part]:
    yield Heading(f"{group.environment}, {group.tested_model}: {_tasks(group.n_tasks)}")
    yield _modes(group)
    if group.differences:
        yield _differences(group.differences)
        yield Notes(tuple(_power(each) for each in group.differences))
    if group.needed is not None:
        yield Notes((f"a second mode: {_needed(group.needed)}",))
    for judge in dict.fromkeys(of.judge for of in group.plans):
        yield from _judge(judge, [of for of in group.plans if of.judge == judge])


def _tasks(n: int) -> str:
    return f"{count(n)} {'task' if n == 1 else 'tasks'}"


def _episodes(n: int) -> str:
    return f"{count(n)} {'episode' if n == 1 else 'episodes'}"


# Modes --------------------------------------------------------------------------------------------


def _modes(group: ModelOutcomes) -> Table:
    titles = {"success": "success", "reward": "mean reward", "success_not_null": _NOT_NULL}
    rows: list[Sequence[Cell]] = [
        [
            mode.mode,
            count(mode.n_tasks),
            *(
                _cell(title, metric, metric.kind.unit, mode.mode)
                if (metric := mode.metrics.get(name)) is not None
                else DASH
                for name, title in titles.items()
            ),
        ]
        for mode in (*group.modes, group.null)
    ]
    return Table.of(("mode", "tasks", *titles.values()), rows, align="lrvvv")


def _differences(differences: Sequence[ModeDifference]) -> Table:
    rows: list[Sequence[Cell]] = [
        [
            (name := f"{row.first} - {row.second}"),
            _cell("difference of success", row.success.difference, "points", name),
            Number(row.success.p_value, "p"),
            Number(row.success.adjusted, "p"),
            f"{row.flips.first_only}, {row.flips.second_only}",
            _cell("difference of reward", row.reward.difference, "grade difference", name),
            _cell(f"difference of {_NOT_NULL}", row.success_not_null.difference, "points", name),
        ]
        for row in differences
    ]
    heads = (
        *("same tasks and trials", "success", "p", "Holm", "only first, only second"),
        *("reward", _NOT_NULL),
    )
    return Table.of(heads, rows, align="lvrrrvv")


def _power(difference: ModeDifference) -> str:
    smallest = difference.success.detectable
    seen = "" if smallest is None else f"with these tasks {_detectable(smallest)}; "
    return f"{difference.first} - {difference.second}: {seen}{_needed(difference.needed)}"


def _detectable(smallest: float) -> str:
    wanted = size(min(smallest, 1.0), "points")
    return f"a true difference of {wanted} is found with a chance of 80 %"


def _needed(tasks: TasksNeeded) -> str:
    wanted = f"a difference of {size(tasks.difference, 'points')}"
    if tasks.n_tasks is None:
        same = "outcomes" if tasks.discordant == 0 else "differences of tasks"
        why = f"all {same} are the same"
        if tasks.discordant is None and tasks.sd is None:
            why = "fewer than two tasks are in both modes"
        return f"tasks needed for {wanted}: unknown, since {why}"
    if tasks.discordant is not None:
        basis = f"{number(tasks.discordant, 'percent')} % of tasks succeed in one mode alone"
    else:
        spread = number(tasks.sd, "grade")
        basis = f"the mean differences of tasks have a standard deviation of {spread}"
    return f"{wanted} takes {_tasks(tasks.n_tasks)} in both modes if {basis}"


# Plans --------------------------------------------------------------------------------------------


def _judge(judge: str, plans: Sequence[PlanMetrics]) -> Iterator[Part]:
    by_rule = all(each.by_rule for each in plans)
    good, bad = ("no provable fault", "provable fault") if by_rule else ("correct", "wrong")
    yield Heading(f"Plans judged by {judge}", 3)
    places = [_place(each) for each in plans]
    words = {"good": good, "bad": bad, "within": _WITHIN}
    words["score"] = "grade" if plans[0].score == "grade" else good
    yield Table.of(
        ("plans of", *places),
        (
            (
                title,
                *(
                    MetricCell(estimate=each, unit=each.kind.unit, name=title, place=place)
                    for each, place in zip(row, places, strict=True)
                ),
            )
            for kind in PLAN_METRICS
            if (row := [each.metrics[kind.name] for each in plans])
            and (title := kind.heading.format(**words))
            if not title.endswith(_WITHIN) or any(each.value is not None for each in row)
        ),
        align="l" + "v" * len(places),
    )
    heads = [head for place in places for head in ("n", f"% of {place}")]
    yield Table.of(
        ("plans", *heads),
        (
            (
                kind.heading.format(**words),
                *(
                    entry
                    for each in plans
                    for entry in (
                        count(each.cells[kind.name]),
                        MetricCell(estimate=each.metrics[kind.name], unit="percent"),
                    )
                ),
            )
            for kind in PLAN_CELLS
        ),
        align="l" + "rv" * len(places),
    )
    lines = [
        f"{place}: {_detectable(each.detectable)}"
        for each, place in zip(plans, places, strict=True)
        if each.detectable is not None
    ]
    lines += (
        f"{place}: {few}: with fewer than {_FEW} plans of a kind intervals are rough"
        for each, place in zip(plans, places, strict=True)
        if (few := _few(each, good, bad))
    )
    if all(each.metrics[name].value is None for each in plans for name in ("within", "auc_within")):
        lines.append(_NOT_WITHIN)
    if by_rule:
        lines.append(_BY_CODE)
    elif n := max(each.n_by_rule for each in plans):
        lines.append(f"{count(n)} plans were judged by rule alone, which proves faults only")
    yield Notes(tuple(lines))


def _few(metrics: PlanMetrics, good: str, bad: str) -> str:
    """The kinds of plans that are few."""
    counts = {
        word: sum(n for name, n in metrics.cells.items() if part in name)
        for word, part in ((good, "correct"), (bad, "wrong"), *_OUTCOMES)
    }
    return ", ".join(f"{name} {n}" for name, n in counts.items() if 0 < n < _FEW)


def _place(metrics: PlanMetrics) -> str:
    mode = metrics.mode or "all modes"
    return mode if metrics.tasks == "all" else f"{mode}, where doing nothing fails"


# What was counted ---------------------------------------------------------------------------------


def _judged(parts: Sequence[tuple[str, JudgedPart]]) -> Iterator[Part]:
    yield Heading("Judged plans")
    rows = [
        (
            judge,
            ", ".join(part.modes),
            count(part.n_judgements),
            count(part.n_executions),
            count(part.n_matched),
            part.source,
        )
        for judge, part in parts
    ]
    heads = ("judge", "plans of", "rows", "episodes", "with a verdict", "judgements")
    yield Table.of(heads, rows, align="llrrrf")
    lines: list[str] = []
    for judge, part in parts:
        lines += (
            f"{judge}, {part.source}: {what}: {count(unmatched.n)} ({_named(unmatched)})"
            for unmatched, what in (
                (part.without_judgement, "episodes whose plan it lacks"),
                (part.without_verdict, "episodes whose plan has no verdict"),
                (part.not_executed, "judged plans that were not executed"),
            )
            if unmatched.n
        )
        lines += (f"{judge}, {part.source}: {note}" for note in part.notes)
    yield Notes(tuple(lines))


def _named(rows: Unmatched) -> str:
    return ", ".join(rows.first) + (", …" if rows.n > len(rows.first) else "")


def _counted(group: ModelOutcomes) -> Iterator[str]:
    for pair in group.differences:
        if pair.n_unpaired:
            left_out = _episodes(pair.n_unpaired)
            yield f"{pair.first} - {pair.second}: left out, without a partner: {left_out}"
    if any((rate := m.metrics["success"]).low is not None and rate.note for m in group.modes):
        yield f"fewer than {FEW_CLUSTERS} tasks: intervals are rough"
    if group.n_null_unknown:
        yield f"what doing nothing is worth is not known of {_tasks(group.n_null_unknown)}"
    if group.n_unjudged:
        yield f"no judge has a verdict on the plan: {_episodes(group.n_unjudged)}"


# Cells --------------------------------------------------------------------------------------------


def _cell(name: str, estimate: Estimate, unit: Unit, place: str) -> MetricCell:
    return MetricCell(
        estimate=estimate,
        unit=unit,
        name=name,
        place=place,
        denominator=unit in ("percent", "points"),
    )

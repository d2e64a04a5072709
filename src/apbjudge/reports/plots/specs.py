"""Specifications of figures: the values that each takes from tables, its texts and its chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import get_args

from ...document.numbers import level_text
from ...judge import metrics
from ...statistics.kinds import AGREEMENT, F1, JUDGE_CR, PRECISION, RECALL
from ...trajectories.planbench.diagnosis import REUSES, Failure
from ...trajectories.planbench.protocol import KINDS
from ...trajectories.slate.protocol import SUCCESS
from ..paper.definitions import CORRECTED_CR, LABELS_CR
from ..paper.table import PaperTable
from .axes import MplFigure
from .charts import (
    Marks,
    Names,
    bar_chart,
    cost_chart,
    count_chart,
    curve_chart,
    dot_chart,
    error_profiles,
    heat_map,
)
from .figure import Figure
from .marks import (
    Frame,
    Mark,
    as_share,
    by_value,
    distinct,
    extremes,
    frame,
    summed,
    table_marks,
)
from .sweeps import TOKENS, swept, token_chart, token_pairs
from .text import boxes_note, cleaned, in_words, slugs
from .uncertainty import uncertainty_figures


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spec:
    """A figure of some values in tables.

    Attributes:
        tables: Key of each table, with a section that replaces those of its columns; empty for
            the columns' own.
        columns: Regular expression of the keys of the columns.
        title: Its content, in one sentence.
        note: Notes in addition to intervals and numbers of rows, which every figure states.
        alt: Description of the picture; ``highlights``, a sentence on the values, are appended.
        select: Selects the values to draw from those of the columns.
        names: Orders tested models or judges; None for the order of their correctness in the table
            of all cases.
        intervals: True if the chart draws intervals.
    """

    key: str
    tables: Mapping[str, str]
    columns: str
    title: str
    alt: str
    draw: Callable[[Marks, Names], MplFigure]
    select: Callable[[list[Mark]], list[Mark]] = list
    highlights: Callable[[Marks], str] = extremes
    names: Callable[[Marks], Names] | None = None
    intervals: bool = True
    note: str = ""


# Parts of single figures -------------------------------------------------------------------------

BEHAVIOURS = {kind.name: kind.name[2:].capitalize() for kind in metrics.BEHAVIOURS.values()}
REFUSALS = {
    "refusal contradictory_constraints": "Contradictory constraints",
    "refusal information_missing": "Information missing",
    "refusal tool_removal": "Tool removed",
    "refusal visual_missing": "Visual input missing",
}
CORRECTED = {kind.name: kind.heading for kind in (CORRECTED_CR, LABELS_CR, JUDGE_CR)}
MEASURES = {kind.name: kind.heading for kind in (AGREEMENT, PRECISION, RECALL, F1)}
FAILURES = {name: name for name in sorted(get_args(Failure), key="Format Error".__eq__)}
"""Classes of failure; the last one, Format Error, says nothing about the trajectory's course."""
BLOCKERS = {f"{kind} blockers": f"{kind.capitalize()} failure" for kind in KINDS[:2]} | {
    "misleading blockers": "Misleading tool"
}
REUSED = {name: name.capitalize() for name in REUSES}


def _named_with_setting(marks: list[Mark]) -> list[Mark]:
    """Marks with their setting in the name, if there are several settings."""
    several = len({mark.at for mark in marks}) > 1
    return [replace(m, name=f"{m.name}, {m.at}", at="") if several else m for m in marks]


def _by_kind_of_blocker(marks: list[Mark]) -> list[Mark]:
    """Marks by the use of a value, with the kind of blocker in the name."""
    split = [(mark, *mark.column.split(", ")) for mark in _named_with_setting(marks)]
    return [replace(m, name=f"{m.name}, {kind}", column=reuse) for m, kind, reuse in split]


def _without_both_e2(marks: list[Mark]) -> list[Mark]:
    """The marks without protocols that have both E2-H and E2-S, which share a place."""
    both = {m.section for m in marks if m.column == "E2-H"}
    both &= {m.section for m in marks if m.column == "E2-S"}
    return [mark for mark in marks if mark.section not in both]


def _replacements(marks: Marks) -> Marks:
    return [mark for mark in marks if mark.column == "1 replacement"] or marks


def _cost_pairs(marks: list[Mark]) -> list[Mark]:
    """Cost and correctness in turn, for those that have both, the cheapest first."""
    costs = {mark.name: mark for mark in marks if mark.column == "C_all"}
    correct = {mark.name: mark for mark in marks if mark.column == "CR"}
    names = sorted(set(costs) & set(correct), key=lambda name: (costs[name].value, name))
    return [mark for name in names for mark in (costs[name], correct[name])]


def _cheapest_and_best(marks: Marks) -> str:
    cheapest = f"{in_words(marks[0].name)}, {marks[0].value:.2f}"
    return f"Cheapest plans: {cheapest}. {extremes(marks[1::2])}"


def _curve_spec(
    key: str,
    tables: Mapping[str, str],
    title: str,
    *,
    across: str,
    columns: str = "CR",
    up: str = "Correct plans, %",
    select: Callable[[list[Mark]], list[Mark]] = list,
    from_zero: bool = False,
) -> _Spec:
    return _Spec(
        key=key,
        tables=tables,
        columns=columns,
        title=title,
        alt="A line per tested model.",
        draw=partial(curve_chart, across=across, up=up, from_zero=from_zero),
        select=select,
        highlights=lambda marks: extremes(
            [replace(mark, at=f"{across.lower()} {mark.at}") for mark in marks]
        ),
    )


# The figures -------------------------------------------------------------------------------------

_OVERALL = {"overall": ""}
_LEVELS = {"extraneous-levels-holistic": "Holistic", "extraneous-levels-step-wise": "Step-wise"}
_CODES = r"E[1-6](-[HS])?|code .+"

_TRAJECTORY_BARS = (
    (
        "trajectories-failures",
        "planbench-failures",
        FAILURES,
        "Failed trajectories by class",
        "failed trajectories",
    ),
    (
        *("trajectories-blocked", "planbench-blocked", BLOCKERS),
        *("Blocked alternatives that are called, by kind", "calls of blockers"),
    ),
)

SPECS = (
    _Spec(
        key="error-profile",
        tables=_OVERALL,
        columns=_CODES,
        title="Share of plans with each error, by tested model and protocol",
        alt="A heat map of error rates, a row per tested model and a column per error code.",
        draw=heat_map,
        intervals=False,
    ),
    _Spec(
        key="error-multiples",
        tables=_OVERALL,
        columns=_CODES,
        title="Error profile of each tested model",
        alt="A panel per tested model with the rate of each error code.",
        draw=error_profiles,
        select=_without_both_e2,
    ),
    _Spec(
        key="cr",
        tables=_OVERALL,
        columns="CR",
        title="Correctness rate by tested model and protocol",
        alt="A row of points per tested model, the best first.",
        draw=partial(dot_chart, series="section", axis="Correct plans, %"),
        names=by_value,
    ),
    _curve_spec(
        "horizon",
        {"horizon": ""},
        "Step-wise correctness by the number of steps predicted",
        across="Steps predicted",
    ),
    _curve_spec(
        "stage",
        {"stage": ""},
        "Step-wise correctness by the stage of the trajectory",
        across="Stage",
    ),
    _curve_spec(
        "levels-used",
        _LEVELS,
        "Plans that use a distractor by the number of distractor tools",
        across="Distractor tools",
        columns="TC",
        up="Use a distractor, %",
        select=lambda marks: [as_share(mark) for mark in marks],
        from_zero=True,
    ),
    _Spec(
        key="levels-counts",
        tables=_LEVELS,
        columns="TC",
        title="Number of plans that use a distractor, by the number of distractor tools",
        alt="A bar per number of distractor tools, with its count; a dashed line is their mean.",
        draw=partial(count_chart, across="Distractor tools", up="Number of plans"),
        select=summed,
        highlights=lambda marks: extremes(
            [replace(mark, at=f"distractor tools {mark.at}") for mark in marks]
        ),
        intervals=False,
        note="dashed: mean of the bars",
    ),
    _curve_spec(
        "levels-correct",
        _LEVELS,
        "Correctness by the number of distractor tools",
        across="Distractor tools",
    ),
    _Spec(
        key="broken",
        tables=_OVERALL,
        columns="|".join(BEHAVIOURS),
        title="What tested models do after a broken tool",
        alt="A stacked bar per tested model with the shares of five behaviours.",
        draw=partial(bar_chart, titles=BEHAVIOURS),
        highlights=lambda marks: extremes(_replacements(marks), BEHAVIOURS),
        names=lambda marks: distinct([*by_value(_replacements(marks)), *by_value(marks)]),
        intervals=False,
    ),
    _Spec(
        key="refusal",
        tables=_OVERALL,
        columns="|".join(REFUSALS),
        title="Unsolvable cases that tested models refuse, by type",
        alt="A row of points per tested model.",
        draw=partial(dot_chart, series="column", titles=REFUSALS, axis="Refused, %"),
        highlights=partial(extremes, titles=REFUSALS),
    ),
    _Spec(
        key="cost",
        tables={"efficiency": ""},
        columns="C_all|CR",
        title="Mean cost of plans against their correctness",
        alt="A numbered point per tested model.",
        draw=cost_chart,
        select=_cost_pairs,
        highlights=_cheapest_and_best,
    ),
    _Spec(
        key="corrected",
        tables={"corrected": ""},
        columns="|".join(CORRECTED),
        title="Correctness rate by tested model, corrected with human labels",
        alt="A row of points per tested model.",
        draw=partial(dot_chart, series="column", titles=CORRECTED, axis="Correct plans, %"),
        highlights=partial(extremes, titles=CORRECTED),
    ),
    _Spec(
        key="judges",
        tables={"judges": ""},
        columns="|".join(MEASURES),
        title="Judges against human labels",
        alt="A row of points per judge.",
        draw=partial(
            dot_chart,
            series="column",
            titles=MEASURES,
            axis="Against human labels (%, F1 \u00d7 100)",
            full_range=False,
        ),
        # F1 is in percent here too
        highlights=lambda marks: extremes([replace(mark, unit="percent") for mark in marks]),
        names=by_value,
    ),
    _Spec(
        key="trajectories-success",
        tables={"outcome": "", "planbench": "", "slate": ""},
        columns="success|Accuracy|execution success",
        title="Successful trajectories by tested model and setting",
        alt="A row of points per tested model, one for each setting.",
        draw=partial(dot_chart, series="section", axis="Successful trajectories, %"),
        select=lambda marks: [replace(m, section=cleaned(m.at), at="") for m in marks],
        names=by_value,
    ),
    _Spec(
        key="trajectories-tokens",
        tables={"slate-costs": ""},
        columns=f"{SUCCESS}|{TOKENS}",
        title="Successful executions against the input tokens of a case",
        alt="A numbered point per tested model and setting.",
        draw=token_chart,
        select=token_pairs,
        highlights=lambda marks: extremes(marks[1::2]),
    ),
    _curve_spec(
        "trajectories-sweep",
        {"slate": ""},
        "Successful executions by the samples of a choice or the runs of a case",
        across="Samples or runs",
        columns=SUCCESS,
        up="Successful executions, %",
        select=swept,
    ),
    _curve_spec(
        "trajectories-steps",
        {"planbench-steps": ""},
        "Successful trajectories by the length of the shortest path",
        across="Calls on the shortest path",
        columns="Accuracy",
        up="Successful trajectories, %",
    ),
    *(
        _Spec(
            key=key,
            tables={table: ""},
            columns="|".join(titles),
            title=title,
            alt="A stacked bar per tested model and setting.",
            draw=partial(bar_chart, titles=titles, counted=counted),
            select=_named_with_setting,
            highlights=partial(extremes, titles=titles),
            intervals=False,
        )
        for key, table, titles, title, counted in _TRAJECTORY_BARS
    ),
    _Spec(
        key="trajectories-reuse",
        tables={"planbench-blocked": ""},
        columns=f"(?:{'|'.join(KINDS)}), (?:{'|'.join(REUSES)})",
        title="What trajectories do with the values of blocked alternatives",
        alt="A stacked bar per tested model, setting and kind of blocker.",
        draw=partial(bar_chart, titles=REUSED, counted="calls of the kind"),
        select=_by_kind_of_blocker,
        highlights=partial(extremes, titles=REUSED),
        intervals=False,
    ),
)


_BOUNDS = {
    "upper": "upper bounds: no provable fault",
    "lower": "lower bounds: proven faults",
}
_AXES = {"axis", "up"}
"""Names of the parameter for the label of the axis of values in charts."""


def paper_figures(
    tables: Sequence[PaperTable], uncertainty: Frame | None = None
) -> tuple[Figure, ...]:
    """Figures for a paper, drawn from its tables.

    Args:
        tables: The tables; those that no figure uses are ignored.
        uncertainty: Uncertainty of judges, a DataFrame with a row per judgement: ``judge``;
            ``p_correct``, the share of the judge's replies that said correct, 0 to 1, NaN if not
            measured; ``human_correct``, 0 or 1, NaN without label; ``is_correct``, 0 or 1, NaN
            without verdict; ``case_id``. None for no figures of uncertainty.

    Returns:
        The figures with data, grouped by judge. If there are several judges, the judge's name is
        part of the key.
    """
    by_key = {table.key: table for table in tables}
    judges = distinct(judge for table in tables for judge in table.judges if judge)
    measured = () if uncertainty is None else distinct(map(str, uncertainty["judge"]))
    everyone = distinct([*judges, *measured])
    suffixes = slugs(everyone) if len(everyone) > 1 else {}
    figures: list[Figure] = []
    for judge in ("", *everyone):  # a comparison of judges is of none
        own = [figure for spec in SPECS for figure in _figures(spec, by_key, judge)]
        if uncertainty is not None and judge in measured:
            own += uncertainty_figures(uncertainty, judge)
        for figure in own:
            key = f"{figure.key}-{suffixes[judge]}" if judge in suffixes else figure.key
            title = f"{figure.title} ({in_words(judge)})" if judge else figure.title
            note = "; ".join(filter(None, (figure.note, boxes_note(figure.texts))))
            figures.append(replace(figure, key=key, title=title, note=note))
    return tuple(figures)


def _figures(spec: _Spec, tables: Mapping[str, PaperTable], judge: str) -> list[Figure]:
    """The figure of a judge; empty if there is nothing to draw."""
    marks = spec.select(
        [
            replace(mark, section=section or mark.section)
            for key, section in spec.tables.items()
            if key in tables
            for mark in table_marks(tables[key], judge, spec.columns)
        ]
    )
    if not marks:
        return []
    if spec.names is not None:
        names = spec.names(marks)
    else:  # the same order in all figures
        overall = tables.get("overall")
        ranking = by_value(table_marks(overall, judge, "CR")) if overall is not None else ()
        own = distinct(mark.name for mark in marks)
        names = [*(n for n in ranking if n in own), *(n for n in own if n not in ranking)]
    levels = {mark.level for mark in marks if spec.intervals and mark.low is not None}
    intervals = f"{level_text(min(levels))} intervals" if levels else ""
    bound = _BOUNDS.get(marks[-1].bound, "")
    labels = {
        name: f"{text} ({marks[-1].bound} bound)"
        for name, text in getattr(spec.draw, "keywords", {}).items()
        if bound and name in _AXES
    }
    sizes = [mark.n for mark in marks]
    rows = f"n = {min(sizes)}" + (f" to {max(sizes)}" if min(sizes) < max(sizes) else "")
    return [
        Figure(
            key=spec.key,
            title=spec.title,
            note="; ".join(filter(None, (bound, intervals, rows, spec.note))),
            alt=f"{spec.alt} {spec.highlights(marks)}",
            data=frame([asdict(mark) for mark in marks]),
            draw=partial(spec.draw, marks, names, **labels),
        )
    ]

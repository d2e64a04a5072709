"""Which figures there are: what each draws of which table, in words and in marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..paper.table import Column, Table
from .bars import bar_sheet
from .costs import cost_sheet
from .curves import curve_sheet
from .dots import dot_sheet
from .heat import heat_sheet
from .marks import Mark, Wanted, as_share, by_value, data_of, distinct, extremes, marks_of
from .names import in_words
from .profiles import profile_sheet
from .seam import Frame, Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A figure before it is known whether there are others of the same kind.

    Attributes:
        key: What kind of figure it is.
        title: What it shows.
        alt: What is to be seen.
        data: What is drawn.
        draw: Draws it.
    """

    key: str
    title: str
    alt: str
    data: Frame
    draw: Callable[[], Sheet]


Tables = Mapping[str, Table]
BEHAVIOURS = {
    "Rp": "Replacement",
    "Al": "Alternative",
    "Rt": "Retry",
    "Rf": "Refusal",
    "Ot": "Other",
}
REFUSALS = {
    "Conf": "Contradictory constraints",
    "Info": "Information missing",
    "Tool": "Tool removed",
    "Vis": "Visual input missing",
}
MEASURES = {
    "agreement": "Agreement",
    "precision": "Precision",
    "recall": "Recall",
    "F1": "F1",
}
_LEVELS = {"extraneous-levels-holistic": "Holistic", "extraneous-levels-step-wise": "Step-wise"}
_CORRECT = "Correct plans, %"


def drafts(tables: Tables, judge: str) -> Iterator[Draft]:
    """All figures of one judge; one that has nothing to draw is left out.

    Args:
        tables: The tables by key.
        judge: The judge; the empty one for what compares judges.
    """
    for key, make in _MAKERS:
        for draft in make(tables, judge):
            yield replace(draft, key=draft.key or key)


def _of(tables: Tables, key: str, judge: str, wanted: Wanted) -> tuple[Mark, ...]:
    return marks_of(tables[key], judge, wanted) if key in tables else ()


def _keyed(keys: Sequence[str] | Mapping[str, str]) -> Wanted:
    def wanted(column: Column) -> bool:
        return column.key in keys

    return wanted


def _is_code(column: Column) -> bool:
    return re.fullmatch(r"E[1-6](-[HS])?", column.key) is not None


def _spoken(marks: Sequence[Mark]) -> str:
    """What whiskers are, where there are some, and how many rows a figure is of, for a title."""
    levels = {mark.level for mark in marks if mark.low is not None}
    whiskers = f", with {100 * min(levels):.4g} % intervals" if levels else ""
    return whiskers + _sizes(marks)


def _sizes(marks: Sequence[Mark]) -> str:
    """How many rows a drawn figure is of."""
    sizes = [mark.n for mark in marks]
    return f", n = {min(sizes)}" + (f" to {max(sizes)}" if min(sizes) < max(sizes) else "")


def _model_order(tables: Tables, judge: str, marks: Sequence[Mark]) -> tuple[str, ...]:
    """Tested models by their correctness, so that all figures of a table have one order."""
    known = by_value(_of(tables, "overall", judge, _keyed(["CR"])))
    drawn = distinct(mark.name for mark in marks)
    return tuple([name for name in known if name in drawn] + [n for n in drawn if n not in known])


def _profile(tables: Tables, judge: str) -> Iterator[Draft]:
    marks = _of(tables, "overall", judge, _is_code)
    if marks:
        yield Draft(
            key="",
            title="Share of plans with each error, by tested model and protocol" + _sizes(marks),
            alt="A heat map of error rates, a row per tested model and a column per error code. "
            + extremes(marks),
            data=data_of(marks),
            draw=partial(heat_sheet, marks, names=_model_order(tables, judge, marks)),
        )


def _multiples(tables: Tables, judge: str) -> Iterator[Draft]:
    found = _of(tables, "overall", judge, _is_code)
    both = {mark.section for mark in found if mark.column == "E2-H"}
    both &= {mark.section for mark in found if mark.column == "E2-S"}
    marks = tuple(mark for mark in found if mark.section not in both)
    if marks:
        yield Draft(
            key="",
            title=f"Error profile of each tested model{_spoken(marks)}",
            alt="A panel per tested model with the rate of each error code. " + extremes(marks),
            data=data_of(marks),
            draw=partial(profile_sheet, marks, names=_model_order(tables, judge, marks)),
        )


def _correctness(tables: Tables, judge: str) -> Iterator[Draft]:
    marks = _of(tables, "overall", judge, _keyed(["CR"]))
    if marks:
        yield Draft(
            key="",
            title=f"Correctness rate by tested model and protocol{_spoken(marks)}",
            alt="A row of points per tested model, the best first. " + extremes(marks),
            data=data_of(marks),
            draw=partial(
                dot_sheet,
                marks,
                names=by_value(marks),
                series=_section,
                titles={section: section for section in distinct(map(_section, marks))},
                axis=_CORRECT,
            ),
        )


def _section(mark: Mark) -> str:
    return mark.section


def _column(mark: Mark) -> str:
    return mark.column


def _curve(
    marks: Sequence[Mark],
    order: Sequence[str],
    *,
    key: str,
    title: str,
    across: str,
    up: str,
    whole: bool = False,
) -> Iterator[Draft]:
    if marks:
        yield Draft(
            key=key,
            title=title + _spoken(marks),
            alt="A line per tested model. "
            + extremes([replace(mark, at=f"{across.lower()} {mark.at}") for mark in marks]),
            data=data_of(marks),
            draw=partial(
                curve_sheet,
                marks,
                names=[name for name in order if name in {mark.name for mark in marks}],
                across=across,
                up=up,
                whole=whole,
            ),
        )


def _horizon(tables: Tables, judge: str) -> Iterator[Draft]:
    marks = _of(tables, "horizon", judge, _keyed(["CR"]))
    title = "Step-wise correctness by the number of steps predicted"
    order = _model_order(tables, judge, marks)
    yield from _curve(marks, order, key="", title=title, across="Steps predicted", up=_CORRECT)


def _stage(tables: Tables, judge: str) -> Iterator[Draft]:
    marks = _of(tables, "stage", judge, _keyed(["CR"]))
    title = "Step-wise correctness by the stage of the trajectory"
    order = _model_order(tables, judge, marks)
    yield from _curve(marks, order, key="", title=title, across="Stage", up=_CORRECT)


def _levels(tables: Tables, judge: str) -> Iterator[Draft]:
    used = [as_share(mark) for mark in _by_level(tables, judge, "ExtUse")]
    correct = _by_level(tables, judge, "CR")
    for marks, key, what, up in (
        (used, "levels-used", "Plans that use a distractor", "Use a distractor, %"),
        (correct, "levels-correct", "Correctness", _CORRECT),
    ):
        title = f"{what} by the number of distractor tools"
        order = _model_order(tables, judge, marks)
        across = "Distractor tools"
        whole = key == "levels-used"
        yield from _curve(marks, order, key=key, title=title, across=across, up=up, whole=whole)


def _by_level(tables: Tables, judge: str, column: str) -> list[Mark]:
    return [
        replace(mark, section=section)
        for key, section in _LEVELS.items()
        for mark in _of(tables, key, judge, _keyed([column]))
    ]


def _broken(tables: Tables, judge: str) -> Iterator[Draft]:
    marks = _of(tables, "overall", judge, _keyed(BEHAVIOURS))
    if marks:
        first = [mark for mark in marks if mark.column == "Rp"]
        yield Draft(
            key="",
            title="What tested models do after a broken tool" + _sizes(marks),
            alt="A stacked bar per tested model with the shares of five behaviours. "
            + (extremes(first, BEHAVIOURS) if first else ""),
            data=data_of(marks),
            draw=partial(bar_sheet, marks, names=by_value(first or marks), titles=BEHAVIOURS),
        )


def _refusal(tables: Tables, judge: str) -> Iterator[Draft]:
    marks = _of(tables, "overall", judge, _keyed(REFUSALS))
    if marks:
        yield Draft(
            key="",
            title=f"Unsolvable cases that tested models refuse, by type{_spoken(marks)}",
            alt="A row of points per tested model. " + extremes(marks, REFUSALS),
            data=data_of(marks),
            draw=partial(
                dot_sheet,
                marks,
                names=_model_order(tables, judge, marks),
                series=_column,
                titles=REFUSALS,
                axis="Refused, %",
            ),
        )


def _cost(tables: Tables, judge: str) -> Iterator[Draft]:
    found = _of(tables, "efficiency", judge, _keyed(["C_all", "CR"]))
    costs = {mark.name: mark for mark in found if mark.column == "C_all"}
    right = {mark.name: mark for mark in found if mark.column == "CR"}
    names = sorted(set(costs) & set(right), key=lambda name: (costs[name].value, name))
    pairs = {name: (costs[name], right[name]) for name in names}
    marks = [mark for pair in pairs.values() for mark in pair]
    if marks:
        yield Draft(
            key="",
            title=f"Mean cost of plans against their correctness{_spoken(marks)}",
            alt=_cost_in_words(list(pairs.values())),
            data=data_of(marks),
            draw=partial(cost_sheet, pairs),
        )


def _cost_in_words(pairs: Sequence[tuple[Mark, Mark]]) -> str:
    cheapest = f"Cheapest plans: {in_words(pairs[0][0].name)}, {pairs[0][0].value:.2f}"
    best = extremes([right for _, right in pairs])
    return f"A numbered point per tested model. {cheapest}. {best}"


def _judges(tables: Tables, judge: str) -> Iterator[Draft]:
    marks = _of(tables, "judges", judge, _keyed(MEASURES))
    if marks:
        yield Draft(
            key="",
            title=f"Judges against human labels{_spoken(marks)}",
            alt="A row of points per judge. "
            + extremes([replace(m, unit="percent") for m in marks]),
            data=data_of(marks),
            draw=partial(
                dot_sheet,
                marks,
                names=by_value(marks),
                series=_column,
                titles=MEASURES,
                axis="Against human labels (%, F1 \u00d7 100)",
                whole=False,
            ),
        )


Maker = Callable[[Tables, str], Iterator[Draft]]
_MAKERS: tuple[tuple[str, Maker], ...] = (
    ("error-profile", _profile),
    ("error-multiples", _multiples),
    ("cr", _correctness),
    ("horizon", _horizon),
    ("stage", _stage),
    ("levels", _levels),
    ("broken", _broken),
    ("refusal", _refusal),
    ("cost", _cost),
    ("judges", _judges),
)

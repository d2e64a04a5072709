"""Plain text tables of estimates, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..errors import visible
from ..statistics.comparison import PairedTest
from ..statistics.confusion import Confusion
from ..statistics.contrasts import Contrast
from ..statistics.intervals import Estimate

PERCENT = frozenset(
    "agreement precision recall specificity scored".split()
    + ["judge rate", "human rate", "judge CR", "human CR", "CR"]
    + ["Err-Type (human-incorrect)", "Err-Type (all)"]
    + [f"E{i}" for i in range(1, 7)]
)
"""Figures that are shown in percent; all others on their own scale, to three places."""


def number(value: float | None, *, percent: bool, signed: bool = False) -> str:
    """A figure as text: percent to one place, others to three.

    Args:
        value: The figure; None is shown as a dash.
        percent: Whether it is shown in percent.
        signed: Whether a plus stands before positive ones.
    """
    if value is None:
        return "-"
    text = (
        f"{value * 100:{'+' if signed else ''}.1f}"
        if percent
        else f"{value:{'+' if signed else ''}.3f}"
    )
    return text.replace("-0.0", "0.0", 1) if not float(text) and text.startswith("-") else text


def p_value(p: float | None) -> str:
    """A p-value to three places, never as zero."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def cell(estimate: Estimate, *, percent: bool, signed: bool = False) -> str:
    """A figure with its interval and denominator; the bare interval where there is no value."""
    ends = ""
    if estimate.low is not None and estimate.high is not None:
        low, high = (
            number(end, percent=percent, signed=signed) for end in (estimate.low, estimate.high)
        )
        ends = f"[{low}, {high}]"
    value = number(estimate.value, percent=percent, signed=signed)
    if estimate.value is None and ends:
        value = ""
    return f"{' '.join(filter(None, (value, ends)))} /{estimate.n_items}"


def named(name: str, estimate: Estimate, *, signed: bool = False) -> str:
    """The cell of a figure whose name says how it is shown."""
    return cell(estimate, percent=name in PERCENT, signed=signed or name.endswith("bias"))


def lined_up(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of text, as wide as their widest cell."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def down(columns: Mapping[str, Mapping[str, Estimate]], names: Iterable[str]) -> list[str]:
    """Figures down, what they are of across.

    Args:
        columns: By heading, the figures by name.
        names: The figures to show; one that no column has is left out. One without value is a
            dash, which ``reasons`` explains.
    """
    rows = [["", *map(visible, columns)]]
    for name in names:
        found = [figures.get(name) for figures in columns.values()]
        if any(found):
            rows.append([name, *("" if e is None else named(name, e) for e in found)])
    return lined_up(rows)


def is_missing(estimate: Estimate) -> bool:
    """Whether a figure lacks its value, or an interval that it could have, for a stated reason."""
    if not estimate.note or estimate.low is not None:
        return False
    return estimate.value is None or estimate.method != "hand-picked"


def reasons(notes: Iterable[tuple[str, str, str]]) -> list[str]:
    """What is to be said of figures, a line a reason, each with the figures that it is of.

    Args:
        notes: Reason, figure, and what the figure is of (a judge, a part of the rows); empty for
            the whole.

    Returns:
        Lines such as ``recall (E1, E3), F1: no item``; figures and reasons in order.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for reason, figure, place in notes:
        places = found.setdefault(reason, {}).setdefault(figure, [])
        if place not in places:
            places.append(place)
    return [f"{_listed(figures)}: {reason}" for reason, figures in found.items()]


def _listed(figures: Mapping[str, list[str]]) -> str:
    """Figures and what they are of; those of the same parts share the brackets."""
    together: dict[tuple[str, ...], list[str]] = {}
    for figure, places in figures.items():
        together.setdefault(tuple(places), []).append(figure)
    return ", ".join(
        ", ".join(names)
        if places == ("",)
        else f"{', '.join(names)} ({', '.join(visible(place) or 'all' for place in places)})"
        for places, names in together.items()
    )


def across(rows: Mapping[str, Mapping[str, Estimate]], names: Sequence[str]) -> list[str]:
    """What figures are of down, the figures across."""
    body = [
        [
            visible(heading),
            *(named(name, figures[name]) if name in figures else "" for name in names),
        ]
        for heading, figures in rows.items()
    ]
    return lined_up([["", *names], *body])


def matrix(confusion: Confusion) -> list[str]:
    """A confusion matrix, the judge's answers down."""
    rows = [["judge \\ human", *confusion.second]]
    for name, counts in zip(confusion.first, confusion.counts, strict=True):
        rows.append(
            [name, *(f"{count:g}" if count % 1 == 0 else f"{count:.1f}" for count in counts)]
        )
    return lined_up(rows)


def difference(found: Contrast | PairedTest, *, percent: bool) -> str:
    """A difference with its interval and, where it may be none, what would have been seen."""
    text = cell(found.estimate, percent=percent, signed=True)
    low, high = found.estimate.low, found.estimate.high
    if low is not None and high is not None and low <= 0 <= high and found.detectable is not None:
        unit = " points" if percent else ""
        text += f"; none seen, {number(found.detectable, percent=percent)}{unit} would have been"
    return text

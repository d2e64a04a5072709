"""Tables of reliability measures, and why figures are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..statistics.confusion import Confusion
from ..statistics.differences import Contrast, PairedTest
from ..statistics.estimates import Estimate
from .document import Cell, Figure, Table
from .numbers import Unit, count, figure, signed, size


def _figures(figures: Iterable[tuple[str, Estimate | None]]) -> list[Cell]:
    return ["" if e is None else Figure.named(name, e) for name, e in figures]


def down(columns: Mapping[str, Mapping[str, Estimate]], names: Iterable[str]) -> Table:
    """Measures down, what they are of across.

    Args:
        columns: By heading, the figures by name.
        names: The measures; one that no column has is left out.
    """
    rows = [
        [name, *_figures((name, figures.get(name)) for figures in columns.values())]
        for name in names
        if any(name in figures for figures in columns.values())
    ]
    return Table.of(["", *columns], rows)


def across(rows: Mapping[str, Mapping[str, Estimate]], names: Sequence[str]) -> Table:
    """What measures are of down, the measures across."""
    body = [
        [heading, *_figures((name, figures.get(name)) for name in names)]
        for heading, figures in rows.items()
    ]
    return Table.of(["", *names], body)


def matrix(confusion: Confusion) -> Table:
    """A confusion matrix, the judge's answers down."""
    rows = [
        [name, *map(count, counts)]
        for name, counts in zip(confusion.first, confusion.counts, strict=True)
    ]
    return Table.of(["judge \\ human", *confusion.second], rows)


def difference(found: Contrast | PairedTest, unit: Unit) -> str:
    """A difference with its interval and, where it may be none, the smallest detectable one.

    Args:
        found: The difference.
        unit: Of the two figures.
    """
    text = figure(found.estimate, signed(unit))
    low, high = found.estimate.low, found.estimate.high
    if low is not None and high is not None and low <= 0 <= high and found.detectable is not None:
        text += f"; no difference seen, detectable: {size(found.detectable, unit)}"
    return text


def is_missing(estimate: Estimate) -> bool:
    """Whether a figure lacks its value, or an interval that it could have, for a stated reason."""
    if not estimate.note or estimate.low is not None:
        return False
    return estimate.value is None or estimate.method != "hand-picked"


def reasons(notes: Iterable[tuple[str, str, str]]) -> list[str]:
    """Reasons for missing or rough figures, a line each, with the figures concerned.

    Args:
        notes: Reason, figure, and what the figure is of (a judge, a part of the rows); empty for
            the whole.

    Returns:
        Lines such as ``recall (E1, E3), F1: no item``; figures and reasons in order.
    """
    found: dict[str, dict[str, dict[str, None]]] = {}
    for reason, name, place in notes:
        found.setdefault(reason, {}).setdefault(name, {})[place] = None
    lines: list[str] = []
    for reason, figures in found.items():
        together: dict[tuple[str, ...], list[str]] = {}  # figures of the same parts share brackets
        for name, places in figures.items():
            together.setdefault(tuple(places), []).append(name)
        listed = (
            ", ".join(names)
            + ("" if places == ("",) else f" ({', '.join(place or 'all' for place in places)})")
            for places, names in together.items()
        )
        lines.append(f"{', '.join(listed)}: {reason}")
    return lines

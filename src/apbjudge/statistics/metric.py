"""A metric: an estimate with its meaning, stated where it is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .estimates import Estimate

if TYPE_CHECKING:
    from pandas import DataFrame

Unit = Literal["percent", "points", "grade", "grade difference", "cost", "dollars", "count", "p"]
"""Notation of a number.

``percent``: a rate of 0 to 1, times 100; ``points``: a difference of rates, times 100 and signed;
``grade``: a grade or coefficient on its own scale; ``grade difference``: a signed difference of
    these;
``cost``: in the cases' unit; ``dollars``: US dollars; ``count``: a whole number; ``p``: a p-value,
never shown as zero.
"""
Direction = Literal["higher", "lower"]
Bounds = tuple[float, float]
RATE: Bounds = (0.0, 1.0)
SIGNED: Bounds = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class MetricKind:
    """Meaning of a metric, apart from its value.

    Attributes:
        name: Name in summaries, gates, JSON and frames.
        unit: Unit in which its value is written.
        better: The direction that is better; None if neither is.
        bounds: Least and greatest possible value; None where there are none.
        meaning: Short explanation; empty if the name says it.
        title: Title of its column in tables; if empty, the name.
    """

    name: str
    unit: Unit = "percent"
    better: Direction | None = None
    bounds: Bounds | None = None
    meaning: str = ""
    title: str = ""

    @property
    def heading(self) -> str:
        """The title of its column."""
        return self.title or self.name

    def of(self, estimate: Estimate) -> Metric:
        """The metric with this estimate."""
        return Metric(kind=self, **values_of(estimate))

    def renamed(self, name: str, **changes: Any) -> MetricKind:
        """A copy under another name, without its title; perhaps with other fields."""
        return replace(self, **{"name": name, "title": "", **changes})


def kinds_among(values: Iterable[object]) -> dict[str, MetricKind]:
    """The kinds of metrics among some values, such as a module's names, by name."""
    return {each.name: each for each in values if isinstance(each, MetricKind)}


def good(name: str, meaning: str = "", title: str = "") -> MetricKind:
    """A share for which higher is better."""
    return MetricKind(name, "percent", "higher", RATE, meaning, title)


def bad(name: str, meaning: str = "", title: str = "") -> MetricKind:
    """A share for which lower is better."""
    return MetricKind(name, "percent", "lower", RATE, meaning, title)


def neutral(name: str, meaning: str = "", title: str = "") -> MetricKind:
    """A share for which neither direction is better."""
    return MetricKind(name, "percent", None, RATE, meaning, title)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric(Estimate):
    """An estimate with its metric's meaning.

    Attributes:
        kind: The metric: name, unit, better direction and bounds.
    """

    kind: MetricKind

    @property
    def name(self) -> str:
        """The name of its kind."""
        return self.kind.name

    def renamed(self, name: str, **changes: Any) -> Metric:
        """A copy under another name, perhaps with other fields of its kind."""
        return replace(self, kind=self.kind.renamed(name, **changes))


Metrics = dict[str, Metric]
"""Metrics by name."""


def by_name(metrics: Iterable[Metric]) -> Metrics:
    """Metrics by their names."""
    return {metric.name: metric for metric in metrics}


def to_frame(metrics: Iterable[tuple[Mapping[str, Any], Metric]]) -> DataFrame:
    """Metrics as a pandas frame, one row each.

    Args:
        metrics: Pairs of the columns that identify a metric's subject, and the metric.

    Returns:
        The identifying columns, ``metric`` (its name), the fields of an ``Estimate``, ``unit`` and
        ``better``; missing numbers are NaN.
    """
    import pandas

    rows: list[dict[str, Any]] = [{**of, **record(metric)} for of, metric in metrics]
    names = rows[0] if rows else ()
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
    for name in ("value", "low", "high"):
        columns[name] = np.array([row[name] for row in rows], dtype=float)
    return pandas.DataFrame(columns)


def values_of(estimate: Estimate) -> dict[str, Any]:
    """The fields of an estimate by name, without the identifying columns."""
    return {name: getattr(estimate, name) for name in _OF_ESTIMATE}


_OF_ESTIMATE = tuple(each.name for each in fields(Estimate))


def record(metric: Metric) -> dict[str, Any]:
    """A metric as a flat record: a line of a CSV file, or a row of a frame."""
    kind = metric.kind
    return {"metric": kind.name, **values_of(metric), "unit": kind.unit, "better": kind.better}

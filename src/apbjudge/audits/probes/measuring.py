"""Measures from judgements: rates, and shifts against a parent, by case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ...statistics.differences import paired_test
from ...statistics.estimates import Estimate
from ...statistics.proportions import bounded, share
from ..heard import Observed, Pair, sample_of
from ..verdicts import Figure, Measure, Side, Unit, measured

Values = Sequence[float] | Sequence[bool]


def rate(
    name: str, said: Sequence[Observed], hits: Values, side: Side, limit: float, *, level: float
) -> Measure:
    """The share of judgements that hit, held against a limit.

    Args:
        name: Name of the measure.
        said: Judgements, scored.
        hits: One for each: whether it hits, or a share between 0 and 1.
        side: Side on which a judge in order is.
        limit: The limit, 0 to 1.
        level: From ``level_for``.
    """
    estimate = share_of(said, hits, level=level)
    return measured(name, estimate, side, limit, parts=_parts(said, hits))


def shift(
    name: str, pairs: Sequence[Pair], changes: Values, side: Side, limit: float, *, level: float
) -> Measure:
    """The mean change against the parent, held against a limit.

    Args:
        name: Name of the measure.
        pairs: Judgements with those of their parents.
        changes: One for each, -1 to 1.
        side: Side on which a judge in order is.
        limit: The limit.
        level: From ``level_for``.
    """
    return paired_shift(name, [child for child, _ in pairs], changes, side, limit, level=level)


def paired_shift(
    name: str, said: Sequence[Observed], changes: Values, side: Side, limit: float, *, level: float
) -> Measure:
    """The mean change of judgements against others of their case, held against a limit.

    Args:
        name: Name of the measure.
        said: The judgements.
        changes: One for each, -1 to 1.
        side: Side on which a judge in order is.
        limit: The limit.
        level: From ``level_for``.
    """
    estimate = shift_of(said, changes, level=level)
    parts = _parts(said, changes)
    return measured(name, estimate, side, limit, parts=parts, unit="points")


def share_of(said: Sequence[Observed], hits: Values, *, level: float) -> Estimate:
    """A share with its interval; rows of one case stay together."""
    values = np.asarray(hits, dtype=float)
    return share(values, np.ones(len(values)), sample_of(said), level=level)


def shift_of(said: Sequence[Observed], changes: Values, *, level: float) -> Estimate:
    """A mean change between -1 and 1 with its interval; rows of one case stay together."""
    return paired_test(np.asarray(changes, dtype=float), sample_of(said), level=level).estimate


def mean_figure(
    name: str,
    said: Sequence[Observed],
    values: Sequence[float],
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    unit: Unit = "plain",
) -> Figure:
    """A bounded mean that decides nothing."""
    estimate = bounded(np.asarray(values, dtype=float), sample_of(said), bounds=bounds, level=level)
    return Figure(name=name, estimate=estimate, unit=unit)


def _parts(said: Sequence[Observed], values: Values) -> dict[str, tuple[float, float]]:
    above: defaultdict[str, float] = defaultdict(float)
    below: defaultdict[str, float] = defaultdict(float)
    for one, value in zip(said, values, strict=True):
        above[one.variant.case_id] += float(value)
        below[one.variant.case_id] += 1.0
    return {case: (above[case], below[case]) for case in below}

"""What several tests of statistics build and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from apbjudge.statistics.estimates import Array, Estimate, Ids
from apbjudge.statistics.ratings import Ratings

Column = Sequence[int] | Ids


def ratings(
    correct: Column,
    grade: Column | None = None,
    flags: Column | None = None,
    known: int | Column | None = None,
) -> Ratings:
    """One rater; no grades, and no flag is known, where they are left out."""
    n = len(correct)
    if known is None:
        known = 0 if flags is None else 63
    return Ratings(
        correct=np.asarray(correct, dtype=np.int8),
        grade=np.full(n, -1, np.int16) if grade is None else np.asarray(grade, dtype=np.int16),
        flags=np.zeros(n, np.uint8) if flags is None else np.asarray(flags, dtype=np.uint8),
        known=np.broadcast_to(np.asarray(known, dtype=np.uint8), n).copy(),
    )


def ends(estimate: Estimate) -> tuple[float, float]:
    """Both ends of an interval that has to be there."""
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def width(estimate: Estimate) -> float:
    low, high = ends(estimate)
    return high - low


def square(measure: Callable[[Array], Array], k: int = 2) -> Callable[[Array], Array]:
    """A measure of tables as a function of their cells in a row."""
    return lambda counts: measure(counts.reshape(*counts.shape[:-1], k, k))

"""Numbers of labels that each measure of a judge needs: from existing labels, or anticipated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, sqrt
from statistics import NormalDist

from ..statistics.differences import detectable_difference
from ..statistics.estimates import CONFIDENCE_LEVEL, Estimate
from ..statistics.measures import PAPER
from ..statistics.sample_size import half_width_of, half_width_of_rate, n_for_rate, needed
from .results import LabelNeed

CORRECTED = "corrected CR"
MEASURES = (*(kind.name for kind in PAPER), CORRECTED)
FEW_LABELS = 30

_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE_LEVEL / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Expectations for a judge before there are labels.

    Attributes:
        disagreement: Share of verdicts with which humans would disagree, above 0 and at most 0.5,
            assumed to be equal for both verdicts.
        judged_correct: Share of the rows that the judge considers correct.
        n_rows: Number of rows with a verdict.
    """

    disagreement: float
    judged_correct: float
    n_rows: int


def needs(
    expected: Expected,
    labelled: Mapping[str, Estimate],
    *,
    half_width: float,
    n_now: int,
    n_then: int,
) -> tuple[LabelNeed, ...]:
    """The labels that each measure needs.

    Args:
        expected: Used if the labels give a measure no interval.
        labelled: Estimates from existing labels, by name.
        half_width: Half the width that each interval may have, above 0 and below 0.5.
        n_now: Number of existing labels.
        n_then: Number of labels after the plan.
    """
    known = {name: e for name, e in labelled.items() if e.low is not None}
    guesses = dict(_guesses(expected))
    result = [
        _measured(name, known[name], half_width, n_now, n_then)
        if name in known
        else _anticipated(name, guesses.get(name), half_width, n_then)
        for name in MEASURES
    ]
    return tuple(_within(need, expected.n_rows) for need in result)


def _measured(
    name: str, estimate: Estimate, half_width: float, n_now: int, n_then: int
) -> LabelNeed:
    now = half_width_of(estimate) or 0.0
    then = now * sqrt(n_now / n_then)
    few = f"from {n_now} labels, fewer than {FEW_LABELS}: a rough guess"
    return LabelNeed(
        measure=name,
        basis="labels",
        half_width_now=now,
        detectable_now=_detectable(now),
        half_width_then=then,
        detectable_then=_detectable(then),
        n_needed=needed(estimate, half_width, n_now=n_now),
        note=few if n_now < FEW_LABELS else estimate.note,
    )


def _within(need: LabelNeed, n_rows: int) -> LabelNeed:
    if need.n_needed is None or need.n_needed <= n_rows or need.note:
        return need
    return replace(need, note=f"more labels than there are rows ({n_rows})")


# Before there are labels -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _NeededRate:
    """A rate over some of the labels.

    Attributes:
        p: The rate.
        share: Share of the labels that it is about.
        slope: Change of the measure per change of the rate.
    """

    p: float
    share: float
    slope: float = 1.0

    def half_width(self, n: int) -> float:
        return self.slope * half_width_of_rate(self.p, n * self.share)

    def needed(self, half_width: float) -> int | None:
        return ceil(n_for_rate(self.p, half_width / self.slope) / self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mean:
    """A mean, or a corrected one; part of its variance does not shrink with more labels.

    Attributes:
        variance: Variance of one label.
        floor: Variance that does not shrink with more labels.
        ceiling: Variance of one label without the judge's help.
    """

    variance: float
    floor: float = 0.0
    ceiling: float = float("inf")

    def half_width(self, n: int) -> float:
        return _Z * sqrt(min(self.variance / n + self.floor, self.ceiling / n))

    def needed(self, half_width: float) -> int | None:
        target = (half_width / _Z) ** 2
        ways = [self.ceiling / target]
        if target > self.floor:
            ways.append(self.variance / (target - self.floor))
        return max(1, ceil(min(ways)))


def _guesses(expected: Expected) -> Iterator[tuple[str, _NeededRate | _Mean]]:
    """The measures under the expected rate of disagreement.

    Assumes that the grade is off by half the scale if the verdict is wrong, and that the flags of
    an item are all right or all wrong, which overestimates the number of labels.
    """
    d, s = expected.disagreement, expected.judged_correct
    spread = s * (1 - s)
    yield "agreement", _NeededRate(p=1 - d, share=1)
    yield "grade MAE", _Mean(variance=d * (1 - d) / 4)
    if s > 0:
        yield "precision", _NeededRate(p=1 - d, share=s)
        yield "recall", _NeededRate(p=1 - d, share=s)
        jaccard = (1 - d) / (1 + d)
        yield "F1", _NeededRate(p=jaccard, share=s * (1 + d), slope=2 / (1 + jaccard) ** 2)
    if s < 1:
        yield "Err-Type (human-incorrect)", _NeededRate(p=1 - d, share=1 - s)
    yield (
        CORRECTED,
        _Mean(
            variance=d,
            floor=spread / max(1, expected.n_rows),
            ceiling=max(spread, d * (1 - d)),
        ),
    )


def _anticipated(
    name: str, guess: _NeededRate | _Mean | None, half_width: float, n_then: int
) -> LabelNeed:
    then = None if guess is None else guess.half_width(n_then)
    return LabelNeed(
        measure=name,
        basis="anticipated",
        half_width_now=None,
        detectable_now=None,
        half_width_then=then,
        detectable_then=None if then is None else _detectable(then),
        n_needed=None if guess is None else guess.needed(half_width),
        note="the judge's verdicts are all the same" if guess is None else "",
    )


def _detectable(half_width: float) -> float:
    """Smallest detectable true difference between two such results on different items."""
    return detectable_difference(sqrt(2) * half_width / _Z)

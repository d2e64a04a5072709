"""What unscored items could change at most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, Protocol

from .intervals import Estimate
from .ratings import Filling, Ratings, filled
from .results import Calibration


class Against(Protocol):
    """Calibrates judges against the same humans."""

    def whole(self, judge: Ratings, unscored: Literal["exclude", "wrong"]) -> Calibration:
        """All there is to say."""
        ...

    def bare(self, judge: Ratings) -> Calibration:
        """No measures: how much was scored, and the tables."""
        ...

    def alone(self, judge: Ratings) -> Calibration:
        """Measures that depend on what the judge says, whether or not it is right."""
        ...


_EXTREMES: Mapping[str, tuple[Filling, Filling]] = {
    "judge CR": ("lowest", "highest"),
    "judge grade": ("lowest", "highest"),
    "grade bias": ("lowest", "highest"),
    "grade MAE": ("best", "worst"),
    "judge rate": ("highest", "lowest"),
}
"""How unscored items are filled for the least and the greatest value; else worst and best."""


def within_bounds(
    judge: Ratings, human: Ratings, levels: tuple[float, ...], against: Against
) -> Calibration:
    """Calibrates with unscored items filled in the worst and in the best way.

    After Manski 1989 (doi:10.2307/145818): nothing is assumed of what is missing. Coefficients
    beyond chance are taken at the same two fillings, which are their extremes wherever a judge is
    better than chance.

    Args:
        judge: The judge, unscored items included.
        human: The humans on the same items.
        levels: Grades behind the indices.
        against: Calibrates a judge against these humans.

    Returns:
        The calibration whose intervals reach from the low end of the least value to the high end
        of the greatest; without unscored items, the plain one.
    """
    bare = against.bare(judge)
    if bare.scored.value in {None, 1.0}:
        return replace(against.whole(judge, "wrong"), policy="bounds")
    ends = _ends(lambda how: filled(judge, human, levels, how), against)
    worst = ends["worst"]

    def between(name: str, of: Callable[[Calibration], Mapping[str, Estimate]]) -> Estimate:
        low, high = _EXTREMES.get(name, ("worst", "best"))
        return _union(of(ends[low])[name], of(ends[high])[name])

    return replace(
        bare,
        policy="bounds",
        measures={name: between(name, lambda c: c.measures) for name in worst.measures},
        codes={
            code: {name: between(name, lambda c, code=code: c.codes[code]) for name in of}
            for code, of in worst.codes.items()
        },
    )


def _ends(fill: Callable[[Filling], Ratings], against: Against) -> dict[Filling, Calibration]:
    """Calibrations of what the judge would have said at the least and at the greatest."""
    return {
        "worst": against.whole(fill("worst"), "exclude"),
        "best": against.whole(fill("best"), "exclude"),
        "lowest": against.alone(fill("lowest")),
        "highest": against.alone(fill("highest")),
    }


def _union(low: Estimate, high: Estimate) -> Estimate:
    """From the low end of the one to the high end of the other."""
    if low.value is None or high.value is None:
        without = low if low.value is None else high
        return replace(without, value=None, low=None, high=None, method="none")
    if low.value > high.value:
        low, high = high, low
    ends = (round(end.value or 0.0, 4) + 0.0 for end in (low, high))
    note = f"{' to '.join(f'{end:.4f}' for end in ends)}, as unscored items would have come out"
    without = [end for end in (low, high) if end.low is None]
    return replace(
        low,
        value=None,
        low=None if without else low.low,
        high=None if without else high.high,
        method="bounds",
        note=f"{note}; no interval: {without[0].note}" if without else note,
    )

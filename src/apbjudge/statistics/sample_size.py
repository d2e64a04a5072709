"""Numbers of labels that are needed for a precision or a difference."""

from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist

from .differences import POWER
from .estimates import CONFIDENCE_LEVEL, Estimate


def n_for_rate(
    p: float, half_width: float, *, level: float = CONFIDENCE_LEVEL, design_effect: float = 1.0
) -> int:
    """Number of labels for a rate of the wanted precision, by the width of Wilson's interval.

    Args:
        p: The expected rate, 0 to 1; 0.5 needs most.
        half_width: Greatest half-width of the interval, above 0 and below 0.5.
        level: Confidence level.
        design_effect: Variance under the actual sampling over that of independent items, above
            0: about 1 + (items per cluster - 1) times their correlation.

    Returns:
        The smallest sufficient number, at least 1.

    Raises:
        ValueError: If an argument is out of range.

    When not to use it: for an expected rate near 0 or 1 that is mere hope.
    """
    _check(half_width, level, design_effect=design_effect)
    if not 0 <= p <= 1:
        raise ValueError(f"n_for_rate: expected p from 0 to 1, got {p}")
    z2, spread = _z(level) ** 2, p * (1 - p)
    root = sqrt(spread**2 + half_width**2 * (1 - 4 * spread))
    return _rounded_up(design_effect * (z2 * (spread + root) / (2 * half_width**2) - z2))


def half_width_of_rate(p: float, n: float, *, level: float = CONFIDENCE_LEVEL) -> float:
    """Half the width of Wilson's interval of a rate: the inverse of ``n_for_rate``."""
    if not 0 <= p <= 1 or not n > 0:
        raise ValueError(f"half_width_of_rate: expected 0 <= p <= 1 and n > 0, got {p=} {n=}")
    z = _z(level)
    return z * sqrt(p * (1 - p) * n + z * z / 4) / (n + z * z)


def n_for_difference(
    difference: float,
    *,
    discordant: float | None = None,
    sd: float | None = None,
    level: float = CONFIDENCE_LEVEL,
    power: float = POWER,
    design_effect: float = 1.0,
) -> int:
    """Number of items that detect a paired difference of this size.

    With ``discordant``: McNemar's test of two rates on the same items (Connor 1987,
    doi:10.2307/2531961; Miettinen 1968). With ``sd``: the test of a mean of differences, by the
    normal approximation.

    Args:
        difference: The true difference to detect, not 0; its sign does not matter.
        discordant: Share of items that only one of the two gets right, at least the difference.
        sd: Standard deviation of one item's difference, above 0. Give one of the two.
        level: One minus the two-sided size of the test.
        power: Chance of detecting the difference, above 0.5 and below 1.
        design_effect: As in ``n_for_rate``.

    Returns:
        The smallest number, at least 1.

    Raises:
        ValueError: If an argument is out of range, or not exactly one of ``discordant`` and ``sd``
            is given.

    When not to use it: with fewer than about 10 discordant items expected, where exact power is
    lower.
    """
    size = abs(difference)
    _check(size, level, design_effect=design_effect, power=power)
    if (discordant is None) == (sd is None):
        raise ValueError("expected one of discordant and sd")
    z, missed = _z(level), NormalDist().inv_cdf(power)
    if sd is not None:
        if not sd > 0:
            raise ValueError(f"sd: expected a number above 0, got {sd}")
        return _rounded_up(design_effect * ((z + missed) * sd / size) ** 2)
    if discordant is None or not 0 < discordant <= 1:
        raise ValueError(f"discordant: expected a share above 0, got {discordant}")
    if size > discordant:
        raise ValueError(f"n_for_difference: {size=} exceeds the discordant share {discordant}")
    wanted = (z * sqrt(discordant) + missed * sqrt(discordant - size**2)) / size
    return _rounded_up(design_effect * wanted**2)


def needed(estimate: Estimate, half_width: float, *, n_now: int | None = None) -> int | None:
    """Number of labels for a measure of the wanted precision, from its present precision.

    The width of an interval is proportional to one over the root of the number of labels.

    Args:
        estimate: The measure on the present labels.
        half_width: Greatest half-width of the interval, above 0.
        n_now: Present number of labels; by default the estimate's own number of rows. (Recall, for
            example, uses only some of the labels.)

    Returns:
        The number of labels in all, at least 1; None where the estimate has no interval.

    When not to use it: with fewer than about 30 labels the answer is a rough guess.
    """
    _check(half_width, CONFIDENCE_LEVEL)
    now = half_width_of(estimate)
    if now is None:
        return None
    return _rounded_up((estimate.n_items if n_now is None else n_now) * (now / half_width) ** 2)


def half_width_of(estimate: Estimate) -> float | None:
    """Half the width of an estimate's interval; None where it has none."""
    if estimate.low is None or estimate.high is None:
        return None
    return (estimate.high - estimate.low) / 2


def _check(size: float, level: float, *, design_effect: float = 1.0, power: float = POWER) -> None:
    if not size > 0 or not 0 < level < 1 or not design_effect > 0 or not 0.5 < power < 1:
        got = f"got {size=} {level=} {design_effect=} {power=}"
        raise ValueError(f"expected size > 0, 0 < level < 1, effect > 0, 0.5 < power < 1, {got}")


def _z(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def _rounded_up(n: float) -> int:
    """Rounded up, ignoring rounding errors of a whole number."""
    return max(1, ceil(n - 1e-9 * max(1.0, n)))

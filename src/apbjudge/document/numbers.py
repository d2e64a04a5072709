"""Numbers as text: the only place where a number of a report becomes text.

A figure is ``value [low, high] /n``; what is missing is ``DASH``. Zero has no sign.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..statistics.metric import Unit
from ..statistics.proportions import wilson

DASH = "–"
"""Stands for a missing value, everywhere."""

_FORMS: Mapping[Unit, tuple[int, int, bool]] = {
    "percent": (100, 1, False),
    "points": (100, 1, True),
    "grade": (1, 3, False),
    "grade difference": (1, 3, True),
    "cost": (1, 2, False),
    "dollars": (1, 4, False),
    "count": (1, 0, False),
    "p": (1, 3, False),
}
"""Factor, decimal places, whether a plus is written."""


def signed(unit: Unit) -> Unit:
    """The unit of a difference of two figures in ``unit``."""
    return "points" if unit == "percent" else "grade difference" if unit == "grade" else unit


def number(value: float | None, unit: Unit) -> str:
    """A figure in its unit, without a unit sign; ``DASH`` for None."""
    if value is None:
        return DASH
    if unit == "p" and value < 0.001:
        return "<0.001"
    times, places, plus = _FORMS[unit]
    rounded = round(value * times, places) + 0.0
    return f"{rounded:{'+' if plus and rounded else ''}.{places}f}"


def amount(value: float | None, unit: Unit) -> str:
    """A number with its unit sign, such as ``70.0 %`` or ``+2.5 points``; ``DASH`` for None."""
    sign = {"percent": " %", "points": " points"}.get(unit, "") if value is not None else ""
    return number(value, unit) + sign


def size(value: float, unit: Unit) -> str:
    """The size of a difference, 0 or more, with ``points`` behind a difference of rates."""
    unit = "percent" if unit == "points" else "grade" if unit == "grade difference" else unit
    text = number(max(value, 0.001), unit) + (" points" if unit == "percent" else "")
    return f"less than {text}" if value < 0.001 else text


def share(part: int, whole: int) -> str:
    """A share in percent with its 95 % Wilson interval, ``62.5 [30.6, 86.3] /8``."""
    if not whole:
        return f"{DASH} /0"
    low, high = (number(end, "percent") for end in wilson(part, whole))
    return f"{number(part / whole, 'percent')} [{low}, {high}] /{whole}"


def percent(value: float | None, places: int = 1) -> str:
    """A rate of 0 to 1 as ``12.5 %``."""
    return DASH if value is None else f"{100 * value:.{places}f} %"


def level_text(level: float) -> str:
    """A confidence level, such as ``95 %``."""
    return f"{round(level * 100, 2):g} %"


def count(n: float | None) -> str:
    """A count with commas between thousands; one place where it is not whole."""
    if n is None:
        return DASH
    return f"{n:,.0f}" if n % 1 == 0 else f"{n:,.1f}"


def money(usd: float | None) -> str:
    """US dollars to four places."""
    return "unknown" if usd is None else f"{usd:,.4f} USD"

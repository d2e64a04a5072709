"""From figures to a plain verdict: passes, fails, could not tell.

A measure has a limit that a judge in order keeps to. Its interval decides: wholly within the
limit it passes, wholly beyond it fails, else it could not be told. A probe of m measures takes
intervals at the level 1 - 0.05 / m, so that a judge whose true figures all keep to their limits is
failed by a probe with a chance of at most 2.5 %, and one with a true figure beyond its limit is
passed with a chance of at most 2.5 % (Bonferroni; as far as the intervals hold).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Literal

from ..statistics.differences import detectable_difference
from ..statistics.estimates import Estimate, t_quantile
from .heard import Observed

Standing = Literal["passes", "fails", "could not tell"]
Side = Literal["at least", "at most", "within"]
Unit = Literal["share", "points", "plain"]
"""How a figure reads: a share in percent, a difference of shares in points, a plain number."""

ERROR_RATE = 0.05
MOST_NEEDED = 100_000
LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A figure that decides.

    Attributes:
        name: Such as ``caught E4``.
        estimate: The figure.
        side: On which side of the limit a judge in order is; ``within``: no further from 0.
        limit: The limit.
        standing: What follows.
        needed: Clusters (cases) that would have been needed at this figure; None where it is
            settled, or where the figure is so near to the limit that over 100,000 would be.
        detectable: How far beyond the limit a true figure must lie to be failed with a chance of
            0.8, at this precision; None where there is no interval.
        parts: By case: what it adds above and below the line of the figure, which is their
            ratio; so that two judges can be compared case by case. Empty where it is no ratio.
        unit: How it reads.
    """

    name: str
    estimate: Estimate
    side: Side
    limit: float
    standing: Standing
    needed: int | None = None
    detectable: float | None = None
    parts: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    unit: Unit = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure that is shown and decides nothing."""

    name: str
    estimate: Estimate
    unit: Unit = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a probe took; replies that several probes use are counted in each of them.

    Attributes:
        judgements: Judgements used.
        unscored: Those of them without a verdict.
        calls: Calls made for them in the sessions of this audit.
        tokens: Tokens of these.
        usd: Their price, None where one of them has none.
    """

    judgements: int = 0
    unscored: int = 0
    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A small table of text; the first column names the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """An item behind a verdict.

    Attributes:
        name: The variant's name.
        arm: Under which settings.
        what: What was changed in it, and what the judge said, in one sentence.
    """

    name: str
    arm: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What one probe found.

    Attributes:
        name: Machine name, such as ``faults``.
        title: Name for readers.
        question: What it asks, in one sentence.
        standing: The verdict.
        because: Why, in one sentence.
        measures: What decides.
        figures: What is shown beside it.
        tables: Breakdowns.
        exhibits: Items that speak against the judge, at most LISTED.
        n_exhibits: How many there are of them.
        cost: What it took.
        notes: What readers must know of how the figures came about.
    """

    name: str
    title: str
    question: str
    standing: Standing
    because: str
    measures: tuple[Measure, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    exhibits: tuple[Exhibit, ...] = ()
    n_exhibits: int = 0
    cost: Cost = field(default_factory=Cost)
    notes: tuple[str, ...] = ()


def level_for(n_measures: int) -> float:
    """Confidence level of each interval in a probe with so many measures."""
    return 1 - ERROR_RATE / max(1, n_measures)


def measured(
    name: str,
    estimate: Estimate,
    side: Side,
    limit: float,
    *,
    parts: Mapping[str, tuple[float, float]] | None = None,
    unit: Unit = "share",
) -> Measure:
    """Holds a figure against its limit.

    Args:
        name: Name of the measure.
        estimate: The figure, at the level of ``level_for``.
        side: Side on which a judge in order is.
        limit: The limit; for ``within`` the greatest distance from 0.
        parts: By case, what it adds above and below.
        unit: How it reads.
    """
    standing = _standing(estimate, side, limit)
    return Measure(
        name=name,
        estimate=estimate,
        side=side,
        limit=limit,
        standing=standing,
        needed=_needed(estimate, side, limit) if standing == "could not tell" else None,
        detectable=_detectable(estimate),
        parts=parts or {},
        unit=unit,
    )


def _standing(estimate: Estimate, side: Side, limit: float) -> Standing:
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return "could not tell"
    if side == "at least":
        inside, outside = low >= limit, high < limit
    elif side == "at most":
        inside, outside = high <= limit, low > limit
    else:
        inside, outside = low >= -limit and high <= limit, low > limit or high < -limit
    return "passes" if inside else "fails" if outside else "could not tell"


def _needed(estimate: Estimate, side: Side, limit: float) -> int | None:
    """Clusters at which the interval would clear the limit, if the figure stayed what it is.

    Half widths shrink with the root of the number. A figure without any spread (no event yet) has
    a width that follows from the number alone.
    """
    value, low, high, n = estimate.value, estimate.low, estimate.high, estimate.n_clusters
    if value is None or low is None or high is None or n == 0:
        return None
    limits = {"at least": (limit,), "at most": (limit,), "within": (-limit, limit)}[side]
    if side == "within" and abs(value) > limit:
        limits = (limit if value > 0 else -limit,)
    gaps = [edge - value for edge in limits]
    if min(map(abs, gaps)) == 0:
        return None
    if _is_without_spread(estimate):
        found = max(_without_spread(estimate, abs(gap)) for gap in gaps)
    else:
        worst = max((high - value) / gap if gap > 0 else (low - value) / gap for gap in gaps)
        found = n * worst * worst
    whole = max(n + 1, ceil(found))
    return whole if whole <= MOST_NEEDED else None


def _is_without_spread(estimate: Estimate) -> bool:
    """Whether no row differs from any other."""
    at_the_end = {"t-bonett-price": (0.0,)}.get(estimate.method, (0.0, 1.0))
    return estimate.value in at_the_end


def _without_spread(estimate: Estimate, gap: float) -> float:
    """Clusters whose interval reaches no further than the gap, when all of them are equal."""
    z = t_quantile(0.5 + estimate.level / 2, max(1000, estimate.n_clusters))
    if estimate.method == "t-bonett-price":
        return z * sqrt(2) / gap
    return z * z * (1 - gap) / gap


def _detectable(estimate: Estimate) -> float | None:
    if estimate.low is None or estimate.high is None:
        return None
    df = max(1, estimate.n_clusters - 1)
    error = (estimate.high - estimate.low) / (2 * t_quantile(0.5 + estimate.level / 2, df))
    return detectable_difference(error, level=estimate.level)


def verdict_of(measures: Sequence[Measure]) -> tuple[Standing, str]:
    """The verdict of a probe, and why.

    One measure beyond its limit fails the probe; it passes when all keep to theirs.
    """
    if not measures:
        return "could not tell", "there is nothing to measure"
    worst = [m for m in measures if m.standing == "fails"]
    open_ones = [m for m in measures if m.standing == "could not tell"]
    if worst:
        return "fails", "; ".join(map(_beyond, worst))
    if open_ones:
        needed = [m.needed for m in open_ones if m.needed is not None]
        most = f" (would need {max(needed):,} cases)" if len(needed) == len(open_ones) else ""
        names = "; ".join(m.name for m in open_ones)
        return "could not tell", f"not settled: {names}{most}"
    if len(measures) == 1:
        return "passes", "the figure keeps to its limit"
    return "passes", f"all {len(measures)} figures keep to their limits"


def _beyond(measure: Measure) -> str:
    estimate, unit = measure.estimate, measure.unit
    value, low, high = (shown(unit, part) for part in (estimate.value, estimate.low, estimate.high))
    allowed = shown(unit, measure.limit)
    if measure.side == "within":
        allowed = allowed.lstrip("+")
    return f"{measure.name} {value} [{low}, {high}], allowed {measure.side} {allowed}"


def shown(unit: Unit, value: float | None) -> str:
    """A figure as it reads: percent, points with sign, or a plain number."""
    if value is None:
        return "–"
    if unit == "plain":
        return f"{value:.3g}"
    return f"{100 * value:+.1f} pts" if unit == "points" else f"{100 * value:.1f} %"


def cost_of(said: Iterable[Observed]) -> Cost:
    """What judgements took, each counted once."""
    found = {(s.arm, s.variant.name): s for s in said}.values()
    prices = [s.cost_usd for s in found]
    known = [price for price in prices if price is not None]
    return Cost(
        judgements=len(prices),
        unscored=sum(not s.is_scored for s in found),
        calls=sum(s.calls for s in found),
        tokens=sum(s.tokens for s in found),
        usd=sum(known) if len(known) == len(prices) else None,
    )


def exhibits_of(
    said: Iterable[Observed], tell: Callable[[Observed], str]
) -> tuple[tuple[Exhibit, ...], int]:
    """The first LISTED items with a sentence each, and how many there are."""
    found = list(said)
    listed = (Exhibit(name=s.variant.name, arm=s.arm, what=tell(s)) for s in found[:LISTED])
    return tuple(listed), len(found)


def said_of(said: Observed) -> str:
    """A verdict in words, such as ``correct, 1.0`` or ``not correct (E4), 0.6``."""
    if not said.is_scored:
        return f"unscored ({said.reason})"
    flags = f" ({', '.join(sorted(said.flags))})" if said.flags else ""
    grade = "" if said.grade is None else f", {said.grade:g}"
    category = "" if said.category is None else f", category {said.category}"
    return f"{'correct' if said.is_correct else 'not correct'}{flags}{grade}{category}"


def concluded(
    name: str,
    title: str,
    question: str,
    *,
    measures: Sequence[Measure],
    said: Iterable[Observed],
    figures: tuple[Figure, ...] = (),
    tables: tuple[Table, ...] = (),
    exhibits: tuple[tuple[Exhibit, ...], int] = ((), 0),
    notes: tuple[str, ...] = (),
) -> Probe:
    """A probe whose verdict follows from its measures.

    Args:
        name: Machine name.
        title: Name for readers.
        question: What it asks.
        measures: What decides.
        said: The judgements that were used.
        figures: What is shown beside it.
        tables: Breakdowns.
        exhibits: From ``exhibits_of``.
        notes: What readers must know.
    """
    standing, because = verdict_of(measures)
    listed, n_exhibits = exhibits
    return Probe(
        name=name,
        title=title,
        question=question,
        standing=standing,
        because=because,
        measures=tuple(measures),
        figures=figures,
        tables=tables,
        exhibits=listed,
        n_exhibits=n_exhibits,
        cost=cost_of(said),
        notes=notes,
    )


def unasked(name: str, title: str, question: str, because: str) -> Probe:
    """A probe for which the input has nothing."""
    return Probe(
        name=name, title=title, question=question, standing="could not tell", because=because
    )


__all__ = [
    "Cost",
    "Exhibit",
    "Figure",
    "Measure",
    "Probe",
    "Side",
    "Standing",
    "Table",
    "Unit",
    "concluded",
    "cost_of",
    "exhibits_of",
    "level_for",
    "measured",
    "said_of",
    "shown",
    "unasked",
    "verdict_of",
]

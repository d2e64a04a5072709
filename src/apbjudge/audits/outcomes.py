"""Turns estimates into plain outcomes: passes, fails, could not tell.

A measure has a limit that a sound judge keeps. Its interval decides: a measure passes if the whole
interval is within the limit, fails if the whole interval is beyond it, and else could not tell. A
probe of m measures uses intervals at the level 1 - 0.05 / m. So a probe fails a judge whose true
values are all within their limits with a probability of at most 2.5 %, and passes one with a true
value beyond its limit with a probability of at most 2.5 % (Bonferroni; as far as the intervals
hold).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import Literal, TypeVar

from ..document import numbers
from ..statistics.differences import detectable_difference
from ..statistics.estimates import Estimate, t_quantile
from .responses import Response

_T = TypeVar("_T")
Outcome = Literal["passes", "fails", "could not tell"]
Side = Literal["at least", "at most", "within"]
Unit = Literal["share", "points", "plain"]
"""The form of a value: a share in percent, a difference of shares in points, a plain number."""
UNITS: Mapping[Unit, numbers.Unit] = {"share": "percent", "points": "points", "plain": "grade"}
Parts = Mapping[str, tuple[float, float]]
"""By case, its contributions to the numerator and the denominator of a ratio."""

ERROR_RATE = 0.05
MOST_NEEDED = 100_000
LISTED = 20
_WITHOUT_SPREAD = {"t-bonett-price": (0.0,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A value that decides.

    Attributes:
        name: Name of the value.
        estimate: The value with its interval.
        side: Side of the limit on which a sound judge is; ``within``: no further from 0.
        limit: The limit of a sound judge, in the unit of the value.
        outcome: The judge's result against the limit, by the interval.
        needed: Clusters (cases) that a clear outcome would need at this value; None if the outcome
            is clear, or more than ``MOST_NEEDED`` would be needed.
        detectable: Distance beyond the limit at which a true value fails with a probability of 0.8,
            at this precision; None without an interval.
        parts: Contribution of each case, to compare two judges case by case; empty if the value is
            not a ratio.
        unit: ``share`` (0 to 1, shown in percent), ``points`` (a difference of shares) or
            ``plain``.
    """

    name: str
    estimate: Estimate
    side: Side
    limit: float
    outcome: Outcome
    needed: int | None = None
    detectable: float | None = None
    parts: Parts = field(default_factory=dict[str, tuple[float, float]])
    unit: Unit = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeMetric:
    """A value that is shown and decides nothing.

    Attributes:
        name: Name of the value.
        estimate: The value with its interval.
        unit: As in ``Measure``.
    """

    name: str
    estimate: Estimate
    unit: Unit = "share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a probe; replies that several probes use are counted in each of them.

    Attributes:
        judgements: Number of judgements.
        unscored: Number of judgements without a verdict.
        calls: Calls made in the sessions of this audit.
        tokens: Tokens sent and received.
        usd: Price in US dollars; None if that of any judgement is unknown.
    """

    judgements: int = 0
    unscored: int = 0
    calls: int = 0
    tokens: int = 0
    usd: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTable:
    """A small table of text; the first column names the rows.

    Attributes:
        title: Its title.
        columns: Heads of the columns.
        rows: Cells of each row.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(
        cls,
        title: str,
        first: str,
        groups: Mapping[str, _T],
        cells: Mapping[str, Callable[[_T], str]],
    ) -> ProbeTable:
        """A table with a row for each group.

        Args:
            title: Its title.
            first: Head of the column with the names of the groups.
            groups: Groups by name.
            cells: By head of the column, the function that makes a group's cell.
        """
        rows = ((name, *(cell(of) for cell in cells.values())) for name, of in groups.items())
        return cls(title=title, columns=(first, *cells), rows=tuple(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeItem:
    """An item behind an outcome.

    Attributes:
        name: Name of the variant, as in ``variants.jsonl``.
        run: Its run, a folder in ``runs/``.
        what: A sentence about it.
    """

    name: str
    run: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The result of one probe.

    Attributes:
        name: Machine name, such as ``faults``.
        title: Its title.
        question: The question that it answers.
        outcome: The judge's result.
        because: The reason for the outcome, in a clause.
        measures: The values that decide.
        figures: Values that are shown and decide nothing.
        tables: Tables of details.
        examples: Items that show faults of the judge, at most ``LISTED`` of ``n_examples``.
        n_examples: Number of such items.
        cost: The cost of the probe.
        notes: Remarks for readers on the origin of the values.
    """

    name: str
    title: str
    question: str
    outcome: Outcome
    because: str
    measures: tuple[Measure, ...] = ()
    figures: tuple[ProbeMetric, ...] = ()
    tables: tuple[ProbeTable, ...] = ()
    examples: tuple[ProbeItem, ...] = ()
    n_examples: int = 0
    cost: Cost = field(default_factory=Cost)
    notes: tuple[str, ...] = ()


def level_for(n_measures: int) -> float:
    """Confidence level of each interval in a probe with ``n_measures`` measures."""
    return 1 - ERROR_RATE / max(1, n_measures)


def measured(
    name: str,
    estimate: Estimate,
    side: Side,
    limit: float,
    *,
    parts: Parts | None = None,
    unit: Unit = "share",
    clears_only: bool = False,
) -> Measure:
    """Compares an estimate, at the level of ``level_for``, with its limit.

    Args:
        name: Such as ``caught E4``.
        estimate: The value with its interval.
        side: Side of the limit on which a sound judge is.
        limit: The limit.
        parts: The contribution of each case.
        unit: Unit of the value.
        clears_only: True if the measure can pass but not fail a judge.
    """
    outcome = _outcome(estimate, side, limit)
    detectable = None
    if estimate.low is not None and estimate.high is not None:
        df = max(1, estimate.n_clusters - 1)
        error = (estimate.high - estimate.low) / (2 * t_quantile(0.5 + estimate.level / 2, df))
        detectable = detectable_difference(error, level=estimate.level)
    return Measure(
        name=name,
        estimate=estimate,
        side=side,
        limit=limit,
        outcome="could not tell" if clears_only and outcome == "fails" else outcome,
        needed=_needed(estimate, side, limit) if outcome == "could not tell" else None,
        detectable=detectable,
        parts=parts or {},
        unit=unit,
    )


def _outcome(estimate: Estimate, side: Side, limit: float) -> Outcome:
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
    """Number of clusters at which the interval would exclude the limit, at the same value.

    Half widths shrink with the square root of the number. For a value without spread (no event
    yet), the width depends on the number alone.
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
    if value in _WITHOUT_SPREAD.get(estimate.method, (0.0, 1.0)):
        z, gap = t_quantile(0.5 + estimate.level / 2, max(1000, n)), min(map(abs, gaps))
        target = (
            z * sqrt(2) / gap if estimate.method in _WITHOUT_SPREAD else z * z * (1 - gap) / gap
        )
    else:
        worst = max((high - value) / gap if gap > 0 else (low - value) / gap for gap in gaps)
        target = n * worst * worst
    needed = max(n + 1, ceil(target))
    return needed if needed <= MOST_NEEDED else None


def outcome_of(measures: Sequence[Measure]) -> tuple[Outcome, str]:
    """The outcome of a probe, and the reason.

    One measure beyond its limit fails the probe; it passes if all are within theirs.
    """
    if not measures:
        return "could not tell", "there is nothing to measure"
    if worst := [m for m in measures if m.outcome == "fails"]:
        return "fails", "; ".join(map(_beyond, worst))
    if unclear := [m for m in measures if m.outcome == "could not tell"]:
        needed = [m.needed for m in unclear if m.needed is not None]
        most = f" (would need {max(needed):,} cases)" if len(needed) == len(unclear) else ""
        return "could not tell", f"not clear: {'; '.join(m.name for m in unclear)}{most}"
    if len(measures) == 1:
        return "passes", "the figure is within its limit"
    return "passes", f"all {len(measures)} figures are within their limits"


def _beyond(measure: Measure) -> str:
    value = amount_with_ends(measure.unit, measure.estimate)
    allowed = limit_text(measure.side, measure.limit, measure.unit)
    return f"{measure.name} {value}, allowed {allowed}"


def limit_text(side: Side, limit: float, unit: Unit) -> str:
    """The allowed range: ``at least 70.0 %``, ``within 10.0 points``."""
    text = amount(unit, limit)
    return f"{side} {text.lstrip('+') if side == 'within' else text}"


def amount_with_ends(unit: Unit, estimate: Estimate) -> str:
    """An estimate as text, with the ends of its interval."""
    value, low, high = (amount(unit, v) for v in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def amount(unit: Unit, value: float | None) -> str:
    """A value with its unit: percent, points with sign, or a plain number."""
    return numbers.amount(value, UNITS[unit])


def cost_of(responses: Iterable[Response]) -> Cost:
    """The cost of judgements, each counted once."""
    unique = {(r.run, r.variant.name): r for r in responses}.values()
    known = [r.cost_usd for r in unique if r.cost_usd is not None]
    return Cost(
        judgements=len(unique),
        unscored=sum(not r.is_scored for r in unique),
        calls=sum(r.calls for r in unique),
        tokens=sum(r.tokens for r in unique),
        usd=sum(known, 0.0) if len(known) == len(unique) else None,
    )


def verdict_text(response: Response) -> str:
    """A verdict in words, such as ``correct, 1.0`` or ``not correct (E4), 0.6``."""
    if not response.is_scored:
        return f"unscored ({response.reason})"
    flags = f" ({', '.join(sorted(response.flags))})" if response.flags else ""
    grade = "" if response.grade is None else f", {response.grade:g}"
    category = "" if response.category is None else f", category {response.category}"
    return f"{'correct' if response.is_correct else 'not correct'}{flags}{grade}{category}"

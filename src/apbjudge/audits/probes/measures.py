"""Measures that probes share: rates, shifts against a parent, splits, flips, and their texts.

Every interval treats the judgements of one case as a cluster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ...statistics.differences import paired_test, part_difference
from ...statistics.estimates import Array, Estimate, Ids
from ...statistics.proportions import share
from ..outcomes import Measure, Parts, ProbeMetric, Side, Unit, amount, measured, verdict_text
from ..responses import AGAIN, AuditResponses, Pair, Response, sample_of

Row = TypeVar("Row", bound=Response | Sequence[Response])
"""A judgement, or several; the first is the one that the row is about."""
Groups = Mapping[str, list[Row]]

FEWEST = 10
"""Number of repeated cases from which on only these count: an interval by case needs about ten."""

NO_REPEATS = (
    "{names}: fewer than {fewest} of the cases have repeated requests, so verdicts that flip by "
    "chance are not subtracted; such a figure can pass but not fail the judge"
)


TakeMeasure = Callable[[float], Measure]
"""Computes a measure at a confidence level, which follows from its probe's number of measures."""
Value = TakeMeasure | ProbeMetric
"""A value with a limit, which decides, or one that is only shown."""


def value_of(
    name: str,
    take: Callable[[float], Estimate],
    side: Side | None = None,
    limit: float = 0.0,
    *,
    parts: Parts | None = None,
    unit: Unit = "share",
    clears_only: bool = False,
) -> Value:
    """A value from its estimate at a confidence level.

    Args:
        name: Such as ``caught E4``.
        take: Computes the estimate at a level.
        side: Side of the limit on which a sound judge is; None for a value that is only shown.
        limit: The limit.
        parts: Contribution of each case.
        unit: Unit of the value.
        clears_only: True if the measure can pass but not fail a judge.
    """
    if side is None:
        return ProbeMetric(name=name, estimate=take(0.95), unit=unit)
    return lambda level: measured(
        name, take(level), side, limit, parts=parts, unit=unit, clears_only=clears_only
    )


def rate(
    name: str,
    rows: Sequence[Row],
    hit: Callable[[Row], float | None],
    side: Side | None = None,
    limit: float = 0.0,
) -> Value | None:
    """The mean of ``hit`` over rows, each 0 to 1; None without rows.

    Without a side, it is only shown.
    """
    if not rows:
        return None
    responses, hits = list(map(lead, rows)), np.array([float(hit(row) or 0) for row in rows])
    ones, sample = np.ones(len(hits)), sample_of(responses)

    def take(level: float) -> Estimate:
        return share(hits, ones, sample, level=level)

    return value_of(name, take, side, limit, parts=_parts(responses, hits))


def shift(
    name: str,
    rows: Sequence[Row],
    change: Callable[[Row], float],
    side: Side | None = None,
    limit: float = 0.0,
    *,
    unit: Unit = "points",
    clears_only: bool = False,
) -> Value | None:
    """The mean of ``change`` over rows, each -1 to 1; None without rows.

    Without a side, it is only shown.
    """
    if not rows:
        return None
    responses, changes = list(map(lead, rows)), np.array([float(change(row)) for row in rows])
    sample, parts = sample_of(responses), _parts(responses, changes)

    def take(level: float) -> Estimate:
        return paired_test(changes, sample, level=level).estimate

    return value_of(name, take, side, limit, parts=parts, unit=unit, clears_only=clears_only)


def change(
    name: str, pairs: Sequence[Pair], side: Side | None = None, limit: float = 0.0
) -> Value | None:
    """The pass rate of the first less that of the second of each pair; None without pairs."""
    return shift(name, pairs, turned, side, limit)


def rates(
    name: str,
    groups: Groups[Row],
    hit: Callable[[Row], float | None],
    side: Side | None = None,
    limit: float = 0.0,
) -> Iterable[Value | None]:
    """The rate of each group, whose name replaces ``{}``."""
    return (rate(name.format(group), of, hit, side, limit) for group, of in groups.items())


def changes(
    name: str, groups: Groups[Pair], side: Side | None = None, limit: float = 0.0
) -> Iterable[Value | None]:
    """The change of each group, whose name replaces ``{}``."""
    return (change(name.format(group), of, side, limit) for group, of in groups.items())


def turned(pair: Sequence[Response]) -> int:
    """1 if only the first of a pair is judged correct, -1 if only the second is, else 0."""
    return bool(pair[0].is_correct) - bool(pair[1].is_correct)


def error(response: Response) -> int:
    """Verdict less truth: 1 if a faulty plan passes, -1 if a correct one fails, else 0."""
    return bool(response.is_correct) - bool(response.variant.truth.is_correct)


def flipped(pair: Sequence[Response]) -> bool:
    """True if the verdicts of a pair differ."""
    return pair[0].is_correct != pair[1].is_correct


def lead(row: Response | Sequence[Response]) -> Response:
    """The judgement that a row is about: itself, or the first of several."""
    return row if isinstance(row, Response) else row[0]


def _parts(responses: Sequence[Response], values: Array) -> Parts:
    above: defaultdict[str, float] = defaultdict(float)
    below: defaultdict[str, float] = defaultdict(float)
    for response, value in zip(responses, values.tolist(), strict=True):
        above[response.variant.case_id] += value
        below[response.variant.case_id] += 1.0
    return {case: (above[case], below[case]) for case in below}


def grouped(rows: Iterable[Row], names: Callable[[Response], str | Iterable[str]]) -> Groups[Row]:
    """Groups rows by the names of the judgements that they are about, sorted by name.

    ``names`` returns one name or several; rows with an empty one are left out.
    """
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        own = names(lead(row))
        for name in (own,) if isinstance(own, str) else own:
            if name:
                groups[name].append(row)
    return dict(sorted(groups.items()))


def kind(response: Response) -> str:
    """The kind of the variant."""
    return response.variant.kind


def of_truth(rows: Iterable[Row], *, is_correct: bool | None) -> list[Row]:
    """The rows whose true correctness is ``is_correct``; None means unknown."""
    return [row for row in rows if lead(row).variant.truth.is_correct is is_correct]


TRUTHS: Mapping[str, bool | None] = {
    "correct plans": True,
    "faulty plans": False,
    "unlabelled plans": None,
}


def by_truth(rows: Sequence[Row]) -> Groups[Row]:
    """Rows by their truth, in words; empty groups are left out."""
    groups = {name: of_truth(rows, is_correct=truth) for name, truth in TRUTHS.items()}
    return {name: of for name, of in groups.items() if of}


def kind_figures(pairs: Sequence[Pair]) -> Iterable[Value | None]:
    """Change of passing by kind, for correct and for faulty plans."""
    for name, of in grouped(pairs, kind).items():
        yield from changes(f"{name}, {{}}: change of passing", by_truth(of))


@dataclass(frozen=True, slots=True)
class Flips:
    """Verdicts compared with those on the parents.

    Attributes:
        rows: Each variant with its parent and the parent's repeats.
        is_asked_again: True if there are enough repeats to subtract flips by chance.
    """

    rows: Sequence[Sequence[Response]]
    is_asked_again: bool

    def value(self, name: str, limit: float) -> Value | None:
        """Flips less the parent's own, at most ``limit``; without repeats, no judge fails."""
        return shift(
            name,
            self.rows,
            lambda row: flipped(row) - own_flips(row),
            "at most",
            limit,
            clears_only=not self.is_asked_again,
        )


def own_flips(row: Sequence[Response]) -> float:
    """Share of the parent's repeats that differ from it; 0.0 without repeats."""
    _, parent, *rest = row
    return sum(flipped((again, parent)) for again in rest) / max(1, len(rest))


def flips_of(audit: AuditResponses, pairs: Sequence[Pair]) -> Flips:
    """Flips of the pairs whose parent was asked again if these are enough, else of all."""
    rows = [(*pair, *repeats_of(audit, pair[1])) for pair in pairs]
    is_enough = len({row[1].variant.case_id for row in rows if len(row) > 2}) >= FEWEST
    return Flips([row for row in rows if len(row) > 2 or not is_enough], is_enough)


def repeats_of(audit: AuditResponses, response: Response) -> list[Response]:
    """Scored responses to the same variant at the same settings, asked again."""
    again = (audit.find(response.variant.name, run) for run in audit.runs_of(AGAIN))
    return [reply for reply in again if reply is not None and reply.is_scored]


def repeat_notes(flips: Mapping[str, Flips]) -> Iterable[str]:
    """A note that names the measures with too few repeats; none if there are no such measures."""
    if names := ", ".join(name for name, of in flips.items() if not of.is_asked_again):
        yield NO_REPEATS.format(names=names, fewest=FEWEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Judgements in two parts.

    Attributes:
        responses: The n judgements.
        values: Shape (n,): the values that are averaged.
        first: Shape (n,), bool: True for the first part, False for the second.
        weights: Shape (n,), above 0: weight of each within its part.
        bounds: Smallest and largest possible value.
    """

    responses: Sequence[Response]
    values: Array
    first: Ids
    weights: Array
    bounds: tuple[float, float] = (0.0, 1.0)

    def difference(self, level: float = 0.95) -> Estimate:
        """Mean of the first part less that of the second, with its interval."""
        sample = replace(sample_of(self.responses), weights=self.weights)
        return part_difference(
            self.values, self.first, ~self.first, sample, bounds=self.bounds, level=level
        ).estimate

    def value(self, name: str, limit: float) -> Value:
        """The difference as a measure, which must be within a limit."""
        parts = within_one(self.parts())
        return value_of(name, self.difference, "within", limit, parts=parts, unit="points")

    def parts(self) -> dict[str, tuple[float, float]]:
        """By case, its contribution; their mean is the difference.

        A case contributes the deviations of its judgements from the means of their parts.
        """
        signs = np.where(self.first, 1.0, -1.0)
        centres, sums, total = np.zeros(len(self.values)), np.ones(len(self.values)), 0.0
        for part, sign in ((self.first, 1.0), (~self.first, -1.0)):
            if part.any():
                mean = float(np.average(self.values[part], weights=self.weights[part]))
                centres[part], sums[part] = mean, self.weights[part].sum()
                total += sign * mean
        shares = signs * self.weights * (self.values - centres) / sums
        by_case: defaultdict[str, float] = defaultdict(float)
        for response, value in zip(self.responses, shares, strict=True):
            by_case[response.variant.case_id] += float(value)
        return {case: (total + len(by_case) * value, 1.0) for case, value in by_case.items()}


def within_one(parts: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The parts of a measure if each case contributes at most 1 in size, else none.

    Comparing two cards needs contributions of cases to a mean of values from -1 to 1.
    """
    return parts if all(abs(above) <= below for above, below in parts.values()) else {}


def evenly(groups: Sequence[Hashable]) -> Array:
    """Weights that give every group the same total, whatever its number of judgements."""
    sizes = Counter(groups)
    return np.array([1.0 / sizes[group] for group in groups])


def mixed_alike(groups: Sequence[Hashable], first: Ids) -> Array:
    """Weights that give the second part the first part's mix of groups.

    Returns:
        Shape (n,); 0 for a judgement of a group that only one part has.
    """
    rows = list(zip(groups, first, strict=True))
    here = Counter(group for group, is_first in rows if is_first)
    there = Counter(group for group, is_first in rows if not is_first)
    return np.array(
        [
            0.0
            if not here[group] or not there[group]
            else 1.0
            if is_first
            else here[group] / there[group]
            for group, is_first in rows
        ]
    )


def kind_of_plan(response: Response) -> tuple[str, str, bool | None]:
    """The kind of the judged plan: role, kind of change, and true correctness."""
    variant = response.variant
    return variant.role, variant.kind, variant.truth.is_correct


def beyond_kind(responses: Sequence[Response], values: Array) -> Array:
    """Each of n values less the mean of its kind of plan.

    For parts with the same mix of kinds, or with random mixes, this does not bias the difference of
    the parts and removes the variance between kinds.
    """
    kinds = [kind_of_plan(response) for response in responses]
    order = {kind: n for n, kind in enumerate(dict.fromkeys(kinds))}
    at = np.array([order[kind] for kind in kinds])
    return values - (np.bincount(at, values) / np.bincount(at))[at]


def describe(response: Response, other: Response | None = None, name: str = "") -> str:
    """A variant's change and its verdict; then the verdict on ``other``, called ``name``."""
    text = f"{response.variant.what.rstrip('.')}; judged {verdict_text(response)}"
    return text if other is None else f"{text}, {name} {verdict_text(other)}"


def mean_text(values: Iterable[float | None], unit: Unit = "share") -> str:
    """A mean in percent, or in points with its sign (``points``); a dash for no values."""
    listed = [value or 0 for value in values]
    return amount(unit, sum(listed) / len(listed) if listed else None)


def passed_text(responses: Iterable[Response]) -> str:
    """Pass rate in percent; a dash for no judgements."""
    return mean_text(response.is_correct for response in responses)


def count_text(rows: Sequence[object]) -> str:
    """The number of rows."""
    return str(len(rows))


def unscored_note(asked: Sequence[Response]) -> Iterable[str]:
    """A note on judgements without a verdict; none if there are none."""
    if missing := sum(not response.is_scored for response in asked):
        yield f"{missing} of {len(asked)} judgements have no verdict and count in no figure"

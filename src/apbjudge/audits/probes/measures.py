"""Measures that probes share: rates, shifts against a parent, splits, flips, and their texts.

Every interval takes the judgements of one case together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...statistics.differences import paired_test, part_difference
from ...statistics.estimates import Array, Estimate, Ids
from ...statistics.proportions import share
from ..outcomes import ProbeMetric, Side, TakeMeasure, Unit, amount, measured, verdict_text
from ..responses import AGAIN, AuditResponses, Pair, Response, passed, sample_of

Values = Sequence[float] | Sequence[bool]

FEWEST = 10
"""Cases asked again from which on only these count: an interval by case needs about ten."""

NO_REPEATS = (
    "{names}: fewer than {fewest} of the cases have repeated requests, so verdicts that flip by "
    "chance are not subtracted; such a figure can pass but not fail the judge"
)


def rate(
    name: str, responses: Sequence[Response], hits: Values, side: Side, limit: float
) -> TakeMeasure | None:
    """The share of n scored judgements that hit, each 0 to 1; None of no judgements."""
    if not responses:
        return None
    parts = _parts(responses, hits)
    return lambda level: measured(name, share_of(responses, hits, level), side, limit, parts=parts)


def shift(
    name: str,
    responses: Sequence[Response],
    changes: Values,
    side: Side,
    limit: float,
    *,
    clears_only: bool = False,
) -> TakeMeasure | None:
    """The mean change of judgements, each -1 to 1, against others of their case; None of none."""
    if not responses:
        return None
    parts = _parts(responses, changes)
    return lambda level: measured(
        name,
        shift_of(responses, changes, level),
        side,
        limit,
        parts=parts,
        unit="points",
        clears_only=clears_only,
    )


def change(name: str, pairs: Sequence[Pair], side: Side, limit: float) -> TakeMeasure | None:
    """The mean change of passing against the parent; None of no pairs."""
    return shift(name, [child for child, _ in pairs], changes_of(pairs), side, limit)


def share_of(responses: Sequence[Response], hits: Values, level: float = 0.95) -> Estimate:
    """A share with its interval."""
    values = np.asarray(hits, dtype=float)
    return share(values, np.ones(len(values)), sample_of(responses), level=level)


def shift_of(responses: Sequence[Response], changes: Values, level: float = 0.95) -> Estimate:
    """A mean change between -1 and 1 with its interval."""
    changed = np.asarray(changes, dtype=float)
    return paired_test(changed, sample_of(responses), level=level).estimate


def _parts(responses: Sequence[Response], values: Values) -> dict[str, tuple[float, float]]:
    above: defaultdict[str, float] = defaultdict(float)
    below: defaultdict[str, float] = defaultdict(float)
    for response, value in zip(responses, values, strict=True):
        above[response.variant.case_id] += float(value)
        below[response.variant.case_id] += 1.0
    return {case: (above[case], below[case]) for case in below}


def changes_of(pairs: Sequence[Pair]) -> list[float]:
    """1 where the first of a pair alone is judged correct, -1 where the second alone is, else 0."""
    child, parent = ([pair[i] for pair in pairs] for i in (0, 1))
    return (passed(child) - passed(parent)).tolist()


def change_figure(name: str, pairs: Sequence[Pair]) -> ProbeMetric:
    """The mean change, which decides nothing."""
    estimate = shift_of([child for child, _ in pairs], changes_of(pairs))
    return ProbeMetric(name=name, estimate=estimate, unit="points")


def grouped(pairs: Iterable[Pair], key: Callable[[Response], str]) -> Mapping[str, list[Pair]]:
    """Pairs by a name of their first, in the order of these names; without "" ones."""
    groups: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if name := key(pair[0]):
            groups[name].append(pair)
    return dict(sorted(groups.items()))


def by_kind(pairs: Iterable[Pair]) -> Mapping[str, list[Pair]]:
    """Pairs by the kind of their first."""
    return grouped(pairs, lambda response: response.variant.kind)


def of_truth(pairs: Iterable[Pair], *, is_correct: bool | None) -> list[Pair]:
    """Pairs whose first is known to be correct, or known to be faulty; None: not known."""
    return [pair for pair in pairs if pair[0].variant.truth.is_correct is is_correct]


TRUTHS: Mapping[str, bool | None] = {
    "correct plans": True,
    "faulty plans": False,
    "unlabelled plans": None,
}


def kind_figures(pairs: Iterable[Pair]) -> Iterable[ProbeMetric]:
    """Change of passing by kind, apart for correct and faulty plans."""
    for kind, of in by_kind(pairs).items():
        for name, truth in TRUTHS.items():
            if chosen := of_truth(of, is_correct=truth):
                yield change_figure(f"{kind}, {name}: change of passing", chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipCounts:
    """Verdicts that differ from the parent's.

    Attributes:
        pairs: The n variants with their parents.
        flipped: For each pair, 1.0 where the verdicts differ, else 0.0.
        own: For each pair, the share of the parent's repeats that differ from it; 0.0 where it
            was not asked again.
        is_asked_again: Whether flips can be told from those that come about by themselves.
    """

    pairs: tuple[Pair, ...]
    flipped: tuple[float, ...]
    own: tuple[float, ...]
    is_asked_again: bool

    def measure(self, name: str, limit: float) -> TakeMeasure | None:
        """Flips beyond the parent's own, at most ``limit``; without repeats they only clear."""
        changes = [flip - own for flip, own in zip(self.flipped, self.own, strict=True)]
        children = [child for child, _ in self.pairs]
        clears_only = not self.is_asked_again
        return shift(name, children, changes, "at most", limit, clears_only=clears_only)


def flips_of(audit: AuditResponses, pairs: Sequence[Pair]) -> FlipCounts:
    """Counts flips, on the pairs whose parent was asked again where these are enough."""
    again = [(pair, repeats_of(audit, pair[1])) for pair in pairs]
    is_enough = len({pair[1].variant.case_id for pair, rest in again if rest}) >= FEWEST
    used = [(pair, rest) for pair, rest in again if rest or not is_enough]
    return FlipCounts(
        pairs=tuple(pair for pair, _ in used),
        flipped=tuple(float(a.is_correct != b.is_correct) for (a, b), _ in used),
        own=tuple(
            sum(r.is_correct != parent.is_correct for r in rest) / max(1, len(rest))
            for (_, parent), rest in used
        ),
        is_asked_again=is_enough,
    )


def repeats_of(audit: AuditResponses, response: Response) -> list[Response]:
    """Scored responses to the same variant at the same settings, asked again."""
    again = (audit.find(response.variant.name, run) for run in audit.runs_of(AGAIN))
    return [reply for reply in again if reply is not None and reply.is_scored]


def repeat_notes(flips: Mapping[str, FlipCounts]) -> Iterable[str]:
    """A note on measures without repeats, by their names; none where all have them."""
    if names := ", ".join(name for name, of in flips.items() if not of.is_asked_again):
        yield NO_REPEATS.format(names=names, fewest=FEWEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Judgements in two parts.

    Attributes:
        responses: The n judgements.
        values: Shape (n,): the values that are averaged.
        first: Shape (n,), marks: the first part; all others are the second.
        weights: Shape (n,), above 0: how much each counts within its part.
        bounds: Least and greatest possible value.
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

    def measure(self, name: str, limit: float) -> TakeMeasure:
        """The difference, within a limit."""
        parts = within_one(self.parts())
        return lambda level: measured(
            name, self.difference(level), "within", limit, parts=parts, unit="points"
        )

    def parts(self) -> dict[str, tuple[float, float]]:
        """By case its share in the difference, so that their mean is the difference.

        A case adds the deviations of its judgements from the means of their parts.
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
    """The parts of a measure if each case adds at most 1 in size, else none.

    Cards of two judges are compared by what each case adds to a mean of values from -1 to 1.
    """
    return parts if all(abs(above) <= below for above, below in parts.values()) else {}


def evenly(groups: Sequence[Hashable]) -> Array:
    """Weights with which every group counts the same, however many judgements it has."""
    sizes = Counter(groups)
    return np.array([1.0 / sizes[group] for group in groups])


def mixed_alike(groups: Sequence[Hashable], first: Ids) -> Array:
    """Weights with which the second part has the first's mix of groups.

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
    """The kind of the judged plan: planted fault, change, sound plan."""
    variant = response.variant
    return variant.role, variant.kind, variant.truth.is_correct


def beyond_kind(responses: Sequence[Response], values: Array) -> Array:
    """Each of n values less the mean of its kind of plan.

    Between parts with one mix of kinds, or with mixes that chance made, this moves no difference
    and takes off the noise that comes from the kinds.
    """
    kinds = [kind_of_plan(response) for response in responses]
    order = {kind: n for n, kind in enumerate(dict.fromkeys(kinds))}
    at = np.array([order[kind] for kind in kinds])
    return values - (np.bincount(at, values) / np.bincount(at))[at]


def describe(response: Response, other: Response | None = None, name: str = "") -> str:
    """A variant's change and its verdict; then the verdict on ``other``, called ``name``."""
    text = f"{response.variant.what.rstrip('.')}; judged {verdict_text(response)}"
    return text if other is None else f"{text}, {name} {verdict_text(other)}"


def mean_text(values: Values, unit: Unit = "share") -> str:
    """A mean in percent, or in points with its sign (``points``); a dash for no values."""
    return amount(unit, sum(values) / len(values) if len(values) else None)


def unscored_note(asked: Sequence[Response]) -> Iterable[str]:
    """A note on judgements without a verdict, none where there are none."""
    if missing := sum(not response.is_scored for response in asked):
        yield f"{missing} of {len(asked)} judgements have no verdict and count in no figure"

"""Two parts of the judgements against each other, by case."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...statistics.differences import part_difference
from ...statistics.estimates import Array, Estimate, Ids
from ..heard import Observed, sample_of
from ..verdicts import Measure, Side, measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Judgements in two parts.

    Attributes:
        said: The n judgements.
        values: Shape (n,): what is averaged.
        first: Shape (n,), marks: the first part; all others are the second.
        weights: Shape (n,), above 0: how much each counts within its part.
        bounds: Least and greatest possible value.
    """

    said: Sequence[Observed]
    values: Array
    first: Ids
    weights: Array
    bounds: tuple[float, float] = (0.0, 1.0)

    def difference(self, level: float) -> Estimate:
        """Mean of the first part less that of the second, with its interval.

        Args:
            level: Confidence level.
        """
        sample = replace(sample_of(self.said), weights=self.weights)
        return part_difference(
            self.values, self.first, ~self.first, sample, bounds=self.bounds, level=level
        ).estimate

    def measure(self, name: str, side: Side, limit: float, *, level: float) -> Measure:
        """The difference held against a limit."""
        parts = within_one(self.parts())
        return measured(name, self.difference(level), side, limit, parts=parts, unit="points")

    def parts(self) -> dict[str, tuple[float, float]]:
        """By case its share in the difference, so that their mean is the difference.

        A case adds to the difference what its judgements deviate from the means of their parts.
        """
        signs = np.where(self.first, 1.0, -1.0)
        means, sums = np.zeros(len(self.values)), np.ones(len(self.values))
        for part in (self.first, ~self.first):
            if part.any():
                means[part] = np.average(self.values[part], weights=self.weights[part])
                sums[part] = self.weights[part].sum()
        total = _mean_of(self.first, means) - _mean_of(~self.first, means)
        shares = signs * self.weights * (self.values - means) / sums
        by_case: defaultdict[str, float] = defaultdict(float)
        for one, value in zip(self.said, shares, strict=True):
            by_case[one.variant.case_id] += float(value)
        return {case: (total + len(by_case) * value, 1.0) for case, value in by_case.items()}


def within_one(parts: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The parts of a measure if each case adds at most 1 in size, else none.

    Cards of two judges are compared by what each case adds to a mean of values from -1 to 1.
    """
    return parts if all(abs(above) <= below for above, below in parts.values()) else {}


def _mean_of(part: Ids, means: Array) -> float:
    return float(means[part][0]) if part.any() else 0.0


def evenly(groups: Sequence[Hashable]) -> Array:
    """Weights with which every group counts the same, however many judgements it has."""
    sizes: defaultdict[Hashable, int] = defaultdict(int)
    for group in groups:
        sizes[group] += 1
    return np.array([1.0 / sizes[group] for group in groups])


def mixed_alike(groups: Sequence[Hashable], first: Ids) -> Array:
    """Weights with which the second part has the first's mix of groups.

    Args:
        groups: One for each judgement.
        first: Shape (n,), marks.

    Returns:
        Shape (n,); 0 for a judgement of a group that only one part has.
    """
    here: defaultdict[Hashable, int] = defaultdict(int)
    there: defaultdict[Hashable, int] = defaultdict(int)
    for group, is_first in zip(groups, first, strict=True):
        (here if is_first else there)[group] += 1
    weights = [
        0.0
        if not here[group] or not there[group]
        else 1.0
        if is_first
        else here[group] / there[group]
        for group, is_first in zip(groups, first, strict=True)
    ]
    return np.array(weights)


def kind_of(said: Observed) -> tuple[str, str, bool | None]:
    """What kind of plan was judged: planted fault, change, sound plan."""
    return said.variant.role, said.variant.kind, said.variant.truth.is_correct


def beyond_kind(said: Sequence[Observed], values: Array) -> Array:
    """Each value less the mean of its kind of plan.

    Between parts with one mix of kinds, or with mixes that chance made, this moves no difference
    and takes off the noise that comes from the kinds.

    Args:
        said: The n judgements.
        values: Shape (n,).
    """
    kinds = [kind_of(s) for s in said]
    order = {kind: n for n, kind in enumerate(dict.fromkeys(kinds))}
    at = np.array([order[kind] for kind in kinds])
    return values - (np.bincount(at, values) / np.bincount(at))[at]

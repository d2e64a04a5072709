"""Items sorted into a few kinds, and what can be said of the kinds with an interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from .intervals import CONFIDENCE_LEVEL, SEED, Array, Estimate, Ids
from .resampling import N_RESAMPLES, Draws, Measure, Method, bootstrap, draw, jackknife
from .sample import Sample
from .shares import bounded_ratio, counted_ratio, transformed
from .units import Kinds, plain, tabulate

Change = Callable[[float], float]

_FEW_CODES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How intervals are made.

    Attributes:
        level: Confidence level, between 0 and 1.
        method: Interval of what is neither a rate nor a bounded mean: ``jackknife``, ``bca`` or
            ``percentile``.
        rates: Interval of rates and bounded means: ``score`` (Wilson's, with an effective number
            of rows) or ``method``.
        n_resamples: Bootstrap resamples, where there are any.
        seed: Seed of the resampling.
    """

    level: float = CONFIDENCE_LEVEL
    method: Method = "jackknife"
    rates: Literal["score", "method"] = "score"
    n_resamples: int = N_RESAMPLES
    seed: int = SEED


@dataclass(frozen=True)
class Coded:
    """One code per item, such as the cell of a confusion matrix.

    Attributes:
        codes: Shape (n,), whole numbers; ``n_codes`` marks an item that is not counted.
        n_codes: Number of codes.
        sample: How the items were drawn.
        times: Shape (n,): how many items each entry stands for, where they were drawn alike and
            each by itself. None: one each.
    """

    codes: Ids
    n_codes: int
    sample: Sample
    times: Array | None = None

    @cached_property
    def counts(self) -> Array:
        """Shape (n_codes,): items, or sums of their weights."""
        weights = self.sample.weights if self.times is None else self.times
        return np.bincount(self.codes, weights, self.n_codes + 1)[: self.n_codes].astype(float)

    @property
    def n_items(self) -> int:
        """Items that are counted."""
        return int(self.counts.sum()) if self.sample.is_plain else len(self._counted[0])

    def ratio(
        self,
        above: Array,
        below: Array,
        settings: Settings,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        change: Change | None = None,
    ) -> Estimate:
        """Sum of what codes stand for above, over the sum of what they stand for below.

        Args:
            above: Shape (n_codes,).
            below: Shape (n_codes,), not negative.
            settings: How the interval is made.
            bounds: Least and greatest possible ratio.
            change: Increasing function of the ratio, for measures that are one.
        """
        if settings.rates == "method":
            made = self._resampled(above, below, settings, bounds)
        elif self.sample.is_plain:
            made = counted_ratio(self.counts, above, below, bounds=bounds, level=settings.level)
        else:
            codes, sample = self._among(below > 0)
            made = bounded_ratio(
                above[codes], below[codes], sample, bounds=bounds, level=settings.level
            )
        return made if change is None else transformed(made, change)

    def measure(
        self,
        measure: Measure,
        settings: Settings,
        *,
        bounds: tuple[float, float] | None = (-1.0, 1.0),
    ) -> Estimate:
        """Any function of the counts, with its interval.

        Args:
            measure: Maps tables of shape (..., n_codes) to values of shape (...).
            settings: How the interval is made.
            bounds: Least and greatest value; None for a measure without.
        """
        n, level = self.n_items, settings.level
        if settings.method == "jackknife":
            return jackknife(self.strata, measure, n_items=n, level=level, bounds=bounds)
        draws = self._draws(settings)
        return bootstrap(
            self.strata, draws, measure, n_items=n, level=level, method=settings.method
        )

    def only(self, kept: Array) -> Coded:
        """The same items without those of some codes.

        Args:
            kept: Shape (n_codes,): 0 for the codes that are not counted.
        """
        if not self.counts[kept == 0].any():
            return self
        codes = np.append(np.where(kept != 0, np.arange(self.n_codes), self.n_codes), self.n_codes)
        return self._recoded(codes, self.n_codes)

    def _recoded(self, codes: Ids, n_codes: int) -> Coded:
        """The same items under other codes; those alike are put together where none is special.

        Args:
            codes: Shape (n_codes + 1,): the new code of each.
            n_codes: Number of new codes.
        """
        if not self.sample.is_plain:
            return Coded(codes[self.codes], n_codes, self.sample)
        return Coded(codes[:-1], n_codes, self.sample, times=self.counts)

    @cached_property
    def _counted(self) -> tuple[Ids, Sample]:
        rows = self.codes < self.n_codes
        if rows.all():
            return self.codes, self.sample
        return self.codes[rows], self.sample.take(rows)

    def _among(self, held: Ids) -> tuple[Ids, Sample]:
        """The items of some codes, kept: several measures are of the same ones."""
        key = held.tobytes()
        if key not in self._parts:
            codes, sample = self._counted
            rows = held[codes]
            self._parts[key] = (codes, sample) if rows.all() else (codes[rows], sample.take(rows))
        return self._parts[key]

    @cached_property
    def _parts(self) -> dict[bytes, tuple[Ids, Sample]]:
        return {}

    @cached_property
    def strata(self) -> list[Kinds]:
        """The items that are counted, by the unit that is drawn; none where there are none."""
        if self.sample.is_plain:
            return plain(self.counts)
        codes, sample = self._counted
        return tabulate(codes, self.n_codes, sample) if len(codes) else []

    @cached_property
    def _drawn(self) -> dict[tuple[int, int], Draws]:
        return {}

    def _draws(self, settings: Settings) -> Draws | None:
        """Drawn once, whatever the number of measures."""
        key = settings.n_resamples, settings.seed
        if self.strata and key not in self._drawn:
            self._drawn[key] = draw(self.strata, n_resamples=key[0], seed=key[1])
        return self._drawn.get(key)

    def _resampled(
        self, above: Array, below: Array, settings: Settings, bounds: tuple[float, float]
    ) -> Estimate:
        """A ratio by resampling all items, those outside its denominator too."""
        counted, ratio = self.only(below), _Ratio(above, below)
        if settings.method == "jackknife":
            return counted.measure(ratio, settings, bounds=bounds)
        if self.sample.is_plain and self.n_codes > _FEW_CODES:
            return self._of_kinds(above, below, settings, bounds)
        return bootstrap(
            counted.strata,
            self._draws(settings),
            ratio,
            n_items=counted.n_items,
            level=settings.level,
            method=settings.method,
        )

    def _of_kinds(
        self, above: Array, below: Array, settings: Settings, bounds: tuple[float, float]
    ) -> Estimate:
        """Codes that stand for the same are one, which saves draws."""
        kinds, kind = np.unique(np.stack([above, below], 1), axis=0, return_inverse=True)
        items = self._recoded(np.append(kind.ravel(), len(kinds)), len(kinds))
        ratio = _Ratio(kinds[:, 0], kinds[:, 1])
        return items.only(kinds[:, 1]).measure(ratio, settings, bounds=bounds)


@dataclass(frozen=True, slots=True)
class _Ratio:
    above: Array
    below: Array

    def __call__(self, tables: Array) -> Array:
        below = tables @ self.below
        return tables @ self.above / np.where(below > 0, below, np.nan)

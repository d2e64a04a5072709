"""Items sorted into a few kinds, and measures of the kinds' counts with their intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from .bootstrap import Draws, Measure, bootstrap, draw, point, ratio_measure
from .estimates import Array, Estimate, Ids, t_quantile, transformed
from .jackknife import measured
from .proportions import Bounds, bounded_ratio, counted_ratio
from .sample import IntervalSettings, Kinds, Sample, plain, spread, tabulate

Change = Callable[[float], float]
_FEW_CODES = 8
_POPULATION = 1e9


@dataclass(frozen=True)
class CodedItems:
    """One code per item, such as the cell of a confusion matrix.

    Attributes:
        codes: Shape (n,), whole numbers; ``n_codes`` marks an item that is not counted.
        n_codes: Number of codes.
        sample: Sampling design of the items.
        times: Shape (n,): number of items that each entry stands for, in a plain sample; None: one
            each.
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
        settings: IntervalSettings,
        *,
        bounds: Bounds = (0.0, 1.0),
        change: Change | None = None,
    ) -> Estimate:
        """A ratio within bounds of two weighted sums of counts, weights of shape (n_codes,).

        ``change``: an increasing function, for measures that are such a function of the ratio.
        """
        if settings.is_bootstrap:
            estimate = self._resampled(above, below, settings)
        elif self.sample.is_plain:
            estimate = counted_ratio(self.counts, above, below, bounds=bounds, level=settings.level)
        else:
            codes, sample = self._among(below > 0)
            up, down = above[codes], below[codes]
            estimate = bounded_ratio(up, down, sample, bounds=bounds, level=settings.level)
        return estimate if change is None else transformed(estimate, change)

    def measure(
        self,
        measure: Measure,
        settings: IntervalSettings,
        *,
        bounds: Bounds | None = (-1.0, 1.0),
        prior: Array | None = None,
    ) -> Estimate:
        """Any function of the counts, with its interval.

        ``prior``, shape (n_codes,): items of each code that ``jeffreys`` adds as a prior; None
        where no prior is known: then the jackknife is used.
        """
        if settings.method == "jeffreys" and prior is not None:
            return self._jeffreys(measure, prior, settings)
        draws = self.draws(settings) if settings.is_bootstrap else None
        return measured(
            self.strata, measure, settings, n_items=self.n_items, bounds=bounds, draws=draws
        )

    def _jeffreys(self, measure: Measure, prior: Array, settings: IntervalSettings) -> Estimate:
        """Central interval of a measure, given the counts and a prior of a few items.

        The shares of the codes have a Dirichlet distribution, given the counts; the interval ends
        where ``(1 - level) / 2`` of the draws from it lie outside. The prior is that of Jeffreys
        (1946, doi:10.1098/rspa.1946.0056): it represents outcomes that n items may not have shown.
        Where rows share clusters or have weights or strata, counts are scaled to the number of
        independent items that would be equally precise. Unlike the jackknife it has an interval
        where one class has a single item or the judge was always right (docs/coverage.md).
        """
        counts, level, n_items = self.counts, settings.level, self.n_items
        clusters = None if self.sample.is_plain else self._counted[1].clusters
        n_units = n_items if clusters is None else len(np.unique(clusters))
        estimate, has_units = point(counts, measure, n_items=n_items, n_units=n_units, level=level)
        if not has_units:
            return estimate
        value = estimate.value or 0.0
        rng = np.random.default_rng(settings.seed)
        items = counts / counts.sum() * self._n_effective(measure, level) + prior
        draws = rng.standard_gamma(items, size=(settings.n_resamples, self.n_codes))
        # alpha corrects for few ratings; a population needs no correction
        values = measure(draws / draws.sum(axis=1, keepdims=True) * _POPULATION)
        low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2]).tolist()
        return replace(
            estimate,
            low=min(low, value),
            high=max(high, value),
            method="jeffreys",
            n_resamples=settings.n_resamples,
            seed=settings.seed,
        )

    def _n_effective(self, measure: Measure, level: float) -> float:
        """Number of independent items of equal precision, by the ratio of variances and by t."""
        if self.sample.is_plain:
            return float(self.n_items)
        codes, sample = self._counted
        n, step = float(len(codes)), 1e-4
        shares = self.counts / self.counts.sum()
        slopes = (measure(n * shares + step * np.eye(self.n_codes)) - measure(n * shares)) / step
        slopes = slopes - np.nansum(slopes * shares)
        weights = np.ones(len(codes)) if sample.weights is None else sample.weights
        by_rows = spread(slopes[codes] * weights, sample)
        alone = float(np.sum(n * shares * np.where(shares > 0, slopes, 0.0) ** 2))
        if not (alone > 1e-12 and by_rows.variance > 1e-12 and by_rows.effective_df > 0):
            return by_rows.n_clusters * sample.evenness
        tail = 0.5 + level / 2
        wider = t_quantile(tail, by_rows.effective_df) / NormalDist().inv_cdf(tail)
        return n * alone / by_rows.variance / wider**2

    def only(self, included: Array) -> CodedItems:
        """The same items without those of some codes; shape (n_codes,), 0 for these."""
        if not self.counts[included == 0].any():
            return self
        codes = np.where(included != 0, np.arange(self.n_codes), self.n_codes)
        return self._recoded(np.append(codes, self.n_codes), self.n_codes)

    def _recoded(self, codes: Ids, n_codes: int) -> CodedItems:
        """The same items under other codes, shape (n_codes + 1,): the new code of each."""
        if not self.sample.is_plain:
            return CodedItems(codes[self.codes], n_codes, self.sample)
        return CodedItems(codes[:-1], n_codes, self.sample, times=self.counts)

    @cached_property
    def _counted(self) -> tuple[Ids, Sample]:
        rows = self.codes < self.n_codes
        if rows.all():
            return self.codes, self.sample
        return self.codes[rows], self.sample.take(rows)

    def _among(self, included: Ids) -> tuple[Ids, Sample]:
        """The items of some codes, cached, because several measures use the same codes."""
        key = included.tobytes()
        if key not in self._parts:
            codes, sample = self._counted
            rows = included[codes]
            self._parts[key] = (codes, sample) if rows.all() else (codes[rows], sample.take(rows))
        return self._parts[key]

    @cached_property
    def _parts(self) -> dict[bytes, tuple[Ids, Sample]]:
        return {}

    @cached_property
    def strata(self) -> list[Kinds]:
        """The counted items by sampling unit; empty if there are none."""
        if self.sample.is_plain:
            return plain(self.counts)
        codes, sample = self._counted
        return tabulate(codes, self.n_codes, sample) if len(codes) else []

    @cached_property
    def _drawn(self) -> dict[tuple[int, int], Draws]:
        return {}

    def draws(self, settings: IntervalSettings) -> Draws | None:
        """Draws shared by all measures."""
        key = settings.n_resamples, settings.seed
        if self.strata and key not in self._drawn:
            self._drawn[key] = draw(self.strata, n_resamples=key[0], seed=key[1])
        return self._drawn.get(key)

    def _resampled(self, above: Array, below: Array, settings: IntervalSettings) -> Estimate:
        """A ratio by resampling all items, including those outside its denominator."""
        counted, of, measure = self.only(below), self, ratio_measure(above, below)
        if self.sample.is_plain and self.n_codes > _FEW_CODES:
            # merge equivalent codes, which saves draws
            kinds, kind = np.unique(np.stack([above, below], 1), axis=0, return_inverse=True)
            items = self._recoded(np.append(kind.ravel(), len(kinds)), len(kinds))
            measure = ratio_measure(kinds[:, 0], kinds[:, 1])
            counted = of = items.only(kinds[:, 1])
        return bootstrap(
            counted.strata,
            of.draws(settings),
            measure,
            n_items=counted.n_items,
            settings=settings,
            is_ratio=True,
        )

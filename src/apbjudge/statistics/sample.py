"""How rows were drawn: what an interval has to know of them beside their values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from .estimates import Array, Ids


@dataclass(frozen=True, slots=True)
class Kinds:
    """Distinct units of one stratum.

    Attributes:
        tables: Shape (n_kinds, n_codes): what one unit of a kind adds to the counts.
        counts: Shape (n_kinds,): how many units of the kind there are.
    """

    tables: Array
    counts: Ids

    @property
    def n_units(self) -> int:
        """Units of all kinds."""
        return int(self.counts.sum())

    @property
    def observed(self) -> Array:
        """Shape (n_codes,): the counts of all units."""
        return self.counts @ self.tables

    @property
    def without(self) -> Array:
        """Shape (n_kinds, n_codes): the counts of all units but one of each kind."""
        return self.observed - self.tables


def tabulate(codes: Ids, n_codes: int, sample: Sample) -> list[Kinds]:
    """Counts codes by unit.

    Args:
        codes: Shape (n,), whole numbers from 0 to ``n_codes`` - 1; n above 0.
        n_codes: Number of codes.
        sample: How the rows were drawn; a weight is what a row adds to its count.

    Returns:
        The kinds of units of each stratum. Neither the order of the rows nor the names of
        clusters have an influence. Rows of a stratum that this part of a sample leaves out are
        units that add nothing.

    Raises:
        ValueError: If a code is out of range.
    """
    counts = np.bincount(codes, minlength=n_codes)
    if len(counts) > n_codes:
        raise ValueError(f"codes: expected 0 to {n_codes - 1}, got {len(counts) - 1}")
    return plain(counts) if sample.is_plain else _strata(codes, n_codes, sample)


def plain(counts: Ids) -> list[Kinds]:
    """Units that are single rows, drawn alike, from their counts.

    Args:
        counts: Shape (n_codes,): rows of each code.

    Returns:
        Their kinds, in one stratum; none where there are no rows.
    """
    occurring = np.flatnonzero(counts)
    if not len(occurring):
        return []
    tables = np.zeros((len(occurring), len(counts)))
    tables[np.arange(len(occurring)), occurring] = 1
    return [Kinds(tables, counts[occurring].astype(np.int64))]


def _strata(codes: Ids, n_codes: int, sample: Sample) -> list[Kinds]:
    n = len(codes)
    weights = np.ones(n) if sample.weights is None else sample.weights
    if sample.clusters is None:
        unit, stratum, tables = _single_rows(codes, n_codes, weights, sample)
        size = np.bincount(unit, minlength=len(tables))
    else:
        unit, stratum = sample.units(n)
        flat: Array = np.bincount(unit * n_codes + codes, weights, len(stratum) * n_codes).astype(
            float
        )
        tables, size = flat.reshape(len(stratum), n_codes), np.ones(len(stratum), dtype=np.int64)
    kinds: list[Kinds] = []
    n_in = np.bincount(sample.strata) if sample.strata is not None else np.array([n])
    for s in np.unique(stratum):
        own, counts = tables[stratum == s], size[stratum == s]
        if sample.design is not None and (left_out := int(sample.design.n_drawn[s] - n_in[s])) > 0:
            own, counts = np.vstack([own, np.zeros(n_codes)]), np.append(counts, left_out)
        kinds.append(_merged(own, counts))
    return kinds


def _single_rows(
    codes: Ids, n_codes: int, weights: Array, sample: Sample
) -> tuple[Ids, Ids, Array]:
    """Rows of one stratum, weight and code are of one kind."""
    strata = np.zeros(len(codes), dtype=np.int64) if sample.strata is None else sample.strata
    sizes, size = np.unique(weights, return_inverse=True)
    keys, unit = np.unique((strata * len(sizes) + size) * n_codes + codes, return_inverse=True)
    tables = np.zeros((len(keys), n_codes))
    tables[np.arange(len(keys)), keys % n_codes] = sizes[keys // n_codes % len(sizes)]
    return unit, keys // n_codes // len(sizes), tables


def _merged(tables: Array, counts: Ids) -> Kinds:
    """Equal units put together, in an order that depends on their content alone."""
    if len(tables) == 1:
        return Kinds(tables, counts.astype(np.int64))
    used = tables[:, tables.any(axis=0)]
    order = np.lexsort(used.T[::-1]) if used.size else np.arange(len(tables))
    used = used[order]
    first = np.flatnonzero(np.append(True, (used[1:] != used[:-1]).any(axis=1)))
    return Kinds(tables[order[first]], np.add.reduceat(counts[order], first).astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata:
    """What is known of strata beside which rows are of which.

    Attributes:
        n_drawn: Shape (S,): rows drawn in each stratum, those included that a part of the sample
            leaves out. A rate among some of the rows varies with how many of them were drawn.
        shares: Shape (S,): each stratum's share of the population; None: not known.
        n_counted: Rows that the shares were counted in, if they are a sample of independent rows;
            None where the shares are exact, not known, or of rows in clusters.
        by_cluster: Shape (C, S): what each cluster adds to the error of the shares, where they
            were counted in a sample of clusters; the sample's clusters are indices into it.
    """

    n_drawn: Ids
    shares: Array | None = None
    n_counted: int | None = None
    by_cluster: Array | None = None

    @classmethod
    def counted(cls, of_labelled: Ids, of_all: Ids, clusters: Ids | None) -> Strata:
        """Strata of a run whose rows are a sample, and of which some were labelled.

        Args:
            of_labelled: Shape (n,): stratum of each labelled row, from 0.
            of_all: Shape (N,): stratum of each row of the run.
            clusters: Shape (N,), whole numbers from 0: what rows of the run were drawn together;
                None where each was drawn by itself.

        Returns:
            The strata. One without labels has a share of 0: nothing is said of it.
        """
        n_drawn = np.bincount(of_labelled, minlength=int(of_all.max()) + 1)
        size = len(n_drawn)
        covered = n_drawn[of_all] > 0
        of_all = of_all[covered]
        n = len(of_all)
        shares: Array = np.bincount(of_all, minlength=size) / n
        if clusters is None:
            return cls(n_drawn=n_drawn, shares=shares, n_counted=n)
        cells = np.bincount(
            clusters[covered] * size + of_all, minlength=(int(clusters.max()) + 1) * size
        ).reshape(-1, size)
        excess = (cells - cells.sum(axis=1, keepdims=True) * shares) / n
        return cls(n_drawn=n_drawn, shares=shares, by_cluster=excess)

    def share_variance(self, slopes: Array) -> float:
        """Variance of a sum of shares because they were counted in a sample; else 0.

        Args:
            slopes: Shape (S,), what each share is multiplied with.
        """
        if self.by_cluster is not None:
            return float(((self.by_cluster @ slopes) ** 2).sum())
        if self.shares is None or self.n_counted is None:
            return 0.0
        mean = float(self.shares @ slopes)
        return float(self.shares @ (slopes - mean) ** 2) / self.n_counted


@dataclass(frozen=True, kw_only=True)  # no slots: units are made once
class Sample:
    """How n rows were drawn; ``Sample()`` says: each by itself, all equally likely.

    Attributes:
        clusters: Shape (n,): rows of one cluster (a case, a query) were drawn together. None when
            each row is a cluster of its own. Any ids; kept as whole numbers from 0, and as None
            where no two rows share one.
        weights: Shape (n,), above 0: the inverse of each row's chance to be drawn, up to a common
            factor; kept with a mean of 1. None when all had the same chance.
        strata: Shape (n,): rows of different strata were drawn apart from each other. None when
            there was one stratum. Where clusters are resampled, parts of one in two strata count
            as two.
        design: What is known of the strata, by their index in ``strata``; made from ``strata``
            where it is not given. Parts of the sample keep it (``take``).

    Raises:
        ValueError: If lengths differ or a weight is not above 0.
    """

    clusters: Ids | None = None
    weights: Array | None = None
    strata: Ids | None = None
    design: Strata | None = None

    def __post_init__(self) -> None:
        lengths = {
            len(part) for part in (self.clusters, self.weights, self.strata) if part is not None
        }
        if len(lengths) > 1:
            raise ValueError(f"sample: expected columns of one length, got {sorted(lengths)}")
        if self.weights is not None and not bool(np.all(self.weights > 0)):
            raise ValueError("weights: expected numbers above 0")
        for name in ("clusters", "strata"):
            part = getattr(self, name)
            if self.design is not None:
                continue  # they are indices into what the design knows
            if part is not None and not _is_coded(part):
                codes = np.unique(part, return_inverse=True)[1].astype(np.int64)
                object.__setattr__(self, name, codes)
        alone = self.clusters is not None and not np.any(np.bincount(self.clusters) > 1)
        if alone and (self.design is None or self.design.by_cluster is None):
            object.__setattr__(self, "clusters", None)
        if self.strata is not None and self.design is None:
            object.__setattr__(self, "design", Strata(n_drawn=np.bincount(self.strata)))
        if self.weights is not None and len(self.weights):
            object.__setattr__(self, "weights", _with_mean_1(self.weights))

    @property
    def is_plain(self) -> bool:
        """Whether rows are independent and equally likely."""
        if self.clusters is not None or self.strata is not None:
            return False
        return self.weights is None or bool(np.all(self.weights == 1))

    @property
    def stratum_weights(self) -> Array | None:
        """Shape (S,): weight of a row of each stratum, drawn into this part or not; else None."""
        design, weights, strata = self.design, self.weights, self.strata
        if design is None or design.shares is None or weights is None or strata is None:
            return None
        if not len(strata):
            return None
        of_row = design.shares / np.maximum(design.n_drawn, 1)
        return of_row * (weights[0] / of_row[strata[0]])

    @property
    def evenness(self) -> float:
        """Mean weight over the greatest of a row that was drawn: 1 where all weigh the same.

        Times the number of rows it says how many of the heaviest kind would be worth as much.
        """
        if self.weights is None or not len(self.weights):
            return 1.0
        greatest, of_strata = float(self.weights.max()), self.stratum_weights
        if of_strata is not None:
            greatest = max(greatest, float(of_strata.max()))
        return float(self.weights.mean()) / greatest

    def take(self, rows: Ids) -> Sample:
        """The sample of some rows; strata remember how many rows were drawn in all."""
        columns = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "design"
        }
        return Sample(
            **{name: None if part is None else part[rows] for name, part in columns.items()},
            design=self.design,
        )

    def units(self, n: int) -> tuple[Ids, Ids]:
        """What is drawn as one: clusters within strata, or single rows.

        Returns:
            Shape (n,), the unit of each row, from 0 without gaps; shape (n_units,), the stratum
            of each unit.
        """
        if (units := self._clustered) is not None:
            return units
        return np.arange(n), np.zeros(n, dtype=np.int64) if self.strata is None else self.strata

    @cached_property
    def _clustered(self) -> tuple[Ids, Ids] | None:
        if self.clusters is None:
            return None
        strata = 0 if self.strata is None else self.strata
        width = int(self.clusters.max(initial=0)) + 1
        keys, unit = np.unique(strata * width + self.clusters, return_inverse=True)
        return unit, keys // width


def _is_coded(ids: Ids) -> bool:
    """Whether ids are whole numbers from 0 on with few gaps, which index without a search."""
    if ids.dtype != np.int64:
        return False
    return not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < 4 * len(ids) + 1024)


def _with_mean_1(weights: Array) -> Array:
    """Exactly 1 where all are equal."""
    least, greatest = float(weights.min()), float(weights.max())
    if greatest - least <= 1e-12 * greatest:
        return np.ones(len(weights))
    return weights / weights.mean()

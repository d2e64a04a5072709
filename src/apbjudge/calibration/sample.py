"""How rows were drawn: what an interval has to know of them beside their values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from .intervals import Array, Ids


@dataclass(frozen=True, kw_only=True)  # no slots: units are found once
class Sample:
    """How n rows were drawn; ``Sample()`` says: each by itself, all equally likely.

    Attributes:
        clusters: Shape (n,): rows of one cluster (a case, a query) were drawn together. None when
            each row is a cluster of its own. Any ids; kept as whole numbers from 0, and as None
            where no two rows share one.
        weights: Shape (n,), above 0: the inverse of each row's chance to be drawn, up to a common
            factor; kept with a mean of 1. None when all had the same chance.
        strata: Shape (n,): rows of different strata were drawn apart from each other. None when
            there was one stratum. Clusters do not reach beyond their stratum: parts of one in
            two strata count as two clusters.

    Raises:
        ValueError: If lengths differ or a weight is not above 0.
    """

    clusters: Ids | None = None
    weights: Array | None = None
    strata: Ids | None = None

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
            if part is not None and not _is_coded(part):
                codes = np.unique(part, return_inverse=True)[1].astype(np.int64)
                object.__setattr__(self, name, codes)
        if self.clusters is not None and not np.any(np.bincount(self.clusters) > 1):
            object.__setattr__(self, "clusters", None)
        if self.weights is not None and len(self.weights):
            object.__setattr__(self, "weights", _with_mean_1(self.weights))

    @property
    def is_plain(self) -> bool:
        """Whether rows are independent and equally likely."""
        if self.clusters is not None or self.strata is not None:
            return False
        return self.weights is None or bool(np.all(self.weights == 1))

    def take(self, rows: Ids) -> Sample:
        """The sample of some rows.

        Args:
            rows: Indices or marks, as numpy takes them.
        """
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        return Sample(**{k: None if part is None else part[rows] for k, part in kept.items()})

    def units(self, n: int) -> tuple[Ids, Ids]:
        """What is drawn as one: clusters within strata, or single rows.

        Args:
            n: Number of rows.

        Returns:
            Shape (n,), the unit of each row, from 0 without gaps; shape (n_units,), the stratum
            of each unit.
        """
        if (found := self._clustered) is not None:
            return found
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

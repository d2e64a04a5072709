"""Count tables by the unit that is drawn: equal units put together, strata apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .intervals import Array, Ids
from .sample import Sample


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
    held = np.flatnonzero(counts)
    if not len(held):
        return []
    tables = np.zeros((len(held), len(counts)))
    tables[np.arange(len(held)), held] = 1
    return [Kinds(tables, counts[held].astype(np.int64))]


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
    held = tables[:, tables.any(axis=0)]
    order = np.lexsort(held.T[::-1]) if held.size else np.arange(len(tables))
    held = held[order]
    first = np.flatnonzero(np.append(True, (held[1:] != held[:-1]).any(axis=1)))
    return Kinds(tables[order[first]], np.add.reduceat(counts[order], first).astype(np.int64))

"""Selection of items to label next, such that conclusions hold for all items.

Labels chosen by uncertainty alone show nothing about the rest. Items are sampled at random within
strata, more where judge and human are likely to differ; a label's weight follows from the size of
its stratum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import OptionError
from .estimates import SEED, Array, Ids

LEAST = 2
_UNSURE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One group of items that labels are sampled from.

    Attributes:
        name: The stratum's id as text; ``labelled before`` for items that were labelled without
            sampling.
        size: Number of items.
        labelled: Items with a label already.
        planned: Items to be labelled now.
        uncertainty: Anticipated share of items on which human and judge differ, never 0 or 1.
        weight: Items that each label stands for once all planned items are labelled; 0 without
            labels.
    """

    name: str
    size: int
    labelled: int
    planned: int
    uncertainty: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The items to label next, and the items that the labels will stand for.

    Attributes:
        rows: Shape (n,): indices of the items, in labelling order; any beginning that reaches each
            stratum is a stratified sample too.
        stratum: Shape (n,): index into ``strata`` of each.
        weight: Shape (n,): items that each stands for once all planned items are labelled.
        strata: The strata.
        all_strata: Shape (N,): index into ``strata`` of every item; for ``Sample.strata``.
        seed: Seed of the draw.
    """

    rows: Ids
    stratum: Ids
    weight: Array
    strata: tuple[Stratum, ...]
    all_strata: Ids
    seed: int


def select(
    uncertainty: Array, strata: Ids, already: Ids, n: int, *, already_random: bool, seed: int = SEED
) -> Selection:
    """Draws items to label: at random within strata, in optimal numbers.

    Neyman's allocation (1934, doi:10.2307/2342192) in whole numbers (Wright 2012,
    doi:10.1080/00031305.2012.733679): labels are allotted by size times the standard deviation of
    "human and judge differ", with at least 2 per stratum, or all of its items.

    Args:
        uncertainty: Shape (N,): the anticipated chance that the human disagrees with the judge,
            0 to 1 (from the entropy of the judge's samples, or one value for all).
        strata: Shape (N,), any ids; known before labelling (``uncertainty_strata``).
        already: Shape (N,), bool: items that have a label.
        n: Number of items to label now, at least 1.
        already_random: True if labelled items were sampled at random within these strata; if not,
            they form a stratum of their own and represent only themselves.
        seed: The same seed gives the same draw.

    Returns:
        The selection; with all unlabelled items if there are no more than ``n``.

    Raises:
        OptionError: If ``n`` is too small for 2 labels a stratum; merge strata then.
        ValueError: If lengths differ or an uncertainty is out of range.

    When not to use it: to find as many of the judge's errors as possible.
    """
    if not len(uncertainty) == len(strata) == len(already):
        lengths = f"{len(uncertainty)}, {len(strata)} and {len(already)}"
        raise ValueError(f"select: expected columns of one length, got {lengths}")
    if not bool(np.all((uncertainty >= 0) & (uncertainty <= 1))):
        raise ValueError("uncertainty: expected numbers from 0 to 1")
    if n < 1:
        raise ValueError(f"n: expected at least 1, got {n}")
    apart = already & (not already_random)
    ids, index = np.unique(strata[~apart], return_inverse=True)
    names = [*(str(name) for name in ids.tolist()), *(["labelled before"] if apart.any() else [])]
    codes = np.full(len(strata), len(ids), dtype=np.int64)
    codes[~apart] = index
    sizes = np.bincount(codes, minlength=len(names))
    done = np.bincount(codes[already], minlength=len(names))
    # a tenth of the way to one half: even the surest judge is sometimes wrong
    means = np.bincount(codes, weights=uncertainty, minlength=len(names)) / np.maximum(sizes, 1)
    unsure = (1 - _UNSURE) * means + _UNSURE * 0.5
    planned = _allocated(sizes, done, unsure, min(n, int((sizes - done).sum())))
    rng = np.random.default_rng(seed)
    pools = [np.flatnonzero((codes == h) & ~already) for h in range(len(names))]
    rows = _in_order(rng, pools, planned)
    total = done + planned
    weight = np.where(total > 0, sizes / np.maximum(total, 1), 0.0)
    return Selection(
        rows=rows,
        stratum=codes[rows],
        weight=weight[codes[rows]],
        strata=tuple(
            Stratum(
                name=names[h],
                size=int(sizes[h]),
                labelled=int(done[h]),
                planned=int(planned[h]),
                uncertainty=float(unsure[h]),
                weight=float(weight[h]),
            )
            for h in range(len(names))
        ),
        all_strata=codes,
        seed=seed,
    )


def _allocated(sizes: Ids, done: Ids, unsure: Array, n: int) -> Ids:
    """The number of items of each stratum to label now."""
    least = np.maximum(np.minimum(sizes, LEAST) - done, 0)
    if least.sum() > n:
        raise OptionError(
            f"n: expected at least {least.sum()}, so that each of {len(sizes)} strata has "
            f"{LEAST} labels, got {n}; ask for more or merge strata"
        )
    total = done + least
    spread = sizes * np.sqrt(unsure * (1 - unsure))
    for _ in range(n - int(least.sum())):
        # reduction of the variance by one more label; none so far counts as one
        counts = np.maximum(total, 1)
        gains = np.where(total < sizes, spread / np.sqrt(counts * (counts + 1)), -1.0)
        total[np.argmax(gains)] += 1
    return total - done


def _in_order(rng: np.random.Generator, pools: list[Ids], planned: Ids) -> Ids:
    """Rows in labelling order: one of each stratum first, then evenly spread."""
    if not pools:
        return np.empty(0, dtype=np.int64)
    permuted = [rng.permutation(pool)[:k] for pool, k in zip(pools, planned, strict=True)]
    place = [(np.arange(len(rows)) + 0.5) / max(1, len(rows)) for rows in permuted]
    for places in place:
        places[:1] = 0.0
    rows, places = np.concatenate(permuted), np.concatenate(place)
    return rows[np.lexsort((rng.random(len(rows)), places))]


def uncertainty_strata(is_correct: Ids, entropy: Array) -> Ids:
    """Strata from the judge's verdict and its uncertainty, which are known before labelling.

    Args:
        is_correct: Shape (N,): 1, 0, or -1 where the judge gave no verdict.
        entropy: Shape (N,): entropy of the judge's samples, NaN where there is none.

    Returns:
        Shape (N,), names such as ``wrong, uncertainty 3 of 3``: the verdict, and thirds of the
        entropy over all items where it has at least 3 distinct values (equal values stay together).
    """
    verdict = np.select([is_correct == 1, is_correct == 0], ["correct", "wrong"], "unscored")
    known = ~np.isnan(entropy)
    values = np.unique(entropy[known])
    if len(values) < 3:
        return verdict
    edges = np.unique(np.quantile(entropy[known], [1 / 3, 2 / 3]))
    edges = edges[edges < values[-1]]
    band = np.searchsorted(edges, np.where(known, entropy, values[0]), side="left")
    of = f" of {len(edges) + 1}"
    uncertainties = np.where(
        known, np.char.add(np.char.add(", uncertainty ", (band + 1).astype(str)), of), ""
    )
    return np.char.add(verdict, uncertainties)

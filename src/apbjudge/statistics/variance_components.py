"""How much of a spread comes from items, from prompts within them, and from repeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .bootstrap import jackknife
from .estimates import CONFIDENCE_LEVEL, Array, Estimate, Ids, nothing
from .sample import Kinds

Part = Literal["item", "prompt", "repeat"]
PARTS: tuple[Part, ...] = ("item", "prompt", "repeat")


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """A variance in three parts.

    Attributes:
        variances: By part, in squared units of the values, at least 0; empty where the design
            can't tell them apart.
        shares: Each part's share of their sum, with its interval where there is one.
        cut: Parts that came out below 0 and were set to 0.
        note: Why there are none; empty otherwise.
    """

    variances: dict[Part, float]
    shares: dict[Part, Estimate]
    cut: tuple[Part, ...] = ()
    note: str = ""


def nested_components(
    values: Array, items: Ids, prompts: Ids, clusters: Ids, *, level: float = CONFIDENCE_LEVEL
) -> Components:
    """Variance components of repeats within prompts within items, by the method of moments.

    The sums of squares of the nested analysis of variance are set equal to what is expected of
    them, whatever the numbers of prompts and repeats (Searle 1971, Linear Models, section 11.2).
    A component that comes out below 0, which chance brings about where it is small, is set to 0;
    the others stay as they are. Shares have a jackknife interval by cluster, cut to [0, 1].

    Args:
        values: Shape (n,): such as grades.
        items: Shape (n,): the item of each value.
        prompts: Shape (n,): its prompt; equal ids within one item are one prompt.
        clusters: Shape (n,): what is independent; an item lies in one of them.
        level: Confidence level of the intervals of the shares.

    Returns:
        The components. None where there is one item, where no item has two prompts, or where no
        prompt was repeated; shares without a value where nothing varies.

    When not to use it: with few clusters (below about 15), or where values are 0 and 1 and rare,
    the parts are rough.
    """
    if not len(values):
        return Components(variances={}, shares={}, note="no values")
    sums = _sums_by_cluster(values, items, prompts, clusters)
    if note := _obstacle(sums.sum(axis=0)):
        return Components(variances={}, shares={}, note=note)
    raw = _solved(sums.sum(axis=0))
    shares: dict[Part, Estimate] = {
        part: _share(i, sums, len(values), level) for i, part in enumerate(PARTS)
    }
    cut: tuple[Part, ...] = tuple(part for part, value in zip(PARTS, raw, strict=True) if value < 0)
    variances: dict[Part, float] = {
        part: max(0.0, float(value)) for part, value in zip(PARTS, raw, strict=True)
    }
    return Components(variances=variances, shares=shares, cut=cut)


def _sums_by_cluster(values: Array, items: Ids, prompts: Ids, clusters: Ids) -> Array:
    """What each cluster adds to the sums that the components follow from, shape (n_clusters, 10).

    Columns: values, items, prompts, the sum of values, the sums of squares within prompts, between
    prompts and around 0 between items, squared prompt sizes over item sizes, squared prompt
    sizes, squared item sizes.
    """
    centred = values - values.mean()
    item = np.unique(items, return_inverse=True)[1]
    inner = np.unique(prompts, return_inverse=True)[1]
    cell, prompt = np.unique(item * (inner.max() + 1) + inner, return_inverse=True)
    of_cell = cell // (inner.max() + 1)
    n_cell, n_item = np.bincount(prompt), np.bincount(item)
    m_cell = np.bincount(prompt, centred) / n_cell
    m_item = np.bincount(item, centred) / n_item
    cluster = np.unique(clusters, return_inverse=True)[1]
    home = np.zeros(len(n_item), dtype=np.int64)
    home[item] = cluster

    def by_cluster(weights: Array, item_of: Ids) -> Array:
        return np.bincount(home[item_of], weights, int(cluster.max()) + 1).astype(float)

    every = np.arange(len(n_item))
    columns = (
        by_cluster(np.ones(len(values)), item),
        by_cluster(np.ones(len(n_item)), every),
        by_cluster(np.ones(len(cell)), of_cell),
        by_cluster(centred, item),
        by_cluster((centred - m_cell[prompt]) ** 2, item),
        by_cluster(n_cell * (m_cell - m_item[of_cell]) ** 2, of_cell),
        by_cluster(n_item * m_item**2, every),
        by_cluster(n_cell**2 / n_item[of_cell], of_cell),
        by_cluster((n_cell**2).astype(float), of_cell),
        by_cluster((n_item**2).astype(float), every),
    )
    return np.stack(columns, axis=1)


def _obstacle(sums: Array) -> str:
    n, n_items, n_prompts = sums[:3]
    if n_items < 2:
        return "one item shows no spread between items"
    if n_prompts == n_items:
        return "no item was asked with two prompts"
    return "no prompt was repeated" if n == n_prompts else ""


def _solved(sums: Array) -> Array:
    """Components of item, prompt and repeat, shape (..., 3), from sums of shape (..., 10)."""
    n, items, prompts, total, within, between, around, mixed, cells, wholes = np.moveaxis(
        sums, -1, 0
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        repeat = within / (n - prompts)
        prompt = (between - (prompts - items) * repeat) / (n - mixed)
        across = around - total**2 / n
        known = (mixed - cells / n) * prompt + (items - 1) * repeat
        item = (across - known) / (n - wholes / n)
    return np.stack([item, prompt, repeat], axis=-1)


def _share_of(i: int) -> Callable[[Array], Array]:
    def measure(sums: Array) -> Array:
        parts = np.maximum(_solved(sums), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return parts[..., i] / parts.sum(axis=-1)

    return measure


def _share(i: int, by_cluster: Array, n: int, level: float) -> Estimate:
    units = [Kinds(by_cluster, np.ones(len(by_cluster), dtype=np.int64))]
    parts = np.maximum(_solved(by_cluster.sum(axis=0)), 0.0)
    if parts.sum() <= 1e-18:
        return nothing(level, n_items=n, note="nothing varies")
    share = jackknife(units, _share_of(i), n_items=n, level=level, bounds=None)
    if share.low is None or share.high is None:
        return share
    return replace(share, low=max(0.0, share.low), high=min(1.0, share.high))

"""The estimate with its interval, and Student's t."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Ids = np.ndarray[Any, Any]
CONFIDENCE_LEVEL = 0.95
E = TypeVar("E", bound="Estimate")
SEED = 20_260_101
FEW_CLUSTERS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its interval and everything needed to reproduce it.

    Attributes:
        value: The point estimate; None if there is no data for it.
        low: Lower end of the interval, None when there is none.
        high: Upper end.
        level: Confidence level, 0 to 1.
        method: Method of the interval. ``wilson``, ``wilson-modified``, ``wilson-effective``,
            ``wilson-clusters``, ``t-ratio`` (``proportions``); ``jeffreys`` (``coded``); ``fisher``
            (``scores``); ``jackknife``, ``bca``, ``percentile``, ``cluster-bootstrap``,
            ``no-spread`` (``bootstrap``);
            ``t-bonett-price``, ``mover`` (``differences``); ``ppi++``, ``ppi-stratified``,
            ``ppi-weighted``, ``lang-reiczigel`` (``prediction_powered``); ``bounds``;
            ``hand-picked``, ``none``: there is none.
        n_items: Denominator: number of rows that count in the figure.
        n_clusters: Distinct cases among them.
        n_resamples: Bootstrap resamples, 0 without.
        seed: Seed of the resampling, None without.
        note: Reason why there is no value or no interval, or why it is rough; empty otherwise.
        bound: ``upper`` or ``lower`` if the value is only a bound of the figure, as with a judge
            that only proves faults and so misses some. Empty if it is the figure itself.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float
    method: str = "none"
    n_items: int
    n_clusters: int
    n_resamples: int = 0
    seed: int | None = None
    note: str = ""
    bound: Literal["", "upper", "lower"] = ""

    def __str__(self) -> str:
        """``0.778 [0.453, 0.961] /9``, with ``≤`` or ``≥`` before a bound; a dash for no value."""
        if self.value is None:
            return f"– /{self.n_items}"
        sign = {"upper": "≤ ", "lower": "≥ "}.get(self.bound, "")
        ends = (
            "" if self.low is None or self.high is None else f" [{self.low:.3f}, {self.high:.3f}]"
        )
        return f"{sign}{self.value:.3f}{ends} /{self.n_items}"


def nothing(
    level: float = CONFIDENCE_LEVEL, *, n_items: int = 0, note: str = "no rows"
) -> Estimate:
    """An estimate without value: of no rows, or for the reason in ``note``."""
    return Estimate(value=None, level=level, n_items=n_items, n_clusters=0, note=note)


def cluster_note(n_items: int, n_clusters: int) -> str:
    """A warning if there are few clusters; empty otherwise."""
    if n_clusters < min(n_items, FEW_CLUSTERS):
        return f"{n_clusters} clusters: with fewer than {FEW_CLUSTERS} intervals are rough"
    return ""


def transformed(estimate: E, change: Callable[[float], float]) -> E:
    """The estimate of an increasing function of the estimated figure."""
    value, low, high = (
        None if end is None else change(end)
        for end in (estimate.value, estimate.low, estimate.high)
    )
    return replace(estimate, value=value, low=low, high=high)


def t_cdf(t: float, df: float) -> float:
    """Student's t distribution: the probability of a value of at most ``t``; ``df`` above 0."""
    from scipy.special import stdtr

    return float(stdtr(df, t))


def two_sided(t: float, df: float) -> float:
    """Two-sided p-value of a statistic with Student's t distribution."""
    return min(1.0, 2 * t_cdf(-abs(t), df))


@lru_cache(maxsize=4096)  # a table asks for the same quantiles many times
def t_quantile(p: float, df: float) -> float:
    """The ``p`` quantile of Student's t distribution; ``df`` above 0."""
    from scipy.special import stdtrit

    return float(stdtrit(df, p))

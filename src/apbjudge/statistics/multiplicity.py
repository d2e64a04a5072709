"""P-values adjusted for there being several."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, get_args

Correction = Literal["holm", "bh", "by"]
"""How p-values are adjusted; see ``adjust``."""
_STATSMODELS = {"holm": "holm", "bh": "fdr_bh", "by": "fdr_by"}


def adjust(p_values: Sequence[float | None], *, method: Correction) -> list[float | None]:
    """P-values adjusted for there being several.

    ``holm`` (Holm 1979) keeps the chance of any false finding at the level, whatever the
    dependence: for a family stated beforehand. ``bh`` (Benjamini & Hochberg 1995) keeps the
    expected share of false ones among the findings: for exploration, with independent or
    positively dependent tests. ``by`` (Benjamini & Yekutieli 2001,
    doi:10.1214/aos/1013699998) does so for any dependence.

    Args:
        p_values: Between 0 and 1; None where there was no test, which then does not count.
        method: Which of them.

    Returns:
        Adjusted p-values in the order given, None where None was given.

    Raises:
        ValueError: If a p-value is out of range or the method unknown.
    """
    tested = [p for p in p_values if p is not None]
    if method not in get_args(Correction) or not all(0 <= p <= 1 for p in tested):
        raise ValueError(f"adjust: expected p-values from 0 to 1 by holm, bh or by, got {method!r}")
    if len(tested) < 2:
        return list(p_values)
    multitest: Any = import_module("statsmodels.stats.multitest")  # it carries no types
    _, corrected, *_ = multitest.multipletests(tested, method=_STATSMODELS[method])
    adjusted = iter(corrected.tolist())
    return [None if p is None else next(adjusted) for p in p_values]

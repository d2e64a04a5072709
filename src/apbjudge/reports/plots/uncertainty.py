"""Figure of a judge's uncertainty: its certainty against human labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ...document.numbers import level_text
from ...statistics.estimates import CONFIDENCE_LEVEL, Estimate
from ...statistics.proportions import share
from ...statistics.sample import Sample
from .charts import certainty_chart, surest_chart
from .figure import Figure
from .marks import Frame, frame, percent

_Rows = Iterable[tuple[dict[str, Any], Estimate]]
"""The fields of each estimate's row, and the estimate."""
MOST_BINS = 10
LEAST_ITEMS = 10
_INTERVALS = f"{level_text(CONFIDENCE_LEVEL)} intervals"


def uncertainty_figures(replies: Frame, judge: str) -> Iterator[Figure]:
    """Agreement by certainty and on the surest items; none for fewer than ten usable items.

    An item without label, verdict or the judge's share of replies is left out.

    Args:
        replies: Columns ``judge``, ``p_correct``, ``human_correct``, ``is_correct``, ``case_id``.
        judge: The judge.
    """
    needed = ["p_correct", "human_correct", "is_correct"]
    used = replies[replies["judge"] == judge].dropna(subset=needed)
    p, human, verdict = (np.asarray(used[name], dtype=float) for name in needed)
    # rounded, so that 1 - 0.2 and 0.8 are one certainty
    unsorted: np.ndarray[Any, Any] = np.round(np.maximum(p, 1 - p), 9)
    order = np.argsort(unsorted, kind="stable")
    certainty, agrees = unsorted[order], (human == verdict)[order]
    cases = np.array(list(map(str, used["case_id"])), dtype=np.str_)[order]
    n_items = len(certainty)
    if n_items < LEAST_ITEMS:
        return

    def agreement(start: int, end: int) -> Estimate:
        own = agrees[start:end]
        return share(own, np.ones(len(own), dtype=bool), Sample(clusters=cases[start:end]))

    def figure(key: str, title: str, alt: str, rows: _Rows, draw: Callable[[], Any]) -> Figure:
        data = frame([{"judge": judge, **row, **_columns(of)} for row, of in rows])
        note = f"{_INTERVALS}; n = {n_items}"
        return Figure(key=key, title=title, alt=alt, data=data, draw=draw, note=note)

    bins = _bins(certainty)
    by_bin = [agreement(start, end) for start, end in bins]
    bin_means = [float(certainty[start:end].mean()) for start, end in bins]
    sentences = [
        f"{_rate(estimate)} of {estimate.n_items} items at a certainty of {percent(mean)} %"
        for mean, estimate in zip(bin_means, by_bin, strict=True)
    ]
    yield figure(
        "uncertainty",
        "Agreement with humans by certainty of the judge",
        f"A single point: the judge agrees with humans on {sentences[0]}."
        if len(bins) == 1
        else "Points, and the diagonal of a perfectly calibrated judge. It agrees with humans "
        f"on {sentences[0]} and on {sentences[-1]}.",
        [
            ({"from": certainty[start], "to": certainty[end - 1], "certainty": mean}, of)
            for (start, end), mean, of in zip(bins, bin_means, by_bin, strict=True)
        ],
        partial(certainty_chart, bin_means, by_bin),
    )
    starts = [start for start, _ in reversed(bins)]
    shares = [(n_items - start) / n_items for start in starts]
    surest = [agreement(start, n_items) for start in starts]
    yield figure(
        "uncertainty-coverage",
        "Agreement with humans on the items that the judge is surest of",
        "A line from the surest items to all of them. The judge agrees with humans on "
        f"{_rate(surest[0])} of the surest {percent(shares[0])} % and on "
        f"{_rate(surest[-1])} of all {n_items} items.",
        [
            ({"share": part, "from": certainty[start]}, of)
            for start, part, of in zip(starts, shares, surest, strict=True)
        ],
        partial(surest_chart, shares, surest),
    )


def _bins(certainty: np.ndarray[Any, Any]) -> list[tuple[int, int]]:
    """Start and end of bins: about equally full, equal certainties together."""
    least = max(LEAST_ITEMS, len(certainty) / MOST_BINS)
    cuts = [0]
    for end in [*(np.flatnonzero(np.diff(certainty)) + 1).tolist(), len(certainty)]:
        if end - cuts[-1] >= least:
            cuts.append(end)
    cuts[-1] = len(certainty)  # a remainder too small for a bin joins the last one
    return list(pairwise(cuts))


def _rate(estimate: Estimate) -> str:
    return f"{percent(estimate.value or 0.0)} %"


def _columns(estimate: Estimate) -> dict[str, object]:
    return {
        **{name: getattr(estimate, name) for name in ("value", "low", "high", "level")},
        "n": estimate.n_items,
        "n_clusters": estimate.n_clusters,
    }

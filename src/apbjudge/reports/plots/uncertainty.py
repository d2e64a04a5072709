"""Whether an unsure judge errs more: its certainty against human labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ...statistics.estimates import CONFIDENCE_LEVEL, Estimate
from ...statistics.proportions import share
from ...statistics.sample import Sample
from .curves import certainty_chart, surest_chart
from .figure import Figure
from .marks import Frame, frame, percent

Vector = np.ndarray[Any, Any]

MOST_BINS = 10
LEAST_ITEMS = 10
_INTERVALS = f", with {100 * CONFIDENCE_LEVEL:.4g} % intervals"


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
    unsorted: Vector = np.round(np.maximum(p, 1 - p), 9)
    order = np.argsort(unsorted, kind="stable")
    certainty, agrees = unsorted[order], (human == verdict)[order]
    cases = np.array(list(map(str, used["case_id"])), dtype=np.str_)[order]
    if len(certainty) < LEAST_ITEMS:
        return

    def agreement(start: int, end: int) -> Estimate:
        own = agrees[start:end]
        return share(own, np.ones(len(own), dtype=bool), Sample(clusters=cases[start:end]))

    bins = _bins(certainty)
    yield _by_certainty(
        judge,
        [certainty[start:end] for start, end in bins],
        [agreement(start, end) for start, end in bins],
    )
    starts = [start for start, _ in reversed(bins)]
    end = len(certainty)
    yield _on_the_surest(
        judge,
        [(end - start) / end for start in starts],
        [float(certainty[start]) for start in starts],
        [agreement(start, end) for start in starts],
    )


def _bins(certainty: Vector) -> list[tuple[int, int]]:
    """Start and end of bins: about equally full, equal certainties together."""
    least = max(LEAST_ITEMS, len(certainty) / MOST_BINS)
    cuts = [0]
    for end in [*(np.flatnonzero(np.diff(certainty)) + 1).tolist(), len(certainty)]:
        if end - cuts[-1] >= least:
            cuts.append(end)
    cuts[-1] = len(certainty)  # what is too little for a bin of its own joins the last
    return list(pairwise(cuts))


def _by_certainty(judge: str, certainties: list[Vector], agreement: list[Estimate]) -> Figure:
    means = [float(own.mean()) for own in certainties]
    rows = [
        {"judge": judge, "from": own[0], "to": own[-1], "certainty": mean, **_columns(estimate)}
        for own, mean, estimate in zip(certainties, means, agreement, strict=True)
    ]
    ends = [
        f"{percent(estimate.value or 0.0)} % of {estimate.n_items} items at a certainty of "
        f"{percent(mean)} %"
        for mean, estimate in zip(means, agreement, strict=True)
    ]
    alt = (
        f"A single point: the judge agrees with humans on {ends[0]}."
        if len(ends) == 1
        else "Points beside the diagonal of a judge as right as it is sure. It agrees with humans "
        f"on {ends[0]} and on {ends[-1]}."
    )
    return Figure(
        key="uncertainty",
        title=f"Agreement with humans by how sure the judge is{_INTERVALS}",
        alt=alt,
        data=frame(rows),
        draw=partial(certainty_chart, means, agreement),
    )


def _on_the_surest(
    judge: str, shares: list[float], lowest: list[float], agreement: list[Estimate]
) -> Figure:
    rows = [
        {"judge": judge, "share": share_of_items, "from": certainty, **_columns(estimate)}
        for share_of_items, certainty, estimate in zip(shares, lowest, agreement, strict=True)
    ]
    return Figure(
        key="uncertainty-coverage",
        title=f"Agreement with humans on the items that the judge is surest of{_INTERVALS}",
        alt="A line from the surest items to all of them. The judge agrees with humans on "
        f"{percent(agreement[0].value or 0.0)} % of the surest {percent(shares[0])} % and on "
        f"{percent(agreement[-1].value or 0.0)} % of all {agreement[-1].n_items} items.",
        data=frame(rows),
        draw=partial(surest_chart, shares, agreement),
    )


def _columns(estimate: Estimate) -> dict[str, object]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "level": estimate.level,
        "n": estimate.n_items,
        "n_clusters": estimate.n_clusters,
    }

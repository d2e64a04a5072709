"""Whether a judge that doubts is a judge that errs: its certainty against human labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from ...statistics.estimates import CONFIDENCE_LEVEL, Estimate
from ...statistics.proportions import share
from ...statistics.sample import Sample
from .doubt_sheets import calibration_sheet, coverage_sheet
from .drafts import Draft
from .marks import distinct, percent
from .seam import Frame, Vector, frame, numbers, texts

MOST_BINS = 10
LEAST_ITEMS = 10
_WITH = f", with {100 * CONFIDENCE_LEVEL:.4g} % intervals"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Items:
    """Labelled items of one judge, by rising certainty."""

    certainty: Vector
    agrees: Vector
    case: Vector


def doubt_drafts(doubt: Frame, judge: str) -> Iterator[Draft]:
    """The two figures of one judge; none where fewer than ten items can be used.

    Args:
        doubt: Columns ``judge``, ``p_correct``, ``human_correct``, ``is_correct``, ``case_id``.
        judge: The judge.
    """
    items = _items_of(doubt, judge)
    if len(items.certainty) >= LEAST_ITEMS:
        bounds = _bounds(items.certainty)
        yield _calibration(items, bounds, judge)
        yield _coverage(items, bounds, judge)


def doubt_judges(doubt: Frame) -> tuple[str, ...]:
    """The judges, each once."""
    return distinct(texts(doubt, "judge"))


def _items_of(doubt: Frame, judge: str) -> _Items:
    """An item lacks its label, its verdict or the judge's share of replies: it is left out."""
    p, human, verdict = (
        numbers(doubt, name) for name in ("p_correct", "human_correct", "is_correct")
    )
    held = np.array([own == judge for own in texts(doubt, "judge")], dtype=bool)
    held &= ~np.isnan(p) & ~np.isnan(human) & ~np.isnan(verdict)
    # rounded, so that 1 - 0.2 and 0.8 are one certainty
    certainty = np.round(np.maximum(p, 1 - p), 9)[held]
    order = np.argsort(certainty, kind="stable")
    case = np.array(texts(doubt, "case_id"), dtype=np.str_)[held]
    return _Items(
        certainty=certainty[order], agrees=(human == verdict)[held][order], case=case[order]
    )


def _bounds(certainty: Vector) -> list[tuple[int, int]]:
    """Where bins start and end: about equally full, equal certainties together."""
    least = max(LEAST_ITEMS, len(certainty) / MOST_BINS)
    cuts = [0]
    for end in [*(np.flatnonzero(np.diff(certainty)) + 1).tolist(), len(certainty)]:
        if end - cuts[-1] >= least:
            cuts.append(end)
    if cuts[-1] != len(certainty):  # too few are left for a bin of their own
        cuts[-1] = len(certainty)
    return list(pairwise(cuts))


def _agreement(items: _Items, start: int, end: int) -> Estimate:
    agrees = items.agrees[start:end]
    sample = Sample(clusters=items.case[start:end])
    return share(agrees, np.ones(len(agrees), dtype=bool), sample)


def _row(found: Estimate) -> dict[str, object]:
    return {
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "level": found.level,
        "n": found.n_items,
        "n_clusters": found.n_clusters,
    }


_NUMBERS = ("value", "low", "high", "level", "n", "n_clusters")


def _calibration(items: _Items, bounds: Sequence[tuple[int, int]], judge: str) -> Draft:
    agreement = [_agreement(items, start, end) for start, end in bounds]
    own = [items.certainty[start:end] for start, end in bounds]
    places = [float(part.mean()) for part in own]
    rows = [
        {"judge": judge, "from": part[0], "to": part[-1], "certainty": place, **_row(found)}
        for part, place, found in zip(own, places, agreement, strict=True)
    ]
    return Draft(
        key="doubt",
        title=f"Agreement with humans by how sure the judge is{_WITH}",
        alt=_calibration_in_words(places, agreement),
        data=frame(rows, ("judge", "from", "to", "certainty", *_NUMBERS)),
        draw=partial(calibration_sheet, places, agreement),
    )


def _calibration_in_words(places: Sequence[float], agreement: Sequence[Estimate]) -> str:
    ends = [
        f"{percent(found.value or 0.0)} % of {found.n_items} items at a certainty of "
        f"{percent(place)} %"
        for place, found in zip(places, agreement, strict=True)
    ]
    if len(ends) == 1:
        return f"A single point: the judge agrees with humans on {ends[0]}."
    return (
        "Points beside the diagonal of a judge as right as it is sure. It agrees with humans on "
        f"{ends[0]} and on {ends[-1]}."
    )


def _coverage(items: _Items, bounds: Sequence[tuple[int, int]], judge: str) -> Draft:
    end = len(items.certainty)
    starts = [start for start, _ in reversed(bounds)]
    agreement = [_agreement(items, start, end) for start in starts]
    kept = [(end - start) / end for start in starts]
    rows = [
        {"judge": judge, "kept": share_kept, "from": items.certainty[start], **_row(found)}
        for share_kept, start, found in zip(kept, starts, agreement, strict=True)
    ]
    return Draft(
        key="doubt-coverage",
        title=f"Agreement with humans on the items that the judge is surest of{_WITH}",
        alt="A line from the surest items to all of them. The judge agrees with humans on "
        f"{percent(agreement[0].value or 0.0)} % of the surest {percent(kept[0])} % and on "
        f"{percent(agreement[-1].value or 0.0)} % of all {end} items.",
        data=frame(rows, ("judge", "kept", "from", *_NUMBERS)),
        draw=partial(coverage_sheet, kept, agreement),
    )

"""What several judges differ in, and what a cascade costs at every threshold, as text and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from math import isinf

from ..errors import visible
from ..statistics.intervals import wilson
from .cascade import CurvePoint
from .panel import Disagreement, Pair

POINTS_SHOWN = 11

_HEAD = ("threshold n_escalated share cost_usd calls n_agree n_compared agreement low high").split()


def disagreement_text(found: Disagreement) -> str:
    """How often judges differ: over all, and for every two of them."""
    of = f"{found.n_shared} items with two or more verdicts ({found.n_items} items in all)"
    lines = [f"judges are not unanimous on {found.n_split} of {of}"]
    lines += [_pair_text(pair) for pair in found.pairs]
    return "\n".join(lines) + "\n"


def _pair_text(pair: Pair) -> str:
    names = f"{visible(pair.first)} and {visible(pair.second)}"
    if not pair.n_items:
        return f"  {names}: no item that both have a verdict on"
    return f"  {names}: agree on {_share(pair.n_agree, pair.n_items)}"


def curve_text(points: Sequence[CurvePoint], *, reference: str) -> str:
    """A few of the thresholds, from no item escalated to all.

    Args:
        points: All of them.
        reference: Whose word the verdicts are compared with.
    """
    lines = [
        f"escalated from  share  cost       agreement with {visible(reference)}, where it answered"
    ]
    lines += [
        f"{_from(p):<15} {p.share:>5.0%}  {_cost(p):<9}  {_share(p.n_agree, p.n_compared)}"
        for p in _some(points)
    ]
    return "\n".join(lines) + "\n"


def curve_rows(points: Sequence[CurvePoint]) -> str:
    """All thresholds as CSV: entropy in bits, shares from 0 to 1, 95 % Wilson intervals."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_HEAD)
    for p in points:
        bounds: list[float | None] = [None, None, None]
        if p.n_compared:
            bounds = [p.n_agree / p.n_compared, *wilson(p.n_agree, p.n_compared)]
        counts = [p.n_escalated, p.share, p.cost_usd, p.calls, p.n_agree, p.n_compared]
        writer.writerow([_from(p), *counts, *bounds])
    return out.getvalue()


def _some(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    """At most ``POINTS_SHOWN`` points, first and last among them, evenly by share."""
    if len(points) <= POINTS_SHOWN:
        return list(points)
    wanted = [i / (POINTS_SHOWN - 1) for i in range(POINTS_SHOWN)]
    nearest = (min(range(len(points)), key=lambda i: abs(points[i].share - w)) for w in wanted)
    return [points[i] for i in sorted({0, len(points) - 1, *nearest})]


def _from(point: CurvePoint) -> str:
    if point.threshold is None:
        return "none"
    return "no verdict" if isinf(point.threshold) else f"{point.threshold:.4f}"


def _cost(point: CurvePoint) -> str:
    return "unknown" if point.cost_usd is None else f"{point.cost_usd:.4f}"


def _share(part: int, whole: int) -> str:
    if not whole:
        return "not known"
    low, high = wilson(part, whole)
    return f"{100 * part / whole:.1f} [{100 * low:.1f}, {100 * high:.1f}] /{whole}"

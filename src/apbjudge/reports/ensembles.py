"""How often several judges disagree, and what a cascade costs at every threshold."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from math import isinf

from ..judge.cascade import CurvePoint
from ..judge.panel import Disagreement
from ..statistics.intervals import wilson
from .document import Document, Notes, Table
from .numbers import money, percent, share

POINTS_SHOWN = 11
_HEAD = "threshold n_escalated share cost_usd calls n_agree n_compared agreement low high".split()


def disagreement_document(found: Disagreement) -> Document:
    """How often judges differ: over all, and for every two of them."""
    of = f"{found.n_shared} items with two or more verdicts ({found.n_items} items in all)"
    lines = [f"judges are not unanimous on {found.n_split} of {of}"]
    for pair in found.pairs:
        agree = (
            f"agree on {share(pair.n_agree, pair.n_items)}"
            if pair.n_items
            else "no item has a verdict of both"
        )
        lines.append(f"  {pair.first} and {pair.second}: {agree}")
    return Document((Notes(tuple(lines)),))


def cascade_document(points: Sequence[CurvePoint], *, reference: str) -> Document:
    """A few of the thresholds, from no item escalated to all, evenly by share.

    Args:
        points: All thresholds; at most ``POINTS_SHOWN`` are shown, the first and last among them.
        reference: The judge that verdicts are compared with.
    """
    shown = list(points)
    if len(shown) > POINTS_SHOWN:
        wanted = [i / (POINTS_SHOWN - 1) for i in range(POINTS_SHOWN)]
        nearest = (min(range(len(points)), key=lambda i: abs(points[i].share - w)) for w in wanted)
        shown = [points[i] for i in sorted({0, len(points) - 1, *nearest})]
    rows = [
        (_threshold(p), percent(p.share, 0), money(p.cost_usd), share(p.n_agree, p.n_compared))
        for p in shown
    ]
    heads = ("threshold", "escalated", "cost", f"agreement with {reference}, where it answered")
    return Document((Table.of(heads, rows),))


def cascade_csv(points: Sequence[CurvePoint]) -> str:
    """All thresholds as CSV: entropy in bits, shares from 0 to 1, 95 % Wilson intervals."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_HEAD)
    for p in points:
        bounds: list[float | None] = [None, None, None]
        if p.n_compared:
            bounds = [p.n_agree / p.n_compared, *wilson(p.n_agree, p.n_compared)]
        counts = [p.n_escalated, p.share, p.cost_usd, p.calls, p.n_agree, p.n_compared]
        writer.writerow([_threshold(p), *counts, *bounds])
    return out.getvalue()


def _threshold(point: CurvePoint) -> str:
    if point.threshold is None:
        return "none"
    return "no verdict" if isinf(point.threshold) else f"{point.threshold:.4f}"

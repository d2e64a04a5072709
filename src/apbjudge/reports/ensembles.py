"""How often several judges disagree, and what a cascade costs at every threshold."""

from __future__ import annotations

from collections.abc import Sequence

from ..judge.cascade import CascadeCurve, CurvePoint, threshold_text
from ..judge.panel import Disagreement
from .document import Document, Notes, Table
from .numbers import money, percent, share
from .text import render_text

POINTS_SHOWN = 11


def ensemble_text(ensemble: Disagreement | CascadeCurve) -> str:
    """How often several judges disagree, or what their cascade costs, for a terminal."""
    if isinstance(ensemble, Disagreement):
        return render_text(disagreement_document(ensemble))
    text = render_text(cascade_document(ensemble.points, reference=ensemble.reference))
    return f"{text}{ensemble.n_queued} items are left to humans, the most uncertain first\n"


def disagreement_document(disagreement: Disagreement) -> Document:
    """How often judges differ: over all, and for every two of them."""
    d = disagreement
    of = f"{d.n_shared} items with two or more verdicts ({d.n_items} items in all)"
    lines = [f"judges are not unanimous on {d.n_split} of {of}"]
    for pair in d.pairs:
        agree = (
            f"agree on {share(pair.n_agree, pair.n_items)}"
            if pair.n_items
            else "no item has a verdict of both"
        )
        lines.append(f"  {pair.first} and {pair.second}: {agree}")
    return Document((Notes(tuple(lines)),))


def cascade_document(points: Sequence[CurvePoint], *, reference: str) -> Document:
    """At most ``POINTS_SHOWN`` thresholds, from no item escalated to all, evenly by share."""
    shown = list(points)
    if len(shown) > POINTS_SHOWN:
        wanted = [i / (POINTS_SHOWN - 1) for i in range(POINTS_SHOWN)]
        nearest = (min(range(len(points)), key=lambda i: abs(points[i].share - w)) for w in wanted)
        shown = [points[i] for i in sorted({0, len(points) - 1, *nearest})]
    rows = [
        (threshold_text(p), percent(p.share, 0), money(p.cost_usd), share(p.n_agree, p.n_compared))
        for p in shown
    ]
    heads = ("threshold", "escalated", "cost", f"agreement with {reference}, where it answered")
    return Document((Table.of(heads, rows),))

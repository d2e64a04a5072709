"""Presentation: does the verdict change when the same plan is shown in another way?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..outcomes import Probe, ProbeSpec, ProbeTable, decide
from ..responses import AuditResponses, Response
from .measures import (
    FlipCounts,
    by_kind,
    changes_of,
    describe,
    flips_of,
    kind_figures,
    mean_text,
    repeat_notes,
    repeats_of,
    unscored_note,
)

SPEC = ProbeSpec(
    name="presentation",
    title="Presentation",
    question="Does the verdict change when the same plan is shown in another way?",
)

SHIFT = 0.10
"""A change that says nothing about the plan may turn one verdict in ten beyond chance flips."""


def probe(audit: AuditResponses) -> Probe:
    """Compares flips against the parent, less the parent's own, with the limit, by kind.

    Variants with the role ``shown`` are compared with their parents, and these with the responses
    to them under ``again-1``, ….
    """
    pairs, asked = audit.pairs("shown"), audit.asked("shown")
    used = _used(audit, asked)
    if not pairs:
        because = "no plan was presented in another way, or none of those has a verdict"
        return SPEC.unasked(because, used)
    flips = {kind: flips_of(audit, of) for kind, of in by_kind(pairs).items()}
    return SPEC.result(
        decide(of.measure(kind, SHIFT) for kind, of in flips.items()),
        used,
        figures=kind_figures(pairs),
        tables=[ProbeTable.of(_TITLE, "changed", flips, _CELLS)],
        examples=(
            (response, describe(response, parent, "before"))
            for of in flips.values()
            for (response, parent), flipped in zip(of.pairs, of.flipped, strict=True)
            if flipped
        ),
        notes=[*repeat_notes(flips), *unscored_note(asked)],
    )


def _used(audit: AuditResponses, asked: list[Response]) -> list[Response]:
    parents = [audit.find(response.variant.parent or "") for response in asked]
    known = {parent.variant.name: parent for parent in parents if parent is not None}.values()
    return [*asked, *known, *(again for parent in known for again in repeats_of(audit, parent))]


_TITLE = "Verdicts that flip, by change of presentation"
_CELLS: Mapping[str, Callable[[FlipCounts], str]] = {
    "n": lambda of: str(len(of.pairs)),
    "flipped": lambda of: mean_text(of.flipped),
    "flip when asked again": lambda of: mean_text(of.own) if of.is_asked_again else "–",
    "change of passing": lambda of: mean_text(changes_of(of.pairs), "points"),
}

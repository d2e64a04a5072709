"""Presentation: does the verdict change when the same plan is shown in another way?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..responses import AuditResponses, Response, Pair
from ..outcomes import (
    Figure,
    Probe,
    Table,
    concluded,
    cost_of,
    exhibits_of,
    level_for,
    unasked,
)
from .pairing import (
    Flips,
    change_figure,
    changes_of,
    flips_measure,
    flips_of,
    grouped,
    kind_of,
    notes_on,
    of_truth,
    repeats_of,
)
from .telling import against, mean_text, without_verdict

NAME = "presentation"
TITLE = "Presentation"
QUESTION = "Does the verdict change when the same plan is shown in another way?"

SHIFT = 0.10
"""What says nothing of the plan may turn one verdict in ten, beyond those that turn anyway."""


def probe(responses: AuditResponses) -> Probe:
    """Holds flips against the parent, less the parent's own, against the limit, by kind.

    Args:
        responses: All that was said; variants with the role shown are compared with their parents,
            and these with what was said of them under ``again-1``, ….

    Returns:
        The probe; could not tell where no variant and parent both have a verdict.
    """
    pairs = responses.pairs("shown")
    asked = _used(responses)
    if not pairs:
        because = "no plan was shown in another way, or none of them has a verdict"
        return replace(unasked(NAME, TITLE, QUESTION, because), cost=cost_of(asked))
    flips = {kind: flips_of(responses, of) for kind, of in grouped(pairs, kind_of).items()}
    level = level_for(len(flips))
    measures = tuple(flips_measure(kind, of, SHIFT, level=level) for kind, of in flips.items())
    parents = {said.variant.name: parent for said, parent in pairs}
    exhibits = exhibits_of(
        [said for of in flips.values() for said in of.variants],
        lambda said: against(said, parents[said.variant.name], "before"),
    )
    return concluded(
        NAME,
        TITLE,
        QUESTION,
        measures=measures,
        figures=tuple(_directions(pairs)),
        tables=(_table(flips),),
        exhibits=exhibits,
        said=asked,
        notes=(*notes_on(flips), *without_verdict(responses.asked("shown"))),
    )


def _used(responses: AuditResponses) -> list[Response]:
    shown = responses.asked("shown")
    parents = [responses.find(said.variant.parent or "") for said in shown]
    known = {said.variant.name: said for said in parents if said is not None}.values()
    return [*shown, *known, *(again for said in known for again in repeats_of(responses, said))]


def _directions(pairs: Sequence[Pair]) -> Iterable[Figure]:
    """Change of the share that passes, apart for sound and faulty plans."""
    for kind, of in grouped(pairs, kind_of).items():
        for is_correct, name in ((True, "correct plans"), (False, "faulty plans")):
            if chosen := of_truth(of, is_correct=is_correct):
                yield change_figure(f"{kind}, {name}: change of passing", chosen)


def _table(flips: Mapping[str, Flips]) -> Table:
    def row(kind: str, of: Flips) -> tuple[str, ...]:
        own = mean_text(of.own) if of.is_asked_again else "–"
        cells = (
            str(len(of.pairs)),
            mean_text(of.flipped),
            own,
            mean_text(changes_of(of.pairs), "points"),
        )
        return kind, *cells

    return Table(
        title="Verdicts that flip, by what was changed in the presentation",
        columns=("changed", "n", "flipped", "flip when asked again", "change of passing"),
        rows=tuple(row(kind, of) for kind, of in flips.items()),
    )

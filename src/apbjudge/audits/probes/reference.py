"""Reference dependence: does the judge examine the plan, or compare it with what it is shown?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..outcomes import Probe, ProbeSpec, ProbeTable, decide
from ..responses import BLIND, AuditResponses, Pair, Response, passed
from .measures import (
    by_kind,
    change,
    change_figure,
    changes_of,
    describe,
    flips_of,
    mean_text,
    of_truth,
    repeat_notes,
    repeats_of,
    unscored_note,
)

SPEC = ProbeSpec(
    name="reference",
    title="Dependence on the reference",
    question=(
        "Does the judge examine the plan itself, or compare it with the reference it is shown?"
    ),
)

ECHOED = 0.15
"""A wrong reference must not make more than three faulty plans in twenty pass."""
FOREIGN = 0.15
"""Nor fail more than three sound plans in twenty."""
EQUIVALENT = 0.15
"""Two good references for one plan may turn so many verdicts, beyond those that turn anyway."""
WITHOUT = 0.15
"""Without any reference so many verdicts may change in one direction."""

_ECHOED, _FOREIGN = "echoed-reference", "foreign-reference"
_AS_GOOD = ("equivalent-reference", "reworded-reference")
"""Kinds after which the reference is as good as before."""
_ORDER = (_ECHOED, _FOREIGN, *_AS_GOOD)

NOTE = (
    "relying on the reference is not a fault in itself where every case has a good one; but then "
    "the verdict on plans that differ from it depends on it"
)


def probe(audit: AuditResponses) -> Probe:
    """Compares what other references change, and none at all, with the limits.

    Variants with the role ``reference`` are compared with their parents, the run without the
    reference with the main run.
    """
    pairs, blind = audit.pairs("reference"), audit.across(BLIND)
    as_good = [pair for pair in pairs if pair[0].variant.kind in _AS_GOOD]
    asked = [*audit.asked("reference"), *(r for r in audit.all if r.run == BLIND)]
    used = [*asked, *(other for _, other in (*pairs, *blind))]
    used += [again for _, parent in as_good for again in repeats_of(audit, parent)]
    kinds = by_kind(pairs)
    faulty = of_truth(blind, is_correct=False)
    specs = [
        change("echoed", kinds.get(_ECHOED, []), "at most", ECHOED),
        change("foreign", kinds.get(_FOREIGN, []), "within", FOREIGN),
        change("blind, correct plans", of_truth(blind, is_correct=True), "within", WITHOUT),
        change("blind, faulty plans", faulty, "within", WITHOUT),
    ]
    flips = {"equivalent": flips_of(audit, as_good)} if as_good else {}
    measures = decide([*specs, *(of.measure(name, EQUIVALENT) for name, of in flips.items())])
    if not measures:
        because = "no reference was exchanged or omitted, or no such request has a verdict"
        return SPEC.unasked(because, used)
    return SPEC.result(
        measures,
        used,
        figures=(change_figure(f"{kind}: change of passing", of) for kind, of in kinds.items()),
        tables=[_table(pairs, blind)],
        examples=_examples(pairs, blind),
        notes=[NOTE, *repeat_notes(flips), *unscored_note(asked)],
    )


def _table(pairs: Sequence[Pair], blind: Sequence[Pair]) -> ProbeTable:
    groups = dict(by_kind(pairs))
    for name, truth in (("correct", True), ("faulty", False)):
        if chosen := of_truth(blind, is_correct=truth):
            groups[f"no reference, {name} plans"] = chosen

    def passing(at: int) -> Callable[[Sequence[Pair]], str]:
        return lambda of: mean_text(passed([pair[at] for pair in of]).tolist())

    return ProbeTable.of(
        "Pass rate by the reference shown",
        "reference",
        groups,
        {
            "n": lambda of: str(len(of)),
            "passed before": passing(1),
            "passed with it": passing(0),
            "change": lambda of: mean_text(changes_of(of), "points"),
        },
    )


def _examples(pairs: Sequence[Pair], blind: Sequence[Pair]) -> Iterable[tuple[Response, str]]:
    """Verdicts that changed, the echoed and the foreign first."""
    flipped = [pair for pair in (*pairs, *blind) if pair[0].is_correct != pair[1].is_correct]
    order = {kind: n for n, kind in enumerate(_ORDER)}
    for response, other in sorted(flipped, key=lambda p: order.get(p[0].variant.kind, len(order))):
        name = "with the reference" if response.run == BLIND else "with the case's own"
        yield response, describe(response, other, name)

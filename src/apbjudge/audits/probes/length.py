"""Length: does a plan pass because it is long, or fail for it?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import log2

import numpy as np

from ...statistics.estimates import Array
from ..heard import Heard, Observed, Pair, sample_of
from ..verdicts import (
    Figure,
    Measure,
    Probe,
    Table,
    concluded,
    cost_of,
    exhibits_of,
    level_for,
    measured,
    unasked,
)
from .measuring import shift
from .pairing import change_figure, changes_of, grouped, kind_of, of_truth
from .slopes import slope
from .telling import against, mean_text, without_verdict

NAME = "length"
TITLE = "Length"
QUESTION = "Does a plan pass because it is long, or fail for it?"

PADDED = 0.10
"""Idle words may turn one verdict in ten; a tested model that talks more must not gain from it."""
PER_DOUBLING = 0.05
"""Replies of tested models easily differ fourfold in length: ten points between them at most."""
FEWEST = 10
"""Cases below which an error by case says little."""

_ERROR = "error per doubling of length"


def probe(heard: Heard) -> Probe:
    """Holds changes by padding, and the judge's error by length, against the limits.

    Args:
        heard: All that was said; variants with the role padded are compared with their parents,
            predictions with what is known of them, where anything is.

    Returns:
        The probe; could not tell where there is neither.
    """
    pairs, labelled = heard.pairs("padded"), _labelled(heard)
    asked = _used(heard, pairs, labelled)
    measures = _measures(pairs, labelled)
    if not measures:
        because = "no plan was made longer, and too few labelled predictions differ in length"
        return replace(unasked(NAME, TITLE, QUESTION, because), cost=cost_of(asked))
    parents = {said.variant.name: parent for said, parent in pairs}
    exhibits = exhibits_of(
        [said for said, parent in pairs if said.is_correct != parent.is_correct],
        lambda said: against(said, parents[said.variant.name], "before"),
    )
    return concluded(
        NAME,
        TITLE,
        QUESTION,
        measures=measures,
        figures=tuple(_figures(pairs)),
        tables=_tables(pairs),
        exhibits=exhibits,
        said=asked,
        notes=(*_notes(measures), *without_verdict(heard.asked("padded"))),
    )


def _labelled(heard: Heard) -> list[Observed]:
    return [s for s in heard.scored("prediction") if s.variant.truth.is_correct is not None]


def _used(
    heard: Heard, pairs: Sequence[Pair], labelled: Sequence[Observed]
) -> tuple[Observed, ...]:
    return (*heard.asked("padded"), *(parent for _, parent in pairs), *labelled)


_TRUTHS: Mapping[str, bool] = {"correct plans": True, "faulty plans": False}


def _measures(pairs: Sequence[Pair], labelled: Sequence[Observed]) -> tuple[Measure, ...]:
    by_truth = {name: of_truth(pairs, is_correct=truth) for name, truth in _TRUTHS.items()}
    known = {name: of for name, of in by_truth.items() if of}
    has_slope = _can_regress(labelled)
    level = level_for(len(known) + has_slope)
    found = [
        shift(f"padded, {name}", of, changes_of(of), "within", PADDED, level=level)
        for name, of in known.items()
    ]
    return (*found, _regressed(labelled, level)) if has_slope else tuple(found)


def _can_regress(labelled: Sequence[Observed]) -> bool:
    """Whether there are enough cases, and lengths differ among plans of the same truth."""
    lengths, truths = _lengths(labelled), _truths(labelled)
    spread = [np.ptp(lengths[truths == value]) for value in np.unique(truths)]
    cases = {said.variant.case_id for said in labelled}
    return len(cases) >= FEWEST and max(map(float, spread), default=0.0) > 0


def _lengths(said: Sequence[Observed]) -> Array:
    """Log to the base of 2 of the characters of each reply."""
    return np.array([log2(max(1, len(str(s.variant.row.get("model_response", ""))))) for s in said])


def _truths(said: Sequence[Observed]) -> Array:
    return np.array([float(bool(s.variant.truth.is_correct)) for s in said])


def _regressed(labelled: Sequence[Observed], level: float) -> Measure:
    """The judge's error (verdict less truth) on length, at equal truth."""
    truths = _truths(labelled)
    verdicts = np.array([float(bool(s.is_correct)) for s in labelled])
    sample = sample_of(labelled)
    estimate = slope(verdicts - truths, _lengths(labelled), truths, sample, level=level)
    return measured(_ERROR, estimate, "within", PER_DOUBLING, unit="points")


def _figures(pairs: Sequence[Pair]) -> Iterable[Figure]:
    for kind, of in grouped(pairs, kind_of).items():
        for name, truth in _TRUTHS.items():
            if chosen := of_truth(of, is_correct=truth):
                yield change_figure(f"{kind}, {name}: change of passing", chosen)


def _tables(pairs: Sequence[Pair]) -> tuple[Table, ...]:
    rows = [
        (
            kind,
            name,
            str(len(chosen)),
            f"{np.mean([_growth(pair) for pair in chosen]):.1f}",
            mean_text(changes_of(chosen), "points"),
        )
        for kind, of in grouped(pairs, kind_of).items()
        for name, truth in _TRUTHS.items()
        if (chosen := of_truth(of, is_correct=truth))
    ]
    columns = "made longer", "plans", "n", "times as long", "change of passing"
    title = "Plans made longer, by how"
    return (Table(title=title, columns=columns, rows=tuple(rows)),) if rows else ()


def _growth(pair: Pair) -> float:
    after, before = (2.0 ** float(_lengths([said])[0]) for said in pair)
    return after / before


def _notes(measures: Sequence[Measure]) -> Iterable[str]:
    if any(measure.name == _ERROR for measure in measures):
        yield (
            "error per doubling of length: of verdict less truth (-1 to 1), among predictions of "
            "the same truth; longer plans may be harder to judge for other reasons"
        )
    else:
        yield (
            f"no regression on length: it takes labelled predictions of {FEWEST} cases or more, "
            "and different lengths"
        )

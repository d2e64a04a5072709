"""Two judge cards side by side: the differences between two judges, case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..errors import OptionError, visible
from ..statistics.differences import PairedTest, adjust, paired_test
from ..statistics.estimates import CONFIDENCE_LEVEL, Estimate, nothing
from ..statistics.sample import Sample
from .card import Card, Size
from .outcomes import Cost, Measure, Outcome, Side, Unit

MAX_LEVEL = 0.999999


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSide:
    """One of two cards in a comparison.

    Attributes:
        judge: The judge's name.
        settings: Its settings, as in a run's manifest.
        version: Version of apbjudge.
        cost: The cost of its audit.
    """

    judge: str
    settings: Mapping[str, Any]
    version: str
    cost: Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePair:
    """The outcomes of one probe.

    Attributes:
        name: Machine name of the probe.
        title: Its title.
        question: The question that it answers.
        first: Outcome of the first judge; None if its card lacks the probe.
        second: Outcome of the second judge, likewise.
        first_because: The reason of the first outcome; empty without.
        second_because: The reason of the second outcome; empty without.
    """

    name: str
    title: str
    question: str
    first: Outcome | None
    second: Outcome | None
    first_because: str = ""
    second_because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurePair:
    """One measure of two judges.

    Attributes:
        probe: Machine name of its probe.
        name: Name of the value.
        side: Side of the limit on which a sound judge is; ``within``: no further from 0.
        limit: The limit of a sound judge, in the unit of the value.
        unit: As in ``Measure``.
        first: Value of the first judge on all of its cases, as on its card.
        second: Value of the second judge, likewise.
        first_outcome: Outcome of the first judge.
        second_outcome: Outcome of the second judge.
        n_shared: Number of cases that both values are about.
        difference: First less second over these cases, weighted by what was asked about each; has
            no value if there are none.
        p_value: Two-sided p-value of no difference; None without an interval.
        adjusted: The p-value adjusted by Holm's method over all measures.
        detectable: Smallest true difference that is detected with a probability of 0.8.
    """

    probe: str
    name: str
    side: Side
    limit: float
    unit: Unit
    first: Estimate
    second: Estimate
    first_outcome: Outcome
    second_outcome: Outcome
    n_shared: int
    difference: Estimate
    p_value: float | None
    adjusted: float | None = None
    detectable: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardComparison:
    """Two judges that were asked the same.

    Attributes:
        first: The first judge.
        second: The second judge.
        rows: The source of the items, in words.
        size: Size of both audits.
        fingerprint: Hash of the design that both audits followed.
        level: Confidence level of the differences.
        probes: The probes of either card, in the order of the first.
        measures: The measures that both have.
        only_first: Measures that only the first has, as ``probe: measure``.
        only_second: Measures that only the second has.
    """

    first: CardSide
    second: CardSide
    rows: str
    size: Size
    fingerprint: str
    level: float
    probes: tuple[ProbePair, ...]
    measures: tuple[MeasurePair, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The comparison in JSON values; missing is None."""
        return asdict(self)


def compare_cards(first: Card, second: Card) -> CardComparison:
    """Compares two judges, measure by measure, on the cases they share.

    Args:
        first: Judge A.
        second: Judge B; differences are A less B.

    Returns:
        Every measure that both cards have, with the paired difference by case, its p-value and
        the p-value by Holm over all of them.

    Raises:
        OptionError: If the judges were not asked the same (other design), or the figures are not of
            the same verdicts (a card of an earlier version).

    Do not use it to conclude that two judges are equally good: see the detectable difference. An
    interval of a difference says nothing about the limit of a measure that both judges keep.
    """
    if first.fingerprint != second.fingerprint:
        raise OptionError(
            "--compare: expected cards of one plan, got "
            f"{visible(first.judge)} ({visible(first.fingerprint)}) and {visible(second.judge)} "
            f"({visible(second.fingerprint)}), whose audits differ: audit both with the "
            "same rows, size, seed and version"
        )
    if first.verdicts != second.verdicts:
        raise OptionError(
            f"--compare: expected cards of the same verdicts, got {first.verdicts} ones of "
            f"{visible(first.judge)} and {second.verdicts} ones of {visible(second.judge)}: audit "
            "both with the same version"
        )
    a, b = _measures(first), _measures(second)
    pairs = [_pair(key[0], a[key], b[key]) for key in a if key in b]
    adjusted = adjust([pair.p_value for pair in pairs], method="holm")
    return CardComparison(
        first=_side(first),
        second=_side(second),
        rows=first.rows,
        size=first.size,
        fingerprint=first.fingerprint,
        level=CONFIDENCE_LEVEL,
        probes=tuple(_probes(first, second)),
        measures=tuple(replace(p, adjusted=q) for p, q in zip(pairs, adjusted, strict=True)),
        only_first=_only(a, b),
        only_second=_only(b, a),
    )


Keyed = dict[tuple[str, str], Measure]


def _measures(card: Card) -> Keyed:
    return {(p.name, measure.name): measure for p in card.probes for measure in p.measures}


def _only(measures: Keyed, others: Keyed) -> tuple[str, ...]:
    return tuple(f"{probe}: {name}" for probe, name in measures if (probe, name) not in others)


def _side(card: Card) -> CardSide:
    return CardSide(judge=card.judge, settings=card.settings, version=card.version, cost=card.cost)


def _probes(first: Card, second: Card) -> Iterator[ProbePair]:
    in_first, in_second = ({p.name: p for p in card.probes} for card in (first, second))
    for name, probe in (in_first | in_second).items():
        a, b = in_first.get(name), in_second.get(name)
        yield ProbePair(
            name=name,
            title=(a or probe).title,
            question=(a or probe).question,
            first=a.outcome if a else None,
            second=b.outcome if b else None,
            first_because=a.because if a else "",
            second_because=b.because if b else "",
        )


def _pair(probe: str, first: Measure, second: Measure) -> MeasurePair:
    test, n_shared = _paired(first, second)
    return MeasurePair(
        probe=probe,
        name=first.name,
        side=first.side,
        limit=first.limit,
        unit=first.unit,
        first=first.estimate,
        second=second.estimate,
        first_outcome=first.outcome,
        second_outcome=second.outcome,
        n_shared=n_shared,
        difference=test.estimate,
        p_value=test.p_value,
        detectable=test.detectable,
    )


def _paired(first: Measure, second: Measure) -> tuple[PairedTest, int]:
    """The difference of per-case ratios, and the number of cases with a ratio of both."""
    a, b = first.parts, second.parts
    both = sorted(a.keys() & b.keys())
    cases = [case for case in both if a[case][1] > 0 and b[case][1] > 0]
    if not cases:
        note = "no cases in common" if a and b else "no figures by case"
        empty = nothing(CONFIDENCE_LEVEL, note=note)
        return PairedTest(estimate=empty, p_value=None, method="none", detectable=None), 0
    parts = np.array([[*a[case], *b[case]] for case in cases])
    ratios = parts[:, [0, 2]] / parts[:, [1, 3]]
    # shares differ by 1 at most, changes by 2; rounding of sums may exceed that slightly
    widest = 1.0 if first.unit == "share" else 2.0
    differences = np.clip(ratios[:, 0] - ratios[:, 1], -widest, widest)
    sample = Sample(weights=parts[:, [1, 3]].mean(axis=1))
    test = paired_test(differences, sample, bounds=(-widest, widest))
    return test, len(cases)

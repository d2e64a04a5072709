"""How far judges can be trusted: what a calibration found, ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..calibration.analyses import Diversity, SelfEvaluation
from ..calibration.annotators import AltTest
from ..calibration.classes import Nominal
from ..calibration.intervals import Estimate
from ..calibration.raters import BetweenRaters
from ..calibration.rectification import Rectified
from ..calibration.results import Calibration

HAND_PICKED = (
    "The labelled items were picked by hand: figures describe these items and no others, "
    "so they have no intervals, nothing is tested, and no rate can be corrected with them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCalibration:
    """The calibration on a part of the items.

    Attributes:
        field: What the part is told by.
        value: Its value; None where rows don't state one.
        found: The calibration.
    """

    field: str
    value: str | None
    found: Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedFigure:
    """A figure by the judge beside the same corrected with labels.

    Attributes:
        field: What the part of the rows is told by, empty for all of them.
        value: Its value.
        figure: ``CR``, ``Grade`` or an error code.
        found: Raw and corrected.
    """

    field: str
    value: str | None
    figure: str
    found: Rectified


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """One judge against the labels.

    Attributes:
        judge: The judge, ``(blind)`` where it saw no reference.
        source: File of its judgements.
        n_rows: Judgements.
        n_scored: Those with a verdict.
        n_labelled: Those with a label.
        n_unmatched: Labelled items without judgement.
        n_ties: Labelled rows on which raters are split, by field; they have no label there.
        n_adjudicated: Labelled rows on which the adjudicator decided.
        raters: The raters, the adjudicator not among them.
        cluster: Column that tells clusters, ``none`` without.
        n_clusters: Clusters among the labelled rows.
        design: How the labelled rows were chosen; None where nobody said.
        whole: The calibration on all labelled rows.
        groups: On parts of them.
        category: The five behaviours after a broken tool, where there are such labels.
        between: Raters among themselves; None with one.
        stand_in: The alternative annotator test; None with one rater.
        diversity: Correct plans that differ from the reference; None where nobody knows.
        self_evaluation: The judge's bias by tested model; None with one.
        corrected: Corrected figures; empty without a design.
        notes: What must be said beside the figures.
    """

    judge: str
    source: str
    n_rows: int
    n_scored: int
    n_labelled: int
    n_unmatched: int
    n_ties: dict[str, int]
    n_adjudicated: int
    raters: tuple[str, ...]
    cluster: str
    n_clusters: int
    design: str | None
    whole: Calibration
    groups: tuple[GroupCalibration, ...]
    category: Nominal | None
    between: BetweenRaters | None
    stand_in: AltTest | None
    diversity: Diversity | None
    self_evaluation: SelfEvaluation | None
    corrected: tuple[CorrectedFigure, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityReport:
    """Several judges, side by side.

    Attributes:
        labels: File of the labels.
        judges: One entry a judge, in the order given.
        problems: Rows of the files that could not be used.
    """

    labels: str
    judges: tuple[Reliability, ...]
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values; missing is None, never NaN."""
        return asdict(self)


def described_only(estimate: Estimate) -> Estimate:
    """The figure without interval, for items that nobody drew."""
    return replace(estimate, low=None, high=None, method="hand-picked", n_resamples=0, seed=None)


def _bare(estimates: Mapping[str, Estimate]) -> dict[str, Estimate]:
    return {name: described_only(estimate) for name, estimate in estimates.items()}


def without_intervals(found: Calibration) -> Calibration:
    """The calibration of hand-picked items."""
    return replace(
        found,
        scored=described_only(found.scored),
        measures=_bare(found.measures),
        codes={code: _bare(of) for code, of in found.codes.items()},
    )


def bare_raters(found: BetweenRaters) -> BetweenRaters:
    """Raters among themselves on hand-picked items."""
    pairs = (replace(pair, measures=_bare(pair.measures)) for pair in found.pairs)
    return replace(found, together=_bare(found.together), pairs=tuple(pairs))

"""What a report is made of: judgements by judge, and how far each judge can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from ..calibration.results import ReliabilityReport
from ..records.judgement_table import JudgementTable, Totals
from ..statistics.estimates import CONFIDENCE_LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResults:
    """All that one judge said, perhaps in several runs.

    Attributes:
        judge: The judge's name in the report: ``(blind)`` where it saw no reference, with its
            rubric or folder where that is needed to tell it from another.
        note: What must be said beside every figure; None for nothing.
        columns: The judgements, items included.
        totals: Counts over all of them.
    """

    judge: str
    note: str | None
    columns: JudgementTable
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinedResults:
    """The same judge on the responses of tested models that had refined them.

    Attributes:
        method: How, such as ``Self_R+``.
        judge: The judge's name, as in the base results.
        columns: The judgements, items included.
    """

    method: str
    judge: str
    columns: JudgementTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that tables and figures are made of.

    Attributes:
        judges: In the order given.
        refined: Refined runs, to be set against the base run of the same judge.
        reliability: Judges against human labels; None without labels.
        level: Confidence level of the reliability figures.
    """

    judges: tuple[JudgeResults, ...]
    refined: tuple[RefinedResults, ...] = ()
    reliability: ReliabilityReport | None = None
    level: float = CONFIDENCE_LEVEL

"""What is to be calibrated, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import OptionError
from ..statistics.alternative_annotator import EPSILON
from ..statistics.coded import Settings

DESIGNS = ("random", "other-population", "hand-picked")


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationOrder:
    """What is to be calibrated, and how.

    Attributes:
        judgements: Files of judgements or folders of runs, one a judge.
        labels: File of labels, JSONL or CSV.
        by: Columns to break the measures down by.
        cluster: Column that tells clusters; ``none`` where rows are independent.
        unscored: What unscored items count as: ``exclude``, ``wrong`` or ``bounds``.
        adjudicator: Rater whose word is final.
        own: Name of the tested model that is the judge itself; None: the one whose name is the
            judge's.
        design: How the labelled items were chosen: ``random``, ``other-population``,
            ``hand-picked`` or the file that ``apbjudge plan-labels`` wrote; None: not said, and
            no rate is corrected.
        target: Run whose rates are corrected under ``other-population``; None: the rows without
            label.
        epsilon: Allowance of the alternative annotator test.
        settings: How intervals are made.
    """

    judgements: Sequence[Path]
    labels: Path
    by: Sequence[str] = ()
    cluster: str = "case_id"
    unscored: str = "exclude"
    adjudicator: str | None = None
    own: str | None = None
    design: str | None = None
    target: Path | None = None
    epsilon: float = EPSILON
    settings: Settings = field(default_factory=Settings)


MAX_LEVEL = 0.999999


def check_level(level: float) -> None:
    """Refuses a confidence level that no interval has.

    Raises:
        OptionError: If it is not between 0 and 1, or so near to 1 that quantiles overflow.
    """
    if not 0 < level <= MAX_LEVEL:
        expected = f"a number between 0 and 1, at most {MAX_LEVEL}"
        raise OptionError(f"--level: expected {expected}, got {level}")

"""Figures of a run, corrected with labels of some of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import InputError
from ..records.columns import Codes, Scores, Vector
from ..records.consensus import Key
from ..statistics.estimates import Array
from ..statistics.prediction_powered import Design, rectify
from ..statistics.sample import Sample, Strata
from .judged_run import JudgedRun
from .label_plan import LabelOrder
from .matching import Matched
from .results import CorrectedFigure


@dataclass(frozen=True, slots=True)
class PlannedSample:
    """The labelled rows, as sampled by a plan.

    Attributes:
        at: Shape (m,): positions, among the labelled rows, of those that the plan chose.
        strata: Shape (m,): stratum of each.
        weights: Shape (m,): judged rows of the stratum per row with a decided label.
        all_strata: Shape (n,): stratum of every judged row.
        design: Rows sampled in each stratum, and the precision of its share of the population.
        n_unplanned: Number of labelled rows that the plan did not choose.
        n_skipped: Number of chosen rows without label that precede a labelled one of the stratum.
    """

    at: Vector
    strata: Vector
    weights: Array
    all_strata: Vector
    design: Strata
    n_unplanned: int
    n_skipped: int

    def notes(self) -> Iterator[str]:
        """Remarks on rows that the plan and the labels do not cover."""
        if self.n_unplanned:
            yield (
                f"{self.n_unplanned} labelled rows that the plan did not choose are left out: "
                "their probability of being labelled is unknown."
            )
        if self.n_skipped:
            yield (
                f"{self.n_skipped} rows were skipped: later rows of the plan have a label. "
                "Unless that was decided by chance alone, the labels are no random sample."
            )
        if n_bare := int(np.count_nonzero(~np.isin(self.all_strata, self.strata))):
            yield (
                f"{n_bare} of {len(self.all_strata)} rows are in strata without any label: the "
                "measures do not cover them."
            )


def planned_sample(
    plan: LabelOrder, run: JudgedRun, matched: Matched, clusters: Vector | None
) -> PlannedSample:
    """The sample of labelled rows under a plan.

    Within a stratum, labels are a random sample if they were made in the plan's order; the plan may
    be unfinished.

    Args:
        plan: The plan.
        run: The run that was planned.
        matched: The labelled rows.
        clusters: Cluster of each row of the run; None if rows are independent.

    Raises:
        InputError: If the plan is for another run or chose none of the labelled rows.
    """
    table = run.table
    keys = [
        (item, table.tested_model(at)) for at, item in enumerate(map(str, table.item_id.values))
    ]
    unknown = [at for at, key in enumerate(keys) if key not in plan]
    if unknown:
        raise InputError(
            f"--design: expected a plan of {run.path}, got one without {len(unknown)} of its "
            f"rows, such as {table.name_of(unknown[0])}; plan-labels writes rows that are not to "
            "be labelled into NAME.strata.jsonl next to the plan"
        )
    codes = Codes()
    strata = codes.of([plan[key][0] for key in keys])
    chosen = np.array([plan[keys[at]][1] is not None for at in matched.rows.tolist()])
    at = np.flatnonzero(chosen)
    if not len(at):
        raise InputError(
            "--design: expected labels of rows that the plan chose, got only labels of "
            f"{len(chosen)} others"
        )
    of_label = strata[matched.rows[at]]
    sizes = np.bincount(strata, minlength=len(codes.names))
    decided = matched.human.correct[at] >= 0  # ties don't count; without verdicts, grades do
    counted = of_label[decided] if decided.any() else of_label
    labelled = np.bincount(counted, minlength=len(sizes))
    return PlannedSample(
        at=at,
        strata=of_label,
        weights=(sizes / np.maximum(labelled, 1))[of_label].astype(float),
        all_strata=strata,
        design=Strata.counted(of_label, strata, clusters),
        n_unplanned=int(np.count_nonzero(~chosen)),
        n_skipped=_skipped(plan, {keys[at] for at in matched.rows.tolist()}),
    )


def _skipped(plan: LabelOrder, labelled: set[Key]) -> int:
    """Number of rows without a label that precede a labelled row of their stratum in the plan."""
    last: dict[str, int] = {}
    for key in labelled:
        stratum, order = plan[key]
        last[stratum] = max(last.get(stratum, 0), order or 0)
    return sum(
        order is not None and order < last.get(stratum, 0) and key not in labelled
        for key, (stratum, order) in plan.items()
    )


@dataclass(frozen=True, kw_only=True)
class Correction:
    """The parts of a run and its labels that a correction needs.

    Attributes:
        run: The run that the labels are about.
        matched: Its labelled rows.
        clusters: Cluster of each of its rows.
        strata: Stratum of each of its rows, under a plan.
        design: Sampling design of the labelled rows.
        target: Another run whose figures are to be corrected; None for this run.
        level: Confidence level.
    """

    run: JudgedRun
    matched: Matched
    clusters: Vector | None
    strata: Vector | None
    design: Design
    target: JudgedRun | None
    level: float

    def figures(self, field: str, value: str | None, at: Vector) -> Iterator[CorrectedFigure]:
        """CR, Grade and error rates of some rows, if they have such values.

        Args:
            field: Property that these rows share.
            value: Its value.
            at: Their positions.
        """
        for name, judged, labels in self._columns:
            stated = at[~np.isnan(judged[at])]
            values, known = judged[stated], labels[stated]
            sample = self._sample.take(stated)
            if self.target is not None:
                values, known, sample = self._against(name, values, known)
            if np.any(~np.isnan(known)):
                result = rectify(values, known, design=self.design, sample=sample, level=self.level)
                yield CorrectedFigure(field=field, value=value, figure=name, result=result)

    @cached_property
    def _columns(self) -> list[tuple[str, Array, Array]]:
        """Name of each figure, with the judge's values and the labels of all rows of the run."""
        human = self.matched.human_of_all(len(self.run))
        judged, labels = _values(self.run.table), _values(human)
        return [(name, judged[name], labels[name]) for name in judged]

    @cached_property
    def _sample(self) -> Sample:
        return Sample(clusters=self.clusters, strata=self.strata)

    def _against(self, name: str, values: Array, labels: Array) -> tuple[Array, Array, Sample]:
        """The labelled rows of this run, then all of the target's."""
        if self.target is None:
            return values, labels, Sample()
        labelled = ~np.isnan(labels)
        theirs = _values(self.target.table).get(name, np.zeros(0))
        theirs = theirs[~np.isnan(theirs)]
        return (
            np.concatenate([values[labelled], theirs]),
            np.concatenate([labels[labelled], np.full(len(theirs), np.nan)]),
            Sample(),
        )


def _values(scores: Scores) -> dict[str, Array]:
    """By metric, its value in each row; NaN if it is missing."""
    flags = {
        code: np.where(scores.known >> i & 1, (scores.flags >> i & 1).astype(float), np.nan)
        for i, code in enumerate(scores.error_codes)
    }
    rates = np.where(scores.correct >= 0, scores.correct.astype(float), np.nan)
    return {"CR": rates, "Grade": scores.grade, **flags}

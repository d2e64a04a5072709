"""Results of calibrate, compare and plan-labels, which can be shown or written as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ..document.display import Shown
from ..document.model import Document
from ..errors import OptionError
from ..statistics.analyses import Diversity, SelfEvaluation
from ..statistics.confusion import Nominal
from ..statistics.gates import At, GateCondition, GateResult, check, check_metric
from ..statistics.measures import Calibration
from ..statistics.metric import Metric, MetricKind, Metrics, to_frame
from ..statistics.paired import Difference, Flips
from ..statistics.prediction_powered import Rectified
from ..statistics.raters import AltTest, BetweenRaters
from ..statistics.stratified_sampling import Stratum
from .scaled import Preferences

if TYPE_CHECKING:
    from pandas import DataFrame

HAND_PICKED = (
    "The labelled items were picked by hand: figures describe these items and no others, "
    "so they have no intervals, nothing is tested, and no rate can be corrected with them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCalibration:
    """The calibration on the items with one value of a field.

    Attributes:
        field: The field, such as ``source``.
        value: Its value; None if rows state none.
        result: The calibration on these items.
    """

    field: str
    value: str | None
    result: Calibration


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedFigure:
    """A figure by the judge, and corrected with labels.

    Attributes:
        field: Field of a breakdown; empty for all rows.
        value: The field's value in the rows; None if they state none.
        figure: ``CR``, ``Grade`` or an error code.
        result: The figure by the judge, and corrected.
    """

    field: str
    value: str | None
    figure: str
    result: Rectified


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """One judge against the labels.

    Attributes:
        judge: The judge, with ``(blind)`` if it saw no reference.
        source: File of its judgements.
        n_rows: Number of judgements.
        n_scored: Number of judgements with a verdict.
        n_labelled: Number of judgements with a label.
        n_unmatched: Number of labelled items without a judgement.
        n_ties: By field, number of labelled rows on which raters are split; these have no label.
        n_adjudicated: Number of labelled rows on which the adjudicator decided.
        raters: The raters, without the adjudicator.
        cluster: Column of the clusters; ``none`` without clusters.
        n_clusters: Number of clusters among the labelled rows.
        design: Sampling design of the labelled rows; None if not stated.
        whole: The calibration on all labelled rows.
        groups: The calibration on parts of them.
        category: The five behaviours after a broken tool; None without such labels.
        between: Agreement among the raters; None with one rater.
        stand_in: The alternative annotator test; None with one rater.
        diversity: Correct plans that differ from the reference; None if unknown.
        self_evaluation: The judge's bias by tested model; None with one tested model.
        corrected: Corrected figures; empty without a design.
        notes: Remarks that belong to the figures.
        preferences: Position bias and win rates of pairs; None for other judgements.
        unfinished: States that the run is not finished; empty for a finished run.
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
    preferences: Preferences | None = None
    unfinished: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReliabilityReport(Shown):
    """Several judges against one file of labels, and the rows that could not be used.

    Attributes:
        labels: File of the labels.
        judges: A result for each judge, or for each run.
        problems: A line for each row that could not be used.
        gates: Conditions that were checked, with their outcomes; empty without any.
    """

    labels: str
    judges: tuple[Reliability, ...]
    problems: tuple[str, ...]
    gates: tuple[GateResult, ...] = ()

    def gate(
        self, *conditions: str, at: At = "point", allow_unfinished: bool = False
    ) -> tuple[GateResult, ...]:
        """Checks conditions such as ``F1 >= 0.9`` on every judge and part of the labels.

        A measure of an error code is named with the code: ``E1 recall >= 0.8``. An unfinished run
        adds a gate that fails, unless ``allow_unfinished``.

        Raises:
            OptionError: If a condition can't be read, or no judge has its measure.
        """
        parts: list[tuple[dict[str, str | None], Metrics]] = []
        for judge in self.judges:
            parts.append(({"judge": judge.judge}, _by_name(judge.whole)))
            for group in judge.groups:
                place = {"judge": judge.judge, group.field: group.value}
                parts.append((place, _by_name(group.result)))
        results = check(conditions, parts, at=at)
        open_ = [] if allow_unfinished else [j for j in self.judges if j.unfinished]
        return (*(_unfinished(j.judge, j.unfinished, at) for j in open_), *results)

    def to_frame(self) -> DataFrame:
        """As a pandas frame, one row per measure of a judge, over all items or a part of them.

        Columns: ``judge``, ``by`` and ``by_value`` (None for all items), ``code`` (None for the
        verdict and the grade), ``figure``, and the fields of an ``Estimate``.
        """
        parts = (
            (judge.judge, by, value, part)
            for judge in self.judges
            for by, value, part in (
                (None, None, judge.whole),
                *((group.field, group.value, group.result) for group in judge.groups),
            )
        )
        return to_frame(
            ({"judge": judge, "by": by, "by_value": value, "code": code}, metric)
            for judge, by, value, part in parts
            for code, of in ((None, part.measures), *part.codes.items())
            for metric in of.values()
        )

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values; missing is None, never NaN."""
        return asdict(self)

    def _printed(self) -> Document:
        from .reliability_text import reliability_document

        return reliability_document(self)


def _loss(d: Difference) -> Metric:
    """Amount by which the second run is worse than the first; negative if it is better."""
    if d.kind.better is None:
        raise OptionError(
            f"--fail-on-regression: {d.name}: expected a metric of which it is stated whether "
            "higher or lower is better"
        )
    loss = d.difference
    if d.kind.better == "lower" and loss.value is not None:
        low, high = (None if end is None else -end for end in (loss.high, loss.low))
        loss = replace(loss, value=-loss.value, low=low, high=high)
    return MetricKind("regression", d.kind.unit, "lower").of(loss)


def _unfinished(judge: str, reason: str, at: At) -> GateResult:
    """The failed gate of an unfinished run."""
    return GateResult(
        condition="run is finished",
        at=at,
        group={"judge": judge},
        estimate=None,
        outcome="failed",
        reason=reason,
    )


def _by_name(calibration: Calibration) -> Metrics:
    """All measures; those of an error code have its name as prefix."""
    of_codes = {
        f"{code} {name}": metric
        for code, measures in calibration.codes.items()
        for name, metric in measures.items()
    }
    return calibration.measures | of_codes


def _each(calibration: Calibration, change: Callable[[Metrics], Metrics]) -> Calibration:
    """The calibration with a change of all its measures, also those of each code."""
    return replace(
        calibration,
        measures=change(calibration.measures),
        codes={code: change(of) for code, of in calibration.codes.items()},
    )


def judged_by_rule(calibration: Calibration) -> Calibration:
    """The calibration of the static judge: its CR is an upper bound, its error rates are lower."""
    bounds: dict[str, Literal["upper", "lower"]] = {"judge CR": "upper", "judge rate": "lower"}
    return _each(
        calibration,
        lambda of: {name: replace(m, bound=bounds.get(name, m.bound)) for name, m in of.items()},
    )


def _bare(metrics: Metrics) -> Metrics:
    """The metrics without intervals, for items that are not a sample."""
    nothing = {"low": None, "high": None, "method": "hand-picked", "n_resamples": 0, "seed": None}
    return {name: replace(metric, **nothing) for name, metric in metrics.items()}


def without_intervals(calibration: Calibration) -> Calibration:
    """The calibration without intervals, for hand-picked items."""
    return _each(calibration, _bare)


def bare_raters(raters: BetweenRaters) -> BetweenRaters:
    """Agreement among raters without intervals, for hand-picked items."""
    pairs = (
        replace(pair, measures=_bare(pair.measures), codes=_bare(pair.codes))
        for pair in raters.pairs
    )
    return replace(raters, together=_bare(raters.together), pairs=tuple(pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of two runs in a comparison.

    Attributes:
        judge: The judge, with ``(blind)`` if it saw no reference.
        source: File of its judgements.
        rubrics: Rubrics of the rows; empty if rows don't state one.
        tested_models: Tested models of the rows; None is one without a name.
        n_rows: Number of rows.
        n_only: Number of rows without partner in the other run.
        n_scored: Number of rows with a verdict.
        settings: Conditions of the environments of whole trajectories; empty without.
        unfinished: States that the run is not finished; empty for a finished run.
    """

    judge: str
    source: str
    rubrics: tuple[str, ...]
    tested_models: tuple[str | None, ...]
    n_rows: int
    n_only: int
    n_scored: int
    settings: tuple[str, ...] = ()
    unfinished: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Shown):
    """Two runs on the same items.

    Attributes:
        first: The first run.
        second: The second run.
        paired_on: Fields by which a row of one run finds its partner in the other.
        n_pairs: Number of rows with a partner.
        n_compared: Pairs with a verdict by both; all figures are over these.
        n_first_unscored: Pairs that only the first run left unscored.
        n_second_unscored: Pairs that only the second left unscored.
        n_both_unscored: Pairs that both left unscored.
        cluster: Column of the clusters; ``none`` without clusters.
        n_clusters: Number of clusters among the compared pairs.
        flips: Pairs in which ``is_correct`` differs; None if a judge gives only scores.
        differences: First less second, figure by figure; those against labels last.
        labels: File of the labels; None without.
        n_labelled: Pairs with a label and a verdict by both.
        level: Confidence level of the intervals, 0 to 1.
        notes: Remarks that belong to the figures.
        problems: A line for each row that could not be used.
        gates: Conditions that were checked, with their outcomes; empty without any.
        rate: Name of the rate of correct items, or of successful runs.
        n_other_content: Pairs whose tested models were asked different things.
        n_other_response: Pairs of one tested model whose replies, or runs, differ.
    """

    first: Side
    second: Side
    paired_on: tuple[str, ...]
    n_pairs: int
    n_compared: int
    n_first_unscored: int
    n_second_unscored: int
    n_both_unscored: int
    cluster: str
    n_clusters: int
    flips: Flips | None
    differences: tuple[Difference, ...]
    labels: str | None
    n_labelled: int
    level: float
    notes: tuple[str, ...]
    problems: tuple[str, ...]
    gates: tuple[GateResult, ...] = ()
    rate: str = "CR"
    n_other_content: int = 0
    n_other_response: int = 0

    def gate(
        self, *, margin: float, at: At = "low", allow_unfinished: bool = False
    ) -> tuple[GateResult, ...]:
        """Checks that the second run is worse than the first by the margin at most.

        Checks each primary metric, or CR if none was named. At ``low``, as in a test of
        non-inferiority, the interval of the paired difference has to exclude a larger regression;
        at ``point`` the difference itself counts.

        Args:
            margin: The largest regression that is accepted, 0 to 1, on the metric's own scale.
            at: Part of the estimate that has to be within the margin.
            allow_unfinished: True to omit the failed gate of an unfinished run.

        Raises:
            OptionError: If a metric does not state which direction is better.
        """
        primary = [d for d in self.differences if d.family == "primary"]
        chosen = primary or [d for d in self.differences if d.name == self.rate]
        sides = (*self.first.tested_models, *self.second.tested_models)
        models = ", ".join(dict.fromkeys(model or "not stated" for model in sides))
        place = {"judge": self.first.judge, "other": self.second.judge, "tested_model": models}
        within = GateCondition(measure="regression", sign="<=", limit=margin)
        results = [
            check_metric(f"{d.name} regression", within, _loss(d), place, at) for d in chosen
        ]
        open_ = [] if allow_unfinished else [s for s in (self.first, self.second) if s.unfinished]
        unfinished = tuple(_unfinished(side.judge, side.unfinished, at) for side in open_)
        reason = "no pair has a verdict by both"
        return (*unfinished, *results) or (
            GateResult(
                condition=f"CR regression <= {margin:g}",
                at=at,
                group=place,
                estimate=None,
                outcome="missing",
                reason=reason,
            ),
        )

    @property
    def differing(self) -> tuple[str, ...]:
        """The known differences of the two runs: judge, rubric, tested model, setting."""
        a, b = self.first, self.second
        pairs = {
            "judge": (a.judge, b.judge),
            "rubric": (a.rubrics, b.rubrics),
            "tested model": (a.tested_models, b.tested_models),
            "setting": (a.settings, b.settings),
        }
        return tuple(what for what, (one, other) in pairs.items() if one != other)

    def to_frame(self) -> DataFrame:
        """As a pandas frame: for each figure, rows of the first run, the second, the difference.

        Column ``of`` names the row; ``p_value``, ``adjusted``, ``family`` are the difference's.
        """
        return to_frame(
            (
                {"of": of, "p_value": d.p_value, "adjusted": d.adjusted, "family": d.family},
                d.kind.of(estimate),
            )
            for d in self.differences
            for of, estimate in (
                ("first", d.first),
                ("second", d.second),
                ("difference", d.difference),
            )
        )

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values; missing is None, never NaN."""
        return asdict(self) | {"differing": list(self.differing)}

    def _printed(self) -> Document:
        from .comparison_text import comparison_document

        return comparison_document(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNeed:
    """The labels that one measure needs.

    Attributes:
        measure: Its name.
        basis: Basis of the figures: existing labels, or anticipated values.
        half_width_now: Half the width of the interval from existing labels; None without.
        detectable_now: Smallest true difference between two results of that precision (on different
            items) that is detected with a power of 0.8.
        half_width_then: Half the width with the planned labels included.
        detectable_then: Detectable difference with the planned labels included.
        n_needed: Total number of labels for the requested width; None if unknown.
        note: Reason why the figures are rough, or missing.
    """

    measure: str
    basis: Literal["labels", "anticipated"]
    half_width_now: float | None
    detectable_now: float | None
    half_width_then: float | None
    detectable_then: float | None
    n_needed: int | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One judged row in the plan.

    Attributes:
        item_id: The item.
        tested_model: Tested model of the response; None if the row states none.
        case_id: Its case; None if the row states none.
        stratum: Stratum of the row.
        stratum_size: Number of rows in that stratum.
        order: 1 for the row to label first, and so on; 0 for a row that already has a label that
            counts; None for a row that is not to be labelled.
        weight: Number of rows that its label represents once all chosen rows are labelled; None if
            the row is not to be labelled.
    """

    item_id: str
    tested_model: str | None
    case_id: str | None
    stratum: str
    stratum_size: int
    order: int | None
    weight: float | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LabelPlan(Shown):
    """The rows to label, and the precision that their labels will give.

    Attributes:
        judge: The judge.
        source: File of its judgements.
        n_rows: Number of rows from which labels can be sampled.
        n_unscored: Number of rows without a verdict.
        n_labelled: Number of rows that already have a label.
        n_wanted: Requested labels; fewer are planned if there are fewer rows.
        n_planned: Number of rows to label.
        half_width: Half the width that intervals may have.
        disagreement: Share of verdicts with which humans are expected to disagree.
        expected_from: Source of the expectation: ``option``, ``labels`` or ``default``.
        by: Columns that define strata, in addition to verdict and uncertainty.
        strata: Strata in which rows were sampled.
        needs: Labels that each measure needs.
        seed: Seed of the sample.
        out: File of the plan; None if it was not written.
        notes: Remarks that belong to the figures.
        problems: A line for each row that could not be used.
        rows: All rows; first those to label, in their order.
    """

    judge: str
    source: str
    n_rows: int
    n_unscored: int
    n_labelled: int
    n_wanted: int
    n_planned: int
    half_width: float
    disagreement: float
    expected_from: Literal["option", "labels", "default"]
    by: tuple[str, ...]
    strata: tuple[Stratum, ...]
    needs: tuple[LabelNeed, ...]
    seed: int
    out: str | None
    notes: tuple[str, ...]
    problems: tuple[str, ...]
    rows: tuple[PlanRow, ...]

    def to_frame(self) -> DataFrame:
        """The rows as a pandas frame; first those to label, in their order."""
        import pandas

        return pandas.DataFrame([asdict(row) for row in self.rows])

    def to_json(self) -> dict[str, Any]:
        """As nested JSON values without the rows, which are in the plan's own file."""
        names = (name for name in self.__slots__ if name not in {"rows", "strata", "needs"})
        return {
            **{name: getattr(self, name) for name in names},
            "strata": [asdict(stratum) for stratum in self.strata],
            "needs": [asdict(need) for need in self.needs],
        }

    def _printed(self) -> Document:
        from .label_plan_text import label_plan_document

        return label_plan_document(self)

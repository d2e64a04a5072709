"""Judges against human labels: reads files and computes figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..errors import InputError, OptionError
from ..judge import STATIC
from ..judge.metrics import BEHAVIOUR_NAMES
from ..options import takes
from ..records.columns import Scores, Vector, all_codes
from ..records.judgement_table import Problems
from ..records.text_pairs import holds_pairs
from ..statistics.analyses import Diversity, SelfEvaluation, diversity, self_evaluation
from ..statistics.confusion import Nominal, nominal
from ..statistics.kinds import JUDGE_SCORE
from ..statistics.measures import Calibration
from ..statistics.measures import calibrate as calibrate_ratings
from ..statistics.prediction_powered import Design
from ..statistics.raters import AltTest, BetweenRaters, between_raters, ratings_annotator_test
from ..statistics.ratings import LEVELS, Ratings, with_levels
from ..statistics.sample import IntervalSettings, Sample
from .config import DESIGNS, CalibrationConfig
from .correct import Correction, PlannedSample, planned_sample
from .foreign import is_foreign, read_foreign
from .judged_run import (
    NO_CLUSTERS,
    JudgedRun,
    grade_levels,
    on_levels,
    once,
    ratings,
    read_judged_run,
    read_judged_runs,
    scale_note,
    with_columns,
)
from .label_plan import LabelOrder, read_plan
from .matching import Labels, Matched, is_same_model, load_labels, match
from .results import (
    HAND_PICKED,
    CorrectedFigure,
    GroupCalibration,
    Reliability,
    ReliabilityReport,
    bare_raters,
    judged_by_rule,
    without_intervals,
)
from .scaled import Preferences, Scaled, in_units, preferences
from .text_pairs import judged_pairs


@takes(config=CalibrationConfig)
def calibrate(config: CalibrationConfig) -> ReliabilityReport:
    """Calibrates judges against human labels.

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If a file is unusable or no label belongs to a run.
        OptionError: If a setting is unusable.
    """
    problems: Problems = []
    plan = _plan(config, problems)
    if is_foreign(config):
        if plan is not None or config.target is not None:
            got = "--target" if plan is None else "a plan"
            raise OptionError(
                f"--design: expected random, hand-picked or none for judgements of another tool, "
                f"got {got}"
            )
        judged, labels, notes = read_foreign(config, problems)
        shared = _Shared(config, labels, None, None, notes)
        runs = [run if config.pairwise else once(run, problems) for run in judged]
    else:
        of_runs: Problems = []
        if holds_pairs(config.labels):
            runs = [judged_pairs(path, of_runs) for path in config.judgements]
        else:
            runs = [
                once(run, of_runs)
                for path in config.judgements
                for run in read_judged_runs(path, of_runs)
            ]
        labels = load_labels(
            config.labels,
            config.adjudicator,
            problems,
            include_unsure=config.unsure == "include",
            codes=all_codes(run.table for run in runs),
            columns=config.label_columns,
            raters=config.raters,
        )
        target = None
        if config.target is not None:
            target = once(read_judged_run(config.target, problems), problems)
        shared = _Shared(config, labels, plan, target, (labels.note,) if labels.note else ())
        problems.extend(of_runs)
    judges = [_reliability(shared, run, problems) for run in runs]
    return ReliabilityReport(
        labels=str(config.labels), judges=tuple(judges), problems=tuple(problems)
    )


def calibrate_judged(
    judges: Sequence[JudgedRun],
    labels: Labels,
    problems: Problems,
    settings: Mapping[str, Any] | None = None,
) -> ReliabilityReport:
    """Calibrates judges whose judgements have been read, by default with the usual options.

    Args:
        judges: Runs with each item and tested model once. Items without a label are left out.
        labels: The labels.
        problems: Gets a line for each label that can't be used.
        settings: Fields of ``CalibrationConfig`` that differ from the usual options.

    Raises:
        InputError: If no label belongs to any judge's rows.
    """
    config = CalibrationConfig(judgements=(), labels=labels.path, **settings or {})
    shared = _Shared(config, labels, _plan(config, problems), None)
    results: list[Reliability] = []
    for judge in judges:
        try:
            results.append(_reliability(shared, judge, problems))
        except InputError as error:
            problems.append(str(error))
    if not results:
        raise InputError(problems[-1])
    return ReliabilityReport(
        labels=str(labels.path), judges=tuple(results), problems=tuple(problems)
    )


def _plan(config: CalibrationConfig, problems: Problems) -> LabelOrder | None:
    if config.design is None or config.design in DESIGNS:
        return None
    path = Path(config.design)
    if not config.design or not _exists(path):
        expected = f"{', '.join(DESIGNS)} or a file that apbjudge plan-labels wrote"
        raise OptionError(f"--design: expected {expected}, got {config.design!r}")
    return read_plan(path, problems)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # no file can have this name
        return False


@dataclass(frozen=True)
class _Shared:
    """The values that are the same for all judges."""

    config: CalibrationConfig
    labels: Labels
    plan: LabelOrder | None
    target: JudgedRun | None
    notes: tuple[str, ...] = ()


def _reliability(shared: _Shared, run: JudgedRun, problems: Problems) -> Reliability:
    matched = match(run, shared.labels, problems)
    names = (*shared.config.by, shared.config.cluster)
    run = with_columns(run, names, shared.labels.path, shared.labels.keys)
    if run.foreign is not None:
        return _foreign_reliability(shared, run, matched)
    clusters = run.clusters(shared.config.cluster)
    planned = None if shared.plan is None else planned_sample(shared.plan, run, matched, clusters)
    if planned is not None:
        matched = matched.only(planned.at)
    levels = grade_levels([run], shared.labels.grades, matched.human)
    note = scale_note(levels, {*np.unique(run.table.grade), *shared.labels.grades})
    run = replace(run, table=on_levels(run.table, levels))
    return _Calibrating(
        shared, run, matched.on_levels(levels), clusters, planned, levels, note
    ).reliability()


def _foreign_reliability(shared: _Shared, run: JudgedRun, matched: Matched) -> Reliability:
    """The reliability of another tool's judgements; scores are fractions of their scale."""
    foreign, human = run.foreign, matched.human
    levels = LEVELS if foreign is None or foreign.scale.role != "score" else foreign.scale.levels
    if foreign is not None and foreign.scale.kind == "ordinal":
        levels = with_levels(levels, set(human.grade[~np.isnan(human.grade)].tolist()))
    clusters = run.clusters(shared.config.cluster)
    return _Calibrating(shared, run, matched, clusters, None, levels, None).reliability()


@dataclass(frozen=True)
class _Calibrating:
    """One judge, matched with the labels."""

    shared: _Shared
    run: JudgedRun
    matched: Matched
    clusters: Vector | None
    planned: PlannedSample | None
    levels: tuple[float, ...]
    scale_note: str | None

    @property
    def config(self) -> CalibrationConfig:
        return self.shared.config

    def reliability(self) -> Reliability:
        return Reliability(
            judge=self.run.name,
            source=self.run.path,
            n_rows=len(self.run),
            n_scored=int(np.count_nonzero(self.run.table.correct >= 0)),
            n_labelled=len(self.rows),
            n_unmatched=self.matched.n_unmatched,
            n_ties={self.named(field): n for field, n in self.matched.n_ties.items()},
            n_adjudicated=self.matched.n_adjudicated,
            raters=tuple(self.matched.raters),
            cluster=self.cluster,
            n_clusters=self.n_clusters,
            design=self.config.design,
            whole=self.calibrate(np.arange(len(self.rows))),
            groups=tuple(self.groups()),
            category=self.category(),
            between=self.between(),
            stand_in=self.annotator_test(),
            diversity=self.diversity(),
            self_evaluation=self.self_evaluation(),
            corrected=tuple(self.corrected()),
            preferences=self.preferences(),
            notes=tuple(self.notes()),
            unfinished=self.run.unfinished,
        )

    def named(self, field: str) -> str:
        """The name of a field of labels in files of other tools."""
        names = {"is_correct": "verdict", "category": "class"}
        return field if self.run.foreign is None else names.get(field, field)

    @property
    def cluster(self) -> str:
        """The column of clusters; that of items if another tool's rows name no case."""
        name, foreign = self.config.cluster, self.run.foreign
        if foreign is None or name != "case_id":
            return name
        if self.clusters is None:
            return NO_CLUSTERS
        return foreign.reading.roles.get("case", foreign.reading.roles["item"])

    @cached_property
    def scaled(self) -> Scaled | None:
        """The measures of another tool's scale; None for a run of this one."""
        if self.run.foreign is None:
            return None
        policy, settings = self.config.unscored, self.settings
        return Scaled(
            foreign=self.run.foreign, levels=self.levels, policy=policy, settings=settings
        )

    @cached_property
    def judged(self) -> Scores:
        """The judge's scores of the labelled rows."""
        return self.run.table.scores_at(self.rows)

    def preferences(self) -> Preferences | None:
        if not self.config.pairwise or self.run.foreign is None or self.is_picked:
            return None
        swapped, n = self.run.foreign.reversed, len(self.rows)
        pairs = self.systems()
        names = sorted({name for pair in pairs for name in pair})
        known = [[names.index(name) for name in pair] for pair in pairs]
        return preferences(
            self.judged.category.astype(int) - 1,
            self.matched.human.category.astype(int) - 1,
            self.sample,
            items=self.run.table.key[self.rows],
            swapped=np.full(n, -1) if swapped is None else swapped[self.rows],
            systems=np.array(known) if known else np.full((n, 2), -1),
            names=names,
            level=self.settings.level,
        )

    def systems(self) -> list[tuple[str, str]]:
        """Both systems of each labelled row, in the order of the pair's first row."""
        foreign, keys = self.run.foreign, self.run.table.key.tolist()
        if foreign is None or "first" not in foreign.reading.roles:
            return []
        columns = (self.run.own[foreign.reading.roles[role]] for role in ("first", "second"))
        pairs = [(one or "", other or "") for one, other in zip(*columns, strict=True)]
        leads: dict[int, tuple[str, str]] = {}
        for key, pair in zip(keys, pairs, strict=True):
            leads.setdefault(key, pair)
        return [leads[keys[at]] for at in self.rows.tolist()]

    @property
    def is_picked(self) -> bool:
        """True if somebody chose the labelled items, so that they allow no inference."""
        return self.config.design == "hand-picked"

    def between(self) -> BetweenRaters | None:
        if len(self.raters) < 2:
            return None
        if self.scaled is not None:
            result = self.scaled.between(self.matched.raters, self.sample)
        else:
            result = between_raters(
                self.raters, self.sample, levels=self.levels, settings=self.settings
            )
        return bare_raters(result) if self.is_picked else result

    def annotator_test(self) -> AltTest | None:
        if len(self.raters) < 2 or self.is_picked:
            return None
        epsilon, level = self.config.epsilon, self.settings.level
        if self.scaled is not None:
            raters = self.matched.raters
            return self.scaled.annotator_test(self.judged, raters, self.sample, epsilon=epsilon)
        return ratings_annotator_test(
            self.judge, self.raters, self.sample, epsilon=epsilon, level=level
        )

    @property
    def settings(self) -> IntervalSettings:
        return self.config.settings

    @property
    def rows(self) -> Vector:
        return self.matched.rows

    @cached_property
    def judge(self) -> Ratings:
        return ratings(self.run.table.scores_at(self.rows), self.levels)

    @cached_property
    def human(self) -> Ratings:
        return ratings(self.matched.human, self.levels)

    @cached_property
    def raters(self) -> list[Ratings]:
        return [ratings(scores, self.levels) for scores in self.matched.raters.values()]

    @cached_property
    def sample(self) -> Sample:
        """The sampling of the labelled rows."""
        clusters = None if self.clusters is None else self.clusters[self.rows]
        plan = self.planned
        if plan is None:
            return self.settings.of(Sample(clusters=clusters))
        return self.settings.of(
            Sample(clusters=clusters, weights=plan.weights, strata=plan.strata, design=plan.design)
        )

    @property
    def n_clusters(self) -> int:
        if self.clusters is None:
            return len(self.rows)
        return len(np.unique(self.clusters[self.rows]))

    def calibrate(self, at: Vector) -> Calibration:
        if self.scaled is not None:
            result = self.scaled.calibration(
                self.judged.scores_at(at), self.matched.human.scores_at(at), self.sample.take(at)
            )
            return without_intervals(result) if self.is_picked else result
        result = calibrate_ratings(
            self.judge.take(at),
            self.human.take(at),
            self.sample.take(at),
            unscored=self.config.unscored,
            levels=self.levels,
            settings=self.settings,
        )
        result = judged_by_rule(result) if self.run.table.judge == STATIC else result
        return without_intervals(result) if self.is_picked else result

    def parts(self, name: str, rows: Vector | None) -> Iterator[tuple[str | None, Vector]]:
        """Values of a column, each with its positions among some rows; the missing value last."""
        codes, labels = self.run.column(name, "--by")
        codes = codes if rows is None else codes[rows]
        present: dict[str | None, int] = {labels[at]: at for at in set(codes.tolist())}
        for value in sorted(present, key=lambda value: (value is None, value or "")):
            yield value, np.flatnonzero(codes == present[value])

    def groups(self) -> Iterator[GroupCalibration]:
        for name in self.by:
            for value, at in self.parts(name, self.rows):
                yield GroupCalibration(field=name, value=value, result=self.calibrate(at))

    def category(self) -> Nominal | None:
        judged = self.run.table.category[self.rows].astype(int) - 1
        human = self.matched.human.category.astype(int) - 1
        if self.is_picked or self.scaled or not np.any((human >= 0) & (judged >= 0)):
            return None
        unscored = "exclude" if self.config.unscored == "bounds" else self.config.unscored
        return nominal(
            judged,
            human,
            BEHAVIOUR_NAMES,
            self.sample,
            unscored=unscored,
            settings=self.settings,
        )

    def diversity(self) -> Diversity | None:
        matches = self.run.table.facts["matches_reference"][self.rows]
        if self.is_picked or not np.any((matches >= 0) & (self.human.correct == 1)):
            return None
        return diversity(
            self.judge,
            self.human,
            matches,
            self.sample,
            levels=self.levels,
            settings=self.settings,
        )

    def self_evaluation(self) -> SelfEvaluation | None:
        table = self.run.table
        labels = np.array([model or "" for model in table.labels["tested_model"]])
        column = labels[table.code("tested_model", self.rows)]
        names: list[str] = sorted({*map(str, column)})
        own = self.config.own or next((n for n in names if is_same_model(n, table.judge)), None)
        if self.config.own is not None and own not in names:
            raise OptionError(f"--self: expected one of {', '.join(names)}, got {own!r}")
        if len(names) < 2 or self.is_picked:
            return None
        if self.run.foreign is not None and not self.run.foreign.has_verdict:
            return None
        judge = self.judge
        if self.run.foreign is not None:  # scores of other scales are not grades
            judge = replace(judge, grade=np.full_like(judge.grade, -1))
        return self_evaluation(
            judge,
            self.human,
            np.searchsorted(names, column),
            names,
            self.sample,
            own=own,
            levels=self.levels,
            settings=self.settings,
        )

    def corrected(self) -> Iterator[CorrectedFigure]:
        if self.config.design is None or self.is_picked:
            return
        design = self.config.design if self.config.design in DESIGNS else "stratified"
        correction = Correction(
            run=self.run,
            matched=self.matched,
            clusters=self.clusters,
            strata=None if self.planned is None else self.planned.all_strata,
            design=cast("Design", design),
            target=self.shared.target,
            level=self.settings.level,
        )
        yield from self.fitting(correction.figures("", None, np.arange(len(self.run))))
        for name in self.by if self.shared.target is None else ():
            for value, at in self.parts(name, None):
                yield from self.fitting(correction.figures(name, value, at))

    def fitting(self, figures: Iterable[CorrectedFigure]) -> Iterator[CorrectedFigure]:
        """The figures that fit another tool's judgements, with scores in units of their scale."""
        foreign = self.run.foreign
        for figure in figures:
            if foreign is None or (figure.figure == "CR" and foreign.has_verdict):
                yield figure
            elif figure.figure == "Grade":
                result, scale = figure.result, foreign.scale
                raw, rectified, alone = (
                    in_units(JUDGE_SCORE.of(of), scale)
                    for of in (result.raw, result.rectified, result.labelled_only)
                )
                result = replace(result, raw=raw, rectified=rectified, labelled_only=alone)
                yield replace(figure, figure="Score", result=result)

    @property
    def by(self) -> tuple[str, ...]:
        """The fields of the breakdown; for preferences, also the pair of systems."""
        pair = ("pair",) if self.config.pairwise and "pair" in self.run.own else ()
        return tuple(dict.fromkeys((*pair, *self.config.by)))

    def notes(self) -> Iterator[str]:
        config = self.config
        yield from self.shared.notes
        if self.run.unfinished:
            yield self.run.unfinished
        if self.run.table.judge == STATIC:
            yield (
                "The static judge proves faults, never correctness: a plan without a proven fault "
                "counts as correct here, so its precision is low, and its rate is an upper bound."
            )
        if config.design == "hand-picked":
            yield HAND_PICKED
        elif config.design is None:
            yield (
                "Intervals are valid if the labelled items are a random sample of the population "
                "of interest. State how they were chosen (--design), and rates are corrected "
                "too."
            )
        if self.planned is not None:
            yield from self.planned.notes()
        if self.scale_note is not None:
            yield self.scale_note
        yield from self.label_notes()
        if self.matched.n_unmatched:
            yield f"{self.matched.n_unmatched} labelled items have no judgement here."

    def label_notes(self) -> Iterator[str]:
        """Remarks on the labels themselves."""
        labels = self.shared.labels
        if labels.n_contradictions:
            yield (
                f"{labels.n_contradictions} labels contradict themselves (correct with an "
                "error flag or a grade below 1, or incorrect without either)."
            )
        if n_unsure := labels.consensus.n_unsure:
            counted = (
                "count like any other (--unsure exclude leaves them out)"
                if self.config.unsure == "include"
                else "are left out (--unsure exclude)"
            )
            yield f"{n_unsure} labels are marked unsure and {counted}."
        n_pairs, n_alike = labels.consensus.first_faulty_steps
        if n_pairs:
            yield (
                f"In {n_pairs} pairs of labels of one item both raters mark a faulty step; "
                f"{n_alike} agree on the first one."
            )
        if n_changed := labels.consensus.n_changed:
            yield f"{n_changed} labels were changed later in the file; the last counts."

"""Two runs on the same items: reads files and computes differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ..config import STATIC
from ..errors import InputError, OptionError, visible
from ..judge.trajectory_metrics import (
    bounds_of,
    columns_of,
    protocol_metrics,
    shown_k,
    success_kind,
)
from ..options import takes
from ..records.columns import Scores, Vector, all_codes, no_scores
from ..records.judgement_table import JudgementTable, Problems
from ..records.run_folder import judgements_path
from ..statistics.kinds import CR
from ..statistics.metric import good
from ..statistics.paired import (
    Difference,
    compare_means,
    compare_ratios,
    compare_reliability,
    compare_verdicts,
    flips,
    with_families,
)
from ..statistics.passes import pass_at_k, pass_hat_k
from ..statistics.ratings import Ratings
from ..statistics.sample import IntervalSettings, Sample
from .config import CompareConfig
from .foreign import foreign_runs, looks_foreign
from .judged_run import JudgedRun, grade_levels, ratings, read_judged_runs, scale_note
from .matching import Labels, are_of_two_models, load_labels, match, pair_rows
from .matching import tested_models as tested_models_of
from .results import Comparison, Side

_DECIMALS = 4
"""Number of decimals to which scores of other tools are rounded."""


@takes(config=CompareConfig)
def compare(config: CompareConfig) -> Comparison:
    """Compares two judges, two tested models or two rubrics on the same items.

    Rows are paired on item and tested model; on the item alone if two tested models are compared:
    two that are named, or the only one of each run if these differ.

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If a file is unusable, or the runs have no item in common.
        OptionError: If a setting is unusable.
    """
    problems: Problems = []
    labels = config.labels
    runs, notes = _read(config, problems)
    pairs = _paired(runs, config, problems)
    pairs = replace(pairs, notes=(*notes, *pairs.notes))
    known, human = None, None
    if labels is not None:
        known, human = _labels(pairs, labels, config.adjudicator, problems)
    comparing = _Comparing(pairs, known, human, config.cluster, config.settings)
    return comparing.comparison(None if labels is None else str(labels), config.primary, problems)


def _read(
    config: CompareConfig, problems: Problems
) -> tuple[tuple[JudgedRun, JudgedRun], tuple[str, ...]]:
    """Both runs, read once if they are the same file, and notes on the columns."""
    run_a, run_b = config.run_a, config.run_b
    tested_models, settings = config.tested_models, config.of_settings
    named = {"tested-model": tested_models, "setting": settings, "judges": config.judges}
    for option, names in named.items():
        if len(names) > 2:
            raise OptionError(f"--{option}: expected one or two names, got {', '.join(names)}")
    of_two = max(len(set(tested_models)), len(set(settings))) > 1
    runs_a, notes = _runs_of(run_a, problems)
    runs_b = runs_a
    if judgements_path(run_a).resolve() != judgements_path(run_b).resolve():
        runs_b, more = _runs_of(run_b, problems)
        notes += more
    elif len(runs_a) == 2 and not config.judges and not of_two:
        return (runs_a[0], runs_a[1]), notes
    first, second = _chosen(runs_a, *config.judges[:1]), _chosen(runs_b, *config.judges[-1:])
    if first is second and not of_two:
        raise OptionError(
            f"RUN_B: expected another run than {visible(str(run_a))}; to compare two of its "
            "tested models name both with --tested-model, two settings with --setting"
        )
    codes = all_codes((first.table, second.table))
    first, second = (replace(run, table=run.table.with_codes(codes)) for run in (first, second))
    if config.labels is not None and (first.foreign or second.foreign):
        raise OptionError("--labels: expected runs of apbjudge with it; calibrate takes others")
    return (first, second), notes


def _runs_of(path: Path, problems: Problems) -> tuple[Sequence[JudgedRun], tuple[str, ...]]:
    if looks_foreign(path):
        return foreign_runs(path, problems)
    return read_judged_runs(path, problems), ()


def _chosen(runs: Sequence[JudgedRun], name: str | None = None) -> JudgedRun:
    """The run of the named judge, or the only run."""
    chosen = [run for run in runs if name in (None, run.name)]
    if len(chosen) != 1:
        names = ", ".join(visible(run.name) for run in runs)
        got = "none of them named" if name is None else repr(name)
        raise OptionError(f"--judges: expected one in {runs[0].path} of {names}, got {got}")
    return chosen[0]


# Pairs -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ComparedPairs:
    """The pairs of rows of two runs.

    Attributes:
        runs: Both runs.
        rows: Candidate rows of each.
        partners: Shape (n,) each: positions of the pairs' rows, in the order of the first run.
        by: Fields that they were paired on.
        notes: Remarks on the pairing.
    """

    runs: tuple[JudgedRun, JudgedRun]
    rows: tuple[Vector, Vector]
    partners: tuple[Vector, Vector]
    by: tuple[str, ...]
    notes: tuple[str, ...] = ()


def _paired(
    runs: tuple[JudgedRun, JudgedRun], config: CompareConfig, problems: Problems
) -> _ComparedPairs:
    first, second = runs
    names, settings = config.tested_models, config.of_settings
    rows = (
        _rows_of(first, names[:1], settings[:1]),
        _rows_of(second, names[-1:], settings[-1:]),
    )
    tables = (first.table, second.table)
    two = are_of_two_models(tables, rows)
    for run, at in zip(runs, rows, strict=True):
        _name_repeated(run, at, problems, by_model=not two)
    partners = pair_rows(tables, rows, by_model=not two, by_protocol=False)
    if not len(partners[0]):
        a, b = (t.name_of(int(at[0])) for t, at in zip(tables, rows, strict=True))
        raise InputError(
            f"{second.path}: expected items of {first.path}, such as {a}, got only others, such "
            f"as {b}"
        )
    note = "each run has one tested model, and they differ: rows are paired by item_id alone"
    return _ComparedPairs(
        runs=runs,
        rows=rows,
        partners=partners,
        by=("item_id",) if two else ("item_id", "tested_model"),
        notes=(note,) if two and len(names) < 2 else (),
    )


def _rows_of(run: JudgedRun, models: Sequence[str], settings: Sequence[str]) -> Vector:
    """Rows of the tested model and setting that the options name; all without such options."""
    of_profile = np.ones(len(run.table.profiles), dtype=bool)
    asked = (("tested_model", "--tested-model", models), ("setting", "--setting", settings))
    for field, option, names in asked:
        for name in names:
            labels = run.table.labels[field]
            if name not in labels:
                known = sorted({visible(str(label)) for label in labels})
                listed = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
                raise OptionError(
                    f"{option}: expected one in {visible(run.path)} ({listed}), got {name!r}"
                )
            of_profile &= run.table.codes[field] == labels.index(name)
    return run.table.where(of_profile)


def _name_repeated(run: JudgedRun, rows: Vector, problems: Problems, *, by_model: bool) -> None:
    """Adds a line about items with several rows, which have no unique partner."""
    keys = run.table.keys(by_model=by_model, by_protocol=False)[rows]
    _, first, times = np.unique(keys, return_index=True, return_counts=True)
    if np.any(times > 1):
        example = run.table.name_of(int(rows[first[times > 1].min()]))
        problems.append(
            f"{run.path}: item_id: expected one row per item and tested model, got several for "
            f"{np.count_nonzero(times > 1)} of them, such as {example}: they are left out"
        )


def _labels(
    pairs: _ComparedPairs, path: Path, adjudicator: str | None, problems: Problems
) -> tuple[Labels, Scores]:
    """The labels, and the human scores of each pair."""
    if len(pairs.by) == 1:
        raise OptionError(
            "--labels: expected two runs on the same responses, got two tested models, whose "
            "responses have labels of their own; see apbjudge calibrate --by tested_model"
        )
    first, at = pairs.runs[0], pairs.partners[0]
    labels = load_labels(path, adjudicator, problems, codes=first.table.error_codes)
    matched = match(first, labels, problems)
    if not np.isin(at, matched.rows).any():
        raise InputError(f"{path}: expected labels of items that both runs have, got none")
    return labels, matched.human_of_all(len(first)).scores_at(at)


# Figures -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Comparing:
    """Pairs with their human scores."""

    pairs: _ComparedPairs
    labels: Labels | None
    human: Scores | None
    cluster: str
    settings: IntervalSettings

    @property
    def is_foreign(self) -> bool:
        """True if one of the runs is another tool's, whose scores are fractions of their scale."""
        return any(run.foreign for run in self.pairs.runs)

    @property
    def has_verdicts(self) -> bool:
        """True if both runs have verdicts, not scores alone."""
        return all(run.foreign is None or run.foreign.has_verdict for run in self.pairs.runs)

    @cached_property
    def levels(self) -> tuple[float, ...]:
        if self.is_foreign:
            grades = np.concatenate([run.table.grade for run in self.pairs.runs])
            return (*np.unique(np.round([0, *grades[~np.isnan(grades)]], _DECIMALS)).tolist(),)
        rated = () if self.labels is None else self.labels.grades
        return grade_levels(self.pairs.runs, rated, self.human)

    @cached_property
    def ratings(self) -> tuple[Ratings, Ratings]:
        first, second = (
            ratings(replace(table.scores_at(at), correct=correct), self.levels)
            for table, at, correct in zip(
                self.tables, self.pairs.partners, self.correct, strict=True
            )
        )
        return first, second

    @cached_property
    def missing(self) -> tuple[Vector, Vector]:
        """Masks of the pairs for which each run lacks a prediction, which counts as incorrect.

        A pair of the same tested model is left out if both rows lack it.
        """
        a, b = (
            table.missing[at] for table, at in zip(self.tables, self.pairs.partners, strict=True)
        )
        says_nothing = a & b & (len(self.pairs.by) > 1)
        return a & ~says_nothing, b & ~says_nothing

    @property
    def correct(self) -> Iterator[Vector]:
        """Correctness of the pairs in each run: 1, 0, or -1 without a verdict."""
        for table, at, missing in zip(self.tables, self.pairs.partners, self.missing, strict=True):
            yield np.where(missing, 0, table.correct[at])

    @cached_property
    def scored(self) -> tuple[Vector, Vector]:
        """Masks of the pairs for which each run has a verdict."""
        return self.ratings[0].correct >= 0, self.ratings[1].correct >= 0

    @cached_property
    def sample(self) -> Sample:
        """The sampling of the pairs."""
        clusters = self.pairs.runs[0].clusters(self.cluster)
        at = self.pairs.partners[0]
        return self.settings.of(Sample(clusters=None if clusters is None else clusters[at]))

    @property
    def n_clusters(self) -> int:
        both = self.scored[0] & self.scored[1]
        unit, _ = self.sample.take(both).units(int(both.sum()))
        return len(set(unit.tolist()))

    def comparison(
        self, labels: str | None, primary: Sequence[str], problems: Problems
    ) -> Comparison:
        a, b = self.scored
        result = self.differences()
        return Comparison(
            first=self.side(0),
            second=self.side(1),
            paired_on=self.pairs.by,
            n_pairs=len(a),
            n_compared=int(np.count_nonzero(a & b)),
            n_first_unscored=int(np.count_nonzero(~a & b)),
            n_second_unscored=int(np.count_nonzero(a & ~b)),
            n_both_unscored=int(np.count_nonzero(~a & ~b)),
            cluster=self.cluster,
            n_clusters=self.n_clusters,
            flips=flips(*self.ratings, self.sample.take(a & b)) if self.has_verdicts else None,
            differences=tuple(_in_families(result, primary)),
            labels=labels,
            n_labelled=0 if self.human is None else int(np.count_nonzero(a & b & self.labelled)),
            level=self.settings.level,
            notes=tuple(self.notes()),
            problems=tuple(problems),
            rate=success_kind(protocol).name if (protocol := self.protocol_of_runs) else CR.name,
            n_other_content=self.n_other(*(table.content for table in self.tables)),
            n_other_response=len(self.pairs.by) - 1
            and self.n_other(*(table.response for table in self.tables)),
        )

    def n_other(self, first: Vector, second: Vector) -> int:
        """Number of pairs whose known keys differ; 0 is an unknown key."""
        a, b = first[self.pairs.partners[0]], second[self.pairs.partners[1]]
        return int(np.count_nonzero((a != b) & (a > 0) & (b > 0)))

    @property
    def labelled(self) -> Vector:
        human = self.human or no_scores()
        return (human.correct >= 0) | ~np.isnan(human.grade) | (human.known > 0)

    def side(self, i: int) -> Side:
        run, rows = self.pairs.runs[i], self.pairs.rows[i]
        codes: set[int] = set(run.table.code("rubric", rows).tolist())
        rubrics = {run.table.labels["rubric"][code] or "" for code in codes}
        at: set[int] = set(run.table.code("setting", rows).tolist())
        settings = {run.table.labels["setting"][code] for code in at}
        return Side(
            judge=run.name,
            source=run.path,
            rubrics=tuple(sorted(rubrics - {""})),
            tested_models=tuple(tested_models_of(run.table, rows)),
            n_rows=len(rows),
            n_only=len(rows) - len(self.pairs.partners[i]),
            n_scored=int(np.count_nonzero(run.table.correct[rows] >= 0)),
            settings=tuple(sorted(name for name in settings if name is not None)),
            unfinished=run.unfinished,
        )

    def differences(self) -> list[Difference]:
        first, second = self.ratings
        settings = self.settings
        result = compare_verdicts(first, second, self.sample, levels=self.levels, settings=settings)
        if protocol := self.protocol_of_runs:
            success = (replace(d, kind=success_kind(protocol)) for d in result if d.kind is CR)
            flags = (d for d in result if d.name in first.codes)
            result = [*success, *flags, *self.trajectory_differences(protocol)]
        if not self.has_verdicts:
            result = [difference for difference in result if difference.kind is not CR]
        if self.human is None:
            return result
        human = ratings(self.human, self.levels)
        return result + compare_reliability(
            first, second, human, self.sample, levels=self.levels, settings=settings
        )

    @property
    def protocol_of_runs(self) -> str | None:
        """The protocol, if both runs compare whole trajectories under the same one."""
        names: set[str | None] = set()
        for table, at in zip(self.tables, self.pairs.partners, strict=True):
            if not (table.code("form", at) == table.form_of_trajectories).all():
                return None
            codes: list[int] = table.code("protocol", at).tolist()
            names |= {table.labels["protocol"][code] for code in set(codes)}
        return names.pop() if len(names) == 1 else None

    @property
    def tables(self) -> tuple[JudgementTable, JudgementTable]:
        """The judgements of both runs."""
        return self.pairs.runs[0].table, self.pairs.runs[1].table

    def trajectory_differences(self, protocol: str) -> Iterator[Difference]:
        """Differences of a protocol's measures, over the trajectories that both scored."""
        a, b = self.tables
        names = tuple(dict.fromkeys((*a.measure_names, *b.measure_names)))
        a, b = a.with_measures(names), b.with_measures(names)
        both = self.scored[0] & self.scored[1]
        at, on = (rows[both] for rows in self.pairs.partners)
        for figure in protocol_metrics(a, protocol):
            first, second = columns_of(a, figure, at), columns_of(b, figure, on)
            difference = compare_ratios(
                figure.kind,
                first,
                second,
                self.sample.take(both),
                bounds=bounds_of(figure, np.concatenate([first[0], second[0]])),
                level=self.settings.level,
            )
            if difference.difference.n_items:
                yield difference
        yield from self.trial_differences(a.correct[at], b.correct[on])

    def trial_differences(self, first: Vector, second: Vector) -> Iterator[Difference]:
        """Differences of pass^k and pass@k over cases, with the trials that both scored."""
        both = self.scored[0] & self.scored[1]
        clusters = self.sample.take(both).units(int(both.sum()))[0]
        n = np.bincount(clusters)
        if not len(n) or n.max() < 2:
            return
        successes = [np.bincount(clusters, weights=of).astype(np.int64) for of in (first, second)]
        alone = self.settings.of()
        for name, of in (("pass^", pass_hat_k), ("pass@", pass_at_k)):
            for k in shown_k(int(n.min())):
                a, b = (of(n, c, k) for c in successes)
                yield compare_means(good(f"{name}{k}"), a, b, alone, level=self.settings.level)

    def notes(self) -> Iterator[str]:
        yield from self.pairs.notes
        yield from filter(None, dict.fromkeys(run.unfinished for run in self.pairs.runs))
        if n := int(np.count_nonzero(self.missing[0] | self.missing[1])):
            yield f"{n} pairs have a case without a prediction, which counts as not correct."
        if any(run.table.judge == STATIC for run in self.pairs.runs):
            yield "The static judge proves faults only: its CR is that of no provable fault."
        grades = [run.table.grade for run in self.pairs.runs]
        rated = () if self.labels is None else self.labels.grades
        used = {*np.unique(np.concatenate(grades)), *rated}
        if not self.is_foreign and (note := scale_note(self.levels, used)):
            yield note
        if not np.all(self.scored[0] & self.scored[1]):
            yield (
                "pairs without a verdict by both count in no figure; if a judge gives no verdict "
                "on hard items, the figures are about the easier rest"
            )
        if self.human is not None:
            yield (
                "figures against labels (agreement to Err-Type) describe the population of "
                "interest only if the labelled items are a random sample of it"
            )


def _in_families(differences: Sequence[Difference], primary: Sequence[str]) -> list[Difference]:
    """The differences with adjusted p-values; ``primary`` names metrics in any letter case."""
    names = {difference.name.casefold(): difference.name for difference in differences}
    for name in primary:
        if name.casefold() not in names:
            known = ", ".join(names.values()) or "none, since no pair has a verdict by both"
            raise OptionError(f"--primary: expected some of {known}, got {name!r}")
    return with_families(differences, [names[name.casefold()] for name in primary])

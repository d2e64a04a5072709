"""Two runs on the same items: from files to differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import InputError, OptionError, visible
from ..statistics.coded import Settings
from ..statistics.intervals import CONFIDENCE_LEVEL
from ..statistics.paired import (
    Difference,
    compare_reliability,
    compare_verdicts,
    flips,
    with_families,
)
from ..statistics.ratings import Ratings
from ..statistics.sample import Sample
from ..statistics.shares import share
from .judged import Judged, Key, Problems, Said, Vector, check_level, judgements_of, read_judged
from .matching import Labels, cluster_ids, grade_levels, load_labels, match, scale_note
from .results import Comparison, Side


def compare(
    run_a: str | Path,
    run_b: str | Path,
    *,
    labels: str | Path | None = None,
    adjudicator: str | None = None,
    tested_models: Sequence[str] = (),
    cluster: str = "case_id",
    primary: Sequence[str] = (),
    level: float = CONFIDENCE_LEVEL,
) -> Comparison:
    """Compares two judges, two tested models or two rubrics on the same items.

    Rows are paired on item and tested model; on the item alone where two tested models are
    compared: two that are named, or the only one of each run where they differ.

    Args:
        run_a: Folder of a run, or its ``judgements.jsonl``.
        run_b: The other; the same run if two tested models are named.
        labels: JSONL or CSV of human labels; then reliability is compared too.
        adjudicator: Rater whose word is final.
        tested_models: Nobody: all rows; one: its rows only; two: rows of the first in A against
            those of the second in B.
        cluster: Column that tells which rows were drawn together; ``none`` where none were.
        primary: Figures that were to be compared before anyone saw them; their p-values are
            adjusted by Holm's method, those of all others by Benjamini and Hochberg's.
        level: Confidence level, between 0 and 1.

    Raises:
        InputError: If a file is unusable, or the runs have no item in common.
        OptionError: If an option is unusable.
    """
    check_level(level)
    problems: Problems = []
    runs = _read(Path(run_a), Path(run_b), tested_models, problems)
    pairs = _paired(*runs, tested_models, problems)
    known, human = None, None
    if labels is not None:
        known, human = _labels(pairs, Path(labels), adjudicator, problems)
    work = _Work(pairs, known, human, cluster, level)
    return work.comparison(None if labels is None else str(labels), primary, problems)


def _read(
    run_a: Path, run_b: Path, tested_models: Sequence[str], problems: Problems
) -> tuple[Judged, Judged]:
    """Both runs; read once where they are one."""
    if len(tested_models) > 2:
        raise OptionError(
            f"--tested-model: expected one or two names, got {', '.join(tested_models)}"
        )
    first = read_judged(run_a, problems)
    if judgements_of(run_a).resolve() != judgements_of(run_b).resolve():
        return first, read_judged(run_b, problems)
    if len(set(tested_models)) < 2:
        raise OptionError(
            f"RUN_B: expected another run than {visible(str(run_a))}; to compare two of its "
            "tested models name both with --tested-model"
        )
    return first, first


# Pairs -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Which row of one run belongs to which of the other.

    Attributes:
        runs: Both runs.
        rows: Rows of each that come into question.
        partners: Shape (n,) each: positions of the pairs' rows, in the order of the first run.
        by: Fields they were paired on.
        notes: What is to be said of that.
    """

    runs: tuple[Judged, Judged]
    rows: tuple[list[int], list[int]]
    partners: tuple[Vector, Vector]
    by: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_of_two_models(self) -> bool:
        return len(self.by) == 1


def _paired(
    first: Judged, second: Judged, tested_models: Sequence[str], problems: Problems
) -> _Pairs:
    rows = _chosen(first, second, tested_models)
    models = [_models(run, at) for run, at in zip((first, second), rows, strict=True)]
    two = all(len(found) == 1 for found in models) and models[0] != models[1]
    found: list[dict[Key, int]] = []
    for run, at in zip((first, second), rows, strict=True):
        keys: list[Key] = [(item, None) if two else (item, model) for item, model in run.keys]
        found.append(_once(run, keys, at, problems))
    shared = [key for key in found[0] if key in found[1]]
    if not shared:
        raise InputError(_nothing_shared(first, second, rows))
    note = "each run has one tested model, and they differ: rows are paired by item_id alone"
    return _Pairs(
        runs=(first, second),
        rows=rows,
        partners=(
            np.array([found[0][key] for key in shared]),
            np.array([found[1][key] for key in shared]),
        ),
        by=("item_id",) if two else ("item_id", "tested_model"),
        notes=(note,) if two and len(tested_models) < 2 else (),
    )


def _chosen(first: Judged, second: Judged, names: Sequence[str]) -> tuple[list[int], list[int]]:
    """Rows of the tested models asked for."""
    if not names:
        return list(range(len(first))), list(range(len(second)))
    return _rows_of(first, names[0]), _rows_of(second, names[-1])


def _rows_of(run: Judged, name: str) -> list[int]:
    rows = [at for at, (_, model) in enumerate(run.keys) if model == name]
    if not rows:
        known = sorted({visible(str(model)) for _, model in run.keys})
        shown = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
        raise OptionError(
            f"--tested-model: expected one in {visible(str(run.path))} ({shown}), got {name!r}"
        )
    return rows


def _models(run: Judged, rows: list[int]) -> list[str | None]:
    found = {run.keys[at][1] for at in rows}
    return sorted(found, key=lambda name: (name is None, name or ""))


def _once(run: Judged, keys: Sequence[Key], rows: list[int], problems: Problems) -> dict[Key, int]:
    """Where each key stands; one that stands in several rows has no one partner."""
    times = Counter(keys[at] for at in rows)
    repeated = [key for key, n in times.items() if n > 1]
    if repeated:
        item, model = repeated[0]
        problems.append(
            f"{run.path}: item_id: expected one row per item and tested model, got several for "
            f"{len(repeated)} of them, such as {visible(item)} of {visible(str(model))}: they "
            "are left out"
        )
    return {keys[at]: at for at in rows if times[keys[at]] == 1}


def _nothing_shared(first: Judged, second: Judged, rows: tuple[list[int], list[int]]) -> str:
    (one, of), (other, whose) = first.keys[rows[0][0]], second.keys[rows[1][0]]
    return (
        f"{second.path}: expected items of {first.path}, such as {visible(one)} of "
        f"{visible(str(of))}, got only others, such as {visible(other)} of {visible(str(whose))}"
    )


def _labels(
    pairs: _Pairs, path: Path, adjudicator: str | None, problems: Problems
) -> tuple[Labels, Said]:
    """The labels, and what humans said of each pair."""
    if pairs.is_of_two_models:
        raise OptionError(
            "--labels: expected two runs on the same responses, got two tested models, whose "
            "responses have labels of their own; see apbjudge calibrate --by tested_model"
        )
    first = pairs.runs[0]
    labels = load_labels(path, adjudicator, problems)
    matched = match(first, labels, problems)
    place = np.full(len(first), -1)
    place[matched.rows] = np.arange(len(matched.rows))
    at = place[pairs.partners[0]]
    if not np.any(at >= 0):
        raise InputError(f"{path}: expected labels of items that both runs have, got none")
    return labels, matched.human.take(at)


# Figures -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Work:
    """Pairs, and what humans said of them."""

    pairs: _Pairs
    labels: Labels | None
    human: Said | None
    cluster: str
    level: float

    @cached_property
    def said(self) -> tuple[Said, Said]:
        first, second = (
            run.said.take(at) for run, at in zip(self.pairs.runs, self.pairs.partners, strict=True)
        )
        return first, second

    @cached_property
    def levels(self) -> tuple[float, ...]:
        return grade_levels(self.pairs.runs, self.labels, self.human)

    @cached_property
    def ratings(self) -> tuple[Ratings, Ratings]:
        return self.said[0].ratings(self.levels), self.said[1].ratings(self.levels)

    @cached_property
    def clusters(self) -> tuple[Vector | None, Vector | None]:
        first, second = self.pairs.runs
        ids = cluster_ids(first, self.cluster)
        return ids, ids if second is first else cluster_ids(second, self.cluster)

    @cached_property
    def told(self) -> tuple[Vector, Vector]:
        """Where each has a verdict."""
        return self.ratings[0].correct >= 0, self.ratings[1].correct >= 0

    @cached_property
    def sample(self) -> Sample:
        """How the pairs were drawn."""
        return _sample(self.clusters[0], self.pairs.partners[0])

    @property
    def n_clusters(self) -> int:
        both = self.told[0] & self.told[1]
        unit, _ = self.sample.take(both).units(int(both.sum()))
        return len(set(unit.tolist()))

    def comparison(
        self, labels: str | None, primary: Sequence[str], problems: Problems
    ) -> Comparison:
        a, b = self.told
        found = self.differences()
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
            flips=flips(*self.ratings, self.sample.take(a & b)),
            differences=tuple(_in_families(found, primary)),
            labels=labels,
            n_labelled=0 if self.human is None else int(np.count_nonzero(a & b & self.labelled)),
            level=self.level,
            notes=tuple(self.notes()),
            problems=tuple(problems),
        )

    @property
    def labelled(self) -> Vector:
        human = self.human or Said.of([])
        return (human.correct >= 0) | ~np.isnan(human.grade) | (human.known > 0)

    def side(self, i: int) -> Side:
        run, rows = self.pairs.runs[i], self.pairs.rows[i]
        scored = run.said.correct[rows] >= 0
        rubrics = run.fields.get("rubric", [])
        return Side(
            judge=run.name,
            source=str(run.path),
            rubrics=tuple(sorted({rubrics[at] or "" for at in rows} - {""})) if rubrics else (),
            tested_models=tuple(_models(run, rows)),
            n_rows=len(rows),
            n_only=len(rows) - len(self.pairs.partners[i]),
            scored=share(
                scored,
                np.ones(len(rows), dtype=bool),
                _sample(self.clusters[i], rows),
                level=self.level,
            ),
        )

    def differences(self) -> list[Difference]:
        first, second = self.ratings
        settings = Settings(level=self.level)
        found = compare_verdicts(first, second, self.sample, levels=self.levels, settings=settings)
        if self.human is None:
            return found
        human = self.human.ratings(self.levels)
        return found + compare_reliability(
            first, second, human, self.sample, levels=self.levels, settings=settings
        )

    def notes(self) -> Iterator[str]:
        yield from self.pairs.notes
        given = [run.said.grade for run in self.pairs.runs]
        rated = () if self.labels is None else self.labels.grades
        if note := scale_note(self.levels, {*np.unique(given[0]), *np.unique(given[1]), *rated}):
            yield note
        if not np.all(self.told[0] & self.told[1]):
            yield (
                "pairs without a verdict by both count nowhere; if a judge is silent on what is "
                "hard, the figures are of the easier rest"
            )
        if self.human is not None:
            yield (
                "figures against labels (agreement to Err-Type) are those of the population meant "
                "only if the labelled items are a random draw of it"
            )


def _sample(clusters: Vector | None, rows: Vector | list[int]) -> Sample:
    return Sample(clusters=None if clusters is None else clusters[rows])


def _in_families(found: Sequence[Difference], primary: Sequence[str]) -> list[Difference]:
    """With p-values adjusted; names in any letter case."""
    names = {difference.name.casefold(): difference.name for difference in found}
    for name in primary:
        if name.casefold() not in names:
            known = ", ".join(names.values()) or "none, since no pair has a verdict by both"
            raise OptionError(f"--primary: expected some of {known}, got {name!r}")
    return with_families(found, [names[name.casefold()] for name in primary])

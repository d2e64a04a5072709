"""Runs in the form that calibration needs, and the scale of their grades."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import InputError, OptionError, RowError
from ..judge.published import only_run, read_runs
from ..records.columns import Codes, Scores, Vector
from ..records.foreign import ForeignRows, ForeignScale, own_columns, read_rows
from ..records.judgement_reader import first_complaint
from ..records.judgement_table import JudgementTable, Problems, case_numbers
from ..records.keys import short_key
from ..records.run_folder import RunFolder
from ..rubrics import rubric_names
from ..statistics.ratings import LEVELS, Ratings, grade_codes, levels_of, with_levels

GROUPINGS = (
    "case_id tested_model protocol rubric dataset category modality stage steps horizon level "
    "unsolvable_type finish_reason"
).split()
"""Fields of a judgement by which rows can be grouped."""

NO_CLUSTERS = "none"
_S = TypeVar("_S", bound=Scores)
_LEVELS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Foreign:
    """Columns and scale of judgements of another tool.

    Attributes:
        reading: The role of each column that was read.
        scale: The scale of its scores or classes; yes/no for verdicts alone.
        has_verdict: True if rows have verdicts, yes or no.
        reversed: Shape (n,), for preferences: 1 if the second answer was shown first, 0 if the
            first was, -1 if unknown.
    """

    reading: ForeignRows
    scale: ForeignScale
    has_verdict: bool
    reversed: Vector | None = None


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A judge's judgements.

    Attributes:
        name: The judge, with ``(blind)`` if it saw no reference.
        table: Its judgements of items that have an id.
        scale: Grades of the rubric; None if the run does not state them.
        foreign: Columns and scale of judgements of another tool; None for our own runs.
        own: Further columns to group by, each with one entry a row.
        folder: Folder that the run was read from; None if it is not a run.
    """

    name: str
    table: JudgementTable
    scale: tuple[float, ...] | None
    foreign: Foreign | None = None
    own: Mapping[str, Sequence[str | None]] = field(default_factory=dict[str, Any], repr=False)
    folder: RunFolder | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def path(self) -> str:
        """File of the judgements."""
        return str(self.table.path)

    @property
    def unfinished(self) -> str:
        """States that the run is not finished; empty for a finished run."""
        return "" if self.folder is None else self.folder.unfinished

    @property
    def groupings(self) -> list[str]:
        """Fields of ``GROUPINGS``, and own columns, that some row states."""
        labels = self.table.labels
        result = [name for name in GROUPINGS[1:] if any(labels[name])]
        result += [name for name in self.own if name not in result]
        return [*result, *(["case_id"] if np.any(self.table.case_id.ends >= 0) else [])]

    def column(self, name: str, option: str) -> tuple[Vector, list[str | None]]:
        """A column to group by.

        Args:
            name: A field.
            option: The option that named it, for messages.

        Returns:
            Shape (n,), a code for each row; the text of each code, None if not stated.

        Raises:
            OptionError: If no row states such a field.
        """
        if name not in self.groupings:
            known = ", ".join(sorted(self.groupings))
            raise OptionError(f"{option}: expected some of {known}, got {name!r}")
        if name in self.own:
            codes = Codes()
            return codes.of(self.own[name]).astype(np.int64), codes.names
        if name != "case_id":
            return self.table.codes[name][self.table.profile], self.table.labels[name]
        codes = Codes()
        return codes.of(self.table.case_id.values), codes.names

    def clusters(self, name: str) -> Vector | None:
        """The cluster of each row.

        Args:
            name: A column, or ``none``. Rows without a value there are their own clusters, and so
                are all rows if no row names a case (the default column). Rows whose case is only
                themselves are one cluster if their content is equal.

        Returns:
            Shape (n,); None if all rows are independent.

        Raises:
            OptionError: If no row has such a column.
        """
        if name == NO_CLUSTERS or (name == "case_id" and name not in self.groupings):
            return None
        if name == "case_id":
            keys = self.table.case_keys.copy()
            for at in np.flatnonzero(self.table.case_id.ends < 0).tolist():
                keys[at] = short_key("row", str(at + 1))
            return case_numbers(keys[:, 0], keys[:, 1]).astype(np.int64)
        codes, labels = self.column(name, "--cluster")
        stated = [label for label in labels if label is not None]
        number = {label: at for at, label in enumerate(stated)}
        result = np.array([-1 if of is None else number[of] for of in labels])[codes]
        alone = np.flatnonzero(result < 0)
        result[alone] = len(stated) + np.arange(len(alone))
        return result


def read_judged_run(path: Path, problems: Problems) -> JudgedRun:
    """Reads a run; see ``judged_run``.

    Args:
        path: Its folder, or its file of judgements.
        problems: Gets a line for each row that can't be used.

    Raises:
        InputError: If the file can't be read or holds no judgement of an item.
    """
    return _usable(only_run(path), problems)


def read_judged_runs(path: Path, problems: Problems) -> list[JudgedRun]:
    """Reads a run, or all runs of a file of published judgements; see ``read_judged_run``."""
    return [_usable(run, problems) for run in read_runs(path)]


def _usable(run: RunFolder, problems: Problems) -> JudgedRun:
    problems.extend(run.problems)
    result = judged_run(run)
    if not len(result):
        expected = "expected judgements, one a line, as apbjudge grade writes them"
        raise InputError(f"{run.path}: {expected}{first_complaint(run.problems)}")
    return result


def judged_run(run: RunFolder) -> JudgedRun:
    """The rows of a run that labels can refer to: those with an item id."""
    table = run.table
    table = table if table.has_id.all() else table.take(np.flatnonzero(table.has_id))
    shipped, rubrics = {*rubric_names()}, {*table.labels["rubric"]}
    scale = LEVELS if rubrics <= shipped else None
    if run.grades:
        scale = tuple(sorted({*run.grades, *(LEVELS if rubrics & shipped else ())}))
    return JudgedRun(run.judge, table, scale, folder=run)


def once(run: JudgedRun, problems: Problems) -> JudgedRun:
    """A run with only the first row of each item and tested model; see ``first_rows``."""
    table = run.table.first_rows(problems)
    if run.foreign is None or len(table) == len(run):
        return replace(run, table=table)
    rows = table.position  # for another tool: position among all rows
    places: list[int] = rows.tolist()
    own = {name: [column[at] for at in places] for name, column in run.own.items()}
    return replace(run, table=table, own=own)


def with_columns(
    run: JudgedRun, names: Iterable[str], labels: Path, keys: tuple[str, str | None] | None
) -> JudgedRun:
    """A run with more columns, from the rows of its predictions or of the labels.

    A field of an object, such as ``metadata``, can be named alone or as ``metadata.team``.

    Args:
        run: The run.
        names: Columns to add; those that the run already has, or that do not exist, are ignored.
        labels: The file of labels.
        keys: Its columns of the item and of the tested model; None for labels of pairs.
    """
    own = dict(run.own)
    for name in names:
        if name in run.groupings or name in {*GROUPINGS, NO_CLUSTERS}:
            continue
        nested = _named(name, run.own)
        refusal = None
        try:
            values = _of_predictions(run, name) if nested is None else [*run.own[nested]]
        except InputError as error:
            values, refusal = None, error
        if values is None and keys is not None:
            values = _of_labels(run, name, labels, *keys)
        if values is None and refusal is not None:
            raise InputError(f"{name}: no column of the judgements or labels; {refusal}")
        if values is not None:
            own[name] = values
    return replace(run, own=own) if len(own) > len(run.own) else run


def _named(name: str, columns: Iterable[str]) -> str | None:
    """The column with a name, also that of an object's field."""
    return next((c for c in columns if c == name or c.endswith(f".{name}")), None)


def _of_predictions(run: JudgedRun, name: str) -> list[str | None] | None:
    path = None if run.folder is None else run.folder.predictions
    if run.folder is None or path is None or not path.is_file():
        return None
    columns, rows = read_rows(path)
    if (column := _named(name, columns)) is None:
        return None
    lines = [run.folder.row_at(position).get("line") for position in run.table.position.tolist()]
    by_line = {line: row for line, row in rows if not isinstance(row, RowError)}
    return own_columns([column], [by_line.get(line or 0, {}) for line in lines])[column]


def _of_labels(
    run: JudgedRun, name: str, labels: Path, item: str, model: str | None
) -> list[str | None] | None:
    columns, rows = read_rows(labels)
    if (column := _named(name, columns)) is None:
        return None
    stated: dict[tuple[str | None, str | None], str | None] = {}
    usable = [row for _, row in rows if not isinstance(row, RowError)]
    names = [item, column, *([] if model is None else [model])]
    of = own_columns(names, usable)
    models = [None] * len(usable) if model is None else of[model]
    for key, value in zip(zip(of[item], models, strict=True), of[column], strict=True):
        if value is not None:
            stated.setdefault(key, value)
    table = run.table
    return [
        stated.get((item_id, table.tested_model(at)), stated.get((item_id, None)))
        for at, item_id in enumerate(table.item_id.values)
    ]


def joined(parts: Sequence[JudgedRun], name: str) -> JudgedRun:
    """Several runs of one judge as one.

    Args:
        parts: The runs, at least one.
        name: Its name.
    """
    table = JudgementTable.joined([part.table for part in parts])
    return JudgedRun(name, table, common_scale(parts))


# Grades -------------------------------------------------------------------------------------------


def common_scale(runs: Iterable[JudgedRun]) -> tuple[float, ...] | None:
    """The grades of the rubrics of several runs; None if one run does not state them."""
    scales = [run.scale for run in runs]
    grades = {grade for scale in scales for grade in scale or ()}
    return None if None in scales else tuple(sorted(grades))


def grade_levels(
    runs: Sequence[JudgedRun], rated: Iterable[float] = (), human: Scores | None = None
) -> tuple[float, ...]:
    """The levels of the grades of judges and raters.

    These are the rubric's grades, if all of the judges' grades are on its scale, and other grades
    of raters; else the scale that the grades show (``levels_of``). A median of raters between two
    levels is an additional level.

    Args:
        runs: The judges' runs.
        rated: Grades that raters gave.
        human: Consensus of the raters; None without labels.
    """
    judged = [run.table.grade for run in runs]
    by_raters = np.asarray(tuple(rated), dtype=float)
    scale = common_scale(runs)
    if scale is not None and levels_of(*judged, scale=scale) == scale:
        result = with_levels(scale, by_raters)
    else:
        result = levels_of(*judged, by_raters, scale=scale)
    medians = np.zeros(0) if human is None else human.grade[~np.isnan(human.grade)]
    return with_levels(result, np.unique(medians))


def ratings(scores: Scores, levels: tuple[float, ...]) -> Ratings:
    """Scores with their grades as indices into the levels."""
    grade = grade_codes(scores.grade, levels)
    return Ratings(
        correct=scores.correct,
        grade=grade,
        flags=scores.flags,
        known=scores.known,
        codes=scores.error_codes,
    )


def on_levels(scores: _S, levels: tuple[float, ...]) -> _S:
    """Scores with each grade replaced by its level."""
    codes = grade_codes(scores.grade, levels)
    return replace(scores, grade=np.where(codes < 0, np.nan, np.asarray(levels)[codes]))


def scale_note(levels: Sequence[float], used: Iterable[float]) -> str | None:
    """A remark on the scale of grades; None if it is the benchmark's and all grades are on it.

    Args:
        levels: The result of ``grade_levels``.
        used: Grades as stated in the data.
    """
    stated = (float(grade) for grade in used if not np.isnan(grade))
    nearest = {grade: min(levels, key=lambda level: abs(level - grade)) for grade in stated}
    moved = {grade: level for grade, level in nearest.items() if abs(grade - level) > 1e-6}
    if tuple(levels) == LEVELS and not moved:
        return None
    listed = ", ".join(f"{level:.6g}" for level in levels[:_LEVELS_SHOWN])
    more = f", … {levels[-1]:.6g}" if len(levels) > _LEVELS_SHOWN else ""
    text = f"Grades are taken to be on a scale of {len(levels)} levels: {listed}{more}."
    if moved:
        grade, level = min(moved.items())
        example = f"{grade:.6g} as {level:.6g}"
        text += f" Grades within 0.01 of a level count as that level, such as {example}."
    return text

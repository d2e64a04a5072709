"""Runs as calibration looks at them, and the scale of their grades."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from ..errors import InputError, OptionError
from ..records.columns import Codes, Scores, Vector
from ..records.judgement_reader import first_complaint
from ..records.judgement_table import JudgementTable, Problems, case_numbers
from ..records.keys import short_key
from ..records.run_folder import RunFolder, read_run
from ..rubrics import rubric_names
from ..statistics.ratings import LEVELS, Ratings, grade_codes, levels_of, with_levels

GROUPINGS = (
    "case_id tested_model protocol rubric dataset category modality stage steps horizon level "
    "unsolvable_type"
).split()
"""Fields of a judgement by which rows can be grouped."""

NO_CLUSTERS = "none"
_S = TypeVar("_S", bound=Scores)
_LEVELS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A judge's judgements.

    Attributes:
        name: The judge, with ``(blind)`` where it saw no reference.
        table: Its judgements of items that have an id.
        scale: Grades of the rubric; None where the run does not say which they are.
    """

    name: str
    table: JudgementTable
    scale: tuple[float, ...] | None

    def __len__(self) -> int:
        return len(self.table)

    @property
    def path(self) -> str:
        """File of the judgements."""
        return str(self.table.path)

    @property
    def groupings(self) -> list[str]:
        """Fields of GROUPINGS that a row states."""
        labels = self.table.labels
        result = [name for name in GROUPINGS[1:] if any(labels[name])]
        return [*result, *(["case_id"] if np.any(self.table.case_id.ends >= 0) else [])]

    def column(self, name: str, option: str) -> tuple[Vector, list[str | None]]:
        """A column to group by.

        Args:
            name: A field.
            option: The option that named it, for messages.

        Returns:
            Shape (n,), a code for each row; the text behind each code, None where not stated.

        Raises:
            OptionError: If no row states such a field.
        """
        if name not in self.groupings:
            known = ", ".join(sorted(self.groupings))
            raise OptionError(f"{option}: expected some of {known}, got {name!r}")
        if name != "case_id":
            return self.table.codes[name][self.table.profile], self.table.labels[name]
        codes = Codes()
        return codes.of(self.table.case_id.values), codes.names

    def clusters(self, name: str) -> Vector | None:
        """The cluster of each row.

        Args:
            name: A column, or ``none``. Rows that state nothing in it stand alone; so do all where
                no row names a case, which is the default column. Rows that name no case but
                themselves share one if they share its content.

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
    run = read_run(path)
    problems.extend(run.problems)
    result = judged_run(run)
    if not len(result):
        wanted = "expected judgements, one a line, as apbjudge grade writes them"
        raise InputError(f"{run.path}: {wanted}{first_complaint(run.problems)}")
    return result


def judged_run(run: RunFolder) -> JudgedRun:
    """The rows of a run that labels can be about."""
    table = run.table
    table = table if table.has_id.all() else table.take(np.flatnonzero(table.has_id))
    shipped, rubrics = {*rubric_names()}, {*table.labels["rubric"]}
    scale = LEVELS if rubrics <= shipped else None
    if run.grades:
        scale = tuple(sorted({*run.grades, *(LEVELS if rubrics & shipped else ())}))
    return JudgedRun(run.judge, table, scale)


def once(run: JudgedRun, problems: Problems) -> JudgedRun:
    """A run with the first row alone of each item and tested model; see ``first_rows``."""
    return replace(run, table=run.table.first_rows(problems))


def joined(parts: Sequence[JudgedRun], name: str) -> JudgedRun:
    """Several runs of one judge as one.

    Args:
        parts: The runs, at least one.
        name: What to call it.
    """
    table = JudgementTable.joined([part.table for part in parts])
    return JudgedRun(name, table, common_scale(parts))


# Grades -------------------------------------------------------------------------------------------


def common_scale(runs: Iterable[JudgedRun]) -> tuple[float, ...] | None:
    """The grades of the rubrics of several runs; None where one of them does not say."""
    scales = [run.scale for run in runs]
    grades = {grade for scale in scales for grade in scale or ()}
    return None if None in scales else tuple(sorted(grades))


def grade_levels(
    runs: Sequence[JudgedRun], rated: Iterable[float] = (), human: Scores | None = None
) -> tuple[float, ...]:
    """The levels of the grades of judges and raters.

    Those of the rubric, where the judges' grades are all on its scale, and what raters gave beside
    them; else of the scale that the grades show (``levels_of``). A median of raters that lies
    between two levels is a level more.

    Args:
        runs: The judges' runs.
        rated: Grades that raters gave.
        human: What the raters say together; None without labels.
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
    return Ratings(correct=scores.correct, grade=grade, flags=scores.flags, known=scores.known)


def on_levels(scores: _S, levels: tuple[float, ...]) -> _S:
    """Scores with each grade replaced by its level."""
    codes = grade_codes(scores.grade, levels)
    return replace(scores, grade=np.where(codes < 0, np.nan, np.asarray(levels)[codes]))


def scale_note(levels: Sequence[float], used: Iterable[float]) -> str | None:
    """What to say of the scale of grades; None where it is the benchmark's and all are on it.

    Args:
        levels: As ``grade_levels`` gives them.
        used: Grades as they were stated.
    """
    stated = (float(grade) for grade in used if not np.isnan(grade))
    nearest = {grade: min(levels, key=lambda level: abs(level - grade)) for grade in stated}
    moved = {grade: level for grade, level in nearest.items() if abs(grade - level) > 1e-6}
    if tuple(levels) == LEVELS and not moved:
        return None
    shown = ", ".join(f"{level:.6g}" for level in levels[:_LEVELS_SHOWN])
    more = f", … {levels[-1]:.6g}" if len(levels) > _LEVELS_SHOWN else ""
    text = f"Grades are taken to be on a scale of {len(levels)} levels: {shown}{more}."
    if moved:
        grade, level = min(moved.items())
        example = f"{grade:.6g} as {level:.6g}"
        text += f" Grades within 0.01 of a level count as that level, such as {example}."
    return text

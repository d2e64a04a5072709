"""Judgements and labels of other tools, converted to our own form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, OptionError, RowError, visible
from ..judge.published import is_published
from ..records.columns import Vector
from ..records.consensus import resolve
from ..records.foreign import (
    UNIT,
    YES_NO,
    ForeignRows,
    ForeignScale,
    Row,
    column_of,
    has_foreign_rows,
    own_columns,
    read_rows,
    read_truth,
    shown_values,
    text_of,
    usable,
)
from ..records.judgement_reader import first_complaint, table_of
from ..records.judgement_table import Problems
from ..records.label_table import LabelTable, label_table
from ..records.labels import HumanLabel
from .config import CalibrationConfig
from .foreign_columns import (
    MOST_OFF_SCALE,
    OPTIONS,
    VALUES,
    Finder,
    fits,
    mostly_fit,
    preference_scale,
)
from .judged_run import Foreign, JudgedRun, once
from .matching import Labels
from .tool_results import ToolResults, tool_results


def is_foreign(config: CalibrationConfig) -> bool:
    """True if the judgements are another tool's: a column is named, or the files have its form.

    Raises:
        OptionError: If some of several files are and others are not.
    """
    stated = [*config.columns.values(), *config.judges, config.scale]
    if any(stated) or config.pairwise:
        return True
    if config.raters and any(map(looks_foreign, config.judgements)):
        return True
    foreign = [
        path
        for path in config.judgements
        if path.absolute() != config.labels.absolute() and looks_foreign(path)
    ]
    if foreign and len(foreign) < len(config.judgements):
        raise OptionError(
            f"{foreign[0]}: judgements of another tool can't be mixed with runs of apbjudge: "
            "calibrate them apart"
        )
    return bool(foreign)


def looks_foreign(path: Path) -> bool:
    """True if a file of judgements is another tool's: a table, or rows without our fields."""
    return has_foreign_rows(path) and not is_published(path)


def read_foreign(
    config: CalibrationConfig, problems: Problems
) -> tuple[list[JudgedRun], Labels, tuple[str, ...]]:
    """Reads judges and labels from files of other tools.

    A judge's value off the scale makes the row unscored; a rater's value off the scale omits the
    label; both add a line to ``problems``.

    Returns:
        The judges; the labels; notes on the columns that were read.

    Raises:
        InputError: If a file is unusable, a column is missing or could be several, or too many
            values are off the scale.
        OptionError: If the scale is unusable or missing.
    """
    if folders := [path for path in config.judgements if path.is_dir()]:
        raise OptionError(
            f"{folders[0]}: expected a file of another tool's judgements with options for columns, "
            "scales or pairs, got a folder"
        )
    scale = None if config.scale is None else ForeignScale.parse(config.scale)
    stated = {role: (column, OPTIONS[role]) for role, column in config.columns.items() if column}
    files: list[_File] = []
    for path in config.judgements:
        is_known = not (stated.keys() - {"item"} or config.pairwise)
        if results := tool_results(path, config.item) if is_known else None:
            files += _files_of(path, results, config.judges, scale, problems)
        else:
            of = _File.read(path, stated, config.judges, scale, problems, pairwise=config.pairwise)
            files.append(of)
    is_of_tool = any(file.is_of_tool for file in files)
    if config.pairwise:
        scale = files[0].scale
    elif is_of_tool:
        scale = scale or next((of.scale for of in files if "score" in of.reading.roles), None)
    of_labels = {
        role: (column, "--label-columns")
        for role, _, column in (entry.partition("=") for entry in config.label_columns)
    }
    labelled = _File.read(
        config.labels,
        stated,
        config.raters,
        scale,
        problems,
        pairwise=config.pairwise,
        of_labels=of_labels,
        roles={role for file in files for role in file.reading.roles},
        is_of_tool=is_of_tool,
    )
    notes = [note for file in (*files, labelled) for note in file.notes]
    if is_of_tool:
        files, remarks = _comparable(files, labelled)
        notes += remarks
    orientation: dict[tuple[str, str], str] = {}
    runs = [run for file in files for run in file.runs(orientation, problems)]
    return runs, labelled.labels(orientation, config.adjudicator, problems), tuple(notes)


def foreign_runs(path: Path, problems: Problems) -> tuple[list[JudgedRun], tuple[str, ...]]:
    """Reads the judges of another tool's file, and notes on the columns that were read.

    Raises:
        InputError: As ``read_foreign`` does.
        OptionError: Likewise.
    """
    if results := tool_results(path):
        files = _files_of(path, results, (), None, problems)
    else:
        files = [_File.read(path, {}, (), None, problems, pairwise=False)]
    runs = [once(run, problems) for file in files for run in file.runs({}, problems)]
    return runs, tuple(note for file in files for note in file.notes)


def _files_of(
    path: Path,
    results: ToolResults,
    chosen: Sequence[str],
    scale: ForeignScale | None,
    problems: Problems,
) -> list[_File]:
    """The metrics of a tool's results, each in the form of a file with its own scale."""
    if unknown := {*chosen} - results.metrics.keys():
        known = ", ".join(results.metrics)
        raise OptionError(f"--judges: expected some of {known}, got {min(unknown)!r}")
    problems.extend(results.problems)
    files: list[_File] = []
    read: dict[str, list[str]] = {}
    unread: list[str] = []
    for metric in chosen or results.metrics:
        rows = [*results.metrics[metric]]
        columns = tuple(dict.fromkeys(name for _, row in rows for name in row))
        roles = {name.replace(" ", "_"): name for name in columns} | {"judge": "metric"}
        scores = [row["score"] for _, row in rows if "score" in row]
        of = UNIT if metric in results.units and mostly_fit(UNIT, scores) else scale
        if "verdict" not in roles and scores and all(fits(YES_NO, score) for score in scores):
            roles["verdict"] = "score"
        if of is None or of.role != "score" or not mostly_fit(of, scores):
            roles.pop("score", None)
        if scores and not {"verdict", "score"} <= roles.keys() and roles.get("verdict") != "score":
            unread.append(f"score of {metric} ({shown_values(scores)})")
        names = [name for name in ("verdict", "score") if name in roles]
        if names:
            of = of if of is not None and "score" in roles else YES_NO
            texts = {"verdict": "verdict (yes/no)", "score": f"score ({of.text})"}
            read.setdefault(" and ".join(texts[name] for name in names), []).append(metric)
            files.append(
                _File(ForeignRows(path, columns, roles), rows, of, (), (), is_of_tool=True)
            )
    listed = "; ".join(f"{', '.join(names)} by {what}" for what, names in read.items())
    notes = (f"Read in {path.name}, {results.title}: {results.item} as item; judges {listed}.",)
    what = f"{'; '.join(unread)}, whose scale is not stated (--scale)"
    if not files:
        raise InputError(
            f"{path}: {results.title}: no verdicts or scores{f': {what}' * bool(unread)}"
        )
    if unread:
        notes += (f"Not read in {path.name}: {what}.",)
    return [replace(files[0], notes=notes), *files[1:]]


def _comparable(files: Sequence[_File], labelled: _File) -> tuple[list[_File], list[str]]:
    """The metrics without values of a kind that labels lack; and a note on metrics left out."""
    of_labels, comparable, others = labelled.reading.roles, list[_File](), list[str]()
    for file in files:
        roles = dict(file.reading.roles)
        if "score" not in of_labels or file.scale != labelled.scale:
            roles.pop("score", None)
        if "verdict" not in of_labels:
            roles.pop("verdict", None)
        if {*VALUES} & roles.keys():
            scale = file.scale if "score" in roles else YES_NO
            comparable.append(
                replace(file, reading=replace(file.reading, roles=roles), scale=scale)
            )
        else:
            others.append(str(file.rows[0][1]["metric"]))
    note = (
        f"Left out: {', '.join(others)}: the labels have no value on that scale (name their column "
        "with --label-columns score=COLUMN)."
    )
    if not comparable:
        raise InputError(f"{labelled.path}: expected labels of the metrics' kind. {note}")
    return comparable, [note] if others else []


@dataclass(frozen=True)
class _File:
    """A file of judgements or labels, with the roles of its columns.

    ``several``: columns of judges or raters, each with its own values, read as ``role``.
    """

    reading: ForeignRows
    rows: list[tuple[int, Row]]
    scale: ForeignScale
    several: Sequence[str]
    notes: tuple[str, ...]
    is_of_tool: bool = False

    @property
    def path(self) -> Path:
        return self.reading.path

    @classmethod
    def read(
        cls,
        path: Path,
        stated: Mapping[str, tuple[str, str]],
        several: Sequence[str],
        scale: ForeignScale | None,
        problems: Problems,
        *,
        pairwise: bool,
        of_labels: Mapping[str, tuple[str, str]] | None = None,
        roles: set[str] | None = None,
        is_of_tool: bool = False,
    ) -> _File:
        """Finds the columns.

        Args:
            path: The file.
            stated: By role, a stated column and its option; for labels, those that the file lacks
                are ignored.
            several: Columns of judges or raters.
            scale: The scale that was stated; None if none was.
            problems: Gets a line for each row that can't be read.
            pairwise: True if rows are preferences.
            of_labels: Columns of labels that were stated; None for judgements.
            roles: Roles of the judgements, which labels share; None for judgements.
            is_of_tool: True if the judgements are metrics of a tool, with verdicts or scores: then
                labels need only one of these.
        """
        columns, all_rows = read_rows(path)
        rows = list(usable(all_rows, path, problems))
        if of_labels is not None:
            known = {name.lower() for name in columns}
            stated = {r: of for r, of in stated.items() if of[0].lower() in known} | {**of_labels}
        finder = Finder(path, columns, rows, stated, is_of_judge=of_labels is None)
        optional_roles = ("first", "second", "order") if pairwise else ("tested_model",)
        chosen = {"item": finder.needed("item"), **finder.optional(*optional_roles)}
        main = "preference" if pairwise else None if scale is None else scale.role
        unread = ""
        if several:
            for name in several:
                column_of(
                    path, columns, "item", name, "--judges" if of_labels is None else "--raters"
                )
            chosen[main or "verdict"] = ", ".join(several)
        else:
            chosen |= (
                finder.of_metrics(chosen, scale)
                if is_of_tool
                else finder.values(main, chosen, roles)
            )
            unread = finder.without_scale(main, chosen) if of_labels is None else ""
            people = "judge" if of_labels is None else "rater"
            chosen |= {r: c for r, c in finder.optional(people).items() if c not in chosen.values()}
        if pairwise and scale is None:
            scale = preference_scale(path, rows, several or [chosen["preference"]], chosen)
        if of_labels is None and "case_id" in columns:
            chosen["case"] = "case_id"
        what = "judgements" if of_labels is None else "labels"
        reading, of = ForeignRows(path, columns, chosen), scale or YES_NO
        notes = (reading.describe(f"{what} {path.name}", of),)
        if unread:
            notes += (f"Not read: {unread}, whose scale is not stated (--scale).",)
        return cls(reading, rows, of, several, notes)

    # Values ---------------------------------------------------------------------------------------

    @property
    def main(self) -> str:
        """The role of the columns of several judges or raters."""
        return next(role for role in VALUES if role in self.reading.roles)

    def by_column(self) -> Iterator[tuple[str | None, Mapping[str, str]]]:
        """Name and columns of each judge or rater with its own column, else of nobody (None)."""
        roles = self.reading.roles
        if not self.several:
            yield None, {role: roles[role] for role in VALUES if role in roles}
        for column in self.several:
            yield column, {self.main: column}

    def values(
        self, row: Row, columns: Mapping[str, str], faults: list[RowError]
    ) -> dict[str, float]:
        """A row's values by role: 0 or 1, a fraction of the range, or the index of a class."""
        result: dict[str, float] = {}
        for role, column in columns.items():
            value = row.get(column)
            if value is None:
                continue
            try:
                if role == "verdict":
                    result[role] = float(read_truth(value, column))
                elif role == "preference":
                    result["class"] = self._preference(row, value, column)
                else:
                    result[role] = self.scale.read(value, column)
            except RowError as error:
                faults.append(error)
        return result

    def _preference(self, row: Row, value: Any, column: str) -> float:
        """0 for the first, 1 for the second, 2 for a tie; the value may be a system's name."""
        roles = self.reading.roles
        if {"first", "second"} <= roles.keys():
            names = [text_of(row, roles[role]) for role in ("first", "second")]
            if str(value).strip() in names:
                return float(names.index(str(value).strip()))
        return self.scale.read(value, column)

    def place(self, row: Row, orientation: dict[tuple[str, str], str]) -> _Place:
        """Item and tested model of a row; for a pair, both systems, with the order of the row."""
        roles = self.reading.roles
        item = text_of(row, roles["item"])
        order = _is_swapped(row.get(roles["order"]), roles["order"]) if "order" in roles else None
        if {"first", "second"} <= roles.keys():
            first, second = (text_of(row, roles[role]) for role in ("first", "second"))
            pair = " vs ".join(sorted([first, second]))
            flipped = orientation.setdefault((item, pair), first) != first
            return _Place(item, pair, flipped, None if order is None else order ^ flipped)
        model = roles.get("tested_model")
        name = None if model is None or row.get(model) is None else text_of(row, model)
        return _Place(item, name, flipped=False, swapped=order)

    def _check(self, faults: Sequence[str], n: int) -> None:
        if len(faults) > max(1, MOST_OFF_SCALE * n):
            raise InputError(
                f"{faults[0]}; {len(faults)} of {n} values can't be used, so the scale or the "
                "column is another one"
            )

    def _answers(
        self, people: str, nobody: str, orientation: dict[tuple[str, str], str], problems: Problems
    ) -> Iterator[tuple[_Place, Row, dict[str, float]]]:
        """Place and values of each row, for each judge or rater; no values if one is off its scale.

        Args:
            people: The role of the column that names them.
            nobody: The name if there is no such column, or a label has none.
            orientation: See ``place``.
            problems: Gets a line for each row or value that can't be used.
        """
        faults, n_stated, named_by = list[str](), 0, self.reading.roles.get(people)
        for name, columns in self.by_column():
            for number, row in self.rows:
                off: list[RowError] = []
                try:
                    place = self.place(row, orientation)
                    is_named = named_by is not None and (
                        people == "judge" or row.get(named_by) is not None
                    )
                    who = name or (text_of(row, str(named_by)) if is_named else nobody)
                except RowError as error:
                    problems.append(f"{self.path}:{number}: {error}")
                    continue
                values = self.values(row, columns, off)
                n_stated += bool(values or off)
                faults += [f"{self.path}:{number}: {error}" for error in off]
                yield replace(place, who=who), row, {} if off else values
        self._check(faults, n_stated)
        problems.extend(faults)

    # Judgements -----------------------------------------------------------------------------------

    def runs(
        self, orientation: dict[tuple[str, str], str], problems: Problems
    ) -> Iterator[JudgedRun]:
        """The judgements of each judge."""
        by_judge: dict[str, list[tuple[dict[str, Any], dict[str, float], _Place, Row]]] = {}
        for place, row, values in self._answers("judge", self.path.stem, orientation, problems):
            if self.main == "verdict" and "verdict" not in values:
                values.clear()
            entry = _judgement(place, values, row, self.reading.roles.get("case"))
            by_judge.setdefault(place.who, []).append((entry, values, place, row))
        if not by_judge:
            raise InputError(f"{self.path}: expected judgements{first_complaint(problems)}")
        for judge, rows in by_judge.items():
            yield self._run(judge, rows)

    def _run(
        self, judge: str, rows: Sequence[tuple[dict[str, Any], dict[str, float], _Place, Row]]
    ) -> JudgedRun:
        repeated = len({entry["item_id"] for entry, *_ in rows}) < len(rows)
        if not repeated and "case" not in self.reading.roles:
            for entry, *_ in rows:
                entry["case_id"] = None  # each row is its own cluster
        table = table_of(entry for entry, *_ in rows)
        classes = [_class(values, place) for _, values, place, _ in rows]
        table = replace(
            table,
            judge=judge,
            path=self.path,
            category=np.array(classes, dtype=np.int8),
            position=np.arange(len(rows)),
        )
        own = own_columns(self.reading.columns, [row for *_, row in rows])
        swaps: Vector | None = None
        if "first" in self.reading.roles or "order" in self.reading.roles:
            own["pair"] = [place.model for _, _, place, _ in rows]
            swaps = self._swaps([place for _, _, place, _ in rows])
        has_verdict = "verdict" in self.reading.roles
        foreign = Foreign(self.reading, self.scale, has_verdict, swaps)
        return JudgedRun(judge, table, None, foreign, own)

    def _swaps(self, places: Sequence[_Place]) -> Vector:
        """The answer shown first, 0 or 1; -1 if neither a column nor repeated pairs state it."""
        if "order" in self.reading.roles:
            return np.array([-1 if p.swapped is None else int(p.swapped) for p in places])
        both = any(place.flipped for place in places)
        return np.array([int(place.flipped) if both else -1 for place in places])

    # Labels ---------------------------------------------------------------------------------------

    def labels(
        self,
        orientation: dict[tuple[str, str], str],
        adjudicator: str | None,
        problems: Problems,
    ) -> Labels:
        """The labels, combined by item and tested model."""
        roles = self.reading.roles
        labels: list[HumanLabel] = []
        classes: list[int] = []
        for place, _, values in self._answers("rater", "human", orientation, problems):
            if not values:
                continue
            verdict = values.get("verdict")
            labels.append(
                HumanLabel(
                    item_id=place.item,
                    tested_model=place.model,
                    rater=place.who,
                    is_correct=None if verdict is None else bool(verdict),
                    grade=values.get("score"),
                )
            )
            classes.append(_class(values, place))
        if not labels:
            raise InputError(f"{self.path}: expected labels, got none{first_complaint(problems)}")
        table = replace(label_table(labels), category=np.array(classes, dtype=np.int8))
        if adjudicator is not None and adjudicator not in table.raters:
            names = ", ".join(sorted(table.raters)[:10])
            raise InputError(f"{self.path}: expected labels by {adjudicator}, got {names}")
        self._check_raters(table)
        keys = None if "first" in roles else (roles["item"], roles.get("tested_model"))
        return Labels(self.path, resolve(table, adjudicator=adjudicator), 0, (), keys)

    def _check_raters(self, labels: LabelTable) -> None:
        """Refuses several labels of an item if no column distinguishes their raters."""
        keys, times = np.unique(labels.key, return_counts=True)
        if self.several or {"rater", "first"} & self.reading.roles.keys() or times.max() == 1:
            return
        at = int(np.flatnonzero(labels.key == keys[times > 1][0])[0])
        raise InputError(
            f"{self.path}: expected one label per item and tested model, got "
            f"{int((times - 1).sum())} more, such as of {visible(str(labels.item_id[at]))}; name "
            "the columns that tell them apart with --label-columns rater=COLUMN or "
            f"tested_model=COLUMN; the columns are {', '.join(self.reading.columns)}"
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """Item, tested model, order and judge or rater of a row.

    ``model``: the tested model, or both systems of a pair. ``flipped``: the row has the pair in the
    opposite order of the pair's first row. ``swapped``: the second system was shown first; None if
    unknown. ``who``: the judge or rater.
    """

    item: str
    model: str | None
    flipped: bool
    swapped: bool | None
    who: str = ""


def _class(values: Mapping[str, float], place: _Place) -> int:
    """The class from 1, 0 for none; for a pair, in the order of its first row."""
    if "class" not in values:
        return 0
    index = int(values["class"])
    return (1 - index if place.flipped and index < 2 else index) + 1


def _judgement(
    place: _Place, values: Mapping[str, float], row: Row, case: str | None
) -> dict[str, Any]:
    verdict = values.get("verdict")
    stated = {
        "item_id": place.item,
        "tested_model": place.model,
        "judge": place.who,
        "grade": values.get("score"),
        "category": None,
        "errors": None,
        "case_id": place.item if case is None or row.get(case) is None else text_of(row, case),
    }
    if not values:
        return {**stated, "kind": "unscored", "is_correct": None, "reason": "no usable value"}
    # without yes or no, the verdict only marks that there is a value
    return {**stated, "kind": "verdict", "is_correct": verdict is None or bool(verdict)}


def _is_swapped(value: Any, column: str) -> bool | None:
    """True if the second answer was shown first: ``BA``, or yes in a column such as ``swapped``."""
    if value is None:
        return None
    word = str(value).strip().upper()
    return word == "BA" if word in {"AB", "BA"} else read_truth(value, column)

"""Judgements and labels as columns: what calibration needs of a run, aligned item by item."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from ..errors import InputError, OptionError, RowError, visible
from ..jsonl import read_lines
from ..judge.columns import case_keys
from ..judge.store import JUDGEMENTS, MANIFEST
from ..judge.task import short_key
from ..records.labels import CATEGORY, GRADE, place_of_category, place_of_grade
from ..records.scales import ScaleCheck
from ..rubrics import rubric_names
from ..statistics.ratings import CODES, LEVELS, Ratings, grade_codes

Vector = np.ndarray[Any, Any]
Key = tuple[str, str | None]
Problems = list[str]

OWN_FIELDS = ("item_id", "case_id", "tested_model", "protocol", "rubric")
"""Fields of a judgement, beside those in ``groups``, by which rows can be told apart."""

MAX_LEVEL = 0.999999


@dataclass(frozen=True, slots=True)
class Said:
    """Verdicts or labels of n items, as they were given.

    Attributes:
        correct: Shape (n,), int8, -1 nothing said.
        grade: Shape (n,), NaN nothing said.
        flags: Shape (n,), uint8, bit i for E(i+1).
        known: Shape (n,), uint8, bit i where something was said of E(i+1).
        category: Shape (n,), int8, 0 nothing said.
    """

    correct: Vector
    grade: Vector
    flags: Vector
    known: Vector
    category: Vector

    @classmethod
    def of(cls, given: Iterable[Mapping[str, Any] | None]) -> Said:
        """Of rows with is_correct, grade, errors and category; None where nothing was said."""
        correct, grade, category = array("b"), array("d"), array("b")
        flags, known = array("B"), array("B")
        for row in given:
            said = row or _NOTHING
            correct.append(_tristate(said["is_correct"]))
            grade.append(np.nan if said["grade"] is None else said["grade"])
            category.append(said["category"] or 0)
            is_set, is_told = _bits(said["errors"] or {})
            flags.append(is_set)
            known.append(is_told)
        return cls(*(np.asarray(part) for part in (correct, grade, flags, known, category)))

    def ratings(self, levels: tuple[float, ...]) -> Ratings:
        """With grades as indices into the levels."""
        grade = grade_codes(self.grade, levels)
        return Ratings(correct=self.correct, grade=grade, flags=self.flags, known=self.known)

    def on_levels(self, levels: tuple[float, ...]) -> Said:
        """The same with each grade replaced by its level."""
        codes = grade_codes(self.grade, levels)
        grade = np.where(codes < 0, np.nan, np.asarray(levels)[codes])
        return replace(self, grade=grade)

    def take(self, rows: Vector) -> Said:
        """Those of some rows; the row -1 stands for one of which nothing is said."""
        nothing = Said.of([None])
        names = (field.name for field in fields(self))
        return Said(*(np.concatenate([getattr(self, n), getattr(nothing, n)])[rows] for n in names))


@dataclass(frozen=True, slots=True)
class Judged:
    """A run's judgements.

    Attributes:
        name: The judge, with ``(blind)`` where it saw no reference.
        model: The judge's own name.
        path: File they came from.
        keys: Item id and tested model of each row.
        said: The verdicts.
        entropy: Shape (n,), doubt of ``is_correct`` in bits, NaN where it was not measured.
        matches: Shape (n,), int8: 1 the reference's chain, 0 another, -1 not known.
        fields: Columns by which rows can be grouped, as text; None where not stated.
        cases: Shape (n, 2), uint64: keys of each row's case (``reports.columns.case_keys``).
        scale: Grades of the rubric; None where the run does not say which they are.
    """

    name: str
    model: str
    path: Path
    keys: list[Key]
    said: Said
    entropy: Vector
    matches: Vector
    fields: dict[str, list[str | None]]
    cases: Vector
    scale: tuple[float, ...] | None

    def __len__(self) -> int:
        return len(self.keys)

    def on_levels(self, levels: tuple[float, ...]) -> Judged:
        """The same with each grade replaced by its level."""
        return replace(self, said=self.said.on_levels(levels))

    def only(self, rows: list[int]) -> Judged:
        """Those of some rows."""
        return replace(
            self,
            keys=[self.keys[at] for at in rows],
            said=self.said.take(np.array(rows)),
            entropy=self.entropy[rows],
            matches=self.matches[rows],
            fields={name: [column[at] for at in rows] for name, column in self.fields.items()},
            cases=self.cases[rows],
        )

    def column(self, name: str, option: str) -> list[str | None]:
        """A column to group by.

        Raises:
            OptionError: If no row has such a field.
        """
        if name not in self.fields:
            known = ", ".join(sorted(self.fields))
            raise OptionError(f"{option}: expected some of {known}, got {name!r}")
        return self.fields[name]


def read_judged(path: Path, problems: Problems) -> Judged:
    """Reads a file of judgements, or that of a run's folder.

    Args:
        path: ``judgements.jsonl`` or the folder that holds it.
        problems: Gets a line for each damaged row, which is left out, and one for all rows of
            another judge than the first one's, which are left out too.

    Raises:
        InputError: If the file can't be read, holds no judgement, or its grades or categories are
            on another scale.
    """
    file = judgements_of(path)
    columns = _Columns(file, problems)
    n_before = len(problems)
    said = Said.of(columns)
    if not columns.keys:
        wanted = "expected judgements, one a line, as apbjudge grade writes them"
        raise InputError(f"{file}: {wanted}{first_of(problems[n_before:])}")
    model, manifest = columns.judge.name, _manifest_of(file)
    return Judged(
        name=f"{model} (blind)" if _is_blind(manifest) else model,
        model=model,
        path=file,
        keys=columns.keys,
        said=said,
        entropy=np.asarray(columns.entropy),
        matches=np.asarray(columns.matches),
        fields={name: column for name, column in columns.fields.items() if any(column)},
        cases=np.asarray(columns.cases).reshape(-1, 2),
        scale=_scale(manifest, {*columns.fields["rubric"]}),
    )


def read_once(path: Path, problems: Problems) -> Judged:
    """A run, each item and tested model once; see ``read_judged`` and ``first_rows``."""
    judged = read_judged(path, problems)
    rows = first_rows(judged, problems)
    return judged if len(rows) == len(judged) else judged.only(rows)


def joined(parts: Sequence[Judged], name: str) -> Judged:
    """Several runs of one judge as one.

    Args:
        parts: The runs, at least one.
        name: What to call it.
    """
    if len(parts) == 1:
        return replace(parts[0], name=name)
    names = sorted({name for part in parts for name in part.fields})
    said = [part.said for part in parts]
    return replace(
        parts[0],
        name=name,
        keys=[key for part in parts for key in part.keys],
        said=Said(*(np.concatenate([getattr(s, f.name) for s in said]) for f in fields(Said))),
        entropy=np.concatenate([part.entropy for part in parts]),
        matches=np.concatenate([part.matches for part in parts]),
        fields={
            name: [text for part in parts for text in part.fields.get(name, [None] * len(part))]
            for name in names
        },
        cases=np.concatenate([part.cases for part in parts]),
        scale=common_scale(parts),
    )


def common_scale(runs: Iterable[Judged]) -> tuple[float, ...] | None:
    """The grades of the rubrics of several runs; None where one of them does not say."""
    scales = [run.scale for run in runs]
    grades = {grade for scale in scales for grade in scale or ()}
    return None if None in scales else tuple(sorted(grades))


class OneJudge:
    """The judge of a file: what another one said there would stand under this one's name.

    Attributes:
        name: Judge of the first row that became an item; empty before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._others = 0
        self._example = ""
        self.name = ""

    def is_of(self, row: Mapping[str, Any], line: int) -> bool:
        """Whether a row is that judge's; of one that never became an item it always is."""
        if row["item_id"] is None:
            return True
        self.name = self.name or row["judge"]
        if row["judge"] == self.name:
            return True
        self._others += 1
        self._example = self._example or f"{visible(row['judge'])} in line {line}"
        return False

    def complain(self, problems: Problems) -> None:
        """Adds a line about the rows of other judges, if there were any."""
        if self._others:
            problems.append(
                f"{self._path}: judge: expected rows of one judge, got {self._others} of others "
                f"than {visible(self.name)}, such as {self._example}: they are left out; give each "
                "judge a file of its own"
            )


def check_level(level: float) -> None:
    """Refuses a confidence level that no interval has.

    Raises:
        OptionError: If it is not between 0 and 1, or so near to 1 that quantiles overflow.
    """
    if not 0 < level <= MAX_LEVEL:
        expected = f"a number between 0 and 1, at most {MAX_LEVEL}"
        raise OptionError(f"--level: expected {expected}, got {level}")


def judgements_of(path: Path) -> Path:
    """The file of judgements that a path means: itself, or the one in the run's folder."""
    return path / JUDGEMENTS if path.is_dir() else path


def first_of(problems: Problems) -> str:
    """The first complaint, for the end of a message that a whole file is unusable."""
    return f"; first complaint: {visible(problems[0])}" if problems else ""


def first_rows(judged: Judged, problems: Problems) -> list[int]:
    """The first row of each item and tested model: a label could not tell others from it.

    Args:
        judged: The run.
        problems: Gets a line when there are more.
    """
    first: dict[Key, int] = {}
    for at, key in enumerate(judged.keys):
        first.setdefault(key, at)
    if len(first) < len(judged.keys):
        item, model = next(key for key, n in Counter(judged.keys).items() if n > 1)
        problems.append(
            f"{judged.path}: item_id: expected one row per item and tested model, got "
            f"{len(judged.keys) - len(first)} more, such as {visible(item)} of "
            f"{visible(str(model))}: the first one counts"
        )
    return list(first.values())


def _bits(errors: Mapping[str, bool | None]) -> tuple[int, int]:
    """Which codes are set, and of which something was said, as bit masks."""
    is_set = is_told = 0
    for bit, code in _BITS:
        value = errors.get(code)
        if value is not None:
            is_told |= bit
            is_set |= bit * value
    return is_set, is_told


_BITS = tuple((1 << i, code) for i, code in enumerate(CODES))
_NOTHING: Mapping[str, Any] = {"is_correct": None, "grade": None, "category": None, "errors": None}
_GROUPS = ("dataset", "category", "modality", "stage", "steps", "horizon", "level")


class _Columns:
    """Takes the columns of a file's rows while handing the verdicts on, one row at a time."""

    def __init__(self, path: Path, problems: Problems) -> None:
        self._path = path
        self._problems = problems
        self.keys: list[Key] = []
        self.judge = OneJudge(path)
        self.entropy = array("d")
        self.matches = array("b")
        self.cases = array("Q")
        names = (*OWN_FIELDS[1:], *_GROUPS, "unsolvable_type")
        self.fields: dict[str, list[str | None]] = {name: [] for name in names}

    def __iter__(self) -> Iterator[Mapping[str, Any] | None]:
        scales = ScaleCheck(self._path)
        for line in read_lines(self._path):
            check_scales(scales, line.values, line.number)
            complaint = row_complaint(line.values)
            if complaint:
                self._problems.append(f"{self._path}:{line.number}: {complaint}")
            elif not isinstance(line.values, RowError) and self._counts(line.values, line.number):
                yield self._take(line.values)
        scales.close()
        self.judge.complain(self._problems)

    def _counts(self, row: Mapping[str, Any], line: int) -> bool:
        return row["item_id"] is not None and self.judge.is_of(row, line)

    def _take(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        self.keys.append((row["item_id"], row["tested_model"]))
        doubt: Mapping[str, Any] = row.get("doubt") or {}
        by_field: Mapping[str, float | None] = doubt.get("entropy") or {}
        entropy = by_field.get("is_correct")
        self.entropy.append(np.nan if entropy is None else entropy)
        self.matches.append(_tristate(row.get("matches_reference")))
        self.cases.extend(self._case_keys(row))
        groups: Mapping[str, Any] = row.get("groups") or {}
        for name, column in self.fields.items():
            value = row.get(name) if name in OWN_FIELDS else groups.get(name)
            column.append(None if value is None else str(value))
        return row if row["kind"] == "verdict" else None

    def _case_keys(self, row: Mapping[str, Any]) -> tuple[int, int]:
        """Keys of the row's case; a row that names none is a case by itself."""
        if isinstance(row.get("case_id"), str):
            return case_keys(row)
        key = short_key("row", str(len(self.keys)))
        return key, key


def row_complaint(values: Mapping[str, Any] | RowError) -> str:
    """Why a row is no judgement; empty when it is one. Shape only: a million rows pass here."""
    if isinstance(values, RowError):
        return str(values)
    for name, (kinds, expected) in _SHAPE.items():
        if name not in values:
            return str(RowError(name, "a judgement, as apbjudge grade writes it", "no such field"))
        if not isinstance(values[name], kinds):
            return str(RowError(name, expected, values[name]))
    for name, (kinds, expected) in _LATER.items():
        if not isinstance(values.get(name), kinds):
            return str(RowError(name, expected, values[name]))
    for name, is_right in _RANGES.items():
        if not is_right(values):
            return str(RowError(name, (_SHAPE | _LATER)[name][1], values[name]))
    return ""


def check_scales(scales: ScaleCheck, values: Mapping[str, Any] | RowError, line: int) -> None:
    """Counts a judgement's numbers by where they lie on the scale of their field."""
    if isinstance(values, RowError) or not isinstance(values.get("judge"), str):
        return
    judge, correct = values["judge"], values.get("is_correct")
    grade, category = (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        for value in (values.get("grade"), values.get("category"))
    )
    if place := place_of_grade(grade, correct if isinstance(correct, bool) else None):
        scales.add(judge, line, place, RowError("grade", GRADE, values["grade"]))
    if place := place_of_category(category):
        scales.add(judge, line, place, RowError("category", CATEGORY, values["category"]))


_NONE = type(None)
_SHAPE: dict[str, tuple[tuple[type, ...], str]] = {
    "item_id": ((str, _NONE), "text"),
    "tested_model": ((str, _NONE), "text"),
    "judge": ((str,), "text"),
    "kind": ((str,), "verdict or unscored"),
    "is_correct": ((bool, _NONE), "true or false"),
    "grade": ((float, int, _NONE), "a number from 0 to 1, or null"),
    "category": ((int, _NONE), "1 to 5, or null"),
    "errors": ((dict, _NONE), "true or false per code, or null"),
}
_LATER: dict[str, tuple[tuple[type, ...], str]] = {
    "matches_reference": ((bool, _NONE), "true, false or null"),
    "groups": ((dict, _NONE), "values by name, or null"),
    "doubt": ((dict, _NONE), "numbers by name, or null"),
}
"""Fields that judgements of older versions don't have."""

_RANGES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "kind": lambda row: row["kind"] in {"verdict", "unscored"},
    "is_correct": lambda row: row["kind"] != "verdict" or row["is_correct"] is not None,
    "grade": lambda row: row["grade"] is None or _is_within(row["grade"], 0, 1),
    "category": lambda row: row["category"] is None or _is_within(row["category"], 1, 5),
    "errors": lambda row: _all_flags(row["errors"] or {}),
    "doubt": lambda row: not row.get("doubt") or _is_entropy(row["doubt"].get("entropy")),
}


def _is_within(value: object, low: float, high: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return low <= value <= high


def _is_entropy(entropy: object) -> bool:
    """Whether it is in bits by field, as far as it is stated; rounding may pass 1 by a hair."""
    if not isinstance(entropy, dict):
        return entropy is None
    stated = cast("dict[str, object]", entropy).get("is_correct")
    return stated is None or _is_within(stated, 0, 1.001)


def _all_flags(errors: Mapping[str, object]) -> bool:
    return all(isinstance(flag, bool) for flag in errors.values())


def _tristate(value: bool | None) -> int:  # noqa: FBT001 - it is what the row says
    return -1 if value is None else int(value)


def _manifest_of(judgements: Path) -> Mapping[str, Any]:
    """The manifest beside the judgements; empty where there is none that can be read."""
    try:
        manifest = orjson.loads((judgements.parent / MANIFEST).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return cast("Mapping[str, Any]", manifest) if isinstance(manifest, dict) else {}


def _is_blind(manifest: Mapping[str, Any]) -> bool:
    """Whether the manifest says that the judge saw no reference."""
    settings = manifest.get("settings")
    return isinstance(settings, dict) and bool(cast("Mapping[str, Any]", settings).get("blind"))


def _scale(manifest: Mapping[str, Any], rubrics: set[str | None]) -> tuple[float, ...] | None:
    """The grades of the run's own rubric as the manifest states them, or of shipped rubrics."""
    stated = manifest.get("grades")
    own = cast("list[Any]", stated) if isinstance(stated, list) else []
    shipped = {*rubric_names()}
    if own and all(_is_within(grade, 0, 1) for grade in own):
        return tuple(sorted({*map(float, own), *(LEVELS if rubrics & shipped else ())}))
    return LEVELS if rubrics <= shipped else None

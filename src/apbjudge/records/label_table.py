"""The labels of a file as columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RowError
from .columns import (
    Codes,
    ColumnBuilder,
    Scores,
    Texts,
    Vector,
    encoded,
    flag_bits,
    keys_of,
    numbers,
    texts_of,
    tristate,
)
from .foreign import TABLES, read_rows
from .judgements import ERROR_CODES
from .keys import model_key
from .labels import HumanLabel, check_scales, label_of, label_rows
from .scales import ScaleCheck


@dataclass(frozen=True, kw_only=True)
class LabelTable(Scores):
    """One entry per label in each vector.

    Attributes:
        item_id: Item ids.
        item: uint64, keys of the item ids.
        model: Index into ``models``.
        models: The different tested models; None where labels name none.
        rater: Index into ``raters``.
        raters: The different raters, in the order in which they first come.
        note: What raters remarked.
        unsure: Whether the rater doubts the label.
        faulty_steps: Numbers of the steps that were marked, joined by commas; None for none.
    """

    item_id: Texts
    item: Vector
    model: Vector
    models: list[str | None] = field(repr=False)
    rater: Vector
    raters: list[str] = field(repr=False)
    note: Texts
    unsure: Vector
    faulty_steps: Texts

    @cached_property
    def key(self) -> Vector:
        """Keys of item and tested model, as those of judgements."""
        return self.item ^ np.array([model_key(of) for of in self.models], np.uint64)[self.model]

    @property
    def n_contradictions(self) -> int:
        """Labels that contradict themselves; see ``HumanLabel.contradiction``."""
        is_flagged = (self.flags & self.known) > 0
        wrong = (self.correct == 1) & (is_flagged | (self.grade < 1))
        right = (self.correct == 0) & (self.grade == 1) & ~is_flagged
        return int((wrong | right).sum())

    def steps_at(self, at: int) -> tuple[int, ...]:
        """The steps that one label marks as faulty, sorted."""
        return tuple(map(int, filter(None, (self.faulty_steps[at] or "").split(","))))

    def label(self, at: int) -> HumanLabel:
        """One label."""
        correct, grade, category = self.correct[at], float(self.grade[at]), int(self.category[at])
        return HumanLabel(
            item_id=self.item_id[at] or "",
            tested_model=self.models[int(self.model[at])],
            rater=self.raters[int(self.rater[at])],
            is_correct=None if correct < 0 else bool(correct),
            grade=None if np.isnan(grade) else grade,
            errors=self.errors_at(at),
            category=category or None,
            note=self.note[at] or "",
            unsure=bool(self.unsure[at]),
            faulty_steps=self.steps_at(at),
        )


def read_label_table(
    paths: Sequence[Path],
    problems: list[str],
    codes: Sequence[str] = ERROR_CODES,
    columns: Mapping[str, str] | None = None,
) -> LabelTable:
    """Reads files of labels whose numbers are on our scales; see ``labels.read_labels``.

    A rater's numbers in a field may be on another scale, such as marks from 1 to 5 in ``grade``:
    those that lie on ours as well would be misread. Single ones off the scale are bad rows where
    at least four times as many entries show that the scale is ours: grades between 0 and 1, or 1
    where ``is_correct`` is true, and ``true`` or ``no`` in words.

    Args:
        paths: The files, each read as if it followed in the one before.
        problems: Gets the complaint about a row that can't be used, which is left out.
        codes: The error codes that there are.
        columns: Columns by the field that they stand for, where they have other names.

    Raises:
        InputError: If a file as a whole is unusable, or a rater's field is on another scale.
    """
    reader = _LabelReader(codes)
    for path in paths:
        reader.read(path, problems, columns or {})
    return reader.table()


def label_table(labels: Iterable[HumanLabel]) -> LabelTable:
    """The table of labels in memory."""
    listed = list(labels)
    stated = (code for label in listed for code in label.errors or ())
    reader = _LabelReader(tuple(dict.fromkeys((*ERROR_CODES, *stated))))
    for label in listed:
        reader.rows.add(_values_of(label))
    return reader.table()


_NAMES = (
    *("item_id", "tested_model", "rater", "is_correct", "grade", "category", "errors", "note"),
    *("unsure", "faulty_steps", "is_plain"),
)
_KINDS: Mapping[str, frozenset[type]] = {
    "item_id": frozenset({str}),
    "tested_model": frozenset({str, type(None)}),
    "rater": frozenset({str, type(None)}),
    "is_correct": frozenset({bool, type(None)}),
    "grade": frozenset({float, int, type(None)}),
    "category": frozenset({int, type(None)}),
    "errors": frozenset({dict, type(None)}),
    "note": frozenset({str, type(None)}),
    "unsure": frozenset({bool, type(None)}),
    "faulty_steps": frozenset({type(None)}),
}
"""Kinds of values that stand for themselves; others have to be read, such as ``"yes"``."""

_NOTHING = frozenset({type(None)})
_RATER = "human"


class _LabelReader:
    """Takes in labels of files."""

    def __init__(self, codes: Sequence[str]) -> None:
        self._codes, self._code_set = tuple(codes), frozenset(codes)
        self._all = (*_KINDS, *codes)
        self._models, self._raters = Codes(), Codes()
        self._plain: set[tuple[type, ...]] = set()
        self.rows = ColumnBuilder(_NAMES, self._columns_of)
        self._counts: dict[str, Vector] = {}

    def read(self, path: Path, problems: list[str], columns: Mapping[str, str]) -> None:
        """Takes in the labels of a file."""
        scales, self._counts = ScaleCheck(path), {}
        is_table = bool(columns) and path.suffix.lower() in TABLES
        rows = read_rows(path)[1] if is_table else label_rows(path, self._codes)
        names = {column: name for name, column in columns.items()}
        for number, stated in rows:
            row = stated
            if columns and not isinstance(row, RowError):
                theirs = {name: of for name, of in row.items() if name not in columns}
                row = {names.get(name, name): of for name, of in theirs.items()}
            if not isinstance(row, RowError):
                values = tuple(map(row.get, self._all))
                if self._is_plain(values):
                    self.rows.add((*values[: len(_NAMES) - 1], True))
                    continue
                check_scales(scales, row, number, self._codes)
            try:
                label = label_of(row, self._codes)
            except RowError as error:
                problems.append(f"{path}:{number}: {error}")
            else:
                self.rows.add(_values_of(label))
        self.rows.flush()
        for name, counts in self._counts.items():
            for who, (n_sure, n_stated) in zip(self._raters.names, counts.tolist(), strict=False):
                scales.count(who, name, n_sure, n_stated - n_sure)
        scales.close()

    def _is_plain(self, values: tuple[Any, ...]) -> bool:
        """Whether every field of a row stands for itself and is on its scale."""
        kinds = tuple(map(type, values))
        if kinds not in self._plain:
            named = zip(self._all, kinds, strict=True)
            if not all(kind in _KINDS.get(name, _NOTHING) for name, kind in named):
                return False
            self._plain.add(kinds)
        item_id, tested_model, rater, _, grade, category, errors, *_ = values
        return (
            not item_id.isspace()
            and item_id != ""
            and (tested_model is None or bool(tested_model.strip()))
            and (rater is None or bool(rater.strip()))
            and (grade is None or 0 <= grade <= 1)
            and (category is None or 1 <= category <= 5)
            and (
                not errors
                or (errors.keys() <= self._code_set and {*map(type, errors.values())} == {bool})
            )
        )

    def _columns_of(self, of: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        items = encoded(of["item_id"])
        flags, known = flag_bits(of["errors"], self._codes)
        columns: dict[str, Any] = {
            "correct": tristate(of["is_correct"]),
            "grade": numbers(of["grade"]),
            "flags": flags,
            "known": known,
            "category": np.array([value or 0 for value in of["category"]], dtype=np.int8),
            "item_id": texts_of(items),
            "item": keys_of(items),
            "model": self._models.of(of["tested_model"]),
            "rater": self._raters.of([_RATER if name is None else name for name in of["rater"]]),
            "note": texts_of(encoded(value or None for value in of["note"])),
            "unsure": np.array([value is True for value in of["unsure"]], dtype=bool),
            "faulty_steps": texts_of(
                encoded(",".join(map(str, steps or ())) or None for steps in of["faulty_steps"])
            ),
        }
        self._count(columns, np.array(of["is_plain"], dtype=bool))
        return columns

    def _count(self, of: Mapping[str, Any], is_plain: Vector) -> None:
        """Counts the numbers of plain rows by rater: those sure to be on our scale, and all."""
        correct, grade, known = of["correct"], of["grade"], of["known"]
        graded = ~np.isnan(grade)
        sure = graded & (((grade > 0) & (grade < 1)) | ((correct >= 0) & (grade == correct)))
        fields: dict[str, tuple[Vector, Vector]] = {
            "is_correct": (correct >= 0, correct >= 0),
            "grade": (sure, graded),
        }
        fields["category"] = (np.zeros(len(correct), dtype=bool), of["category"] > 0)
        for i, code in enumerate(self._codes):
            stated = (known >> i & 1) > 0
            fields[f"errors.{code}"] = (stated, stated)
        n = len(self._raters.names)
        for name, marks in fields.items():
            counts = np.stack([np.bincount(of["rater"][is_plain & m], minlength=n) for m in marks])
            before = self._counts.get(name, np.zeros((0, 2), dtype=np.int64))
            self._counts[name] = counts.T + np.pad(before, ((0, n - len(before)), (0, 0)))

    def table(self) -> LabelTable:
        """The table of all labels that were taken in."""
        columns = self.rows.columns()
        return LabelTable(
            models=self._models.names,
            raters=self._raters.names,
            error_codes=self._codes,
            **columns,
        )


def _values_of(label: HumanLabel) -> tuple[Any, ...]:
    return (*itemgetter(*_NAMES[:-1])(label.__dict__), False)

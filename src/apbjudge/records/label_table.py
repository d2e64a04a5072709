"""The labels of a file as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
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
from .judgements import ERROR_CODES
from .keys import model_key
from .labels import HumanLabel, check_scales, label_of, label_rows, read_name, read_note
from .scales import ScaleCheck


@dataclass(frozen=True, kw_only=True)
class LabelTable(Scores):
    """One entry per label in each vector.

    Attributes:
        item_id: Item ids.
        item: uint64, keys of the item ids.
        model: Index into ``models``.
        models: The distinct tested models; None for labels that name none.
        rater: Index into ``raters``.
        raters: The distinct raters, in the order of their first label.
        note: Remarks of the raters.
        unsure: True if the rater is unsure of the label.
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
    raters: Sequence[str] = (),
) -> LabelTable:
    """Reads files of labels whose numbers are on our scales; see ``labels.read_labels``.

    A rater's numbers in a field may be on another scale, such as marks from 1 to 5 in ``grade``:
    those that lie on ours as well would be misread. Single ones off the scale are bad rows if at
    least four times as many entries show that the scale is ours: grades between 0 and 1, or 1 where
    ``is_correct`` is true, and ``true`` or ``no`` in words.

    Args:
        paths: The files, read as if they were one.
        problems: Receives a complaint about each unusable row, which is left out.
        codes: The known error codes.
        columns: Columns by field, for those with other names than ours.
        raters: Columns with the verdicts of one rater each, who has the column's name; a row is
            then a label of each of them, but for empty cells.

    Raises:
        InputError: If a file as a whole is unusable, or a rater's field is on another scale.
    """
    reader = _LabelReader(codes)
    for path in paths:
        reader.read(path, problems, columns or {}, raters)
    return reader.table()


def label_table(labels: Iterable[HumanLabel]) -> LabelTable:
    """The table of labels in memory."""
    listed = list(labels)
    stated = (code for label in listed for code in label.errors or ())
    reader = _LabelReader(tuple(dict.fromkeys((*ERROR_CODES, *stated))))
    for label in listed:
        reader.rows.add((label.item_id, label.note, *_answer_of(label)))
    return reader.table()


_ANSWER = (
    *("tested_model", "rater", "is_correct", "grade", "category", "errors"),
    *("unsure", "faulty_steps"),
)
"""Fields whose values many labels share."""
_answer_of = attrgetter(*_ANSWER)
_KNOWN_ANSWERS = 4096


@dataclass(slots=True)
class _Answer:
    """Rows with the same values for different items.

    Attributes:
        row: The first of them.
        line: Its line.
        values: The values of ``_ANSWER``, or the error of one.
        n: Number of rows.
    """

    row: Mapping[str, Any]
    line: int
    values: tuple[Any, ...] | RowError
    n: int = 0


def _in_our_names(
    rows: Iterable[tuple[int, Mapping[str, Any] | RowError]],
    columns: Mapping[str, str],
    raters: Sequence[str],
) -> Iterator[tuple[int, Mapping[str, Any] | RowError, str]]:
    """Yields line, label and, where raters have columns, the rater; a row has one of each."""
    names = {column: name for name, column in columns.items()}
    taken = columns.keys() - names.keys()  # another column is this field
    for number, stated in rows:
        row = stated
        if columns and not isinstance(row, RowError):
            row = {names.get(name, name): of for name, of in row.items() if name not in taken}
        if not raters or isinstance(row, RowError):
            yield number, row, ""
            continue
        of_item = {name: row.get(name) for name in ("item_id", "tested_model")}
        for rater in raters:
            if row.get(rater) not in (None, ""):
                yield number, {**of_item, "rater": rater, "is_correct": row[rater]}, rater


class _LabelReader:
    """Reads labels of files."""

    def __init__(self, codes: Sequence[str]) -> None:
        self._codes = tuple(codes)
        self._models, self._raters = Codes(), Codes()
        self.rows = ColumnBuilder(("item_id", "note", *_ANSWER), self._columns_of)

    def read(
        self,
        path: Path,
        problems: list[str],
        columns: Mapping[str, str],
        raters: Sequence[str] = (),
    ) -> None:
        """Reads the labels of a file."""
        scales, answers = ScaleCheck(path), dict[str, _Answer]()
        rows = label_rows(path, self._codes, any_column=bool(columns or raters))
        fields = (*_ANSWER, *self._codes)
        for number, row, rater in _in_our_names(rows, columns, raters):
            try:
                if isinstance(row, RowError):
                    raise row
                key = repr(tuple(map(row.get, fields)))  # distinguishes True, 1 and "1"
                answer = answers.get(key)
                if answer is None:
                    if len(answers) == _KNOWN_ANSWERS:
                        self._check(scales, answers)
                    answer = answers[key] = _Answer(row, number, self._values_of(row))
                answer.n += 1
                item_id = read_name(row.get("item_id"), "item_id")
                if isinstance(answer.values, RowError):
                    raise answer.values
            except RowError as error:
                problems.append(f"{path}:{number}: {f'{rater}: ' if rater else ''}{error}")
            else:
                self.rows.add((item_id, read_note(row.get("note"), "note"), *answer.values))
        self._check(scales, answers)
        scales.close()

    def _values_of(self, row: Mapping[str, Any]) -> tuple[Any, ...] | RowError:
        try:
            return _answer_of(label_of({**row, "item_id": "any"}, self._codes))
        except RowError as error:
            return error

    def _check(self, scales: ScaleCheck, answers: dict[str, _Answer]) -> None:
        """Counts the numbers of answers by their places on their scales, and clears the answers."""
        for answer in answers.values():
            check_scales(scales, answer.row, answer.line, self._codes, answer.n)
        answers.clear()

    def _columns_of(self, of: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        items = encoded(of["item_id"])
        flags, known = flag_bits(of["errors"], self._codes)
        return {
            "correct": tristate(of["is_correct"]),
            "grade": numbers(of["grade"]),
            "flags": flags,
            "known": known,
            "category": np.array([value or 0 for value in of["category"]], dtype=np.int8),
            "item_id": texts_of(items),
            "item": keys_of(items),
            "model": self._models.of(of["tested_model"]),
            "rater": self._raters.of(of["rater"]),
            "note": texts_of(encoded(value or None for value in of["note"])),
            "unsure": np.array(of["unsure"], dtype=bool),
            "faulty_steps": texts_of(
                encoded(",".join(map(str, steps)) or None for steps in of["faulty_steps"])
            ),
        }

    def table(self) -> LabelTable:
        """The table of all labels that were taken in."""
        columns = self.rows.columns()
        return LabelTable(
            models=self._models.names,
            raters=self._raters.names,
            error_codes=self._codes,
            **columns,
        )

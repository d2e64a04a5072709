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
    CHUNK,
    Codes,
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
    """

    item_id: Texts
    item: Vector
    model: Vector
    models: list[str | None] = field(repr=False)
    rater: Vector
    raters: list[str] = field(repr=False)
    note: Texts

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
        )


def read_label_table(paths: Sequence[Path], problems: list[str]) -> LabelTable:
    """Reads files of labels whose numbers are on our scales; see ``labels.read_labels``.

    A rater's numbers in a field may be on another scale, such as marks from 1 to 5 in ``grade``:
    those that lie on ours as well would be misread. Single ones off the scale are bad rows where
    at least four times as many entries show that the scale is ours: grades between 0 and 1, or 1
    where ``is_correct`` is true, and ``true`` or ``no`` in words.

    Args:
        paths: The files, each read as if it followed in the one before.
        problems: Gets the complaint about a row that can't be used, which is left out.

    Raises:
        InputError: If a file as a whole is unusable, or a rater's field is on another scale.
    """
    reader = _Reader()
    for path in paths:
        reader.read(path, problems)
    return reader.table()


def label_table(labels: Iterable[HumanLabel]) -> LabelTable:
    """The table of labels in memory."""
    reader = _Reader()
    for label in labels:
        reader.add(_values_of(label))
    return reader.table()


_NAMES = ("item_id", "tested_model", "rater", "is_correct", "grade", "category", "errors", "note")
_KINDS: Mapping[str, frozenset[type]] = {
    "item_id": frozenset({str}),
    "tested_model": frozenset({str, type(None)}),
    "rater": frozenset({str, type(None)}),
    "is_correct": frozenset({bool, type(None)}),
    "grade": frozenset({float, int, type(None)}),
    "category": frozenset({int, type(None)}),
    "errors": frozenset({dict, type(None)}),
    "note": frozenset({str, type(None)}),
    **dict.fromkeys(ERROR_CODES, frozenset({type(None)})),
}
"""Kinds of values that stand for themselves; others have to be read, such as ``"yes"``."""

_ALL = tuple(_KINDS)
_CODES = frozenset(ERROR_CODES)
_RATER = "human"


class _Reader:
    """Takes labels and makes columns of them, a chunk at a time."""

    def __init__(self) -> None:
        self._models, self._raters = Codes(), Codes()
        self._plain: set[tuple[type, ...]] = set()
        self._chunk: list[tuple[Any, ...]] = []
        self._parts: list[dict[str, Any]] = []

    def read(self, path: Path, problems: list[str]) -> None:
        """Takes in the labels of a file."""
        scales, first = ScaleCheck(path), self._n_rows
        is_read: list[int] = []
        for number, row in label_rows(path):
            if not isinstance(row, RowError):
                values = tuple(map(row.get, _ALL))
                if self._is_plain(values):
                    self.add(values[: len(_NAMES)])
                    continue
                check_scales(scales, row, number)
            try:
                label = label_of(row)
            except RowError as error:
                problems.append(f"{path}:{number}: {error}")
            else:
                is_read.append(self._n_rows)
                self.add(_values_of(label))
        self._flush()
        self._count_scales(scales, first, np.array(is_read, dtype=np.int64))
        scales.close()

    @property
    def _n_rows(self) -> int:
        return sum(len(part["correct"]) for part in self._parts) + len(self._chunk)

    def _is_plain(self, values: tuple[Any, ...]) -> bool:
        """Whether every field of a row stands for itself and is on its scale."""
        kinds = tuple(map(type, values))
        if kinds not in self._plain:
            if not all(kind in _KINDS[name] for name, kind in zip(_ALL, kinds, strict=True)):
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
                not errors or (errors.keys() <= _CODES and {*map(type, errors.values())} == {bool})
            )
        )

    def add(self, values: tuple[Any, ...]) -> None:
        """Takes in a label: the values of ``_NAMES``."""
        self._chunk.append(values)
        if len(self._chunk) == CHUNK:
            self._flush()

    def _flush(self) -> None:
        n = len(self._chunk)
        columns = zip(*self._chunk, strict=True) if n else [()] * len(_NAMES)
        of = dict(zip(_NAMES, columns, strict=True))
        self._chunk = []
        items = encoded(of["item_id"])
        flags, known = flag_bits(of["errors"])
        self._parts.append(
            {
                "correct": tristate(of["is_correct"]),
                "grade": numbers(of["grade"]),
                "flags": flags,
                "known": known,
                "category": np.array([value or 0 for value in of["category"]], dtype=np.int8),
                "item_id": texts_of(items),
                "item": keys_of(items),
                "model": self._models.of(of["tested_model"]),
                "rater": self._raters.of([_RATER if r is None else r for r in of["rater"]]),
                "note": texts_of(encoded(value or None for value in of["note"])),
            }
        )

    def _count_scales(self, scales: ScaleCheck, first: int, is_read: Vector) -> None:
        """Counts the numbers of the rows from one on whose fields stand for themselves."""
        whole = {
            name: np.concatenate([part[name] for part in self._parts])[first:]
            for name in ("correct", "grade", "known", "category", "rater")
        }
        plain = np.ones(len(whole["rater"]), dtype=bool)
        plain[is_read - first] = False
        correct, grade, known, category, rater = (column[plain] for column in whole.values())
        graded = ~np.isnan(grade)
        sure = graded & (((grade > 0) & (grade < 1)) | ((correct >= 0) & (grade == correct)))
        fields = {
            "is_correct": (correct >= 0, correct >= 0),
            **{
                f"errors.{code}": ((known >> i & 1) > 0, (known >> i & 1) > 0)
                for i, code in enumerate(ERROR_CODES)
            },
            "grade": (graded, sure),
            "category": (category > 0, np.zeros(len(category), dtype=bool)),
        }
        for name, (stated, is_sure) in fields.items():
            n_stated = np.bincount(rater[stated], minlength=1).tolist()
            n_sure = np.bincount(rater[is_sure], minlength=len(n_stated)).tolist()
            for who, n, certain in zip(self._raters.names, n_stated, n_sure, strict=False):
                scales.count(who, name, certain, n - certain)

    def table(self) -> LabelTable:
        """The table of all labels that were taken in."""
        if self._chunk or not self._parts:
            self._flush()
        columns: dict[str, Any] = {}
        for name in self._parts[0].copy():
            parts = [part.pop(name) for part in self._parts]
            is_text = isinstance(parts[0], Texts)
            columns[name] = Texts.joined(parts) if is_text else np.concatenate(parts)
        return LabelTable(models=self._models.names, raters=self._raters.names, **columns)


def _values_of(label: HumanLabel) -> tuple[Any, ...]:
    return itemgetter(*_NAMES)(label.__dict__)

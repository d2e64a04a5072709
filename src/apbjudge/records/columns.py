"""Parts that tables of judgements and of labels are made of: texts, codes and scores as columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from itertools import count
from typing import Any, Self

import numpy as np

from .judgements import ERROR_CODES

Vector = np.ndarray[Any, Any]

CHUNK = 256
"""Rows that are held as Python objects before they become columns."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A text or None for each of n rows, as one block of UTF-8.

    Attributes:
        block: All texts.
        starts: Shape (n,): offset at which each begins.
        ends: Shape (n,): offset at which each ends; -1 for None.
    """

    block: bytes
    starts: Vector
    ends: Vector

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, at: int) -> str | None:
        end = int(self.ends[at])
        text = self.block[int(self.starts[at]) : end]
        return None if end < 0 else text.decode(errors="surrogatepass")

    @property
    def values(self) -> list[str | None]:
        """All texts."""
        block = self.block
        return [
            None if end < 0 else block[start:end].decode(errors="surrogatepass")
            for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        ]

    def take(self, rows: Vector) -> Texts:
        """The texts of some rows."""
        return Texts(self.block, taken(self.starts, rows), taken(self.ends, rows))

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        """The texts of several columns, one after the other."""
        shifts = np.cumsum([0, *(len(part.block) for part in parts)])[:-1]
        moved = [p.starts + shift for p, shift in zip(parts, shifts, strict=True)]
        ends = [np.where(p.ends < 0, -1, p.ends + s) for p, s in zip(parts, shifts, strict=True)]
        return cls(b"".join(p.block for p in parts), np.concatenate(moved), np.concatenate(ends))

    def arrange(self, order: Vector) -> None:
        """Puts the texts in another order, in place."""
        arrange(self.starts, order)
        arrange(self.ends, order)


def is_constant(column: Vector) -> bool:
    """True if all rows of a column share one place in memory, which is read-only."""
    return column.strides[0] == 0


def taken(column: Vector, rows: Vector) -> Vector:
    """Some rows of a column, by their indices."""
    if is_constant(column):
        return np.broadcast_to(column[:1], (len(rows), *column.shape[1:]))
    return column[rows]


def arrange(column: Vector, order: Vector) -> None:
    """Puts the rows of a column in another order, in place."""
    if not is_constant(column):
        column[:] = column[order]


def encoded(values: Iterable[str | None]) -> list[bytes | None]:
    """Texts as UTF-8."""
    return [None if v is None else v.encode(errors="surrogatepass") for v in values]


def texts_of(values: Sequence[bytes | None]) -> Texts:
    """A column of texts from their UTF-8."""
    ends = np.cumsum([0 if value is None else len(value) for value in values], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)[: len(values)]
    missing = [value is None for value in values]
    block = b"".join(value for value in values if value is not None)
    return Texts(block, starts, np.where(missing, -1, ends))


def keys_of(values: Iterable[bytes | None]) -> Vector:
    """64-bit keys of texts, as ``keys.short_key`` makes them of their UTF-8; 0 for None."""
    none = bytes(8)
    digests = [none if v is None else blake2b(v, digest_size=8).digest() for v in values]
    return np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)


class ColumnBuilder:
    """Takes rows and makes columns of them, a chunk at a time.

    Columns grow in place: joining parts at the end takes twice the memory, and the memory of many
    small arrays is not released. A column whose rows are all equal takes none (``is_constant``).

    Args:
        names: Names of the values of a row.
        columns_of: Makes columns of the values of some rows, by name; a column is an array or
            ``Texts``, of one type for all rows.
    """

    def __init__(
        self,
        names: Sequence[str],
        columns_of: Callable[[Mapping[str, Sequence[Any]]], dict[str, Any]],
    ) -> None:
        self.n_rows = 0
        self._names, self._columns_of = names, columns_of
        self._chunk: list[tuple[Any, ...]] = []
        self._columns: dict[str, Any] = {}

    def add(self, row: tuple[Any, ...]) -> None:
        """Adds the values of a row."""
        self.n_rows += 1
        self._chunk.append(row)
        if len(self._chunk) == CHUNK:
            self.flush()

    def flush(self) -> None:
        """Makes columns of the pending rows."""
        columns = zip(*self._chunk, strict=True) if self._chunk else [()] * len(self._names)
        self._chunk = []
        for name, part in self._columns_of(dict(zip(self._names, columns, strict=True))).items():
            if name not in self._columns:
                self._columns[name] = _TextColumn() if isinstance(part, Texts) else _Column(part)
            self._columns[name].add(part)

    def columns(self) -> dict[str, Any]:
        """The columns of all rows."""
        if self._chunk or not self._columns:
            self.flush()
        columns, self._columns = self._columns, {}
        return {name: columns.pop(name).whole() for name in [*columns]}


class _Column:
    """An array that grows; it begins empty, with the dtype and row shape of another one.

    It holds only the first row as long as all are equal.
    """

    def __init__(self, like: Vector) -> None:
        self._array, self._n = np.empty((0, *like.shape[1:]), dtype=like.dtype), 0
        self._is_constant = True

    def add(self, part: Vector) -> None:
        """Appends rows."""
        start, self._n = self._n, self._n + len(part)
        if self._is_constant:
            first = (self._array if start else part)[:1].copy()
            self._is_constant = part.tobytes() == first.tobytes() * len(part)
            self._array = first if self._is_constant else np.repeat(first, start, axis=0)
        if self._is_constant:
            return
        if self._n > len(self._array):
            self._resize(self._n + self._n // 8)
        self._array[start : self._n] = part

    def whole(self) -> Vector:
        """All rows."""
        if self._is_constant:
            return np.broadcast_to(self._array, (self._n, *self._array.shape[1:]))
        self._resize(self._n)
        return self._array

    def _resize(self, n: int) -> None:
        self._array.resize((n, *self._array.shape[1:]), refcheck=False)


class _TextColumn:
    """Texts that grow."""

    def __init__(self) -> None:
        self._block = bytearray()
        self._lengths = _Column(np.empty(0, dtype=np.int32))

    def add(self, part: Texts) -> None:
        """Appends texts, whose block holds them one after the other."""
        self._block += part.block
        self._lengths.add(np.where(part.ends < 0, -1, part.ends - part.starts).astype(np.int32))

    def whole(self) -> Texts:
        """All texts."""
        lengths = self._lengths.whole()
        if not self._block:
            return Texts(b"", np.broadcast_to(np.int32(0), lengths.shape), lengths)
        kind = np.int32 if len(self._block) < 2**31 else np.int64
        ends = np.cumsum(np.maximum(lengths, 0), dtype=kind)
        starts = ends - np.maximum(lengths, 0).astype(kind)
        ends[lengths < 0] = -1
        return Texts(bytes(self._block), starts, ends)


class Codes:
    """Numbers values in the order of their first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = defaultdict(count().__next__)

    def of(self, values: Sequence[Any]) -> Vector:
        """The number of each value, int32."""
        return np.fromiter(map(self._numbers.__getitem__, values), np.int32, len(values))

    @property
    def names(self) -> list[Any]:
        """The values by their number."""
        return list(self._numbers)


class Measures:
    """Measures by name as columns, with NaN where a row lacks one.

    A class becomes one number for each of its values, named ``class=value``.
    """

    def __init__(self) -> None:
        self._at: dict[str, int] = defaultdict(count().__next__)
        self._parts: list[tuple[list[int], Vector]] = []
        self._n_rows = 0

    def add(self, diagnoses: Sequence[Mapping[str, Any] | None]) -> Vector:
        """Adds the measures of some rows; returns the number of each row, -1 for one without."""
        stated: list[dict[str, float]] = []
        numbers = np.full(len(diagnoses), -1, dtype=np.int64)
        for i, diagnosis in enumerate(diagnoses):
            if diagnosis is not None:
                classes = diagnosis.get("classes", {})
                of_class = {f"{name}={value}": 1.0 for name, value in classes.items()}
                numbers[i] = self._n_rows + len(stated)
                stated.append({**diagnosis.get("measures", {}), **of_class})
        names = [*dict.fromkeys(name for row in stated for name in row)]
        values = [[row.get(name, np.nan) for name in names] for row in stated]
        part = np.array(values, dtype=float).reshape(len(stated), len(names))
        self._parts.append(([self._at[name] for name in names], part))
        self._n_rows += len(stated)
        return numbers

    def columns(self, rows: Vector) -> tuple[tuple[str, ...], Vector]:
        """The names, and shape (n, m): the measures of some rows, by their numbers from ``add``."""
        names = tuple(self._at)
        whole = np.full((self._n_rows + 1, len(names)), np.nan)  # the last row for -1
        start = 0
        for at, part in self._parts:
            whole[start : start + len(part), at] = part
            start += len(part)
        self._parts.clear()
        table: Vector = whole[rows]
        classes: dict[str, list[int]] = {}
        for i, name in enumerate(names):
            if "=" in name:
                classes.setdefault(name.partition("=")[0], []).append(i)
        for of_class in classes.values():  # a row of one value has none of the others
            values = table[:, of_class]
            has_value = ~np.isnan(values).all(axis=1, keepdims=True)
            table[:, of_class] = np.where(has_value & np.isnan(values), 0.0, values)
        return names, table


# Scores -------------------------------------------------------------------------------------------

BITS = np.uint32
"""Flags of a row, a bit per code."""


def flag_bits(
    errors: Sequence[Mapping[str, bool | None] | None], codes: Sequence[str] = ERROR_CODES
) -> tuple[Vector, Vector]:
    """Error codes of some rows as bits.

    Args:
        errors: For each row, true or false by code; None or a missing code if not stated.
        codes: The codes of the bits; others are left out.

    Returns:
        Shape (n,) each, uint32: the codes that are set, and those that are stated.
    """
    of_codes = [tuple(map((row or _EMPTY).get, codes)) for row in errors]
    values = np.array(of_codes, dtype=float).reshape(len(errors), len(codes))
    known, is_set = ~np.isnan(values), values > 0
    bits = np.left_shift(1, np.arange(len(codes)))
    return (is_set @ bits).astype(BITS), (known @ bits).astype(BITS)


_EMPTY: Mapping[str, None] = {}


def tristate(values: Iterable[bool | None]) -> Vector:
    """1 for true, 0 for false, -1 for None; int8."""
    found = np.array(values if isinstance(values, (list, tuple)) else list(values), dtype=float)
    return np.where(np.isnan(found), -1, found).astype(np.int8)


def numbers(values: Sequence[float | None]) -> Vector:
    """Float64, NaN for None."""
    return np.array(values, dtype=float)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of n items by a judge, a rater or several together.

    Attributes:
        correct: Shape (n,), int8: 1 correct, 0 incorrect, -1 not stated.
        grade: Shape (n,), 0 to 1, NaN if not stated.
        flags: Shape (n,), uint32, bit i set where ``error_codes[i]`` is set.
        known: Shape (n,), uint32, bit i set where that code is stated.
        category: Shape (n,), int8, 1 to 5, 0 if not stated.
        error_codes: The error codes of the bits.
    """

    correct: Vector
    grade: Vector
    flags: Vector
    known: Vector
    category: Vector
    error_codes: tuple[str, ...] = ERROR_CODES

    def __len__(self) -> int:
        return len(self.correct)

    @property
    def scores(self) -> Scores:
        """Only the scores."""
        return Scores(**{f.name: getattr(self, f.name) for f in fields(Scores)})

    @property
    def is_silent(self) -> Vector:
        """Shape (n,): true if nothing is stated at all."""
        stated = (self.correct >= 0) | ~np.isnan(self.grade) | (self.known > 0)
        return ~(stated | (self.category > 0))

    def differs_from(self, other: Scores) -> Vector:
        """Shape (n,): true if other scores of the same items and codes differ."""
        same = (self.correct == other.correct) & (self.category == other.category)
        same &= (self.known == other.known) & (
            (self.flags & self.known) == (other.flags & other.known)
        )
        same &= (self.grade == other.grade) | (np.isnan(self.grade) & np.isnan(other.grade))
        return ~same

    def scores_at(self, rows: Vector) -> Scores:
        """The scores of some rows; nothing is stated in the row -1."""
        columns = {name: getattr(self, name) for name in _NOTHING}
        return Scores(
            **{
                name: np.append(of, _NOTHING[name])[rows].astype(of.dtype)
                for name, of in columns.items()
            },
            error_codes=self.error_codes,
        )

    def errors_at(self, at: int) -> dict[Any, bool] | None:
        """The stated codes of one row; None without any."""
        flags, known = int(self.flags[at]), int(self.known[at])
        stated = ((code, 1 << i) for i, code in enumerate(self.error_codes) if known >> i & 1)
        return {code: bool(flags & bit) for code, bit in stated} or None

    def with_codes(self, codes: Sequence[str]) -> Self:
        """The same scores with bits for these codes; other codes are left out."""
        if tuple(codes) == self.error_codes:
            return self
        flags, known = np.zeros_like(self.flags), np.zeros_like(self.known)
        for i, code in enumerate(codes):
            if code in self.error_codes:
                at = self.error_codes.index(code)
                flags |= (self.flags >> at & 1) << i
                known |= (self.known >> at & 1) << i
        return replace(self, flags=flags, known=known, error_codes=tuple(codes))


def all_codes(of: Iterable[Scores]) -> tuple[str, ...]:
    """The error codes of several scores, those of the first one first."""
    return tuple(dict.fromkeys(code for scores in of for code in scores.error_codes))


_NOTHING: Mapping[str, float] = {
    "correct": -1,
    "grade": np.nan,
    "flags": 0,
    "known": 0,
    "category": 0,
}


def no_scores(n: int = 0) -> Scores:
    """Scores of n items, none of them stated."""
    kinds = {"correct": "b", "grade": "d", "flags": "I", "known": "I", "category": "b"}
    columns = {name: np.full(n, _NOTHING[name], kinds[name]) for name in kinds}
    return Scores(**columns, error_codes=ERROR_CODES)

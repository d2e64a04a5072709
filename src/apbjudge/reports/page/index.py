"""The columns that the list of a report page is filtered and sorted by."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...records.columns import flag_bits
from .entries import Entry

NO_FLAGS = 255
"""Stands for the flags of a verdict that has none, not even unset ones."""

CORRECT, INCORRECT, UNSCORED, NOTHING = "c", "x", "u", "-"
"""A verdict in one letter; of a human label, ``u`` says that nothing was decided."""

_COLUMNS: Mapping[str, tuple[str, float]] = {
    "grade": ("d", math.nan),  # 0 to 1
    "entropy": ("d", math.nan),  # bits of is_correct
    "flags": ("B", NO_FLAGS),  # bit i for code E(i+1)
    "category": ("B", 0),  # 1 to 5
    "marks": ("B", 0),  # 1 for overridden, 2 for inconsistent, 4 for raters that are split
    "reason": ("h", -1),  # number of the reason why there is no verdict
}
"""Columns of one judge: type of array, and the value of an entry that says nothing."""

_FACTS = {
    "uses_distractor": "uses a distractor",
    "matches_reference": "same tools as the reference",
}
"""Properties of the prediction, whoever judged it, and the names of their groups."""

Share = tuple[int, int]
"""How many, and of how many."""


class _Numbered:
    """A column of texts, each a number; None is -1."""

    def __init__(self, earlier: int = 0) -> None:
        self.numbers: dict[str, int] = {}
        self.column = array("i", [-1] * earlier)

    def number(self, text: object) -> int:
        """The number of a text, a new one where it is new."""
        return -1 if text is None else self.numbers.setdefault(str(text), len(self.numbers))

    def add(self, text: object) -> None:
        """Adds an entry."""
        self.column.append(self.number(text))

    def to_json(self) -> dict[str, Any]:
        """The texts in the order of their numbers, and the number of each entry."""
        return {"names": list(self.numbers), "of": self.column.tolist()}


class Verdicts:
    """Verdicts of one judge, or of the humans together: one entry per row."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.columns: dict[str, array[Any]] = {
            name: array(kind) for name, (kind, _) in _COLUMNS.items()
        }

    def add(self, judged: Mapping[str, Any] | None, reasons: _Numbered) -> None:
        """Adds a row of ``judgements.jsonl`` or a consensus; None for neither."""
        row = judged or {}
        uncertainty: Mapping[str, Any] = row.get("doubt") or {}
        entropy: Mapping[str, float] = uncertainty.get("entropy") or {}
        split = 4 if row.get("ties") else 0
        values = {
            "grade": _number(row.get("grade")),
            "entropy": _number(entropy.get("is_correct")),
            "flags": _flags(row.get("errors")),
            "category": row.get("category") or 0,
            "marks": bool(row.get("overrides")) + 2 * bool(row.get("inconsistent")) + split,
            "reason": reasons.number(row.get("reason")),
        }
        self.letters.append(_letter(judged))
        for name, column in self.columns.items():
            column.append(values[name])

    def to_json(self) -> dict[str, Any]:
        """The columns in JSON values; one that says nothing is left out."""
        columns: dict[str, Any] = {"verdict": "".join(self.letters)}
        for name, (_, nothing) in _COLUMNS.items():
            column = self.columns[name]
            if any(value != nothing and not math.isnan(value) for value in column):
                columns[name] = column.tolist()
        return columns

    def tally(self, human: Sequence[str]) -> dict[str, Share]:
        """Entries that deserve a look, see ``Tally.by_judge``."""
        n_own = len(self.letters) - self.letters.count(NOTHING)
        marks = self.columns["marks"]
        return {
            "human": _differing(zip(human, self.letters, strict=True)),
            "unscored": (self.letters.count(UNSCORED), n_own),
            "overridden": (sum(mark & 1 for mark in marks), n_own),
            "inconsistent": (sum(mark >> 1 & 1 for mark in marks), n_own),
        }


def _flags(errors: Mapping[str, bool] | None) -> int:
    return int(flag_bits([errors])[0][0]) if errors else NO_FLAGS


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _letter(judged: Mapping[str, Any] | None) -> str:
    if judged is None:
        return NOTHING
    if judged.get("kind", "verdict") != "verdict" or judged.get("is_correct") is None:
        return UNSCORED
    return CORRECT if judged["is_correct"] else INCORRECT


def _differing(groups: Iterable[tuple[str, ...]]) -> Share:
    """In how many groups verdicts differ, and how many have two verdicts or more."""
    verdicts = [[one for one in group if one in (CORRECT, INCORRECT)] for group in groups]
    several = [group for group in verdicts if len(group) > 1]
    return sum(len({*group}) > 1 for group in several), len(several)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many entries deserve a look, each with the number of those that could.

    Attributes:
        by_judge: For each judge, those where its verdict is not the ``human`` one (of those with
            both), those that are ``unscored``, ``overridden`` and ``inconsistent`` (of its own).
        differ: Those where two judges have different verdicts, of those with two.
        labelled: Those that humans labelled, of all.
    """

    by_judge: tuple[dict[str, Share], ...]
    differ: Share
    labelled: Share


class Index:
    """The columns of the list, built entry by entry."""

    def __init__(self, n_judges: int) -> None:
        """Columns without entries, for reports of ``n_judges`` judges."""
        self._judges = tuple(Verdicts() for _ in range(n_judges))
        self._human = Verdicts()
        self._ids: list[str] = []
        self._models, self._protocols, self._reasons = _Numbered(), _Numbered(), _Numbered()
        self._groups: dict[str, _Numbered] = {}

    @property
    def count(self) -> int:
        """Entries so far."""
        return len(self._ids)

    def add(self, entry: Entry) -> None:
        """Adds an entry.

        Raises:
            ValueError: If it has not one judgement, or None, for each judge.
        """
        if len(entry.judgements) != len(self._judges):
            got = len(entry.judgements)
            raise ValueError(f"judgements: expected {len(self._judges)}, got {got}")
        groups = {**entry.groups, **_facts(entry.judgements)}
        values = {name: value for name, value in groups.items() if value not in (None, "")}
        for name in values:
            if name not in self._groups:
                self._groups[name] = _Numbered(earlier=self.count)
        for name, column in self._groups.items():
            column.add(values.get(name))
        self._ids.append(entry.item_id)
        self._models.add(entry.tested_model)
        self._protocols.add(entry.protocol)
        for verdicts, row in zip(self._judges, entry.judgements, strict=True):
            verdicts.add(row, self._reasons)
        self._human.add(entry.human, self._reasons)

    def to_json(self) -> dict[str, Any]:
        """All columns in JSON values."""
        groups = {
            name: column.to_json()
            for name, column in self._groups.items()
            if len(column.numbers) > 1 or -1 in column.column
        }
        return {
            "count": self.count,
            "ids": self._ids,
            "models": self._models.to_json(),
            "protocols": self._protocols.to_json(),
            "reasons": list(self._reasons.numbers),
            "groups": groups,
            "judges": [verdicts.to_json() for verdicts in self._judges],
            "human": self._human.to_json(),
        }

    def tally(self) -> Tally:
        """How many entries deserve a look, and what for."""
        human = self._human.letters
        return Tally(
            by_judge=tuple(verdicts.tally(human) for verdicts in self._judges),
            differ=_differing(zip(*(judge.letters for judge in self._judges), strict=True)),
            labelled=(len(human) - human.count(NOTHING), len(human)),
        )


def _facts(rows: Iterable[Mapping[str, Any] | None]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for row in rows:
        for column, name in _FACTS.items():
            if row is not None and row.get(column) is not None:
                facts.setdefault(name, "yes" if row[column] else "no")
    return facts

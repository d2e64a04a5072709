"""What the list of a report page is filtered and sorted by: one column per property."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...records.columns import flag_bits
from .entries import Entry

NO_FLAGS = 255
CORRECT, INCORRECT, UNSCORED, NOTHING = "c", "x", "u", "-"
"""A verdict in one letter; of a human label, ``u`` says that nothing was decided."""


class Names:
    """Texts, each with a number; None has -1."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, text: object) -> int:
        """The number of a text, a new one where it is new."""
        return -1 if text is None else self.numbers.setdefault(str(text), len(self.numbers))

    def listed(self) -> list[str]:
        """The texts in the order of their numbers."""
        return list(self.numbers)


@dataclass(slots=True)
class Opinions:
    """What one judge, or the humans together, said: one entry per row.

    Attributes:
        verdict: A letter each.
        grade: 0 to 1; NaN where there is none.
        flags: Bit i set for code E(i+1); NO_FLAGS where there are none.
        category: 1 to 5; 0 where there is none.
        entropy: Bits of ``is_correct``; NaN where not measured.
        marks: 1 for overridden, 2 for inconsistent, 4 for raters that are split, added up.
        reason: Number of the reason why there is no verdict; -1 where there is one.
    """

    verdict: list[str] = field(default_factory=list[str])
    grade: array[float] = field(default_factory=lambda: array("d"))
    flags: array[int] = field(default_factory=lambda: array("B"))
    category: array[int] = field(default_factory=lambda: array("B"))
    entropy: array[float] = field(default_factory=lambda: array("d"))
    marks: array[int] = field(default_factory=lambda: array("B"))
    reason: array[int] = field(default_factory=lambda: array("h"))

    def add(self, said: Mapping[str, Any] | None, reasons: Names) -> None:
        """Adds a row of ``judgements.jsonl`` or a consensus; None for neither."""
        row = said or {}
        doubt: Mapping[str, Any] = row.get("doubt") or {}
        entropy: Mapping[str, float] = doubt.get("entropy") or {}
        self.verdict.append(_letter(said))
        self.grade.append(_number(row.get("grade")))
        self.flags.append(_flags(row.get("errors")))
        self.category.append(row.get("category") or 0)
        self.entropy.append(_number(entropy.get("is_correct")))
        split = 4 if row.get("ties") else 0
        self.marks.append(bool(row.get("overrides")) + 2 * bool(row.get("inconsistent")) + split)
        self.reason.append(reasons.number(row.get("reason")))

    def columns(self) -> dict[str, Any]:
        """The columns in JSON values; one that says nothing is left out."""
        found: dict[str, Any] = {"verdict": "".join(self.verdict)}
        for name in ("grade", "entropy"):
            column: array[float] = getattr(self, name)
            if any(value == value for value in column):  # noqa: PLR0124 - NaN differs from itself
                found[name] = column.tolist()
        for name, nothing in (("flags", NO_FLAGS), ("category", 0), ("marks", 0), ("reason", -1)):
            numbers: array[int] = getattr(self, name)
            if any(value != nothing for value in numbers):
                found[name] = numbers.tolist()
        return found


def _flags(errors: Mapping[str, bool] | None) -> int:
    return int(flag_bits([errors])[0][0]) if errors else NO_FLAGS


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _letter(said: Mapping[str, Any] | None) -> str:
    if said is None:
        return NOTHING
    if said.get("kind", "verdict") != "verdict" or said.get("is_correct") is None:
        return UNSCORED
    return CORRECT if said["is_correct"] else INCORRECT


Share = tuple[int, int]
"""How many, and of how many."""


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


@dataclass(slots=True)
class Index:
    """The columns of the list, made entry by entry.

    Attributes:
        judges: What each judge said.
        human: What the humans said together.
    """

    judges: tuple[Opinions, ...]
    human: Opinions = field(default_factory=Opinions)
    _ids: list[str] = field(default_factory=list[str])
    _models: Names = field(default_factory=Names)
    _model: array[int] = field(default_factory=lambda: array("i"))
    _protocols: Names = field(default_factory=Names)
    _protocol: array[int] = field(default_factory=lambda: array("i"))
    _reasons: Names = field(default_factory=Names)
    _groups: dict[str, tuple[Names, array[int]]] = field(
        default_factory=dict[str, "tuple[Names, array[int]]"]
    )

    @property
    def count(self) -> int:
        """Entries so far."""
        return len(self._ids)

    def add(self, entry: Entry) -> None:
        """Adds an entry.

        Raises:
            ValueError: If it has not one judgement, or None, for each judge.
        """
        if len(entry.judgements) != len(self.judges):
            got = len(entry.judgements)
            raise ValueError(f"judgements: expected {len(self.judges)}, got {got}")
        self._group(entry)
        self._ids.append(entry.item_id)
        self._model.append(self._models.number(entry.tested_model))
        self._protocol.append(self._protocols.number(entry.protocol))
        for opinions, row in zip(self.judges, entry.judgements, strict=True):
            opinions.add(row, self._reasons)
        self.human.add(entry.human, self._reasons)

    def _group(self, entry: Entry) -> None:
        groups = {**entry.groups, **_facts(entry.judgements)}
        for name, value in groups.items():
            if value is None or value == "":
                continue
            if name not in self._groups:
                self._groups[name] = Names(), array("i", [-1] * self.count)
            names, column = self._groups[name]
            column.append(names.number(value))
        for _, column in self._groups.values():
            if len(column) == self.count:
                column.append(-1)

    def columns(self) -> dict[str, Any]:
        """All columns in JSON values."""
        groups = {
            name: {"names": names.listed(), "of": column.tolist()}
            for name, (names, column) in self._groups.items()
            if len(names.numbers) > 1 or -1 in column
        }
        return {
            "count": self.count,
            "ids": self._ids,
            "models": {"names": self._models.listed(), "of": self._model.tolist()},
            "protocols": {"names": self._protocols.listed(), "of": self._protocol.tolist()},
            "reasons": self._reasons.listed(),
            "groups": groups,
            "judges": [opinions.columns() for opinions in self.judges],
            "human": self.human.columns(),
        }

    def tally(self) -> Tally:
        """How many entries deserve a look, and what for."""
        human = self.human.verdict
        said = zip(*(judge.verdict for judge in self.judges), strict=True)
        return Tally(
            by_judge=tuple(_tally(judge, human) for judge in self.judges),
            differ=_apart(said),
            labelled=(len(human) - human.count(NOTHING), len(human)),
        )


def _tally(judge: Opinions, human: Sequence[str]) -> dict[str, Share]:
    n_own = len(judge.verdict) - judge.verdict.count(NOTHING)
    return {
        "human": _apart(zip(human, judge.verdict, strict=True)),
        "unscored": (judge.verdict.count(UNSCORED), n_own),
        "overridden": (sum(mark & 1 for mark in judge.marks), n_own),
        "inconsistent": (sum(mark >> 1 & 1 for mark in judge.marks), n_own),
    }


def _apart(groups: Iterable[tuple[str, ...]]) -> Share:
    """In how many groups verdicts differ, and how many have two verdicts or more."""
    verdicts = [[one for one in group if one in (CORRECT, INCORRECT)] for group in groups]
    several = [group for group in verdicts if len(group) > 1]
    return sum(len({*group}) > 1 for group in several), len(several)


_FACTS = {
    "uses_distractor": "uses a distractor",
    "matches_reference": "same tools as the reference",
}


def _facts(rows: Sequence[Mapping[str, Any] | None]) -> dict[str, str]:
    """What code found out of the prediction, whoever judged it."""
    found: dict[str, str] = {}
    for row in rows:
        for field_name, name in _FACTS.items():
            if row is not None and row.get(field_name) is not None:
                found.setdefault(name, "yes" if row[field_name] else "no")
    return found

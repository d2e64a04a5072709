"""The columns by which the list of a report page is filtered and sorted."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import Any, cast
from urllib.parse import urlencode

from ...records.judgements import FACTS
from .entries import Entry
from .trajectories import diagnosis_of

NO_FLAGS = -1
"""Value for a verdict without flags, as opposed to one whose flags are all unset."""

CORRECT, INCORRECT, UNSCORED, NOTHING = "c", "x", "u", "-"
_WORDS = {CORRECT: "correct", INCORRECT: "incorrect"}
"""Verdicts by their letter; for a human label, ``u`` means undecided."""

_QUERY = 100
"""Number of a query's characters in the list."""

_OVERRIDDEN, _INCONSISTENT, _SPLIT = 1, 2, 4

_COLUMNS: Mapping[str, tuple[str, float]] = {
    "grade": ("d", math.nan),  # 0 to 1
    "entropy": ("d", math.nan),  # bits of is_correct
    "flags": ("i", NO_FLAGS),  # bit i for the index's code i
    "category": ("B", 0),  # 1 to 5
    "marks": ("B", 0),  # overridden, inconsistent, or by raters that are split
    "reason": ("h", -1),  # number of the reason for no verdict
}
"""Columns of one judge: type of array, and the value for an entry without data."""

_LEADS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "human": ("Judge and humans differ", {"human": "differs", "sort": "human"}),
    "overridden": ("Changed by a proven fault or a rule", {"overridden": "yes"}),
    "unsure": ("The judge is unsure", {"uncertainty": "0.7", "sort": "uncertainty"}),
    "inconsistent": ("The judge contradicted itself", {"inconsistent": "yes"}),
    "unscored": ("Without a verdict", {"verdict": "unscored"}),
}
"""Groups of items to look at, each with its text and the filter and order of the list."""


UNSURE = 0.7
"""Smallest uncertainty of a verdict, in bits, of an item to look at."""

_FIRST = 6
"""Number of items that the overview names."""


class _Texts:
    """A column of texts, stored as numbers; None is -1."""

    def __init__(self, earlier: int = 0) -> None:
        self.numbers: dict[str, int] = {}
        self.column = array("i", [-1] * earlier)

    def number(self, text: object) -> int:
        """The number of a text; a new text gets a new number."""
        return -1 if text is None else self.numbers.setdefault(str(text), len(self.numbers))

    def add(self, text: object) -> None:
        """Adds an entry."""
        self.column.append(self.number(text))

    def to_json(self) -> dict[str, Any]:
        """The texts in the order of their numbers, and the number of each entry."""
        return {"names": list(self.numbers), "of": self.column.tolist()}


class _Verdicts:
    """Verdicts of one judge, or the consensus of humans: one entry per row."""

    def __init__(self) -> None:
        self.letters: list[str] = []
        self.refuted: set[int] = set()  # entries whose verdict was correct before a rule
        self.columns: dict[str, array[Any]] = {
            name: array(kind) for name, (kind, _) in _COLUMNS.items()
        }

    def add(self, judged: Mapping[str, Any] | None, reasons: _Texts, codes: _Texts) -> None:
        """Adds a row of ``judgements.jsonl`` or a consensus; None if there is none."""
        row = judged or {}
        uncertainty: Mapping[str, Any] = row.get("uncertainty") or {}
        entropy: Mapping[str, float] = uncertainty.get("entropy") or {}
        errors = row.get("errors")
        marks = {
            _OVERRIDDEN: row.get("overrides"),
            _INCONSISTENT: row.get("inconsistent"),
            _SPLIT: row.get("ties"),
        }
        values = {
            "grade": _number(row.get("grade")),
            "entropy": _number(entropy.get("is_correct")),
            "flags": sum(is_set << codes.number(code) for code, is_set in errors.items())
            if errors
            else NO_FLAGS,
            "category": row.get("category") or 0,
            "marks": sum(mark for mark, holds in marks.items() if holds),
            "reason": reasons.number(row.get("reason")),
        }
        for name, column in self.columns.items():
            column.append(values[name])
        if any(_refutes(change) for change in row.get("overrides") or ()):
            self.refuted.add(len(self.letters))
        letter = CORRECT if row.get("is_correct") else INCORRECT
        if row.get("kind", "verdict") != "verdict" or row.get("is_correct") is None:
            letter = UNSCORED
        self.letters.append(NOTHING if judged is None else letter)

    def to_json(self) -> dict[str, Any]:
        """The columns as JSON values; columns without information are left out."""
        columns: dict[str, Any] = {"verdict": "".join(self.letters)}
        for name, (_, nothing) in _COLUMNS.items():
            column = self.columns[name]
            if any(value != nothing and not math.isnan(value) for value in column):
                columns[name] = column.tolist()
        return columns

    def tally(self, human: Sequence[str]) -> dict[str, tuple[int, int]]:
        """By group of ``_LEADS``, number of its entries, and of those that could be in it."""
        n_own = len(self.letters) - self.letters.count(NOTHING)
        marks = self.columns["marks"]
        return {
            "human": _differing(human, self.letters),
            "unscored": (self.letters.count(UNSCORED), n_own),
            "overridden": (sum(bool(mark & _OVERRIDDEN) for mark in marks), n_own),
            "inconsistent": (sum(bool(mark & _INCONSISTENT) for mark in marks), n_own),
            "unsure": (sum(bits >= UNSURE for bits in self.columns["entropy"]), n_own),
        }

    def look(self, at: int, human: _Verdicts, *, by_rule: bool) -> tuple[float, list[str]]:
        """Priority of an entry, 0 for none, and the reasons."""
        own, theirs = self.letters[at], human.letters[at]
        weight, why = 0.0, list[str]()
        # without a proven fault, the static judge contradicts nobody
        if {own, theirs} == {CORRECT, INCORRECT} and not (by_rule and own == CORRECT):
            gap = abs(self.columns["grade"][at] - human.columns["grade"][at])
            weight += 2.0 + (1.0 if math.isnan(gap) else gap)
            why.append(f"{_WORDS[own]}, humans say {_WORDS[theirs]}")
        if at in self.refuted:
            weight += 2.5
            why.append("correct until a proven fault or a rule changed it")
        if self.columns["entropy"][at] >= UNSURE:
            weight += self.columns["entropy"][at]
            why.append(f"unsure ({self.columns['entropy'][at]:.2f} bit of 1)")
        return weight, why


class Index:
    """The columns of the list, built entry by entry."""

    def __init__(self, n_judges: int) -> None:
        """Makes columns without entries, for reports of ``n_judges`` judges."""
        self._judges = tuple(_Verdicts() for _ in range(n_judges))
        self._human = _Verdicts()
        self._ids: list[str] = []
        self._models, self._protocols, self._reasons = _Texts(), _Texts(), _Texts()
        self._queries = _Texts()
        self._codes = _Texts()
        self._groups: dict[str, _Texts] = {}

    @property
    def count(self) -> int:
        """Number of entries so far."""
        return len(self._ids)

    def add(self, entry: Entry) -> None:
        """Adds an entry.

        Raises:
            ValueError: If it does not have one judgement, or None, for each judge.
        """
        if len(entry.judgements) != len(self._judges):
            got = len(entry.judgements)
            raise ValueError(f"judgements: expected {len(self._judges)}, got {got}")
        groups = {**entry.groups, **_facts(entry.judgements)}
        values = {name: value for name, value in groups.items() if value not in (None, "")}
        for name in values:
            if name not in self._groups:
                self._groups[name] = _Texts(earlier=self.count)
        for name, column in self._groups.items():
            column.add(values.get(name))
        self._ids.append(entry.item_id)
        self._models.add(entry.tested_model)
        self._protocols.add(entry.protocol)
        query = " ".join(entry.query[: 2 * _QUERY].split())
        self._queries.add(f"{query[:_QUERY]}…" if len(query) > _QUERY else query or None)
        for verdicts, row in zip(self._judges, entry.judgements, strict=True):
            verdicts.add(row, self._reasons, self._codes)
        self._human.add(entry.human, self._reasons, self._codes)

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
            "queries": self._queries.to_json() if self._queries.numbers else None,
            "reasons": list(self._reasons.numbers),
            "codes": list(self._codes.numbers),
            "groups": groups,
            "judges": [verdicts.to_json() for verdicts in self._judges],
            "human": self._human.to_json(),
        }

    def leads(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The groups of items to look at, without empty ones.

        Args:
            names: The judges' names.

        Returns:
            For each group: ``text``, ``count``, ``of`` (number of items that could be in it) and
            ``fragment`` (the part of the page's address after ``#`` that lists them).
        """
        human = self._human.letters
        leads: list[dict[str, Any]] = []

        def lead(text: str, state: Mapping[str, str], count: int, total: int) -> None:
            if count:
                fragment = urlencode({"view": "items", **state})
                leads.append({"text": text, "count": count, "of": total, "fragment": fragment})

        differ = _differing(*(judge.letters for judge in self._judges))
        lead("Judges with different verdicts", {"change": "verdict", "sort": "change"}, *differ)
        tallies = [judge.tally(human) for judge in self._judges]
        for key, (text, state) in _LEADS.items():
            for number, (name, tally) in enumerate(zip(names, tallies, strict=True)):
                whose = f": {name}" if len(names) > 1 else ""
                judge = {"judge": name} if number else {}
                lead(f"{text}{whose}", {**judge, **state}, *tally[key])
        return leads

    def first_looks(self, names: Sequence[str], by_rule: Sequence[bool]) -> list[dict[str, Any]]:
        """Items to look at first: judge and humans or rule differ, or the judge is uncertain.

        Args:
            names: The judges' names.
            by_rule: Names of static judges.

        Returns:
            For each item: ``id``, ``model``, ``query`` (its first words), ``why`` (pairs of a judge
            and its reasons) and ``fragment``.
        """

        def looks(at: int) -> list[tuple[str, float, list[str]]]:
            judged = zip(names, self._judges, by_rule, strict=True)
            results = ((n, *i.look(at, self._human, by_rule=rule)) for n, i, rule in judged)
            return [look for look in results if look[1]]

        weights = ((sum(look[1] for look in looks(at)), -at) for at in range(self.count))
        models, queries = [*self._models.numbers], [*self._queries.numbers, ""]  # -1 for none
        first: list[dict[str, Any]] = []
        for weight, minus in nlargest(_FIRST, weights):
            if weight:
                item_id, model = self._ids[-minus], models[self._models.column[-minus]]
                state = {"view": "items", "item": item_id, "model": model, "at": -minus}
                why = [(name, "; ".join(reasons)) for name, _, reasons in looks(-minus)]
                query = queries[self._queries.column[-minus]]
                link = {"id": item_id, "model": model, "query": query, "why": why}
                first.append({**link, "fragment": urlencode(state)})
        return first


def _refutes(change: Any) -> bool:
    """True if an override changed a correct verdict."""
    values = cast("dict[str, Any]", change) if isinstance(change, dict) else {}
    return values.get("field") == "is_correct" and values.get("was") is True


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _differing(*judges: Sequence[str]) -> tuple[int, int]:
    """Number of entries with differing verdicts, and of entries with at least two verdicts."""
    groups = (
        [one for one in group if one in (CORRECT, INCORRECT)] for group in zip(*judges, strict=True)
    )
    several = [group for group in groups if len(group) > 1]
    return sum(len({*group}) > 1 for group in several), len(several)


def _facts(rows: Sequence[Mapping[str, Any] | None]) -> dict[str, str]:
    """Properties of the prediction for all judges, and classes of a trajectory, as groups."""
    facts: dict[str, str] = {}
    for row in filter(None, rows):
        for fact in FACTS:
            if fact.label and isinstance(value := row.get(fact.name), bool):
                facts.setdefault(fact.label, "yes" if value else "no")
    diagnosis = diagnosis_of(rows)
    return facts if diagnosis is None else {**diagnosis.classes, **facts}

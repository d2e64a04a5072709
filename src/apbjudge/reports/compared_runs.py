"""Which two runs are compared item by item, and what differs between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..calibration.judged import Problems
from ..calibration.matching import Answers, Labels
from ..errors import OptionError
from .changes import Change, Changes, Told, change_of, worst_first
from .run_files import JudgeRuns, Row

_Key = tuple[str, str, str | None]
_BY_ITEM = "each run has one tested model, and they differ: items are paired by id alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One of the two.

    Attributes:
        name: What to call it.
        rows: Its rows that are items.
    """

    name: str
    rows: Sequence[Row]

    @property
    def models(self) -> set[str | None]:
        return {row["tested_model"] for row in self.rows}

    def by_key(self, *, by_item: bool) -> dict[_Key, Row]:
        """The first row of each key."""
        found: dict[_Key, Row] = {}
        for row in self.rows:
            model = None if by_item else row["tested_model"]
            found.setdefault((row["protocol"], row["item_id"], model), row)
        return found


def find_changes(
    judges: Sequence[JudgeRuns], labels: Labels | None, answers: Answers, problems: Problems
) -> Changes:
    """Compares the first two judges, or the two runs of one judge on two tested models.

    Args:
        judges: The judges of a report.
        labels: What humans said; None without.
        answers: By item, how many tested models answered it.
        problems: Gets a line for each damaged row.

    Raises:
        OptionError: If there are no two runs to be compared.
        InputError: If a file can't be read.
    """
    first, second = _sides(judges, problems)
    changes = _compared(first, second, labels, answers)
    if not changes.n_pairs:
        raise OptionError(
            "--table changes: expected two runs on the same items, got none that are in both "
            f"{first.name} and {second.name}"
        )
    return changes


def find_version_changes(judges: Sequence[JudgeRuns]) -> Changes | None:
    """Compares two runs of one judge, each on another tested model's responses.

    Args:
        judges: The judges of a report; damaged rows are passed over.

    Returns:
        What differs, unlabelled, as two responses have no label in common; None where there are
        no two such runs, or no item is in both.

    Raises:
        InputError: If a file can't be read.
    """
    if len(judges) != 1 or len(judges[0].runs) != 2:
        return None
    first, second = _sides(judges, [])
    if not _are_versions(first, second):
        return None
    changes = _compared(first, second, None, {})
    return changes if changes.n_pairs else None


def _compared(first: _Side, second: _Side, labels: Labels | None, answers: Answers) -> Changes:
    by_item = _are_versions(first, second)
    before, after = first.by_key(by_item=by_item), second.by_key(by_item=by_item)
    pairs = [(before[key], after[key]) for key in before if key in after]
    return Changes(
        before=first.name,
        after=second.name,
        n_pairs=len(pairs),
        n_compared=sum(a["kind"] == b["kind"] == "verdict" for a, b in pairs),
        n_only=(len(before) - len(pairs), len(after) - len(pairs)),
        items=worst_first(_changed(pairs, labels, answers, by_item=by_item)),
        note=_BY_ITEM if by_item else "",
    )


def _are_versions(first: _Side, second: _Side) -> bool:
    """Whether each side is one tested model's, and they differ."""
    return len(first.models) == len(second.models) == 1 and first.models != second.models


def _sides(judges: Sequence[JudgeRuns], problems: Problems) -> tuple[_Side, _Side]:
    if not judges or (len(judges) == 1 and len(judges[0].runs) != 2):
        raise OptionError("--table changes: expected two runs to compare, got one")
    if len(judges) > 1:
        first, second = judges[0], judges[1]
        return (
            _Side(name=first.name, rows=_items(first.rows(problems))),
            _Side(name=second.name, rows=_items(second.rows(problems))),
        )
    one, other = judges[0].runs
    return (
        _Side(name=f"{one.judge} [{one.place}]", rows=_items(one.rows(problems))),
        _Side(name=f"{other.judge} [{other.place}]", rows=_items(other.rows(problems))),
    )


def _items(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["protocol"] is not None]


def _changed(
    pairs: Iterable[tuple[Row, Row]], labels: Labels | None, answers: Answers, *, by_item: bool
) -> Iterator[Change]:
    for a, b in pairs:
        human = None
        if labels is not None and not by_item:  # two responses have no label in common
            said = labels.of((a["item_id"], a["tested_model"]), answers)
            human = None if said is None else said.is_correct
        change = change_of(a["item_id"], a["protocol"], Told.of_row(a), Told.of_row(b), human=human)
        if change is not None:
            yield change

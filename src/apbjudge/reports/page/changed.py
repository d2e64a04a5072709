"""What changed from one run to another, as the overview lists it: each row leads to its items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from ...calibration.changes import KINDS, Change, Changes, ItemScore
from ..changes import changes_summary, score_text

MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One side of a change.

    Attributes:
        text: The verdict in a few words.
        fragment: Where the page shows the item: the part of its address behind ``#``.
    """

    text: str
    fragment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRow:
    """A change as the overview lists it.

    Attributes:
        kind: What changed, in words.
        item_id: The item.
        tested_model: Whose response it is; empty where the two sides are of two tested models,
            which they name.
        before: What the first run said.
        after: What the second said.
        human: What humans said; empty without label.
    """

    kind: str
    item_id: str
    tested_model: str
    before: Verdict
    after: Verdict
    human: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedList:
    """The changes as the overview lists them.

    Attributes:
        summary: What was compared and how many changed how, a sentence each.
        rows: The worst ones.
        more: How many are left out.
    """

    summary: tuple[str, ...]
    rows: tuple[ChangedRow, ...]
    more: int


def changed_list(changes: Changes) -> ChangedList:
    """The worst changes, with links to their items.

    Args:
        changes: Worst first.
    """
    return ChangedList(
        summary=tuple(changes_summary(changes)),
        rows=tuple(_rows(changes)),
        more=max(0, len(changes.items) - MOST),
    )


def _rows(changes: Changes) -> Iterator[ChangedRow]:
    by_model = bool(changes.note)  # then both sides are items of their own
    for change in changes.items[:MOST]:
        yield ChangedRow(
            kind=KINDS[change.kind],
            item_id=change.item_id,
            tested_model="" if by_model else change.before.tested_model or "",
            before=_verdict(change, change.before, by_model=by_model),
            after=_verdict(change, change.after, by_model=by_model),
            human={None: "", True: "correct", False: "incorrect"}[change.human],
        )


def _verdict(change: Change, told: ItemScore, *, by_model: bool) -> Verdict:
    model = told.tested_model or "not stated"
    name = f"{model}: " if by_model else ""
    address = {"view": "items", "item": change.item_id, "model": model}
    return Verdict(text=f"{name}{score_text(told)}", fragment=urlencode(address))

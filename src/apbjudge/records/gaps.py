"""Fields that rows leave empty although a judge needs them, and unread fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from ..errors import InputError, visible
from .base import Record
from .items import Item
from .own_columns import NAMES, near_fields
from .wire import FIELDS

_NEEDED = ("model_response", "query", "tools")
"""The fields that a judge needs."""
_FIELDS = ("query", "tools", "model_response")
"""The same, in the order of messages."""
_SHOWN = 10
LOOKED_AT = 256
"""Limit of rows that are read before any is used, while all of them leave a field empty."""

T = TypeVar("T")


def may_be_prediction(row: Mapping[str, Any]) -> bool:
    """True if a row may be a prediction: it has a reply, an id and a query, or only our fields."""
    others = ("query", *NAMES["model_response"].split())
    is_named = not row.keys().isdisjoint(("id", "item_id"))
    if "model_response" in row or (is_named and not row.keys().isdisjoint(others)):
        return True
    return bool(row) and row.keys() <= set(FIELDS)


class RowGaps(Record):
    """The gaps of one row; attributes as in ``Gaps``."""

    is_unasked: bool
    empty: tuple[str, ...]
    unread: tuple[str, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any], item: Item, *, has_response: bool) -> RowGaps:
        """The gaps of a row; ``has_response``: true if it should have a tested model's reply."""
        is_empty = {
            "query": not item.query.strip(),
            "tools": item.tools is None,
            "model_response": has_response and item.is_silent,
        }
        is_ours = "fingerprint" in row
        return cls.model_construct(
            is_unasked=not (item.is_asked if has_response else item.has_task),
            empty=tuple(name for name, is_so in is_empty.items() if is_so),
            unread=() if is_ours else tuple(name for name in row if name not in FIELDS),
        )


@dataclass(slots=True)
class Gaps:
    """Counts over rows that could be read.

    Attributes:
        n_rows: Number of rows.
        empty: Rows by empty field: ``query``, ``tools``, ``model_response``.
        unread: Rows by unread field; fields of our own predictions are not counted.
        n_unasked: Rows in which nothing was asked; see ``Item.is_asked``, or ``Item.has_task`` for
            rows without a reply.
        names_unread: True if lines name the unread fields; not needed after a line that states how
            columns are read.
    """

    n_rows: int = 0
    empty: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_FIELDS, 0)))
    unread: Counter[str] = field(default_factory=Counter[str])
    n_unasked: int = 0
    names_unread: bool = True

    def add(self, row: Mapping[str, Any], item: Item, *, has_response: bool = True) -> None:
        """Adds a row; ``has_response``: true if it should have a tested model's reply."""
        self.count(RowGaps.of(row, item, has_response=has_response))

    def count(self, row: RowGaps) -> None:
        """Adds the gaps of a row."""
        self.n_rows += 1
        self.n_unasked += row.is_unasked
        for name in row.empty:
            self.empty[name] += 1
        for name in row.unread:
            self.unread[name] += 1

    def checked(self, rows: Iterator[T], name: str, *, needs_query: bool = False) -> Iterator[T]:
        """Yields the objects made of rows, whose iterator adds each row here before yielding it.

        Raises:
            InputError: Before the first one, if the first rows, at most ``LOOKED_AT``, are refused;
                see ``refusal``.
        """
        why, head = "", list[T]()
        for row in rows:
            head.append(row)
            why = self.refusal(needs_query=needs_query)
            if len(head) == LOOKED_AT or (self.n_rows and not why):
                break
        if why:
            raise InputError(f"{name}: {why}")
        yield from chain(head, rows)

    def refusal(self, *, needs_query: bool = False) -> str:
        """Reason why the rows can't be what the user meant; empty if they can.

        They are refused if no row has a reply, if no row has a query or tools and an unread field
        may hold them, and, with ``needs_query``, if nothing was asked.
        """
        for name in _NEEDED:
            if not self.n_rows or self.empty[name] < self.n_rows:
                continue
            near = [column for column in self.unread if name in near_fields(column)]
            is_unasked = needs_query and name == "query" and self.n_unasked == self.n_rows
            if near or is_unasked or name == "model_response":
                why = f"field {name}: expected a value in some row, got none in {self.n_rows}"
                names = f"; fields that nobody reads: {self._unread or 'none'}"
                return f"{why}{names}"
        return ""

    @property
    def _unread(self) -> str:
        names: list[str] = []
        for name, n in self.unread.most_common(_SHOWN):
            near = near_fields(name)
            hint = f", --map {near[0]}={visible(name)}?" if near else ""
            names.append(f"{visible(name)} ({n}{hint})")
        more = len(self.unread) - len(names)
        return ", ".join(names) + (f", {more} more" if more else "")

    def lines(self) -> Iterator[str]:
        """A line for each gap that a user has to know."""
        for name, n in (+self.empty).items():
            yield f"{n} of {self.n_rows} rows have no {name}"
        if self.unread and self.names_unread:
            yield f"fields that nobody reads, in {self.n_rows} rows: {self._unread}"

    def to_json(self) -> dict[str, Any]:
        """The counts as JSON values; empty without any gap."""
        counts = {"rows": self.n_rows, "empty": dict(+self.empty), "unread": dict(self.unread)}
        return counts if counts["empty"] or counts["unread"] else {}

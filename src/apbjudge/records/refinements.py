"""The origin of refined responses, as files of refined predictions state it.

Such a file has predictions whose rows also state ``mode`` (the critic: ``self``, ``critic``,
``static``, ``judge``), ``guide`` (``codes``, ``none``), ``critic_model``, ``is_oracle`` (the critic
saw the reference), ``is_unchanged`` (the response is the draft), ``is_readable``,
``finish_reason``, ``rounds`` (``critic_served_model`` in each), and ``usage`` and ``cost_usd`` of
all calls of the row. Files of other programs may lack any of them; missing values are unknown,
never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np

from ..errors import RowError
from ..jsonl import Digest, read_lines
from .columns import Codes, ColumnBuilder, Vector, numbers, tristate
from .judgement_table import Problems
from .keys import model_key, short_key
from .run_folder import mapping
from .wire import Row

_MOST = 1e15
"""Limit of a row's tokens and of its cost."""


class Way(NamedTuple):
    """The way in which a response was refined; None for facts that the row does not state.

    ``served`` is the name that the endpoint of the last review reported for its model.
    """

    mode: str | None = None
    guide: str | None = None
    critic: str | None = None
    served: str | None = None

    def __str__(self) -> str:
        parts = ("mode", self.mode), ("guide", self.guide), ("critic", self.critic)
        return ", ".join(f"{name} {value}" for name, value in parts if value) or "not stated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinements:
    """The origin of n refined responses; each vector has shape (n,).

    Attributes:
        key: uint64, of item and tested model, as ``JudgementTable.key``.
        is_oracle: int8: 1 the critic saw the reference, 0 it did not, -1 not known.
        is_unchanged: int8: 1 the response is the draft.
        is_readable: int8: 1 the response could be read.
        is_cut: int8: 1 the response ends because of a limit of tokens.
        is_reused: int8: 1 a reply came from the cache: its tokens are in no count of the row.
        tokens: Prompt and completion tokens of all calls of the row, NaN if unknown.
        cost_usd: Their price, NaN if unknown.
        n_rounds: Critiques, NaN if unknown.
        way: Index into ``ways``.
        ways: The distinct ways.
        why: Reason why nothing is known of some rows.
    """

    key: Vector
    is_oracle: Vector
    is_unchanged: Vector
    is_readable: Vector
    is_cut: Vector
    is_reused: Vector
    tokens: Vector
    cost_usd: Vector
    n_rounds: Vector
    way: Vector
    ways: tuple[Way, ...]
    why: str = "the refined predictions do not state it"

    @classmethod
    def unknown(cls, why: str) -> Refinements:
        """Refinements of which nothing is known, with the reason."""
        return replace(_RefinementReader().refinements(), why=why)

    def at(self, keys: Vector) -> Self:
        """The values of rows with these keys; those of missing rows are unknown."""
        order = np.argsort(self.key, kind="stable")  # of equal keys the first row counts
        place = np.searchsorted(self.key[order], keys)
        is_there = place < len(order)
        is_there[is_there] = self.key[order][place[is_there]] == keys[is_there]
        rows = np.full(len(keys), len(self.key))
        rows[is_there] = order[place[is_there]]
        return replace(
            self,
            **{name: np.append(getattr(self, name), of)[rows] for name, of in _NOTHING.items()},
            key=keys,
            way=np.append(self.way, len(self.ways))[rows],
            ways=(*self.ways, Way()),
        )

    def with_critics(self, name: Callable[[str], str]) -> Self:
        """A copy with other names for critics."""
        ways = (way._replace(critic=way.critic and name(way.critic)) for way in self.ways)
        return replace(self, ways=tuple(ways))


_NOTHING: Mapping[str, Any] = {
    **dict.fromkeys(
        ("is_oracle", "is_unchanged", "is_readable", "is_cut", "is_reused"), np.int8(-1)
    ),
    **dict.fromkeys(("tokens", "cost_usd", "n_rounds"), np.nan),
}


def read_refinements(
    paths: Iterable[Path], problems: Problems, *, digest: Digest | None = None
) -> Refinements:
    """Reads files of refined predictions.

    Args:
        paths: The files.
        problems: Receives a line for the first unusable value of each field. Unusable values count
            as not stated; an unusable ``is_oracle`` counts as true.
        digest: Updated with every byte read, when given.

    Raises:
        InputError: If a file can't be read.
    """
    reader = _RefinementReader()
    for path in paths:
        for line in read_lines(path, digest=digest):
            if not isinstance(line.values, RowError):  # grade has reported lines that are not rows
                reader.add(line.values, f"{path}:{line.number}")
    problems.extend(reader.complaints)
    return reader.refinements()


_SHAPE: Mapping[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("is_oracle", "is_unchanged", "is_readable"), ((bool,), "true or false")),
    **dict.fromkeys(("mode", "guide", "critic_model", "finish_reason"), ((str,), "text")),
    "usage": ((dict,), "an object of counts"),
    "cost_usd": ((int, float), "a number of US dollars"),
    "rounds": ((list,), "a list"),
}


class _RefinementReader:
    """Reads rows of predictions."""

    def __init__(self) -> None:
        self._ways = Codes()
        names = [f.name for f in fields(Refinements) if f.name not in {"ways", "why"}]
        self._rows = ColumnBuilder(names, self._columns_of)
        self._complaints: dict[str, tuple[str, int]] = {}

    def add(self, values: Mapping[str, Any], place: str) -> None:
        """Adds a row, if it names its item and tested model."""
        row = Row(values, 0)
        try:
            item_id = row.identifier("id", "item_id")
            key = short_key(item_id) ^ model_key(row.identifier("tested_model"))
        except RowError:
            return
        of = {name: self._usable(name, values.get(name), place) for name in _SHAPE}
        reason, rounds, usage = of["finish_reason"], of["rounds"], of["usage"]
        self._rows.add(
            (
                key,
                of["is_oracle"],
                of["is_unchanged"],
                of["is_readable"],
                reason and reason == "length",
                None if usage is None else bool(_size(usage.get("reused"))),
                _tokens(usage),
                _size(of["cost_usd"]),
                None if rounds is None else len(rounds),
                Way(of["mode"], of["guide"], of["critic_model"], _served(rounds)),
            )
        )

    def _usable(self, name: str, value: Any, place: str) -> Any:
        """The value of a field; None if it states nothing usable."""
        kinds, expected = _SHAPE[name]
        if value is None or value == "":
            return None
        if type(value) in kinds:
            return value
        first, n_more = self._complaints.get(name, ("", -1))
        first = first or f"{place}: {RowError(name, expected, value)}"
        self._complaints[name] = first, n_more + 1
        return True if name == "is_oracle" else None  # else an odd value would hide an oracle

    @property
    def complaints(self) -> list[str]:
        """A line for each field with an unusable value."""
        return [
            f"{first} (and in {n_more} more rows)" if n_more else first
            for first, n_more in self._complaints.values()
        ]

    def _columns_of(self, of: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        return {
            "key": np.array(of["key"], dtype=np.uint64),
            **{name: tristate(of[name]) for name in _NOTHING if name.startswith("is_")},
            **{name: numbers(of[name]) for name in _NOTHING if not name.startswith("is_")},
            "way": self._ways.of(of["way"]),
        }

    def refinements(self) -> Refinements:
        """The values of all rows that were taken in."""
        return Refinements(**self._rows.columns(), ways=tuple(self._ways.names))


def _served(rounds: Sequence[object] | None) -> str | None:
    stated = (mapping(each).get("critic_served_model") for each in reversed(rounds or []))
    return next((name for name in stated if isinstance(name, str)), None)


def _tokens(usage: Mapping[str, Any] | None) -> float | None:
    of = usage or {}
    counts = [_size(of.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    return None if None in counts or of.get("unreported") else sum(cast("list[float]", counts))


def _size(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MOST else None

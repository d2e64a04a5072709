"""Checks that a case that can't be solved has its solvable twin and differs in nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath
from typing import NamedTuple

from ....errors import shorten
from ....protocols.overlap import words
from ....records import Item
from ....records.keys import KeySet, short_key
from ..findings import CaseFinding, CasePlace, CheckedCase

_FIELD = "construction.twin"


class _Marks(NamedTuple):
    """Hashes of what twins may and may not have in common; 0 for a part that may differ."""

    query: int
    system_prompt: int
    files: int
    tools: int


class _TwinClaim(NamedTuple):
    """A case that names its twin."""

    place: CasePlace
    twin: int
    twin_name: str
    marks: _Marks


class Twins:
    """Compares cases with their twins; some hundred bytes for each plan, 16 for other cases."""

    def __init__(self) -> None:
        self._solvable: dict[int, _Marks] = {}
        self._others = KeySet()  # solvable in another form, or known by the id of their case
        self._claims: list[_TwinClaim] = []

    def add(self, case: CheckedCase) -> None:
        """Adds a case."""
        item = case.item
        kind = item.condition.unsolvable_type
        if kind is None:
            if item.form == "plan" and not item.condition.extraneous:
                self._solvable[short_key(item.item_id)] = _marks(item)
            else:
                self._others.add(short_key(item.item_id))
            self._others.add(short_key(item.case_id))
            return
        if item.construction is None or item.construction.twin is None:
            return
        own = _marks(item)
        may_differ = {
            "visual_missing": own._replace(files=0),
            "tool_removal": own._replace(tools=0),
        }
        asked = own if item.construction.requirement else own._replace(query=0)
        marks = may_differ.get(kind, asked)
        twin = item.construction.twin
        self._claims.append(_TwinClaim(case.place, short_key(twin), twin, marks))

    def findings(self) -> Iterator[CaseFinding]:
        """Yields twins that are missing or differ."""
        for claim in self._claims:
            twin = self._solvable.get(claim.twin)
            if twin is None:
                if claim.twin not in self._others:
                    message = f"no file has a case {shorten(claim.twin_name)} that can be solved"
                    yield claim.place.finding("twin-missing", _FIELD, message)
                continue
            differing = [
                name
                for name, own, others in zip(_Marks._fields, claim.marks, twin, strict=True)
                if own not in (0, others)
            ]
            if differing:
                parts = ", ".join(differing).replace("_", " ")
                message = f"not as in {shorten(claim.twin_name)}, which can be solved: {parts}"
                yield claim.place.finding("twin-differs", _FIELD, message)


def _marks(item: Item) -> _Marks:
    names = sorted(item.tools.names) if item.tools else []
    added = item.construction.requirement if item.construction else ""
    query = item.query.replace(added, "") if added else item.query
    return _Marks(
        short_key("query", " ".join(words(query))),
        short_key("system", " ".join(words(item.system_prompt))),
        short_key("files", *sorted(normpath(file.path) for file in item.files)),
        short_key("tools", *names),
    )

"""The details of the items: cases once, responses and judgements in chunks, texts for search."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, cast

from ...errors import OptionError
from ...records import Item
from ...rubrics import load_rubric
from .bundle import Chunks, dumped
from .entries import Entry, Pictures
from .index import Index
from .items import case_key, case_view, judgement_view, prediction_view

_TEXTS_PER_CHUNK = 4000


@dataclass(slots=True)
class Details:
    """Writes entries to blocks: each case and each list of tools once, however often it occurs.

    Attributes:
        index: The columns of the list.
        cases: Blocks of cases.
        tools: Blocks of lists of tools.
        items: Blocks of entries.
        texts: Blocks of what is searched beside ids and names.
        pictures: Gives the picture behind a file; None for no pictures.
    """

    index: Index
    cases: Chunks
    tools: Chunks
    items: Chunks
    texts: Chunks
    pictures: Pictures | None
    _known: dict[bytes, int] = field(default_factory=dict[bytes, int])
    _rubrics: set[str] = field(default_factory=set[str])

    def add(self, entry: Entry) -> None:
        """Takes in one entry; nothing of it is kept but its columns."""
        self.index.add(entry)
        case = None if entry.item is None else self._case(entry.item)
        self.items.add(dumped(_without_none(self._details(entry, case))))
        rows = [row or {} for row in entry.judgements]
        self._rubrics.update(ref for row in rows if isinstance(ref := row.get("rubric"), str))
        said = [row.get("reasoning") or row.get("detail") or "" for row in rows]
        self.texts.add(dumped([entry.item.query if entry.item else "", *said]))

    def close(self) -> None:
        """Writes what is still held."""
        for chunks in (self.cases, self.tools, self.items, self.texts):
            chunks.close()

    def contents(self) -> dict[str, Any]:
        """What the page must know to find a detail: where blocks begin, and names of codes."""
        return {
            "cases": self.cases.starts,
            "tools": self.tools.starts,
            "items": self.items.starts,
            "texts": self.texts.starts,
            "codes": {ref: names for ref in sorted(self._rubrics) if (names := code_names(ref))},
        }

    def _details(self, entry: Entry, case: int | None) -> dict[str, Any]:
        item, findings = entry.item, _findings(entry.judgements)
        return {
            "item": {
                "id": entry.item_id,
                "model": entry.tested_model,
                "protocol": entry.protocol,
                "case": entry.case_id,
                "line": entry.line,
                "groups": {k: v for k, v in entry.groups.items() if v is not None},
            },
            "case": case,
            "prediction": prediction_view(item, findings) if item or findings else None,
            "judgements": [row and judgement_view(row) for row in entry.judgements],
            "labels": [dict(label) for label in entry.labels] or None,
            "human": entry.human and dict(entry.human),
        }

    def _case(self, item: Item) -> int:
        """The number of an item's case; what is known by its key is not made again."""
        bare = self.pictures is None or not item.files  # a file's name doesn't tell its picture
        key = case_key(item) if bare else None
        if key is None:
            return self._new_case(item)
        return self._remembered(b"case " + key, partial(self._new_case, item))

    def _new_case(self, item: Item) -> int:
        view = dict(case_view(item))
        if self.pictures is not None and item.files:
            view["files"] = [
                shown | ({"url": url} if (url := self.pictures(item, file)) else {})
                for shown, file in zip(view["files"], item.files, strict=True)
            ]
        tools = view.pop("tools", None)
        if tools is not None:
            view["tools"] = self._once(self.tools, tools)
        return self._once(self.cases, view)

    def _once(self, chunks: Chunks, value: object) -> int:
        """The number of a record, which is written when it is new."""
        record = dumped(value)
        return self._remembered(chunks.name.encode() + record, partial(chunks.add, record))

    def _remembered(self, content: bytes, make: Callable[[], int]) -> int:
        """The number that belongs to a content; a digest and a number are all that is kept."""
        key = hashlib.blake2b(content, digest_size=16).digest()
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]


def details(index: Index, file: IO[bytes], pictures: Pictures | None) -> Details:
    """What writes the blocks of a page to a file."""
    return Details(
        index=index,
        cases=Chunks(name="cases", file=file),
        tools=Chunks(name="tools", file=file),
        items=Chunks(name="items", file=file),
        texts=Chunks(name="texts", file=file, most=_TEXTS_PER_CHUNK),
        pictures=pictures,
    )


def code_names(ref: str) -> dict[str, str]:
    """What a shipped rubric calls its error codes; empty for other rubrics."""
    try:
        return {criterion.code: criterion.name for criterion in load_rubric(ref).criteria}
    except OptionError:
        return {}


def _findings(rows: Iterable[Mapping[str, Any] | None]) -> list[Mapping[str, Any]]:
    """What code found, each finding once: every judge's row has the same ones."""
    found: dict[bytes, Mapping[str, Any]] = {}
    for row in rows:
        listed: object = (row or {}).get("findings")
        for finding in cast("list[Any]", listed) if isinstance(listed, list) else ():
            if isinstance(finding, dict):
                own = cast("dict[str, Any]", finding)
                found.setdefault(dumped(own), own)
    return list(found.values())


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}

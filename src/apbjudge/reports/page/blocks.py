"""Details of the items as compressed blocks of data inside the page.

A block is JSON, compressed with gzip, in base64, inside a ``script`` element of a type that no
browser runs. Base64 has no character that could end the element, so no data can end it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any, cast

import orjson

from ...errors import OptionError
from ...records import Item
from ...records.trajectories import Trajectory
from ...rubrics import shipped_rubric
from .entries import Entry, Pictures
from .index import Index
from .items import case_key, case_view, judgement_view, prediction_view
from .trajectories import diagnosis_of, task_view, trajectory_view
from .values import View

BLOCK_TYPE = "application/octet-stream"
"""Type of the script elements that hold data."""

BYTES_PER_CHUNK = 1_500_000
"""Bytes of JSON at which a chunk ends, after a whole record."""

_ENTRIES_PER_CHUNK = 100
_TEXTS_PER_CHUNK = 4000


def block(name: str, data: bytes) -> bytes:
    """One element that contains JSON; its id is ``name``: letters, digits and hyphens."""
    packed = base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0))
    return f'<script type="{BLOCK_TYPE}" id="{name}">'.encode() + packed + b"</script>\n"


def to_json(value: object) -> bytes:
    """A value as JSON; NaN becomes null."""
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


@dataclass(slots=True, kw_only=True)
class Chunks:
    """Writes records to blocks of at most ``most``, in their order.

    Attributes:
        name: Prefix of the blocks' ids, before a hyphen and their number.
        starts: Number of the first record of each block, also of an unfinished one.
        count: Number of records so far.
    """

    name: str
    file: IO[bytes]
    most: int = _ENTRIES_PER_CHUNK
    starts: list[int] = field(default_factory=list[int])
    count: int = 0
    _records: list[bytes] = field(default_factory=list[bytes])
    _size: int = 0

    def add(self, record: bytes) -> int:
        """Adds a record, which is JSON, and returns its number among all of them."""
        if not self._records:
            self.starts.append(self.count)
        self._records.append(record)
        self._size += len(record)
        self.count += 1
        if len(self._records) >= self.most or self._size >= BYTES_PER_CHUNK:
            self.close()
        return self.count - 1

    def close(self) -> None:
        """Writes the records that are not yet in a block."""
        if self._records:
            name = f"{self.name}-{len(self.starts) - 1}"
            self.file.write(block(name, b"[" + b",".join(self._records) + b"]"))
        self._records.clear()
        self._size = 0


class Details:
    """Writes entries to blocks, with each case and each list of tools only once.

    The blocks are cases, lists of tools, entries, and the texts that are searched in addition to
    ids and names. The columns of the list go to the index.
    """

    def __init__(
        self,
        index: Index,
        file: IO[bytes],
        pictures: Pictures | None,
        code_names: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.index, self._code_names = index, code_names
        self.cases = Chunks(name="cases", file=file)
        self._tools = Chunks(name="tools", file=file)
        self._items = Chunks(name="items", file=file)
        self._texts = Chunks(name="texts", file=file, most=_TEXTS_PER_CHUNK)
        self._pictures = pictures
        self._numbers: dict[bytes, int] = {}
        self._rubrics: set[str] = set()

    def add(self, entry: Entry) -> None:
        """Writes one entry; only its columns stay in memory.

        Raises:
            ValueError: If it does not have one judgement, or None, for each judge.
        """
        self.index.add(entry)
        item, trajectory = entry.item, entry.trajectory
        rows = [row or {} for row in entry.judgements]
        findings = _findings(rows)
        details = {
            "item": {
                "id": entry.item_id,
                "model": entry.tested_model,
                "protocol": entry.protocol,
                "case": entry.case_id,
                "line": entry.line,
                "groups": {k: v for k, v in entry.groups.items() if v is not None},
            },
            "case": self._case(item) if item else trajectory and self._task(trajectory),
            "trajectory": trajectory and trajectory_view(trajectory, diagnosis_of(rows)),
            "prediction": prediction_view(item, findings) if item or findings else None,
            "judgements": [row and judgement_view(row) for row in entry.judgements],
            "labels": [dict(label) for label in entry.labels] or None,
            "human": entry.human and dict(entry.human),
        }
        self._items.add(to_json({k: v for k, v in details.items() if v is not None}))
        self._rubrics.update(ref for row in rows if isinstance(ref := row.get("rubric"), str))
        reasons = [row.get("reasoning") or row.get("detail") or "" for row in rows]
        self._texts.add(to_json([entry.query, *reasons]))

    def close(self) -> None:
        """Writes the records that are not yet in a block."""
        for chunks in (self.cases, self._tools, self._items, self._texts):
            chunks.close()

    def contents(self) -> dict[str, Any]:
        """The first record of each block, and names of codes; the page needs them for details."""
        return {
            "cases": self.cases.starts,
            "tools": self._tools.starts,
            "items": self._items.starts,
            "texts": self._texts.starts,
            "codes": {
                ref: names
                for ref in sorted(self._rubrics)
                if (names := self._code_names.get(ref) or _code_names(ref))
            },
        }

    def _case(self, item: Item) -> int:
        """The number of an item's case; for a known key, its view is not computed again."""
        # a file's name doesn't identify its picture
        key = case_key(item) if self._pictures is None or not item.files else None
        digest = b"" if key is None else _digest(key)
        if digest in self._numbers:
            return self._numbers[digest]
        view = case_view(item)
        if self._pictures is not None:
            for shown, file in zip(view["files"], item.files, strict=True):
                if url := self._pictures(item, file):
                    shown["url"] = url
        number = self._shared(view)
        if digest:
            self._numbers[digest] = number
        return number

    def _task(self, trajectory: Trajectory) -> int:
        return self._shared(task_view(trajectory))

    def _shared(self, view: View) -> int:
        """The number of a case; its list of tools is a separate record."""
        tools = view.pop("tools", None)
        if tools is not None:
            view["tools"] = self._once(self._tools, tools)
        return self._once(self.cases, view)

    def _once(self, chunks: Chunks, value: object) -> int:
        """The number of a record, which is written if it is new."""
        record = to_json(value)
        digest = _digest(chunks.name.encode() + record)
        if digest not in self._numbers:
            self._numbers[digest] = chunks.add(record)
        return self._numbers[digest]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _code_names(ref: str) -> dict[str, str]:
    """Names of the error codes of a shipped rubric; empty for other rubrics."""
    try:
        return {criterion.code: criterion.name for criterion in shipped_rubric(ref).criteria}
    except OptionError:
        return {}


def _findings(rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The findings by rule, each once: the rows of all judges have the same ones."""
    findings: dict[bytes, Mapping[str, Any]] = {}
    for row in rows:
        listed: object = row.get("findings")
        for finding in cast("list[Any]", listed) if isinstance(listed, list) else ():
            if isinstance(finding, dict):
                own = cast("dict[str, Any]", finding)
                findings.setdefault(to_json(own), own)
    return list(findings.values())

"""Texts that a model wrote, put back into their seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....jsonl import object_of, read_line_at
from ....records.keys import KeyMap, short_key
from ....records.tools import read_tool
from ....runs.resume import record_lines
from ..seeds import Seed
from .config import KINDS, Kind
from .records import WRITING_RECORDS, WRITTEN, is_final
from .tasks import WritingTask, task_of, with_query


class Writings:
    """The texts in a folder, 16 bytes of memory each.

    They are looked up by the whole task: a seed whose query, tools or solution have changed gets
    none.

    Args:
        folder: Where ``written.jsonl`` is; without the file there are no texts.

    Raises:
        InputError: If the file can't be read.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / WRITTEN
        self._accepted, self._rejected = KeyMap(), KeyMap()
        for line in record_lines(self._path, WRITING_RECORDS):
            if line.kind == "current" and isinstance(line.row, dict):
                index = self._rejected if line.row["rejected"] else self._accepted
                index.add(short_key(line.row["task"]), line.offset)
        self._accepted.sort()
        self._rejected.sort()

    def answer(self, task: WritingTask) -> Mapping[str, Any] | None:
        """The record of a task, accepted or not; None where the model has not answered."""
        key = short_key(task.digest)
        for index in (self._accepted, self._rejected):
            if (at := index.index(key)) is not None:
                row = object_of(read_line_at(self._path, index.value(at)))
                return row if row.get("task") == task.digest else None
        return None

    def is_done(self, task: WritingTask, repairs: int) -> bool:
        """True if nothing more is asked for a task."""
        record = self.answer(task)
        return record is not None and is_final(record, repairs)

    def applied(self, seed: Seed) -> Seed:
        """The seed with all texts that were written for it; the seed itself if there are none."""
        seed = self.with_query(seed)
        more: dict[str, Any] = {}
        model: str | None = None
        for kind in KINDS[1:]:
            record = self._record(seed, kind)
            if record is not None:
                more |= _fields(kind, record["value"], seed)
                model = record["model"]
        return replace(seed, **more, model=model) if more else seed

    def with_query(self, seed: Seed) -> Seed:
        """The seed with its query rewritten; itself where it is not."""
        record = self._record(seed, "query")
        if record is None:
            return seed
        return replace(with_query(seed, record["value"]["query"]), model=record["model"])

    def _record(self, seed: Seed, kind: Kind) -> Mapping[str, Any] | None:
        """The accepted record of a seed's task."""
        if not len(self._accepted) or isinstance(task := task_of(seed, kind), str):
            return None
        record = self.answer(task)
        return None if record is None or record["rejected"] else record


def _fields(kind: Kind, value: Mapping[str, Any], seed: Seed) -> dict[str, Any]:
    """The fields of a seed that a text changes."""
    if kind == "plan":
        return {"plan": value["plan"], "written": (*seed.written, value["plan"])}
    if kind == "private":
        return {"private": (value["query"], value["removed"])}
    return {"invented": tuple(read_tool(tool, "tools") for tool in value["tools"])}

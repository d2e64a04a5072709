"""Texts that a model wrote, put back into their seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ....jsonl import object_of, read_line_at
from ....records.keys import KeyMap, short_key
from ....records.tools import read_tool
from ....runs.resume import record_lines
from ..seeds import Seed
from .config import FIRST, KINDS, Kind
from .records import WRITING_RECORDS, WRITTEN, is_final
from .tasks import WritingTask, task_of, with_query
from .trajectories import with_trajectory


class Writings:
    """The texts in a folder, 16 bytes of memory each.

    They are looked up by the whole task: a seed whose query, tools or solution have changed gets
    none.

    Args:
        folder: Folder of ``written.jsonl``; without the file there are no texts.

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
        """The record of a task, accepted or not; None if the model has not answered."""
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
        for kind in FIRST:
            seed = self.rewritten(seed, kind)
        more: dict[str, Any] = {}
        model: str | None = None
        for kind in KINDS[len(FIRST) :]:
            if (written := self._written(seed, kind)) is not None:
                more |= _fields(kind, written.record["value"], replace(seed, **more))
                model = written.record["model"]
        return replace(seed, **more, model=model) if more else seed

    def rewritten(self, seed: Seed, kind: Kind) -> Seed:
        """A seed with a new trajectory or query; itself if none was accepted."""
        written = self._written(seed, kind)
        if written is None:
            return seed
        task, record = written
        if kind == "query":
            seed = with_query(seed, record["value"]["query"])
        else:
            seed = with_trajectory(seed, record["value"], task)
        return replace(seed, model=record["model"])

    def _written(self, seed: Seed, kind: Kind) -> _Written | None:
        """The accepted record of a seed's task."""
        if not len(self._accepted) or isinstance(task := task_of(seed, kind), str):
            return None
        record = self.answer(task)
        return None if record is None or record["rejected"] else _Written(task, record)


class _Written(NamedTuple):
    """A task and its accepted record."""

    task: WritingTask
    record: Mapping[str, Any]


def _fields(kind: Kind, value: Mapping[str, Any], seed: Seed) -> dict[str, Any]:
    """The fields of a seed that a text changes."""
    if kind == "plan":
        return {"plan": value["plan"], "written": (*seed.written, value["plan"])}
    if kind == "private":
        return {"private": (value["query"], value["removed"])}
    if kind in ("contradictory", "removal"):
        texts = {"tool_removal": value["sentence"]} if kind == "removal" else value
        return {"requirements": {**seed.requirements, **texts}}
    return {"invented": tuple(read_tool(tool, "tools") for tool in value["tools"])}

"""The log formats that are read, one module each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...records.trajectories import LogPlace, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """A format of logs in JSON.

    Attributes:
        name: As on the command line.
        title: As in messages.
        score: How surely a record is of this format, from 0 to 1, by several of its keys and
            values. A format whose records are also another one's scores less than that.
        read: Makes a run of a record, the place that it is in and the members of the file around
            it; with ``parts``, of the list of all parts of the run. Raises RowError where it
            can't be read.
        member: Key under which an object that is the whole file lists the records; empty where
            none does. In any format a record may be a line of JSONL, an element of an array or a
            file of its own.
        parts: What runs a record holds parts of, and these parts, such as the spans of a trace or
            the lines of a session: of all records, those with the same name make a run. A part
            with an empty name goes with the part before it in its file, those at its beginning
            with the first that has a name; where none has, the file is a run. None where a record
            is a run.
    """

    name: str
    title: str
    score: Callable[[Mapping[str, Any]], float]
    read: Callable[[Any, LogPlace, Mapping[str, Any]], Trajectory]
    member: str = ""
    parts: Callable[[Mapping[str, Any]], Iterable[tuple[str, Any]]] | None = None

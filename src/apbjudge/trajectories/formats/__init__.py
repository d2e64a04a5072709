"""The log formats that are read, one module each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import guarded
from ...records.trajectories import LogPlace, Trajectory
from ..base import LogEntry

ENTRY_POINT_GROUP = "apbjudge.log_formats"
"""Installed packages add their formats here, each a ``LogFormat`` under its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """A format of logs.

    Attributes:
        name: As on the command line.
        title: As in messages.
        score: How surely a record is of this format, from 0 to 1, by several of its keys and
            values. A format whose records are also another one's scores less than that.
        read: Makes a trajectory of a record, the place that it is in and the members of the file
            around it; with ``parts``, of the list of all parts of the trajectory. Raises RowError
            where it can't be read.
        member: Key under which an object that is the whole file lists the records; empty where
            none does. In any format a record may be a line of JSONL, an element of an array or a
            file of its own. Whether such an object is a record itself is seen by the scores.
        parts: What trajectories a record holds parts of, and these parts, such as the spans of a
            trace or the lines of a session: of all records, those with the same name make a
            trajectory. A part with an empty name goes with the part before it in its file, those at
            its beginning with the first that has a name; where none has, the file is a trajectory.
            None where a record is a trajectory. It may be asked twice.
        claims: True if a path is a log of this format by itself, such as a folder with a structure
            of its own; None where none is.
        read_path: Yields the trajectories of such a log; raises InputError.
        has_nan: True if its records and the members of the file around them may have NaN where a
            number is missing, which JSON has not; it is read as null.
        newest: True if of a task's trajectories of the same trial in several files only that of the
            last file counts, by the files' names.
    """

    name: str
    title: str
    score: Callable[[Mapping[str, Any]], float]
    read: Callable[[Any, LogPlace, Mapping[str, Any]], Trajectory]
    member: str = ""
    parts: Callable[[Mapping[str, Any]], Iterable[tuple[str, Any]]] | None = None
    claims: Callable[[Path], bool] | None = None
    read_path: Callable[[Path], Iterator[LogEntry]] | None = None
    has_nan: bool = False
    newest: bool = False

    def __post_init__(self) -> None:
        for name in ("score", "read", "parts"):
            if (code := getattr(self, name)) is not None:
                object.__setattr__(self, name, guarded(f"log format {self.name}", code))

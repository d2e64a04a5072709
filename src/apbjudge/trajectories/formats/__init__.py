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
        name: Name on the command line.
        title: Name in messages.
        score: Confidence, from 0 to 1, that a record is of this format, by several of its keys and
            values. A format whose records also fit another one scores less than that.
        read: Makes a trajectory of a record, the place that it is in and the members of the file
            around it; with ``parts``, of the list of all parts of the trajectory. Raises RowError
            if it can't be read.
        member: Key under which an object that is the whole file lists the records; empty if none
            does. In any format a record may be a line of JSONL, an element of an array or a file of
            its own. The scores decide if such an object is a record itself.
        parts: Returns the parts of trajectories in a record, such as the spans of a trace or the
            lines of a session, each with the name of its trajectory; equal names in all records
            make one trajectory. A part with an empty name belongs to the previous part in its file,
            or to the first named one; if none has a name, the file is a trajectory. None if a
            record is a trajectory. It may be called twice.
        claims: Returns True if a path is a log of this format by itself, such as a folder with its
            own structure; None if no path is.
        read_path: Yields the trajectories of such a log; raises InputError.
        has_nan: True if its records and the members of the file around them may have NaN, which
            JSON lacks, for missing numbers; it is read as null.
        newest: True if, of several files with the same trial of a task, only the trajectory in the
            last file by name counts.
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

"""The log formats that are read, one module each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...records.trajectories import LogPlace, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """A format of logs.

    Attributes:
        name: As after ``--from``.
        title: For messages, such as ``τ²-bench results``.
        recognises: Whether an entry (one run) of a log is of this format, by its content.
        read: Makes a trajectory of an entry, where it is, and the members of the file around it;
            raises RowError where it can't.
        member: Key under which a file-level object holds the entries; empty where a run is a line
            of JSONL, an element of a JSON array or the whole file.
    """

    name: str
    title: str
    recognises: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any], LogPlace, Mapping[str, Any]], Trajectory]
    member: str = ""

"""The log formats that are read, one module each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...records.trajectories import LogPlace, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """A format of logs in JSON, of which an entry is one run.

    Attributes:
        name: As on the command line.
        title: As in messages.
        recognises: Whether an entry is of this format, by its content.
        read: Makes the run of an entry, the place that it is in and the members of the file around
            it; raises RowError where it can't be read.
        member: Key under which an object that is the whole file lists the entries; empty where
            none does. In any format a run may be a line of JSONL, an element of an array or a
            file of its own.
    """

    name: str
    title: str
    recognises: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any], LogPlace, Mapping[str, Any]], Trajectory]
    member: str = ""

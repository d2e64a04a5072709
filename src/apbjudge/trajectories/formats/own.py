"""Our own format: one trajectory per line, as ``trajectory_row`` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...errors import RowError
from ...records.trajectories import FORMAT, LogPlace, Trajectory, trajectory_of
from . import LogFormat


def _is_own(entry: Mapping[str, Any]) -> bool:
    name = entry.get("format")
    return isinstance(name, str) and name.partition("@")[0] == FORMAT.partition("@")[0]


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    """Our own row, which has the place in the log that it was originally read from."""
    if entry.get("format") != FORMAT:
        raise RowError("format", FORMAT, entry.get("format"))
    return trajectory_of({"place": asdict(place), **entry})


OWN = LogFormat(name="trajectories", title="apbjudge trajectories", score=_is_own, read=_read)

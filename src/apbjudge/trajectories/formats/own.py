"""Our own format: a trajectory a line, as ``trajectory_row`` writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...records.trajectories import FORMAT, LogPlace, Trajectory, trajectory_of
from . import LogFormat


def _recognises(entry: Mapping[str, Any]) -> bool:
    return entry.get("format") == FORMAT


def _read(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    trajectory = trajectory_of({"place": {"format": "trajectories"}, **entry})
    if trajectory.place.file:  # where it was read first says more than the copy
        return trajectory
    own = trajectory.place
    return replace(trajectory, place=replace(own, file=place.file, line=place.line))


OWN = LogFormat(name="trajectories", title="our own format", recognises=_recognises, read=_read)

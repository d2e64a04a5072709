"""Logs of agents as sources: a trajectory that succeeded is a task with its solution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ....errors import RowError
from ....records.keys import KeySet, short_key
from ....records.tools import build_toolset
from ....records.trajectories import Trajectory
from ....trajectories.detection import formats
from ....trajectories.reading import read_log
from ..cases import Reject
from ..seeds import Seed, SeedCall
from .entries import SeedEntry, SourceFormat, SourceOptions, rejected, seed_of
from .solutions import JOINED, LEFT_OUT, agent_calls, needs_of, query_of


def _recognises(row: Mapping[str, Any]) -> bool:
    return any(format_.score(row) for format_ in formats().values())


def _read(options: SourceOptions) -> Iterator[SeedEntry]:
    """Yields an entry for each trajectory; of several usable ones of a task the first is taken."""
    taken = KeySet()
    for entry in read_log(options.path, outcomes=options.outcomes):
        trajectory = entry.content
        if isinstance(trajectory, RowError):
            yield SeedEntry(entry.at or entry.line, entry.file, trajectory)
            continue
        path = options.path
        file = str(path / trajectory.place.file) if path.is_dir() else entry.file
        content: Seed | Reject | RowError
        try:
            content = _seed(trajectory, options, taken)
        except RowError as error:
            content = error
        yield SeedEntry(trajectory.place.line or entry.line, file, content)


def _seed(trajectory: Trajectory, options: SourceOptions, taken: KeySet) -> Seed | Reject:
    if not options.any_outcome:
        success = trajectory.outcome.is_success if trajectory.outcome else None
        if success is None:
            return rejected(trajectory, "the outcome is not known")
        if not success:
            return rejected(trajectory, "the trajectory did not succeed")
    if trajectory.infrastructure_error:
        return rejected(trajectory, "the trajectory broke off", trajectory.infrastructure_error)
    if (key := short_key(trajectory.case_id)) in taken:
        return rejected(trajectory, "another trajectory of this task was taken")
    seed = trajectory_seed(trajectory, options)
    if isinstance(seed, Seed):
        taken.add(key)
    return seed


def trajectory_seed(
    trajectory: Trajectory,
    options: SourceOptions,
    fields: Mapping[str, Any] | None = None,
) -> Seed | Reject:
    """The seed of a trajectory with results.

    Args:
        trajectory: The trajectory.
        options: Settings of reading the source.
        fields: Fields with licence, files and the like; default ``extra`` of the trajectory.

    Raises:
        RowError: If a part of it can't be read.
    """
    if trajectory.tools is None:
        trajectory = replace(trajectory, tools=options.tools)
    attempts = list(agent_calls(trajectory.steps))
    worked = [call for call in attempts if not call.is_failed]
    if unread := next((call for call in worked if call.arguments is None), None):
        return rejected(trajectory, "the arguments of a call can't be read", unread.name)
    if not worked:
        return rejected(trajectory, "no call succeeded" if attempts else "no call is made")
    calls = [SeedCall(call.name, call.arguments or {}, call.step, call.result) for call in worked]
    repairs = [LEFT_OUT] if len(worked) < len(attempts) else []
    toolset = build_toolset(list(trajectory.tools or ()), None, "tools")
    solution = needs_of(trajectory, calls, toolset.by_name)
    query, is_joined = query_of(trajectory, solution)
    if is_joined:
        repairs.append(JOINED)
    trajectory = replace(trajectory, query=query)
    fields = trajectory.extra if fields is None else fields
    return seed_of(trajectory, solution, fields, options, source="", repairs=repairs)


TRAJECTORIES = SourceFormat(
    name="trajectories", title="trajectories of agents", recognises=_recognises, read=_read
)

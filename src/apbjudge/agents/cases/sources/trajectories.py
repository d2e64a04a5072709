"""Logs of agents as sources: a run that succeeded is a task with its solution."""

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
    """Yields an entry for each run; of several usable runs of a task the first is taken."""
    taken = KeySet()
    for entry in read_log(options.path, outcomes=options.outcomes):
        run = entry.content
        if isinstance(run, RowError):
            yield SeedEntry(entry.at or entry.line, entry.file, run)
            continue
        path = options.path
        file = str(path / run.place.file) if path.is_dir() else entry.file
        content: Seed | Reject | RowError
        try:
            content = _seed(run, options, taken)
        except RowError as error:
            content = error
        yield SeedEntry(run.place.line or entry.line, file, content)


def _seed(run: Trajectory, options: SourceOptions, taken: KeySet) -> Seed | Reject:
    if not options.any_outcome:
        success = run.outcome.is_success if run.outcome else None
        if success is None:
            return rejected(run, "the outcome is not known")
        if not success:
            return rejected(run, "the run did not succeed")
    if run.infrastructure_error:
        return rejected(run, "the run broke off", run.infrastructure_error)
    if (key := short_key(run.case_id)) in taken:
        return rejected(run, "another run of this task was taken")
    seed = run_seed(run, options)
    if isinstance(seed, Seed):
        taken.add(key)
    return seed


def run_seed(
    run: Trajectory,
    options: SourceOptions,
    fields: Mapping[str, Any] | None = None,
) -> Seed | Reject:
    """The seed of a run with results.

    Args:
        run: The run.
        options: Settings of reading the source.
        fields: Where licence, files and the like may stand; ``extra`` of the run by default.

    Raises:
        RowError: If a part of it can't be read.
    """
    run = replace(run, tools=options.tools) if run.tools is None else run
    attempts = list(agent_calls(run.steps))
    worked = [call for call in attempts if not call.is_failed]
    if unread := next((call for call in worked if call.arguments is None), None):
        return rejected(run, "the arguments of a call can't be read", unread.name)
    if not worked:
        return rejected(run, "no call succeeded" if attempts else "no call is made")
    calls = [SeedCall(call.name, call.arguments or {}, call.step, call.result) for call in worked]
    repairs = [LEFT_OUT] if len(worked) < len(attempts) else []
    toolset = build_toolset(list(run.tools or ()), None, "tools")
    solution = needs_of(run, calls, toolset.by_name)
    query, is_joined = query_of(run, solution)
    if is_joined:
        repairs.append(JOINED)
    run = replace(run, query=query)
    fields = run.extra if fields is None else fields
    return seed_of(run, solution, fields, options, source="", repairs=repairs)


TRAJECTORIES = SourceFormat(
    name="trajectories", title="runs of agents", recognises=_recognises, read=_read
)

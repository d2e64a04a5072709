"""Tasks of τ²-bench (arXiv:2506.07982): what the user wants, and the actions that do it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from ....errors import RowError
from ....records.trajectories import LogPlace, Trajectory, TrajectoryStep
from ....trajectories.formats.fields import object_in, objects_in, text_in
from ..cases import Reject
from ..seeds import Seed
from .entries import (
    SeedEntry,
    SourceFormat,
    SourceOptions,
    read_rows,
    rejected,
    step_of,
    task_of,
)
from .replaying import BATCH, Replay, ReplayedWorld, is_installed, replay
from .trajectories import run_seed

_INSTRUCTIONS = ("reason_for_call", "known_info", "task_instructions")


@dataclass(frozen=True, slots=True)
class _Task:
    """A task as it is replayed: its actions have ``name``, ``arguments`` and ``requestor``."""

    run: Trajectory
    row: Mapping[str, Any]
    domain: str
    actions: Sequence[Mapping[str, Any]]


def tasks_in(path: Path) -> Path:
    """The file of the tasks of a domain, where its folder is given."""
    return path / "tasks.json" if path.is_dir() else path


def _recognises(row: Mapping[str, Any]) -> bool:
    return "evaluation_criteria" in row and not row.keys().isdisjoint(("user_scenario", "ticket"))


def _read(options: SourceOptions) -> Iterator[SeedEntry]:
    """Yields an entry for each task, with results where the world is installed."""
    options = replace(options, path=tasks_in(options.path))
    can_replay = is_installed()
    tasks = _tasks(options)
    while batch := [task for _, task in zip(range(BATCH), tasks, strict=False)]:
        for domain, group in groupby(batch, _domain):
            yield from _entries(list(group), options, domain if can_replay else "")


_Read = tuple[int, _Task | RowError | Reject]


def _domain(read: _Read) -> str:
    task = read[1]
    return task.domain if isinstance(task, _Task) else ""


def _tasks(options: SourceOptions) -> Iterator[_Read]:
    for line, row in read_rows(options.path):
        task: _Task | RowError | Reject
        try:
            if isinstance(row, RowError):
                raise row
            task = _task(row, LogPlace(TAU2.name, "", options.path.name, line), options)
        except RowError as error:
            task = error
        yield line, task


def _task(row: dict[str, Any], place: LogPlace, options: SourceOptions) -> _Task | Reject:
    scenario = object_in(row, "user_scenario")
    instructions: object = scenario.get("instructions")
    domain = ""
    if isinstance(instructions, str):
        query = instructions
    else:
        parts = object_in(scenario, "instructions", "user_scenario.")
        texts = (text_in(parts, name, "instructions.") for name in _INSTRUCTIONS)
        query = "\n\n".join(filter(None, map(str.strip, texts)))
        domain = text_in(parts, "domain", "instructions.")
    run = task_of(row, place, options, query=query.strip() or text_in(row, "ticket"))
    if object_in(row, "initial_state").get("message_history"):
        return rejected(run, "the task begins in the middle of a conversation")
    actions = [
        _action(action, f"evaluation_criteria.actions.{i}.")
        for i, action in objects_in(object_in(row, "evaluation_criteria"), "actions")
    ]
    if not any(action["requestor"] == "assistant" for action in actions):
        return rejected(run, "no call is made")
    domain = domain or options.path.absolute().parent.name
    return _Task(run, row, domain if re.fullmatch(r"\w+", domain) else "", actions)


def _action(action: Mapping[str, Any], where: str) -> dict[str, Any]:
    requestor = text_in(action, "requestor", where) or "assistant"
    if requestor not in ("assistant", "user"):
        raise RowError(f"{where}requestor", "assistant or user", requestor)
    if not (name := text_in(action, "name", where)):
        raise RowError(f"{where}name", "the name of a tool", name)
    return {
        "name": name,
        "arguments": object_in(action, "arguments", where),
        "requestor": requestor,
    }


def _entries(group: Sequence[_Read], options: SourceOptions, domain: str) -> Iterator[SeedEntry]:
    """The entries of tasks of one domain; nothing is replayed where it is empty."""
    tasks = [task for _, task in group if isinstance(task, _Task)]
    world: ReplayedWorld | None = None
    replays: list[Replay] = []
    if domain and tasks:
        wanted = [
            {"initial_state": task.row.get("initial_state"), "actions": task.actions}
            for task in tasks
        ]
        world, replays = replay(domain, wanted)
    following = iter(replays)
    for line, task in group:
        content: Seed | RowError | Reject
        if isinstance(task, _Task):
            try:
                content = _seed(task, options, world, next(following, None))
            except RowError as error:
                content = error
        else:
            content = task
        yield SeedEntry(line, str(options.path), content)


def _seed(
    task: _Task, options: SourceOptions, world: ReplayedWorld | None, replayed: Replay | None
) -> Seed | Reject:
    run = task.run
    if replayed is not None and replayed.fault:
        return rejected(run, "the actions can't be replayed", replayed.fault)
    steps = [TrajectoryStep("user", text=run.query)]
    for number, action in enumerate(task.actions):
        result, is_error = replayed.results[number] if replayed else (None, None)
        steps.append(
            step_of(
                action["name"],
                action["arguments"],
                f"call_{number + 1}",
                result=result,
                is_error=is_error,
                is_users=action["requestor"] == "user",
            )
        )
    run = replace(run, steps=tuple(steps))
    if world is not None:
        prompt = run.system_prompt or world.policy
        run = replace(run, system_prompt=prompt, tools=options.tools or world.tools)
    return run_seed(run, options, {"ends": _ENDS, **task.row})


_ENDS = ["transfer_to_human_agents"]
"""Tools of τ²-bench's domains that hand the task to a person."""

TAU2 = SourceFormat(name="tau2", title="tasks of τ²-bench", recognises=_recognises, read=_read)

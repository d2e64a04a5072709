"""Tasks of τ²-bench (arXiv:2506.07982): the user's request, and the actions that fulfil it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....errors import RowError
from ....records.trajectories import LogPlace, TrajectoryStep
from ....trajectories.formats.fields import object_in, objects_in, text_field
from ..cases import Reject
from ..seeds import Seed
from .entries import (
    SeedEntry,
    SourceFormat,
    SourceOptions,
    entries_of,
    rejected,
    step_of,
    task_of,
)
from .replaying import Replay, ReplayedDomain, is_installed
from .trajectories import trajectory_seed

_INSTRUCTIONS = ("reason_for_call", "known_info", "task_instructions")


def tasks_in(path: Path) -> Path:
    """The file of the tasks of a domain, whose path may be its folder."""
    return path / "tasks.json" if path.is_dir() else path


def _recognises(row: Mapping[str, Any]) -> bool:
    return "evaluation_criteria" in row and not row.keys().isdisjoint(("user_scenario", "ticket"))


def _read(options: SourceOptions) -> Iterator[SeedEntry]:
    """Yields an entry for each task, with results where the package is installed."""
    options = replace(options, path=tasks_in(options.path))
    can_replay = is_installed()
    with ExitStack() as stack:
        domains: dict[str, ReplayedDomain] = {}

        def replayed(domain: str, row: Mapping[str, Any], actions: _Actions) -> Replay | None:
            if not can_replay or not re.fullmatch(r"\w+", domain):
                return None
            if domain not in domains:
                domains[domain] = stack.enter_context(closing(ReplayedDomain(domain)))
            return domains[domain].replay(row.get("initial_state"), actions)

        def seed(row: dict[str, Any], place: LogPlace) -> Seed | Reject:
            return _seed(row, place, options, replayed)

        yield from entries_of(options, seed, TAU2.name)


_Actions = Sequence[Mapping[str, Any]]


def _seed(
    row: dict[str, Any],
    place: LogPlace,
    options: SourceOptions,
    replayed: Callable[[str, Mapping[str, Any], _Actions], Replay | None],
) -> Seed | Reject:
    scenario = object_in(row, "user_scenario")
    instructions: object = scenario.get("instructions")
    domain = ""
    if isinstance(instructions, str):
        query = instructions
    else:
        parts = object_in(scenario, "instructions", "user_scenario.")
        texts = (text_field(parts, name, where="instructions.") for name in _INSTRUCTIONS)
        query = "\n\n".join(filter(None, map(str.strip, texts)))
        domain = text_field(parts, "domain", where="instructions.")
    trajectory = task_of(row, place, options, query=query.strip() or text_field(row, "ticket"))
    if object_in(row, "initial_state").get("message_history"):
        return rejected(trajectory, "the task begins in the middle of a conversation")
    actions = [
        _action(action, f"evaluation_criteria.actions.{i}.")
        for i, action in objects_in(object_in(row, "evaluation_criteria"), "actions")
    ]
    if not any(action["requestor"] == "assistant" for action in actions):
        return rejected(trajectory, "no call is made")
    replay = replayed(domain or options.path.absolute().parent.name, row, actions)
    if replay is not None and replay.fault:
        return rejected(trajectory, "the actions can't be replayed", replay.fault)
    steps = [TrajectoryStep("user", text=trajectory.query)]
    for number, action in enumerate(actions):
        result, is_error = (None, None) if replay is None else replay.results[number]
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
    trajectory = replace(trajectory, steps=tuple(steps))
    if replay is not None:
        prompt = trajectory.system_prompt or replay.policy
        trajectory = replace(trajectory, system_prompt=prompt, tools=options.tools or replay.tools)
    return trajectory_seed(trajectory, options, {"ends": _ENDS, **row})


def _action(action: Mapping[str, Any], where: str) -> dict[str, Any]:
    requestor = text_field(action, "requestor", where=where) or "assistant"
    if requestor not in ("assistant", "user"):
        raise RowError(f"{where}requestor", "assistant or user", requestor)
    if not (name := text_field(action, "name", where=where)):
        raise RowError(f"{where}name", "the name of a tool", name)
    return {
        "name": name,
        "arguments": object_in(action, "arguments", where),
        "requestor": requestor,
    }


_ENDS = ["transfer_to_human_agents"]
"""Tools of τ²-bench's domains that hand the task to a person."""

TAU2 = SourceFormat(name="tau2", title="tasks of τ²-bench", recognises=_recognises, read=_read)

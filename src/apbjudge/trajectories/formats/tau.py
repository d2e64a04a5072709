"""Results of τ-bench (arXiv:2406.12045) and τ²-bench (arXiv:2506.07982)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from ...errors import RowError
from ...records.json_stream import members_around, read_member, read_whole
from ...records.loose_json import as_list, rest_of
from ...records.trajectories import LogPlace, Trajectory
from ..base import LogEntry
from . import LogFormat
from .derived import trajectory_of_messages
from .fields import (
    id_field,
    list_in,
    number_field,
    numbers_in,
    object_in,
    objects_in,
    scores_in,
    text_field,
    whole_field,
)
from .messages import outcome_of

_INFRASTRUCTURE = "infrastructure_error"

# τ-bench -----------------------------------------------------------------------------------------

_KNOWN = frozenset(("task_id", "trial", "reward", "info", "traj"))


def _is_tau_bench(entry: Mapping[str, Any]) -> bool:
    return entry.keys() >= {"task_id", "reward", "traj"}


def _read_tau_bench(entry: Mapping[str, Any], place: LogPlace, _: Mapping[str, Any]) -> Trajectory:
    """A result of τ-bench.

    A trajectory that raised an exception has no messages, a reward of 0 and the error in ``info``.
    """
    info = object_in(entry, "info")
    broke = text_field(info, "error")
    messages = list_in(entry, "traj")
    if not messages and not broke:
        raise RowError("traj", "a list of messages", entry.get("traj"))
    return trajectory_of_messages(
        enumerate(messages or []),
        "traj",
        place,
        case_id=_case_id(entry),
        trial=whole_field(entry, "trial"),
        extra=rest_of(entry, _KNOWN) | rest_of(info, frozenset(("task", "user_cost", "error"))),
        task=object_in(info, "task"),
        infrastructure_error=broke,
        outcome=outcome_of(entry),
        usage=_costs(info, "user_cost"),
    )


def _case_id(entry: Mapping[str, Any]) -> str:
    if not (case_id := id_field(entry, "task_id")):
        raise RowError("task_id", "text or a whole number", None)
    return case_id


def _costs(holder: Mapping[str, Any], *names: str) -> dict[str, float]:
    costs = {name: number_field(holder, name) for name in names}
    return {name: cost for name, cost in costs.items() if cost is not None}


# τ²-bench ----------------------------------------------------------------------------------------

_KNOWN_2 = frozenset(
    "id task_id trial termination_reason reward_info agent_cost user_cost agent_usage messages "
    "policy".split()
)


def _is_tau2(entry: Mapping[str, Any]) -> bool:
    return (
        "task_id" in entry
        and not entry.keys().isdisjoint(("termination_reason", "reward_info"))
        and not entry.keys().isdisjoint(("messages", "ticks"))
    )


def _read_tau2(entry: Mapping[str, Any], place: LogPlace, around: Mapping[str, Any]) -> Trajectory:
    """A simulation of τ²-bench; the setting is its domain.

    The users of τ² have tools too: their calls are in their own steps.
    """
    info = object_in(around, "info")
    agent, world = object_in(info, "agent_info"), object_in(info, "environment_info")
    reason = text_field(entry, "termination_reason")
    messages = list_in(entry, "messages")
    is_broken = reason == _INFRASTRUCTURE
    if not messages and not is_broken:
        expected = "a list of messages"
        if as_list(entry.get("ticks")) is not None:
            expected += " (the ticks of spoken trajectories are not read)"
        raise RowError("messages", expected, entry.get("messages"))
    case_id, reward_info = _case_id(entry), object_in(entry, "reward_info")
    tasks = (task for _, task in objects_in(around, "tasks") if str(task.get("id")) == case_id)
    extra = rest_of(entry, _KNOWN_2)
    if rest := rest_of(reward_info, frozenset(("reward",))):
        extra["reward_info"] = rest
    trajectory = trajectory_of_messages(
        enumerate(messages or []),
        "messages",
        place,
        trajectory_id=id_field(entry, "id"),
        case_id=case_id,
        trial=whole_field(entry, "trial"),
        tested_model=text_field(agent, "llm", "implementation"),
        setting=text_field(world, "domain_name"),
        tools=tuple(object_in(world, "tool_defs").values()) or None,
        termination=reason,
        infrastructure_error=reason if is_broken else "",
        outcome=outcome_of(reward_info),
        task=next(tasks, None),
        scores=scores_in(rest_of(reward_info, frozenset(("reward",)))),
        usage={
            **_costs(entry, "agent_cost", "user_cost"),
            **numbers_in(object_in(entry, "agent_usage"), "agent_usage."),
        },
        extra=extra,
    )
    policy = text_field(entry, "policy") or text_field(world, "policy")
    return trajectory if trajectory.system_prompt else replace(trajectory, system_prompt=policy)


TAU_BENCH = LogFormat(
    name="tau-bench", title="τ-bench results", score=_is_tau_bench, read=_read_tau_bench
)
# Folders of τ²-bench: facts of all simulations, and a file for each -------------------------------

_RESULTS, _SIMULATIONS = "results.json", "simulations"


def is_tau2_folder(folder: Path) -> bool:
    """True if a folder has the results of τ²-bench with a file for each simulation."""
    return (folder / _RESULTS).is_file() and (folder / _SIMULATIONS).is_dir()


def read_tau2_folder(folder: Path) -> Iterator[LogEntry]:
    """The simulations of a folder, those in its ``results.json`` first.

    Raises:
        InputError: If the facts of all of them can't be read.
    """
    results = folder / _RESULTS
    around = members_around(results, _SIMULATIONS)
    listed = [(of, results) for of in read_member(results, _SIMULATIONS)]
    files = sorted((folder / _SIMULATIONS).glob("*.json"))
    each = chain(listed, ((read_whole(file)._replace(number=0), file) for file in files))
    for number, (element, file) in enumerate(each, 1):
        place = LogPlace("tau2", file=file.relative_to(folder).as_posix(), line=element.number)
        content: Trajectory | RowError
        try:
            if isinstance(element.value, RowError):
                raise element.value
            content = _read_tau2(object_in({"file": element.value}, "file"), place, around)
        except RowError as error:
            content = error
        yield LogEntry(number, 0, element.digest, content, str(file), element.number, element.value)


TAU2 = LogFormat(
    name="tau2",
    title="τ²-bench results",
    score=_is_tau2,
    read=_read_tau2,
    member="simulations",
    claims=is_tau2_folder,
    read_path=read_tau2_folder,
)

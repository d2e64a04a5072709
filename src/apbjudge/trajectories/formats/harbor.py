"""Job folders of Harbor: a folder for each trial, with its result and its trajectory in ATIF."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import RowError
from ...records.json_stream import read_object
from ...records.trajectories import LogPlace, Outcome, Trajectory
from ..base import LogEntry
from . import LogFormat
from .atif import ATIF
from .fields import id_field, number_field, numbers_in, object_in, text_field

_NAME = "harbor"
_RESULT, _TRAJECTORY = "result.json", Path("agent", "trajectory.json")
_CONTINUED = "continued_trajectory_ref"


def is_job(folder: Path) -> bool:
    """True if a folder is a job, or the folder of one of its trials."""
    with suppress(OSError):
        return _is_trial(folder) or any(map(_is_trial, folder.iterdir()))
    return False


def read_job(folder: Path) -> Iterator[LogEntry]:
    """The trials of a job, in the order of their names; trials of a task are numbered in it.

    A trial without a trajectory, or that broke before verification, counts as an infrastructure
    error.

    Raises:
        InputError: If the folder can't be read.
    """
    inside = sorted(of for of in folder.iterdir() if (of / "agent").is_dir() or _is_trial(of))
    trials = [folder] if _is_trial(folder) else inside
    counts: Counter[tuple[str, str]] = Counter()
    for number, trial in enumerate(trials, 1):
        record: dict[str, Any] = {}
        content: Trajectory | RowError
        digest = hashlib.sha256()
        try:
            record = {"result": _read(trial / _RESULT, digest), "trajectory": None}
            if (trial / _TRAJECTORY).exists():
                record["trajectory"] = _whole(trial, digest)
            place = LogPlace(_NAME, file=(trial / _TRAJECTORY).relative_to(folder).as_posix())
            trajectory = _trajectory(record, place, trial)
            counts[trajectory.case_id, trajectory.tested_model] += 1
            content = replace(trajectory, trial=counts[trajectory.case_id, trajectory.tested_model])
        except RowError as error:
            content = error
        yield LogEntry(number, 0, digest.digest(), content, str(trial), raw=record)


def _is_trial(folder: Path) -> bool:
    with suppress(RowError):
        return read_object(folder / _RESULT)[0].keys() >= {"trial_name", "task_name"}
    return False


def _read(path: Path, digest: Any) -> dict[str, Any]:
    value, own_digest = read_object(path)
    digest.update(own_digest)
    return value


def _whole(trial: Path, digest: Any) -> dict[str, Any]:
    """The trajectory of a trial with the steps of the files that continue it."""
    path, seen = trial / _TRAJECTORY, set[str]()
    whole = part = _read(path, digest)
    while (name := text_field(part, _CONTINUED)) and name not in seen:
        seen.add(name)
        part = _read(path.parent / Path(name).name, digest)
        steps = [*(whole.get("steps") or ()), *(part.get("steps") or ())]
        whole = {**whole, "steps": steps, "final_metrics": part.get("final_metrics")}
    return {k: v for k, v in whole.items() if k != _CONTINUED}


def _trajectory(record: Mapping[str, Any], place: LogPlace, trial: Path) -> Trajectory:
    result, raw = record["result"], record["trajectory"]
    name, task = id_field(result, "trial_name"), id_field(result, "task_name")
    rewards = object_in(object_in(result, "verifier_result"), "rewards", "verifier_result.")
    fault = object_in(result, "exception_info")
    broke = ": ".join(
        filter(None, (text_field(fault, "exception_type"), text_field(fault, "exception_message")))
    )
    agent = object_in(object_in(result, "config"), "agent", "config.")
    harness = text_field(object_in(result, "agent_info"), "name") or text_field(agent, "name")
    if raw is None:
        there = ", ".join(sorted(of.name for of in (trial / "agent").glob("*"))) or "nothing"
        broke = broke or f"{_TRAJECTORY} is not there, {there} is"
        trajectory = Trajectory(
            trajectory_id=name, case_id=task, tested_model="", steps=(), place=place
        )
    else:
        trajectory = ATIF.read(raw, place, {})
    reward = number_field(rewards, "reward")
    is_verified = bool(rewards)
    return replace(
        trajectory,
        trajectory_id=name,
        case_id=task,
        tested_model=text_field(agent, "model_name") or trajectory.tested_model or harness,
        setting=harness,
        termination=trajectory.termination or broke,
        infrastructure_error="" if is_verified and raw is not None else broke,
        outcome=trajectory.outcome if reward is None else Outcome(reward),
        scores=trajectory.scores | {k: v for k, v in numbers_in(rewards).items() if k != "reward"},
        usage=trajectory.usage | numbers_in(object_in(result, "agent_result")),
        place=replace(trajectory.place, format=_NAME),
    )


def _read_record(_: Any, __: LogPlace, ___: Mapping[str, Any]) -> Trajectory:
    raise RowError("entry", "a job folder of Harbor", "a record")


HARBOR = LogFormat(
    name=_NAME,
    title="job folder of Harbor",
    score=lambda _: 0.0,
    read=_read_record,
    claims=is_job,
    read_path=read_job,
)

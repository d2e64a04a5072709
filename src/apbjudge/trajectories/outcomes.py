"""Outcomes from a second file, for logs that state none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, RowError
from ..jsonl import read_lines
from ..records.labels import TABLE_SUFFIXES
from ..records.tables import column_names, read_table
from ..records.trajectories import Outcome, Trajectory
from .formats.fields import id_field, success_of, text_field, whole_field

_IDS = (("trajectory_id", "id"), ("case_id", "task_id"))
_COLUMNS = (
    *(name for names in _IDS for name in names),
    *("tested_model", "model", "trial", "reward", "success", "termination"),
)


class _Key(NamedTuple):
    """What an outcome is of; None for what it leaves open."""

    trajectory_id: str | None
    case_id: str | None
    trial: int | None
    tested_model: str | None


class _Stated(NamedTuple):
    outcome: Outcome | None
    termination: str


class Outcomes:
    """Outcomes by run, each of which belongs to one run.

    Args:
        path: JSONL, or a table when it is named ``.csv`` or ``.tsv``. A row names its run by
            ``trajectory_id`` or ``id``, else by ``case_id`` or ``task_id`` and, where a case has
            several runs, ``trial``; and by ``tested_model`` where several models share ids. It
            states a ``reward`` (number), a ``success`` (true or false), a ``termination``, or
            several of them.

    Attributes:
        n_without: Runs that were asked for and had no outcome in the file.

    Raises:
        InputError: If the file can't be read, a row is unusable, or two rows are of the same run.
    """

    def __init__(self, path: Path) -> None:
        self._stated: dict[_Key, _Stated] = {}
        self._used: set[_Key] = set()
        self.n_without = 0
        for number, row in _rows(path):
            try:
                key, stated = _read(row)
            except RowError as error:
                raise InputError(f"{path}:{number}: {error}") from None
            if key in self._stated:
                twice = RowError("line", "one outcome a run", f"another one of {_name(key)}")
                raise InputError(f"{path}:{number}: {twice}")
            self._stated[key] = stated

    @property
    def unused(self) -> list[str]:
        """What the outcomes are of that belong to no run so far."""
        return [_name(key) for key in self._stated if key not in self._used]

    def joined(self, run: Trajectory) -> Trajectory:
        """The run with its outcome; as it was where the file has none.

        Raises:
            RowError: If the log itself states another one, or an outcome fits several runs.
        """
        keys = (
            _Key(trajectory_id, case_id, trial, model)
            for trajectory_id, case_id, trial in (
                (run.trajectory_id, None, None),
                (None, run.case_id, run.trial),
                (None, run.case_id, None),
            )
            for model in (run.tested_model, None)
        )
        key = next((key for key in keys if key in self._stated), None)
        if key is None:
            self.n_without += 1
            return run
        if key in self._used:
            field = "trajectory_id" if key.case_id is None else "case_id"
            raise RowError(field, "an outcome for each run", f"one for several runs: {_name(key)}")
        self._used.add(key)
        outcome, termination = self._stated[key]
        if run.termination and termination and run.termination != termination:
            raise _contradiction("termination", run.termination, termination)
        return replace(
            run,
            outcome=_merged(run.outcome, outcome),
            termination=run.termination or termination,
        )


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any] | RowError]]:
    if path.suffix.lower() not in TABLE_SUFFIXES:
        for line in read_lines(path):
            yield line.number, line.values
        return
    names = {name.lower() for name in column_names(path)}
    needed = next((name for group in _IDS for name in group if name in names), "trajectory_id")
    yield from read_table(path, _COLUMNS, needed=needed)


def _read(row: Mapping[str, Any] | RowError) -> tuple[_Key, _Stated]:
    if isinstance(row, RowError):
        raise row
    trajectory_id, case_id = (id_field(row, *names) for names in _IDS)
    model = text_field(row, "tested_model", "model") or None
    if trajectory_id:
        key = _Key(trajectory_id, None, None, model)
    elif case_id:
        key = _Key(None, case_id, whole_field(row, "trial"), model)
    else:
        raise RowError("trajectory_id", "the id of a run, or case_id", None)
    reward, success = _reward(row.get("reward")), success_of(row.get("success"))
    outcome = None if reward is None and success is None else Outcome(reward, success)
    termination = text_field(row, "termination")
    if outcome is None and not termination:
        raise RowError("reward", "a reward, success or termination", None)
    return key, _Stated(outcome, termination)


def _reward(value: object) -> float | None:
    """A finite number, also as a cell of a table."""
    if value is None:
        return None
    try:
        reward = float(value) if isinstance(value, str | int | float) else nan
    except (ValueError, OverflowError):
        reward = nan
    if not isfinite(reward) or isinstance(value, bool):
        raise RowError("reward", "a number", value)
    return reward


def _name(key: _Key) -> str:
    trial = "" if key.trial is None else f" trial {key.trial}"
    model = "" if key.tested_model is None else f" of {key.tested_model}"
    return f"{key.trajectory_id or key.case_id}{trial}{model}"


def _merged(ours: Outcome | None, theirs: Outcome | None) -> Outcome | None:
    """Both outcomes in one."""
    if ours is None or theirs is None:
        return ours or theirs
    reward, success = ours.reward, ours.success
    if reward is None:
        reward = theirs.reward
    elif theirs.reward is not None and abs(reward - theirs.reward) > 1e-6:
        raise _contradiction("reward", reward, theirs.reward)
    if {_sure_success(ours), _sure_success(theirs)} == {True, False}:
        raise _contradiction("success", ours.is_success, theirs.is_success)
    return Outcome(reward, theirs.success if success is None else success)


def _sure_success(outcome: Outcome) -> bool | None:
    """Success as stated or by a reward of 0 or 1; other rewards may be on any scale."""
    if outcome.success is None and outcome.reward not in (0, 1):
        return None
    return outcome.is_success


def _contradiction(field: str, ours: object, theirs: object) -> RowError:
    return RowError(field, f"{ours} as in the log", f"{theirs} in the file of outcomes")

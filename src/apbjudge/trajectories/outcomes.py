"""Outcomes from a second file, joined with the runs of a log by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InputError, RowError
from ..records.foreign import read_rows
from ..records.trajectories import Outcome, Trajectory

_IDS = ("trajectory_id", "id", "item_id")
_CASES = ("case_id", "task_id")
_WORDS: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False,
                              "0": False}  # fmt: skip
_Key = tuple[str, str, str]


@dataclass(slots=True)
class Outcomes:
    """Outcomes by run, or by case and trial.

    Attributes:
        path: The file.
        stated: Reward, success and termination of each.
        n_joined: Runs that got one so far.
    """

    path: Path
    stated: Mapping[_Key, tuple[Outcome, str]]
    n_joined: int = 0
    _used: set[_Key] = field(default_factory=set[_Key])

    @property
    def n_unused(self) -> int:
        """Outcomes that no run of the log was found for."""
        return len(self.stated) - len(self._used)

    def join(self, run: Trajectory) -> Trajectory:
        """The run with its outcome, if the file has one.

        Raises:
            RowError: If the log states another outcome.
        """
        trial = "" if run.trial is None else str(run.trial)
        keys: tuple[_Key, ...] = (
            (run.trajectory_id, "", run.tested_model),
            (run.trajectory_id, "", ""),
            (run.case_id, trial or "-", run.tested_model),
            (run.case_id, trial or "-", ""),
        )
        key = next((key for key in keys if key in self.stated), None)
        if key is None:
            return run
        outcome, termination = self.stated[key]
        own = None if run.outcome is None else run.outcome.is_success
        if own is not None and outcome.is_success is not None and own != outcome.is_success:
            raise RowError("outcome", f"as in {self.path}, {outcome.is_success}", own)
        self._used.add(key)
        self.n_joined += 1
        merged = outcome if run.outcome is None else run.outcome
        return replace(run, outcome=merged, termination=run.termination or termination)


def read_outcomes(path: Path) -> Outcomes:
    """Reads JSON lines, CSV or TSV with an id and a reward or success a row.

    Columns: ``trajectory_id``, or ``case_id`` and ``trial``; ``tested_model`` where ids are not
    unique; ``reward``, ``success``, ``termination``.

    Raises:
        InputError: If the file can't be read, a row is unusable, or a run is there twice.
    """
    columns, rows = read_rows(path)
    ids = next((name for name in _IDS if name in columns), None)
    cases = next((name for name in _CASES if name in columns), None)
    if (ids is None and cases is None) or not {"reward", "success"} & {*columns}:
        raise InputError(
            f"{path}: expected columns trajectory_id (or case_id and trial) and reward or success, "
            f"got {', '.join(columns) or 'none'}"
        )
    stated: dict[_Key, tuple[Outcome, str]] = {}
    for line, row in rows:
        try:
            if isinstance(row, RowError):
                raise row
            key = _key(row, ids, cases)
            if key in stated:
                raise RowError(ids or cases or "", "a run that occurs once", key[0])  # noqa: TRY301
            outcome = Outcome(_reward(row.get("reward")), _success(row.get("success")))
            stated[key] = outcome, str(row.get("termination") or "")
        except RowError as error:
            raise InputError(f"{path}:{line}: {error}") from None
    return Outcomes(path, stated)


def _key(row: Mapping[str, Any], ids: str | None, cases: str | None) -> _Key:
    model = str(row.get("tested_model") or "")
    if ids is not None and row.get(ids) not in (None, ""):
        return str(row[ids]), "", model
    if cases is None or row.get(cases) in (None, ""):
        raise RowError(ids or cases or "trajectory_id", "an id", row.get(ids or cases or ""))
    trial = row.get("trial")
    return str(row[cases]), "-" if trial in (None, "") else str(trial), model


def _reward(value: Any) -> float | None:
    if value in (None, ""):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise RowError("reward", "a number", value) from None


def _success(value: Any) -> bool | None:
    if value in (None, "") or isinstance(value, bool):
        return value if isinstance(value, bool) else None
    word = str(value).strip().casefold()
    if word not in _WORDS:
        raise RowError("success", "true or false", value)
    return _WORDS[word]

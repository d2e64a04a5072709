"""The outcome of each run of a log: as the log states it, a second file, or a score.

A scale is stated or asked for, never guessed: success is a reward from 0 to 1 that is 1, a score
that is called success, the only score that is true or false, or what ``--success`` says.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose, isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, OptionError, RowError
from ..jsonl import read_lines
from ..records.labels import TABLE_SUFFIXES
from ..records.tables import column_names, read_table
from ..records.trajectories import Outcome, Trajectory
from .formats.fields import id_field, number_of, success_of, text_field, whole_field

WITHOUT_CHOICE = "scores without choice"
"""Remark of a run whose scores leave open whether it succeeded."""
_ADVICE = "--success NAME, 'NAME>=X', 'NAME<=X' or 'NAME==WORD' says what a success is"
_Score = bool | float | str

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


_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": isclose,
}


@dataclass(frozen=True, slots=True)
class SuccessRule:
    """Which score says whether a run succeeded, and from where on.

    Attributes:
        name: Name of the score, or ``reward`` or ``success`` for what the log states as such.
        sign: One of ``>=``, ``<=`` and ``==``; empty where the score itself says it.
        bound: What it is compared with; with ``==`` also a word, in any case of letters.
    """

    name: str
    sign: str = ""
    bound: str = ""

    @classmethod
    def of(cls, text: str) -> SuccessRule:
        """Reads ``NAME``, ``NAME>=X``, ``NAME<=X`` or ``NAME==X``.

        Raises:
            OptionError: If it is none of these.
        """
        name, sign, bound = (part.strip() for part in re.split("([<>=]=|$)", text, maxsplit=1))
        odd = not name or (not sign and re.search("[<>]", name))
        if odd or (sign and not bound) or (sign in (">=", "<=") and number_of(bound) is None):
            wanted = "NAME, NAME>=X, NAME<=X with a number, or NAME==WORD"
            raise OptionError(f"--success: expected {wanted}, got {text!r}")
        return cls(name, sign, bound)

    def of_run(self, run: Trajectory) -> bool | None:
        """Whether a run succeeded; None where it has no such score.

        Raises:
            RowError: If the score can't be compared, or is on a scale of which nothing is known.
        """
        stated = run.outcome or Outcome()
        own = {"reward": stated.reward, "success": stated.success}
        score = run.scores.get(self.name, own.get(self.name))
        if score is None:
            return None
        number = number_of(score, letters=run.place.format == "inspect")
        limit, is_word = number_of(self.bound), isinstance(score, str) and score.isalpha()
        if self.sign == "==" and (number is None or limit is None):
            return str(score).strip().lower() == self.bound.lower()
        if number is not None and limit is not None:
            return _COMPARED[self.sign](number, limit)
        if not self.sign and number is not None and (number in (0, 1) or is_word):
            return number == 1
        wanted = "a number" if self.sign else f"true or false, or --success '{self.name}>=X'"
        raise RowError(f"scores.{self.name}", wanted, score)


class Outcomes:
    """The outcome of each run of a log, and an account of where it is from.

    Args:
        path: File of outcomes, each of one run; None without. JSONL, or a table when it is named
            ``.csv`` or ``.tsv``. A row names its run by ``trajectory_id`` or ``id``, else by
            ``case_id`` or ``task_id`` and, where a case has several runs, ``trial``; and by
            ``tested_model`` where several models share ids. It states a ``reward`` (number), a
            ``success`` (true or false), a ``termination``, or several of them.
        success: Which score says what a success is, see ``SuccessRule``: then neither the log nor
            the file does. Empty for what they state.

    Attributes:
        n_without: Runs that were asked for and had no outcome in the file.

    Raises:
        InputError: If the file can't be read, a row is unusable, or two rows are of the same run.
        OptionError: If ``success`` can't be read.
    """

    def __init__(self, path: Path | None = None, success: str = "") -> None:
        self._rule = SuccessRule.of(success) if success else None
        self._stated: dict[_Key, _Stated] = {}
        self._used: set[_Key] = set()
        self._names, self._taken, self._open = Counter[str](), Counter[str](), Counter[str]()
        self._counts = Counter[str]()
        self.n_without = 0
        for number, row in () if path is None else _rows(path):
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

    @property
    def lines(self) -> list[str]:
        """Where successes are from that the log states otherwise than as such, and what is open."""
        lines = [f"success is the score {name} in {n} runs" for name, n in self._taken.items()]
        if n := self._counts["no such score"]:
            lines.append(f"{n} runs without the score that --success names: no outcome")
        if self._open:
            names = ", ".join(f"{name} in {n} runs" for name, n in self._open.most_common())
            lines.append(f"{WITHOUT_CHOICE}: {names}: {_ADVICE}")
        if (n := self._counts["off"]) and n < self._counts["rewards"]:
            lines.append(
                f"warning: {n} of {self._counts['rewards']} rewards are off 0 to 1, so that the "
                "others may be on another scale too: --success 'reward>=X' says what a success is"
            )
        return lines

    def check(self, log: str) -> None:
        """Raises OptionError if no run of a log, which is named, has the score of ``--success``."""
        n = self._counts["no such score"]
        if self._rule is not None and 0 < n == self._counts["runs"]:
            names = ", ".join(+self._names) or "none"
            expected = f"expected a score of its runs ({names})"
            raise OptionError(f"{log}: --success: {expected}, got {self._rule.name!r}")

    def settled(self, run: Trajectory) -> Trajectory:
        """The run with its outcome, and a remark where its scores leave it open.

        Raises:
            RowError: As in ``joined``, or if the score of ``--success`` can't be compared.
        """
        run, self._counts["runs"] = self.joined(run), self._counts["runs"] + 1
        outcome, rule = run.outcome or Outcome(), self._rule
        self._names.update(list(run.scores))
        self._names["reward"] += outcome.reward is not None
        if rule is not None:
            success = rule.of_run(run)
            self._counts["no such score"] += success is None
            outcome = None if success is None else Outcome(outcome.reward, success)
            return _marked(replace(run, outcome=outcome), is_open=False)
        self._counts["rewards"] += outcome.reward is not None and outcome.success is None
        if outcome.is_success is not None:
            return _marked(run, is_open=False)
        self._counts["off"] += outcome.reward is not None
        if (found := _telling(run.scores)) is not None:
            self._taken[found[0]] += 1
            return _marked(replace(run, outcome=Outcome(outcome.reward, found[1])), is_open=False)
        self._open.update(list(run.scores))
        return _marked(run, is_open=bool(run.scores))

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


def _telling(scores: Mapping[str, _Score]) -> tuple[str, bool] | None:
    """The score that says whether a run succeeded: the one of that name, or the only flag."""
    named = [name for name in scores if name.lower() == "success"]
    name, *others = named or [name for name in scores if isinstance(scores[name], bool)] or [""]
    number = None if others or not name else number_of(scores[name])
    return (name, number == 1) if number in (0, 1) else None


def _marked(run: Trajectory, *, is_open: bool) -> Trajectory:
    if is_open == (WITHOUT_CHOICE in run.remarks):
        return run
    remarks = {name: n for name, n in run.remarks.items() if name != WITHOUT_CHOICE}
    return replace(run, remarks=remarks | ({WITHOUT_CHOICE: 1} if is_open else {}))


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

"""The outcome of each trajectory of a log: from the log itself, a second file, or a score.

A scale is stated or asked for, never guessed: success is a reward of 1 on 0 to 1, a score named
success, the only score that is true or false, or as ``--success`` defines it.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, OptionError, RowError
from ..records.own_rows import stated_rows
from ..records.trajectories import Outcome, Trajectory
from .formats.fields import id_field, number_of, success_of, text_field, whole_field

_ADVICE = "--success NAME, 'NAME>=X', 'NAME<=X' or 'NAME==WORD' says what a success is"

_IDS = (("trajectory_id", "id"), ("case_id", "task_id"))
_COLUMNS = (
    *(name for names in _IDS for name in names),
    *("tested_model", "model", "trial", "reward", "success", "termination"),
)


class _OutcomeKey(NamedTuple):
    """Key of an outcome; None for fields that it does not state."""

    trajectory_id: str | None
    case_id: str | None
    trial: int | None
    tested_model: str | None


_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": isclose,
}


@dataclass(frozen=True, slots=True)
class SuccessRule:
    """The score that decides whether a trajectory succeeded, with its threshold.

    Attributes:
        name: Name of the score, or ``reward`` or ``success`` for the log's own.
        sign: One of ``>=``, ``<=`` and ``==``; empty if the score itself is the success.
        bound: The threshold; with ``==`` also a word, in any letter case.
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

    def success_in(self, trajectory: Trajectory) -> bool | None:
        """Returns True if a trajectory succeeded; None if it has no such score.

        Raises:
            RowError: If the score can't be compared, or is on an unknown scale.
        """
        stated = trajectory.outcome or Outcome()
        own = {"reward": stated.reward, "success": stated.success}
        score = trajectory.scores.get(self.name, own.get(self.name))
        if score is None:
            return None
        number = number_of(score, letters=trajectory.place.format == "inspect")
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
    """The outcome of each trajectory of a log, and an account of its source.

    Args:
        path: File of outcomes, each of one trajectory; None without. JSONL, or a table if it is
            named ``.csv`` or ``.tsv``. A row names its trajectory by ``trajectory_id`` or ``id``,
            else by ``case_id`` or ``task_id`` and, if a case has several trajectories, ``trial``;
            and by ``tested_model`` if several models share ids. It states a ``reward`` (number), a
            ``success`` (true or false), a ``termination``, or several of them.
        success: The score that defines success, see ``SuccessRule``, in place of the log's and the
            file's statements. Empty to use these.

    Attributes:
        n_without: Number of requested trajectories without an outcome in the file.

    Raises:
        InputError: If the file can't be read, a row is unusable, or two rows name the same
            trajectory.
        OptionError: If ``success`` can't be read.
    """

    def __init__(self, path: Path | None = None, success: str = "") -> None:
        self._rule = SuccessRule.of(success) if success else None
        self._stated: dict[_OutcomeKey, tuple[Outcome | None, str]] = {}
        self._used: set[_OutcomeKey] = set()
        self._names, self._taken, self._open = Counter[str](), Counter[str](), Counter[str]()
        self._trajectories = self._lacking = self._off = 0
        self.n_without = 0
        for number, row in () if path is None else stated_rows(path, _COLUMNS, sum(_IDS, ())):
            try:
                key, stated = _read(row)
            except RowError as error:
                raise InputError(f"{path}:{number}: {error}") from None
            if key in self._stated:
                twice = RowError("line", "one outcome a trajectory", f"another one of {_name(key)}")
                raise InputError(f"{path}:{number}: {twice}")
            self._stated[key] = stated

    @property
    def unused(self) -> list[str]:
        """Names of the outcomes that belong to no trajectory so far."""
        return [_name(key) for key in self._stated if key not in self._used]

    @property
    def lines(self) -> list[str]:
        """Lines on successes that the log states only as scores, and on unknown outcomes."""
        lines = [
            f"success is the score {name} in {n} trajectories" for name, n in self._taken.items()
        ]
        if self._lacking:
            lines.append(
                f"{self._lacking} trajectories without the score that --success names: no outcome"
            )
        if self._open:
            names = ", ".join(f"{name} in {n} trajectories" for name, n in self._open.most_common())
            lines.append(f"scores that state no success: {names}: {_ADVICE}")
        if 0 < self._off < (n := self._names["reward"]):
            lines.append(
                f"warning: {self._off} of {n} rewards are outside 0 to 1, so the others may be on "
                "another scale too: --success 'reward>=X' defines success"
            )
        return lines

    def check(self, log: str) -> None:
        """Raises OptionError if no trajectory of the named log has the score of ``--success``."""
        if self._rule is not None and 0 < self._lacking == self._trajectories:
            names = ", ".join(+self._names) or "none"
            expected = f"expected a score of its trajectories ({names})"
            raise OptionError(f"{log}: --success: {expected}, got {self._rule.name!r}")

    def applied_to(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory with its outcome.

        Raises:
            RowError: As in ``joined``, or if the score of ``--success`` can't be compared.
        """
        self._trajectories += 1
        trajectory = self.joined(trajectory)
        reward, success = (trajectory.outcome or Outcome()).reward, None
        self._names.update([*trajectory.scores, *(() if reward is None else ("reward",))])
        if self._rule is not None:
            success = self._rule.success_in(trajectory)
            self._lacking += success is None
            return replace(
                trajectory, outcome=None if success is None else Outcome(reward, success)
            )
        if trajectory.outcome is not None and trajectory.outcome.is_success is not None:
            return trajectory
        self._off += reward is not None
        name, success = _telling(trajectory.scores)
        if success is None:
            self._open.update(list(trajectory.scores))
            return trajectory
        self._taken[name] += 1
        return replace(trajectory, outcome=Outcome(reward, success))

    def joined(self, trajectory: Trajectory) -> Trajectory:
        """The trajectory with its outcome; unchanged if the file has none.

        Raises:
            RowError: If the log itself states another one, or an outcome fits several trajectories.
        """
        keys = (
            _OutcomeKey(trajectory_id, case_id, trial, model)
            for trajectory_id, case_id, trial in (
                (trajectory.trajectory_id, None, None),
                (None, trajectory.case_id, trajectory.trial),
                (None, trajectory.case_id, None),
            )
            for model in (trajectory.tested_model, None)
        )
        key = next((key for key in keys if key in self._stated), None)
        if key is None:
            self.n_without += 1
            return trajectory
        if key in self._used:
            field = "trajectory_id" if key.case_id is None else "case_id"
            raise RowError(
                field,
                "an outcome for each trajectory",
                f"one for several trajectories: {_name(key)}",
            )
        self._used.add(key)
        outcome, termination = self._stated[key]
        if trajectory.termination and termination and trajectory.termination != termination:
            raise _contradiction("termination", trajectory.termination, termination)
        return replace(
            trajectory,
            outcome=_merged(trajectory.outcome, outcome),
            termination=trajectory.termination or termination,
        )


def _telling(scores: Mapping[str, bool | float | str]) -> tuple[str, bool | None]:
    """The score that states success: the one of that name, or the only flag."""
    named = [name for name in scores if name.lower() == "success"]
    named = named or [name for name in scores if isinstance(scores[name], bool)]
    number = number_of(scores[named[0]]) if len(named) == 1 else None
    return (named[0], number == 1) if number in (0, 1) else ("", None)


def _read(row: Mapping[str, Any] | RowError) -> tuple[_OutcomeKey, tuple[Outcome | None, str]]:
    if isinstance(row, RowError):
        raise row
    trajectory_id, case_id = (id_field(row, *names) for names in _IDS)
    model = text_field(row, "tested_model", "model") or None
    if trajectory_id:
        key = _OutcomeKey(trajectory_id, None, None, model)
    elif case_id:
        key = _OutcomeKey(None, case_id, whole_field(row, "trial"), model)
    else:
        raise RowError("trajectory_id", "the id of a trajectory, or case_id", None)
    stated, success = row.get("reward"), success_of(row.get("success"))
    reward = None if isinstance(stated, bool) else number_of(stated)  # a table's cell has text
    if reward is None and stated is not None:
        raise RowError("reward", "a number", stated)
    outcome = None if reward is None and success is None else Outcome(reward, success)
    termination = text_field(row, "termination")
    if outcome is None and not termination:
        raise RowError("reward", "a reward, success or termination", None)
    return key, (outcome, termination)


def _name(key: _OutcomeKey) -> str:
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
    # Success as stated, or by a reward of 0 or 1; other rewards may be on any scale.
    sure = {of.is_success for of in (ours, theirs) if of.success is not None or of.reward in (0, 1)}
    if sure == {True, False}:
        raise _contradiction("success", ours.is_success, theirs.is_success)
    return Outcome(reward, theirs.success if success is None else success)


def _contradiction(field: str, ours: object, theirs: object) -> RowError:
    return RowError(field, f"{ours} as in the log", f"{theirs} in the file of outcomes")

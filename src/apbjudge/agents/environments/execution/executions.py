"""Outcomes of executed plans, as ``executed.jsonl`` states them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from ....errors import InputError, RowError
from ....jsonl import read_lines
from ....records.base import Record, row_error
from ....records.judgement_reader import first_complaint
from ....records.trajectories import Id

RATER = "execution"
"""Rater of labels that come from the execution of plans."""
EXECUTED = "executed.jsonl"
"""The file of a mode's executions."""
DIRECT, PLAN_FIRST, REFINE = "direct", "plan-first", "refine"
"""Modes that ``execute`` knows; others are the user's own."""
WITHOUT_PLAN = (DIRECT, "gold", "null")
"""Modes of ``execute`` that carry out no plan of a tested model."""
_ORDER = (DIRECT, PLAN_FIRST, REFINE)


_Reward = Annotated[float, Field(strict=True, ge=0, le=1)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class EndedEpisode(Record):
    """One episode that ended; further fields of a row are ignored.

    Attributes:
        is_correct: True if the task was solved.
        item_id: The executed plan; in mode ``direct`` a name of the episode.
        case_id: The task.
        tested_model: The model that planned and acted.
        mode: Mode of execution; ``direct`` has no plan.
        environment: Name of the environment.
        trial: Number of the trial, from 0.
        reward: From 0 to 1.
        null_reward: Reward of doing nothing in this task; None if unknown.
        termination: End of the episode; empty if not stated.
        plan_sha256: Hash of the plan's text; empty if that is not stated.
    """

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    is_correct: Annotated[bool, Field(strict=True)]
    item_id: Id
    case_id: Id
    tested_model: Id
    mode: Id
    environment: Id
    trial: Annotated[int, Field(strict=True, ge=0)] = 0
    reward: _Reward
    null_reward: _Reward | None = None
    termination: Annotated[str, BeforeValidator(_text)] = ""
    plan_sha256: Annotated[str, BeforeValidator(_text)] = ""

    def label(self, rater: str) -> dict[str, Any]:
        """A row of ``executed.jsonl``: the label that the execution gives the plan."""
        return {"rater": rater, **self.model_dump()}


def modes_in_order(modes: Iterable[str]) -> list[str]:
    """Modes without repetition: those that are known first, others in the order they come."""
    present = dict.fromkeys(modes)
    return [*(mode for mode in _ORDER if mode in present), *(m for m in present if m not in _ORDER)]


def executed_files(paths: Sequence[Path]) -> list[Path]:
    """The files behind files and folders, each once.

    Raises:
        InputError: If a folder has none.
    """
    files: dict[Path, Path] = {}
    for path in paths:
        inside = [path]
        if path.is_dir():
            inside = [
                f for f in (path / EXECUTED, *sorted(path.glob(f"*/{EXECUTED}"))) if f.exists()
            ]
            if not inside:
                expected = f"expected {EXECUTED} in it or in a folder in it, got none"
                raise InputError(f"{path}: {expected}")
        for file in inside:
            files.setdefault(file.resolve(), file)
    return list(files.values())


def read_executions(paths: Sequence[Path], problems: list[str]) -> list[EndedEpisode]:
    """Reads files of executions.

    Args:
        paths: Files, or folders with such files.
        problems: Gets a line for each row that can't be used, which is left out.

    Raises:
        InputError: If a file can't be read, or no row can be used.
    """
    rows: list[EndedEpisode] = []
    places: dict[tuple[str, str, str, str, int], str] = {}
    null_rewards: dict[tuple[str, str], float] = {}
    for file in executed_files(paths):
        for place, row in _rows(file, problems):
            episode = (row.environment, row.tested_model, row.mode, row.case_id, row.trial)
            task = (row.environment, row.case_id)
            if episode in places:
                problems.append(
                    f"{place}: field trial: expected one episode a task, tested model, mode and "
                    f"trial, got another one of {places[episode]}: the first one counts"
                )
                continue
            if row.null_reward is not None:
                known = null_rewards.setdefault(task, row.null_reward)
                if known != row.null_reward:
                    expected = f"{known}, as in other rows of the task"
                    problem = RowError("null_reward", expected, row.null_reward)
                    problems.append(f"{place}: {problem}: the first one counts")
            places[episode] = place
            rows.append(row)
    if not rows:
        names = ", ".join(map(str, paths))
        wanted = "expected executions, one a line, as apbjudge execute writes them, got none"
        raise InputError(f"{names}: {wanted}{first_complaint(problems)}")
    return [
        row.model_copy(update={"null_reward": null_rewards.get((row.environment, row.case_id))})
        for row in rows
    ]


def _rows(file: Path, problems: list[str]) -> Iterator[tuple[str, EndedEpisode]]:
    for line in read_lines(file):
        place = f"{file}:{line.number}"
        try:
            if isinstance(line.values, RowError):
                raise line.values
            yield place, EndedEpisode.model_validate(line.values)
        except (RowError, ValidationError) as error:
            fault = row_error(error) if isinstance(error, ValidationError) else error
            problems.append(f"{place}: {fault}")

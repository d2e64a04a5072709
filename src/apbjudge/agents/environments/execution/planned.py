"""Plans by task, tested model and trial, from a file of predictions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ....errors import RowError
from ....jsonl import read_lines
from ....records.rows import sample_of
from ...prediction.worker import PREDICTIONS

_FIELDS = ("id", "case_id", "tested_model", "model_response")


def text_digest(text: str) -> str:
    """SHA-256 of a plan's text, in hex."""
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that is to be carried out.

    Attributes:
        id: Of its prediction.
        text: The raw reply.
        times: Number of earlier executions in this run.
    """

    id: str
    text: str
    times: int = 0

    @property
    def digest(self) -> str:
        """Hash of the text."""
        return text_digest(self.text)


class Plans:
    """The predictions of a file.

    Those of one task and model are in the order of their samples (``CASE#2``), else of the file: a
    run of predict writes them as they are answered.

    Args:
        path: The file, or the folder of a run.
        bad_row: Receives each row that is not a prediction; its task has no plan.

    Raises:
        InputError: If the file can't be read.
    """

    def __init__(
        self, path: str | os.PathLike[str], bad_row: Callable[[str], None] = lambda message: None
    ) -> None:
        file = Path(path)
        file = file / PREDICTIONS if file.is_dir() else file
        self._by_task: dict[tuple[str, str], list[Plan]] = {}
        for line in read_lines(file):
            try:
                if isinstance(line.values, RowError):
                    raise line.values
                name, task, model, text = (_text(line.values, field) for field in _FIELDS)
            except RowError as error:
                bad_row(f"{file}:{line.number}: {error}")
                continue
            self._by_task.setdefault((task, model), []).append(Plan(name, text))
        for plans in self._by_task.values():
            plans.sort(key=lambda plan: sample_of(plan.id))

    @property
    def models(self) -> tuple[str, ...]:
        """The tested models, in order."""
        return tuple(dict.fromkeys(model for _, model in self._by_task))

    def plan_of(self, task: str, model: str, trial: int) -> Plan:
        """The plan of a trial: trials take a task's plans in turn.

        Raises:
            RowError: If there is none.
        """
        plans = self._by_task.get((task, model))
        if not plans:
            raise RowError("plan", f"a plan of {model} for the task", None)
        plan = plans[trial % len(plans)]
        return Plan(plan.id, plan.text, trial // len(plans))


def _text(row: Any, field: str) -> str:
    value = row.get(field, row.get("id") if field == "case_id" else None)
    if not isinstance(value, str):
        raise RowError(field, "a string", value)
    return value

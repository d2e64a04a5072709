"""Judging as work of the run loop: a task in, a judgement out."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ..records import Unscored, Verdict, check_written_row, judgement_row
from ..records.judgements import MISSING
from ..records.run_folder import FIGURES, JUDGEMENTS
from ..runs.loop import Job
from ..runs.resume import BAD_INPUT, RecordKind
from ..runs.rows import BadRow
from .source import JudgeTask

Judgement = Verdict | Unscored

UNASKED = (BAD_INPUT, MISSING)
"""Reasons of records of rows that no judge is asked about."""

JUDGEMENT_RECORDS: RecordKind[Judgement] = RecordKind(
    name="judgement",
    file=JUDGEMENTS,
    to_json=judgement_row,
    check=check_written_row,
    place=("line", "case_id", "content_id", "groups"),
    retried=("transport", "timeout", "budget", "error"),
    free=UNASKED,
    figures=FIGURES,
    folders={
        "batch/answers": re.compile(r"(cache|replies)\.db(-wal|-shm|-journal)?"),
        "batch": re.compile(r"batches\.json|(requests|answers)-[0-9]+(-[0-9]+)?\.jsonl"),
    },
    runs_below="judges",
)


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """The name and identity of a judge that is not one model with its settings.

    Attributes:
        name: In the summary.
        identity: Its part of the run's identity.
        settings: As the manifest shows them.
        is_derived: True if its judgements are made of those of other judges.
    """

    name: str
    identity: Mapping[str, Any]
    settings: Mapping[str, Any]
    is_derived: bool = False


class Judge(ABC):
    """A judge as the worker of a run loop; ``waits`` says whether its jobs wait for a model."""

    name: str
    waits: bool

    def job(self, row: JudgeTask) -> Job[Judgement]:
        """The job of a task; raises RowError if a picture of the item can't be used.

        Without a prediction no model is asked.
        """
        return _missing(row, self.name) if row.missing else self.job_of(row)

    @abstractmethod
    def job_of(self, row: JudgeTask) -> Job[Judgement]:
        """The job of judging a prediction."""

    def reject(self, row: BadRow, detail: str) -> Judgement:
        """The judgement of a row that can't be used."""
        return unusable(row, self.name, detail)


def unusable(row: BadRow, judge: str, detail: str) -> Judgement:
    """The judgement of an unusable row, the same for every judge."""
    return Unscored(
        item_id=row.item_id,
        case_id=row.item_id,
        tested_model=row.tested_model,
        protocol=None,
        rubric=None,
        judge=judge,
        fingerprint=row.digest.hex()[:32],
        line=row.line,
        reason=BAD_INPUT,
        detail=detail,
    )


def _missing(task: JudgeTask, judge: str) -> Job[Judgement]:
    """The job of a case without a prediction, whose record needs no call."""
    head = f"missing {task.protocol.name} {task.rubric.digest} ".encode()
    fingerprint = sha256(head + task.digest).hexdigest()[:32]

    async def work() -> Judgement:
        detail = f"{task.missing}: no prediction by {task.item.tested_model}"
        fields: dict[str, Any] = {**task.common(), "judge": judge, "fingerprint": fingerprint}
        return Unscored(reason=MISSING, detail=detail, **fields)

    return Job(record_fields(task, fingerprint), work)


def record_fields(task: JudgeTask, fingerprint: str) -> dict[str, object]:
    """The fields that a judgement's key and place are made of."""
    names = "item_id tested_model line case_id content_id groups".split()
    return {"fingerprint": fingerprint, **{name: getattr(task.item, name) for name in names}}

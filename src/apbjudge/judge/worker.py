"""Judging as work of the run loop: a task in, a judgement out."""

from __future__ import annotations

import re
from functools import partial

from ..protocols.prompts import Prompt
from ..records import Unscored, Verdict, check_written_row, judgement_row
from ..records.run_folder import FIGURES, JUDGEMENTS
from ..runs.loop import Job
from ..runs.resume import BAD_INPUT, RecordKind
from ..runs.rows import BadRow
from .llm_judge import LLMJudge
from .source import Task
from .static import StaticJudge

Judgement = Verdict | Unscored

JUDGEMENT_RECORDS: RecordKind[Judgement] = RecordKind(
    name="judgement",
    file=JUDGEMENTS,
    to_json=judgement_row,
    check=check_written_row,
    place=("line", "case_id", "content_id", "groups"),
    retried=("transport", "timeout", "budget"),
    figures=FIGURES,
    folders={
        "batch/answers": re.compile(r"(cache|replies)\.db(-wal|-shm|-journal)?"),
        "batch": re.compile(r"batches\.json|(requests|answers)-[0-9]+(-[0-9]+)?\.jsonl"),
    },
    runs_below="judges",
)


class JudgeWorker:
    """Lets a judge work on tasks."""

    def __init__(self, judge: StaticJudge | LLMJudge) -> None:
        self.judge = judge
        self.waits = isinstance(judge, LLMJudge)

    def job(self, row: Task) -> Job[Judgement]:
        """The job of judging a task.

        Raises:
            RowError: If a picture of the item can't be used.
        """
        judge = self.judge
        if isinstance(judge, StaticJudge):
            fingerprint = judge.fingerprint(row)
            return Job(_fields(row, fingerprint), partial(_at_once, judge, row, fingerprint))
        prompt = judge.prompt(row)
        fingerprint = judge.fingerprint(row, prompt)
        # prompts that begin alike: of one case, with its reference or not
        prefix = (judge.is_blind, row.case_id) if judge.leads else None
        return Job(
            _fields(row, fingerprint), partial(_asked, judge, row, prompt, fingerprint), prefix
        )

    def reject(self, row: BadRow, detail: str) -> Judgement:
        """The judgement of a row that can't be used."""
        return Unscored(
            item_id=row.item_id,
            case_id=row.item_id,
            tested_model=row.tested_model,
            protocol=None,
            rubric=None,
            judge=self.judge.name,
            fingerprint=row.digest.hex()[:32],
            line=row.line,
            reason=BAD_INPUT,
            detail=detail,
        )


async def _at_once(judge: StaticJudge, task: Task, fingerprint: str) -> Judgement:
    return judge.judge(task, fingerprint)


async def _asked(judge: LLMJudge, task: Task, prompt: Prompt, fingerprint: str) -> Judgement:
    return await judge.judge(task, prompt, fingerprint)


def _fields(task: Task, fingerprint: str) -> dict[str, object]:
    item = task.item
    return {
        "item_id": item.item_id,
        "tested_model": item.tested_model,
        "fingerprint": fingerprint,
        "line": item.line,
        "case_id": item.case_id,
        "content_id": item.content_id,
        "groups": item.groups,
    }

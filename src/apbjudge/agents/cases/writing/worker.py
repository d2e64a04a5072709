"""Worker of the run loop that has a model write: a task in, a text or a failure out."""

from __future__ import annotations

from functools import partial
from typing import Any

from ....runs.loop import Job
from ...prediction.prompt_sets import PromptSet
from ...prediction.worker import AskedModel, AskingWorker
from ...prediction.writing import Drafts, TextReading
from .prompts import messages_of, repair_of
from .records import Row, is_final
from .rules import read_reply
from .source import TaskRow
from .tasks import WritingTask
from .writings import Writings


class WritingWorker(AskingWorker):
    """Has a text written and asks again, with the complaints, for one that is not accepted.

    Args:
        asked_model: The model.
        prompts: Prompts for the model.
        repairs: Largest number of repeated requests for one text.
        writings: Texts of earlier sessions.
    """

    def __init__(
        self, asked_model: AskedModel, prompts: PromptSet, repairs: int, writings: Writings
    ) -> None:
        self._asked_model = asked_model
        self._prompts = prompts
        self._repairs = repairs
        self._writings = writings

    def job(self, row: TaskRow) -> Job[Row]:
        """The job of a task."""
        task, messages = row.task, messages_of(row.task, self._prompts)
        fields = {
            "id": task.id,
            "seed": task.seed,
            "kind": task.kind,
            "task": task.digest,
            "model": self._asked_model.spec.model,
            "line": row.line,
            "fingerprint": self._fingerprint(task, messages),
        }
        return Job(fields, lambda: self._write(task, fields, messages))

    def _fingerprint(self, task: WritingTask, messages: list[dict[str, Any]]) -> str:
        """The fingerprint of an earlier session's record, unless more repairs are allowed now.

        In that case the task is done anew; its replies so far are in the cache.
        """
        record = self._writings.answer(task)
        if record is not None and is_final(record, self._repairs):
            return record["fingerprint"]
        tried = "0" if record is None else str(len(record["attempts"]))
        return self._asked_model.fingerprint(messages, 0, task.digest, tried)

    async def _write(self, task: WritingTask, fields: Row, messages: list[dict[str, Any]]) -> Row:
        drafts = Drafts(
            self._asked_model,
            read=partial(read_reply, task),
            mend=partial(repair_of, task, self._prompts),
            repairs=self._repairs,
        )
        if failed := await drafts.ask(fields, messages, task.seed):
            return failed
        best = _best(drafts.readings)
        last = drafts.readings[-1]
        return {
            **{name: fields[name] for name in ("id", "seed", "kind", "task", "model")},
            "value": best.value,
            "rejected": last.complaints[0].code if best.value is None else None,
            "complaints": [complaint.text for complaint in best.complaints],
            "attempts": drafts.attempts,
            **drafts.account.to_json(),
            "settings": self._asked_model.spec.asked["settings"],
            "prompt_set": self._prompts.name,
            "line": fields["line"],
            "fingerprint": fields["fingerprint"],
        }


def _best(readings: list[TextReading]) -> TextReading:
    """The last reading if it is accepted; else the reading with most content, such as tools."""
    last = readings[-1]
    if not last.complaints:
        return last
    accepted = [reading for reading in readings if reading.value is not None]
    return max(accepted, key=lambda each: len((each.value or {})["tools"]), default=last)

"""Worker of the run loop that has a model write: a task in, a text or a failure out."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from ....judge.llm_judge import REFUSED as REFUSALS
from ....llm.base import Completion
from ....llm.reasks import ask_until
from ....runs.loop import Job
from ...prediction.prompt_sets import PromptSet
from ...prediction.worker import Account, AskedModel, AskingWorker, attempted, response_of
from .complaints import Complaint, TextReading
from .prompts import messages_of, repair_of
from .records import CUT_OFF, REFUSED, Row, is_final
from .rules import read_reply
from .source import TaskRow
from .tasks import WritingTask
from .writings import Writings


class WritingWorker(AskingWorker):
    """Has a text written and asks again, with the complaints, for one that is not accepted.

    Args:
        asked_model: The model.
        prompts: What it is sent.
        repairs: How often it is asked again at most.
        writings: What was written in earlier sessions.
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
        account, attempts = Account(), list[Row]()
        readings: list[TextReading] = []

        def ask() -> Awaitable[Completion]:
            return self._asked_model.ask(self._asked_model.request(messages, 0, task.seed))

        def read(completion: Completion) -> TextReading | None:
            nonlocal messages
            account.add(completion)
            readings.append(reading := _reading_of(task, completion))
            attempts.append(self._attempt(completion, messages, reading))
            is_last = len(attempts) > self._repairs or _is_refusal(completion)
            if is_last or not reading.complaints:
                return reading
            reply = response_of(completion)
            messages = [*messages, *repair_of(task, self._prompts, reply, reading.complaints)]
            return None

        async def write() -> Row:
            await ask_until(ask, read, reasks=self._repairs)
            return {}

        if failed := await attempted(fields, account, write()):
            cost_usd = account.cost_usd if attempts else None
            return {**failed, "cost_usd": cost_usd, "attempts": attempts}
        best = _best(readings)
        return {
            **{name: fields[name] for name in ("id", "seed", "kind", "task", "model")},
            "value": best.value,
            "rejected": readings[-1].complaints[0].code if best.value is None else None,
            "complaints": [complaint.text for complaint in best.complaints],
            "attempts": attempts,
            **account.to_json(),
            "settings": self._asked_model.spec.asked["settings"],
            "prompt_set": self._prompts.name,
            "line": fields["line"],
            "fingerprint": fields["fingerprint"],
        }

    def _attempt(
        self, completion: Completion, messages: list[dict[str, Any]], reading: TextReading
    ) -> Row:
        return {
            "fingerprint": self._asked_model.fingerprint(messages, 0),
            "reply": response_of(completion),
            "finish_reason": completion.finish_reason,
            "refusal": completion.refusal,
            "served_model": completion.served_model,
            "complaints": [{"code": each.code, "text": each.text} for each in reading.complaints],
        }


def _is_refusal(completion: Completion) -> bool:
    return completion.finish_reason in REFUSALS or bool(completion.refusal)


def _reading_of(task: WritingTask, completion: Completion) -> TextReading:
    """The reading of a completion; a refusal or half a reply holds nothing."""
    if _is_refusal(completion):
        return TextReading(None, (Complaint(REFUSED, "The model declined to answer."),))
    if completion.finish_reason == "length":
        message = "The answer was cut off at the limit of tokens: write a shorter one."
        return TextReading(None, (Complaint(CUT_OFF, message),))
    return read_reply(task, response_of(completion))


def _best(readings: list[TextReading]) -> TextReading:
    """The last reading where it is accepted; else that which holds most, such as most tools."""
    last = readings[-1]
    if not last.complaints:
        return last
    partial = [reading for reading in readings if reading.value is not None]
    return max(partial, key=lambda each: len((each.value or {})["tools"]), default=last)

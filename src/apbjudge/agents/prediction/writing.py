"""Texts written by a model, requested until rules accept one; every attempt is recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...judge.llm_judge import REFUSED as REFUSALS
from ...llm.base import Completion
from ...llm.reasks import ask_until
from ...runs.results import CallCounts, Tally
from .worker import Account, AskedModel, Row, attempted, response_of

REFUSED, CUT_OFF = "refused", "cut off"
"""Complaints about a reply besides those of its rules."""


class Complaint(NamedTuple):
    """A reason against a text: a code to be counted, and a sentence for the model."""

    code: str
    text: str


class TextReading(NamedTuple):
    """The content of a reply.

    Attributes:
        value: The text, or texts by name; None without any. Of several tools, only the ones without
            a complaint.
        complaints: Broken rules; none if all is accepted.
    """

    value: dict[str, Any] | None
    complaints: tuple[Complaint, ...]


class TextCounts(CallCounts):
    """Counts of the tasks of one kind.

    Attributes:
        accepted: Texts that rules accept, including the two kinds below.
        repaired: Texts accepted after complaints.
        partial: Texts accepted in part, such as some of the tools.
        rejected: Texts that rules rejected in the end, by the first complaint.
        calls: Number of calls.
    """

    accepted: int = 0
    repaired: int = 0
    partial: int = 0
    rejected: dict[str, int] = {}
    calls: int = 0

    @staticmethod
    def count(tally: Tally, row: Row) -> None:
        """Counts a task that was answered."""
        if row["rejected"]:
            tally.by["rejected"][row["rejected"]] += 1
            return
        tally.n["accepted"] += 1
        tally.n["repaired"] += len(row["attempts"]) > 1
        tally.n["partial"] += bool(row["complaints"])


@dataclass(slots=True)
class Drafts:
    """The replies to one request for a text.

    Attributes:
        asked_model: The model.
        read: Reads the text of a reply and checks it by the rules.
        mend: Returns the messages that request a repair of a reply, with the reply first.
        repairs: Largest number of repeated requests for one text.
        readings: The reading of each reply.
        attempts: Each reply as JSON values.
        account: Usage and cost of all calls.
    """

    asked_model: AskedModel
    read: Callable[[str], TextReading]
    mend: Callable[[str, Sequence[Complaint]], Sequence[dict[str, Any]]]
    repairs: int
    readings: list[TextReading] = field(default_factory=list[TextReading])
    attempts: list[Row] = field(default_factory=list[Row])
    account: Account = field(default_factory=Account)

    async def ask(self, fields: Row, messages: Sequence[dict[str, Any]], prefix: str) -> Row | None:
        """Repeats the request until a text is accepted, as often as allowed.

        Args:
            fields: Fields of the record that are already known.
            messages: The first request.
            prefix: The ``prefix`` of ``Request``.

        Returns:
            The failure of the row if the model does not answer, else None.
        """
        sent = [*messages]

        def ask() -> Awaitable[Completion]:
            return self.asked_model.ask(self.asked_model.request(sent, 0, prefix))

        def read(completion: Completion) -> TextReading | None:
            nonlocal sent
            self.account.add(completion)
            self.readings.append(reading := self._reading_of(completion))
            self.attempts.append(self._attempt(completion, sent, reading))
            is_last = len(self.attempts) > self.repairs or _is_refusal(completion)
            if is_last or not reading.complaints:
                return reading
            sent = [*sent, *self.mend(response_of(completion), reading.complaints)]
            return None

        async def written() -> Row:
            await ask_until(ask, read, reasks=self.repairs)
            return {}

        if not (failed := await attempted(fields, self.account, written())):
            return None
        cost_usd = self.account.cost_usd if self.attempts else None
        return {**failed, "cost_usd": cost_usd, "attempts": self.attempts}

    def _reading_of(self, completion: Completion) -> TextReading:
        """The reading of a completion; a refusal or a truncated reply has no content."""
        if _is_refusal(completion):
            return TextReading(None, (Complaint(REFUSED, "The model declined to answer."),))
        if completion.finish_reason == "length":
            message = "The answer was cut off at the limit of tokens: write a shorter one."
            return TextReading(None, (Complaint(CUT_OFF, message),))
        return self.read(response_of(completion))

    def _attempt(
        self, completion: Completion, messages: Sequence[Any], reading: TextReading
    ) -> Row:
        return {
            "fingerprint": self.asked_model.fingerprint(messages, 0),
            "reply": response_of(completion),
            "finish_reason": completion.finish_reason,
            "refusal": completion.refusal,
            "served_model": completion.served_model,
            "complaints": [{"code": each.code, "text": each.text} for each in reading.complaints],
        }


def _is_refusal(completion: Completion) -> bool:
    return completion.finish_reason in REFUSALS or bool(completion.refusal)

"""Workers of the run loop that ask tested models: a task in, a prediction or a failure out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson

from ...errors import AccessError, JudgeError, PendingError, RefusalError, RowError, visible
from ...llm.base import Client, Completion, Request
from ...llm.model_names import is_same_model
from ...llm.resources import REPLIES
from ...records import Usage
from ...records.responses import read_response
from ...records.run_folder import PREDICTIONS, mapping
from ...runs.loop import Job
from ...runs.resume import BAD_INPUT, RecordKind
from ...runs.rows import BadRow
from .config import TestedModelSpec
from .prompts import CasePrompt, CasePromptMaker, logged
from .source import PredictTask

if TYPE_CHECKING:
    from .reviews import Review

FAILURES = "failures.jsonl"
CALLS = "calls"
"""Folder of a run's own replies, for a run without a cache."""

Row = dict[str, Any]
"""A prediction or a failure, as JSON values."""


def asking_records(
    name: str,
    file: str,
    *,
    ids: Sequence[str],
    check: Callable[[Row], object],
    figures: Sequence[str] = (),
) -> RecordKind[Row]:
    """The records of a run that asks models, with its files of failures and replies.

    Args:
        name: Name of a record, for messages.
        file: Name of their file.
        ids: Fields that are strings in every record of a row that could be read.
        check: Raises RowError if a record that is not a failure is incomplete.
        figures: Further files of the run, which can be computed again.
    """

    def checked(values: Mapping[str, Any] | RowError) -> Row:
        if isinstance(values, RowError):
            raise values
        row = dict(values)
        is_bad = row.get("reason") == BAD_INPUT
        for field_name in ids:
            value = row.get(field_name)
            if not isinstance(value, str) and not (is_bad and value is None):
                raise RowError(field_name, "a string", value)
        if not isinstance(row.get("fingerprint"), str):
            raise RowError("fingerprint", "a string", row.get("fingerprint"))
        if type(row.get("line")) is not int:
            raise RowError("line", "a whole number", row.get("line"))
        counts = mapping(row.get("usage"))
        if any(type(counts.get(each)) is not int for each in Usage.model_fields):
            raise RowError("usage", "counts of calls and tokens", row.get("usage"))
        if row.get("reason") is None:
            check(row)
        return row | {"cost_usd": row.get("cost_usd")}

    return RecordKind(
        name=name,
        file=file,
        to_json=lambda row: row,
        check=checked,
        place=("line",),
        retried=("transport", "timeout", "budget", "truncated", "unparsable", "error", BAD_INPUT),
        failures=FAILURES,
        figures=(FAILURES, *figures),
        folders={
            f"{CALLS}/{REPLIES}": re.compile(
                r"cache\.db(-wal|-shm|-journal)?|replies-.*\.jsonl(\.zst)?"
            ),
            CALLS: re.compile(r"endpoints\.json"),
        },
    )


def _check_prediction(row: Row) -> None:
    if not isinstance(row.get("model_response"), str):
        raise RowError("model_response", "a string", row.get("model_response"))


PREDICTION_RECORDS = asking_records(
    "prediction", PREDICTIONS, ids=("id", "tested_model"), check=_check_prediction
)


@dataclass(slots=True)
class AskedModel:
    """A tested model: its settings, its client, and its ability to see pictures.

    Attributes:
        option: The option that names it.
        served: Number of reports of each name of a model by the endpoint.
    """

    spec: TestedModelSpec
    client: Client
    sees: bool
    note: Callable[[str], None] = lambda message: None
    option: str = "--model"
    served: Counter[str] = field(default_factory=Counter[str])

    def check(self, prompt: CasePrompt) -> None:
        """Raises RowError if the model can't be shown all pictures of a prompt."""
        n, most = len(prompt.images), self.spec.max_images
        if n and not self.sees:
            expected = f"a model that can see ({self.spec.model}: --vision yes says that it can)"
            raise RowError("files", expected, f"{n} pictures")
        if most is not None and n > most:
            raise RowError("files", f"at most {most} pictures (--max-images)", n)

    def request(self, messages: list[dict[str, Any]], sample: int, prefix: str) -> Request:
        """A call with these messages."""
        spec = self.spec
        return Request(
            model=spec.model,
            messages=messages,
            max_tokens=spec.max_reply_tokens,
            timeout_s=spec.timeout_s,
            settings=spec.sampling(sample),
            sample=sample,
            prefix=prefix,
        )

    def fingerprint(self, messages: Sequence[Any], sample: int, *more: str) -> str:
        """Hash of all inputs of a reply: messages, model, settings and number of the sample."""
        content = [list(messages), self.spec.asked, sample, *more]
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]

    async def ask(self, request: Request) -> Completion:
        """The model's answer; a refusal by the provider counts as an answer.

        Raises:
            JudgeError: If there is no answer.
        """
        try:
            completion = await self.client.complete(request)
        except RefusalError as error:
            return Completion(
                text="",
                finish_reason="content_filter",
                refusal=str(error),
                usage=Usage(calls=error.calls, lost=error.lost),
                cost_usd=None if error.lost else 0.0,  # an error, and errors cost nothing
            )
        except AccessError as error:
            raise AccessError(f"{self.option} {self.spec.model}: {error}") from None
        if completion.served_model is not None:
            self._notice(completion.served_model)
        return completion

    def _notice(self, served: str) -> None:
        """Counts a name that the endpoint reports; warns once if it is another model's."""
        self.served[served] += 1
        if self.served[served] == 1 and not is_same_model(self.spec.model, served):
            self.note(
                f"warning: {self.spec.model} was asked, and {visible(served)} answered: "
                "the name is in each row as served_model"
            )


class AskingWorker:
    """Work of the commands that ask tested models or execute their answers."""

    waits = True

    def reject(self, row: BadRow, detail: str) -> Row:
        """The failure of a row that can't be used."""
        return unusable(row, detail)


class PredictWorker(AskingWorker):
    """Turns a task into a prediction.

    Attributes:
        prompts: Prompts for the tested models.
    """

    def __init__(
        self, asked_models: Sequence[AskedModel], prompts: CasePromptMaker, *, full: bool
    ) -> None:
        self._asked_models = asked_models
        self.prompts = prompts
        self._full = full

    def job(self, row: PredictTask) -> Job[Row]:
        """The job of a task; raises RowError if its case can't be shown to the model."""
        asked_model = self._asked_models[row.at]
        prompt = row.case.prompt(self.prompts)
        asked_model.check(prompt)
        messages = prompt.messages()
        fingerprint = asked_model.fingerprint(messages, row.sample)
        fields = {
            "id": row.id,
            "case_id": row.case_id,
            "tested_model": row.tested_model,
            "line": row.case.item.line,
            "fingerprint": fingerprint,
        }
        return Job(
            fields,
            lambda: attempted(fields, Account(), self._predict(row, fields, messages, prompt)),
        )

    async def _predict(
        self,
        row: PredictTask,
        fields: Row,
        messages: list[dict[str, Any]],
        prompt: CasePrompt,
    ) -> Row:
        asked_model = self._asked_models[row.at]
        request = asked_model.request(messages, row.sample, row.case_id)
        completion = await asked_model.ask(request)
        response = response_of(completion)
        thinking = "" if response.strip() else completion.reasoning
        item = row.case.item
        horizon = item.condition.horizon
        return {
            **(own_fields(row.case.row) if self._full else {}),
            "id": fields["id"],
            "case_id": fields["case_id"],
            "tested_model": fields["tested_model"],
            "model_response": response,
            **({"reasoning_content": thinking} if thinking else {}),
            "is_readable": read_response(response, item.form, horizon).kind != "text",
            **account_of(completion),
            "settings": {"max_tokens": request.max_tokens, **request.settings},
            "prompt_set": self.prompts.prompts.name,
            "format_demanded": self.prompts.prompts.is_shipped or None,
            "line": fields["line"],
            "fingerprint": fields["fingerprint"],
            "messages": logged(messages, prompt.images),
        }


def own_fields(case: Mapping[str, Any]) -> Row:
    """The fields of a case, without the fields that a prediction sets itself."""
    return {name: value for name, value in case.items() if name not in ("item_id", "reason")}


def unusable(row: BadRow, detail: str) -> Row:
    """The failure of a row that can't be used."""
    fields = {
        "id": row.item_id,
        "tested_model": row.tested_model,
        "line": row.line,
        "fingerprint": row.digest.hex()[:32],
    }
    return failure(fields, BAD_INPUT, detail)


def failure(fields: Mapping[str, Any], reason: str, detail: str, usage: Usage = Usage()) -> Row:  # noqa: B008
    """The record of a task that did not reach the model or got no answer."""
    counts = usage.model_dump()
    return {**fields, "reason": reason, "detail": detail, "usage": counts, "cost_usd": None}


async def attempted(fields: Mapping[str, Any], account: Account, work: Awaitable[Row]) -> Row:
    """The record that work makes; the failure of its row if a model does not answer.

    Args:
        fields: Fields of the record that are already known.
        account: Usage and cost of the work.
        work: Makes the record.
    """
    try:
        return await work
    except (AccessError, PendingError):
        raise
    except JudgeError as error:
        usage = account.usage + Usage(calls=error.calls, lost=error.lost)
        return failure(fields, error.reason, str(error), usage)


@dataclass(slots=True)
class Account:
    """Usage and cost of the calls of a row.

    Attributes:
        usage: Total calls and tokens.
        cost_usd: Their price; None once the price of any call is unknown.
        latency_s: Total seconds of the measured calls; None if none was measured.
        limited_tokens: Tokens that count for a limit, including estimates and the original calls of
            cached replies.
        limited_usd: Cost that counts for a limit.
    """

    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    latency_s: float | None = None
    limited_tokens: int = 0
    limited_usd: float = 0.0

    def add(self, call: Completion | Review) -> None:
        """Adds a call."""
        self.usage = self.usage + call.usage
        if self.cost_usd is not None:
            self.cost_usd = None if call.cost_usd is None else self.cost_usd + call.cost_usd
        if call.latency_s is not None:
            self.latency_s = (self.latency_s or 0.0) + call.latency_s

    def to_json(self) -> Row:
        """As fields of a row."""
        return {
            "usage": self.usage.model_dump(),
            "cost_usd": self.cost_usd,
            "latency_s": None if self.latency_s is None else round(self.latency_s, 3),
        }


def account_of(completion: Completion) -> Row:
    """The finish reason, the served model, usage and cost of an answer, as fields of a row."""
    account = Account()
    account.add(completion)
    names = ("finish_reason", "refusal", "served_model")
    return {**{name: getattr(completion, name) for name in names}, **account.to_json()}


def response_of(completion: Completion) -> str:
    """The raw reply; a reply with native tool calls as its whole message.

    A model may call tools natively although none are offered natively: name and arguments stay.
    """
    if not completion.tool_calls:
        return completion.text or completion.refusal or ""
    calls = [
        {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in completion.tool_calls
    ]
    message = {"role": "assistant", "content": completion.text, "tool_calls": calls}
    return orjson.dumps(message).decode()

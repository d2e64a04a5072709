"""Requests written to files instead of being sent, and the answers that come back in files.

A request is one line of an OpenAI batch file, its key is the line's ``custom_id``; ``vllm
run-batch`` reads the same lines, and both answer in the same form.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import BaseModel

from ..errors import (
    AccessError,
    FormatUnsupportedError,
    InputError,
    JudgeError,
    OptionError,
    PendingError,
    RefusalError,
    RowError,
    TransportError,
)
from ..jsonl import MAX_LINE_BYTES, object_of, read_line_at, read_lines
from ..records import Usage
from ..records.loose_json import as_object
from .base import FORMATS, Client, Completion, Format, Request, cache_key
from .cache import ReplyCache
from .chat_format import chat_body, completion_of, shape_arguments
from .direct import serves_exactly
from .engine import is_cacheable, load_completion
from .failures import failure_of, translate
from .litellm_client import body_of, load_litellm
from .messages_format import chat_of

URL = "/v1/chat/completions"
MAX_LINES = 50_000
MAX_BYTES = 190_000_000
"""Limits of one batch file: OpenAI accepts 50,000 lines and 200 MB."""

_PLAIN = "plain"
"""Marks the id of a request for plain text, for which any answer counts."""
_KEY = re.compile(rf"([0-9a-f]{{32}})(?:-(tool|json_object|text|{_PLAIN}))?")
_NO_ANSWER = 500


# Answers ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one request: a completion or an error.

    Attributes:
        key: Key of the request.
        form: Format that the reply was requested in.
        completion: The completion, still without its price.
        error: The failure; exactly one of the two is set.
        offset: Byte offset of its line in its file.
        is_plain: True if plain text was requested, from a tested model: an empty reply, a truncated
            one and a refusal are answers too.
    """

    key: str
    form: Format = FORMATS[0]
    completion: Completion | None = None
    error: JudgeError | None = None
    offset: int = 0
    is_plain: bool = False

    @property
    def cacheable(self) -> Completion | None:
        """The reply if it may be cached."""
        if self.is_plain and isinstance(self.error, RefusalError):
            return Completion(text="", finish_reason="content_filter", refusal=str(self.error))
        if self.completion is None or not (self.is_plain or is_cacheable(self.completion)):
            return None
        return self.completion


def read_answer(line: Mapping[str, Any], offset: int = 0) -> Answer:
    """Reads a line of a batch's output or error file, of a provider or of ``vllm run-batch``.

    Args:
        line: The line's JSON object.
        offset: Its byte offset in the file.

    Raises:
        RowError: If it answers no request.
    """
    key, form, is_plain = _request_of(line)
    read = _READERS["result" if "result" in line else "recordId" if "recordId" in line else ""]
    try:
        status, content = read(line)
        if status == 200 and isinstance(content, dict):
            completion = completion_of(cast("dict[str, Any]", content))
            return Answer(key, form, completion, offset=offset, is_plain=is_plain)
        failure = _failure(status, content)
    except JudgeError as error:
        failure = error
    return Answer(key, form, error=failure, offset=offset, is_plain=is_plain)


_Outcome = tuple[object, object]
"""Status and chat completion, or status, if any, and error."""


def _openai_outcome(line: Mapping[str, Any]) -> _Outcome:
    """``{custom_id, response: {status_code, body}, error}``, the form of most providers."""
    response, error = as_object(line.get("response")) or {}, line.get("error")
    body = as_object(response.get("body"))
    status = response.get("status_code", None if body is None else 200)
    if not response and error is None:
        raise RowError("response", "an answer or an error", line.get("response"))
    if error is not None:
        return (None if status == 200 else status), error
    if body is None:
        return status, response.get("body")
    counts = as_object(body.get("usage")) or {}
    return status, {**body, "usage": _google_usage(counts)} if "promptTokens" in counts else body


def _google_usage(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Gemini's token counts in OpenAI's form; thoughts are in the total only."""
    prompt, total = counts.get("promptTokens"), counts.get("totalTokens")
    reply = counts.get("completionTokens")
    if isinstance(prompt, int) and isinstance(total, int):
        reply = max(total - prompt, reply if isinstance(reply, int) else 0)
    return {"prompt_tokens": prompt, "completion_tokens": reply}


def _anthropic_outcome(line: Mapping[str, Any]) -> _Outcome:
    """``{custom_id, result: {type, message or error}}``."""
    result = as_object(line.get("result")) or {}
    if result.get("type") == "succeeded":
        return 200, chat_of(as_object(result.get("message")) or {})
    if result.get("type") != "errored":
        return None, f"the request was {result.get('type')}"
    error = as_object(result.get("error")) or {}
    error = as_object(error.get("error")) or error
    return _STATUS_OF.get(str(error.get("type"))), error


_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
}
"""HTTP status of Anthropic's kinds of errors; all others may be temporary."""


def _bedrock_outcome(line: Mapping[str, Any]) -> _Outcome:
    """``{recordId, modelInput, modelOutput}`` or ``error``, of models of Anthropic."""
    if error := as_object(line.get("error")):
        return error.get("errorCode"), {"message": str(error.get("errorMessage"))}
    return 200, chat_of(as_object(line.get("modelOutput")) or {})


_READERS: Mapping[str, Callable[[Mapping[str, Any]], _Outcome]] = {
    "": _openai_outcome,
    "result": _anthropic_outcome,
    "recordId": _bedrock_outcome,
}


def _request_of(line: Mapping[str, Any]) -> tuple[str, Format, bool]:
    """Key and format of the request in a line, or that it answers; True if it is a plain one."""
    name = line.get("custom_id", line.get("recordId", line.get("key")))
    match = _KEY.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise RowError("custom_id", "the key of a request, 32 hex digits", name)
    if match[2] == _PLAIN:
        return match[1], "text", True
    return match[1], cast("Format", match[2] or FORMATS[0]), False


def _failure(status: object, content: object) -> JudgeError:
    """The failure in an error line; without a status it may be temporary, like an expired batch."""
    error = as_object(content) or {}
    error = as_object(error.get("error")) or error
    codes = (status, error.get("code"), error.get("status_code"))
    numbers = [_OF_GRPC.get(c, c) for c in codes if isinstance(c, int)]
    code = next((number for number in numbers if number >= 400), _NO_ANSWER)
    shown = error if isinstance(error.get("message"), str) else {"message": str(content)}
    return failure_of(code, orjson.dumps({"error": shown}, default=str).decode(), {})


_OF_GRPC = {3: 400, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 12: 400, 16: 401}
"""HTTP status of Google's error codes; all others may be temporary."""


def read_answers(path: Path) -> Iterator[Answer | InputError]:
    """Yields the answers in a file; for any other line an error with its place.

    Raises:
        InputError: If the file can't be read.
    """
    for line in read_lines(path):
        try:
            if isinstance(line.values, RowError):
                raise line.values
            yield read_answer(line.values, line.offset)
        except RowError as error:
            yield InputError(f"{path}:{line.number}: {error}")


def keys_of(requests: Path) -> Iterator[str]:
    """Yields the keys of the requests in a file that ``BatchWriter`` wrote.

    Raises:
        InputError: If the file can't be read.
    """
    for line in read_lines(requests):
        key, *_ = _request_of(as_object(line.values) or {})
        yield key


@dataclass(slots=True)
class _AnswerResult:
    """The result of a request so far.

    Attributes:
        failed: Round and error of each failure, oldest first.
        at: File and offset of the line with the completion.
        is_final: True if repeating the request would change nothing.
    """

    failed: tuple[tuple[int, JudgeError], ...] = ()
    at: tuple[Path, int] | None = None
    is_final: bool = False


@dataclass(slots=True)
class BatchResults:
    """The results of the requests of a run so far, read from the files of its batches.

    Attributes:
        price: Returns the price of a reply; None if unknown.
        retries: Number of times that a request with a temporary failure is written again.
        since: The first round whose failures count against ``retries``.
        is_last: True if requests that failed for good are given up; before the last pass they are
            left pending.
    """

    price: Callable[[Usage], float | None]
    retries: int
    since: int
    is_last: bool = False
    _results: dict[int, _AnswerResult] = field(default_factory=dict[int, _AnswerResult])

    def add(self, answer: Answer, file: Path | None, *, turn: int, form: Format) -> None:
        """Adds an answer, in the order of the batches; those that a batch left out come last.

        Args:
            answer: The answer, or the failure of a request that has none.
            file: The file that it is in.
            turn: Number of the round in which its request was written.
            form: The reply format that the round asks for.
        """
        result = self._results.setdefault(_short(answer.key), _AnswerResult())
        if result.at is not None:
            return
        error = answer.error
        if error is None:
            result.at = (cast("Path", file), answer.offset)
        elif not result.failed or result.failed[-1][0] != turn:
            may_pass = isinstance(error, TransportError | AccessError) or (
                isinstance(error, FormatUnsupportedError) and form != FORMATS[-1]
            )
            result.failed = (*result.failed, (turn, error))
            result.is_final = not may_pass

    def completion(self, key: str) -> Completion | None:
        """The reply to a request, with its cost; None if there is none."""
        result = self._results.get(_short(key))
        if result is None or result.at is None:
            return None
        try:
            reply = read_answer(object_of(read_line_at(*result.at))).completion
        except RowError:  # the file was damaged meanwhile
            return None
        if reply is None:
            return None
        usage = reply.usage.model_copy(update={"calls": 1 + len(result.failed)})
        return reply.model_copy(update={"usage": usage, "cost_usd": self.price(reply.usage)})

    def failure(self, key: str) -> JudgeError | None:
        """The failure that a request ended in; None if it has to be written (again).

        Returns:
            PendingError while other requests are pending: if the failure were recorded now, the
            next pass would ask for the row again and count its calls twice.
        """
        result = self._results.get(_short(key))
        if result is None or not result.failed:
            return None
        error = copy.copy(result.failed[-1][1])
        error.calls = len(result.failed)
        counted = [failure for turn, failure in result.failed if turn >= self.since]
        if counted and isinstance(error, AccessError):
            return error  # ends the run
        repeated = sum(not isinstance(each, FormatUnsupportedError) for each in counted)
        if not result.is_final and repeated <= self.retries:
            return None
        return error if self.is_last else PendingError("the reply comes with a batch")


def _short(key: str) -> int:
    return int(key[:16], 16)


# Requests -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class BatchFile:
    """One batch file as written: its path, and its numbers of requests and bytes."""

    path: Path
    lines: int = 0
    size: int = 0


class BatchFiles:
    """Writes lines into successive files, each within the limits.

    Args:
        path: The first file; the others get a number. An older file is overwritten.
        max_lines: Largest number of lines of a file.
        max_bytes: Largest size of a file in bytes.
    """

    def __init__(
        self, path: Path, *, max_lines: int | None = MAX_LINES, max_bytes: int | None = MAX_BYTES
    ) -> None:
        self.written: list[BatchFile] = []
        self._path = path
        self._limits = (max_lines, max_bytes)
        self._file: Any = None

    def add(self, line: bytes) -> None:
        """Adds a line, which ends in a newline.

        Raises:
            InputError: If the file can't be written.
        """
        with self._writing():
            if not self.written or self._is_full(self.written[-1], len(line)):
                self.close()
                number = len(self.written) + 1
                stem = self._path.stem if number == 1 else f"{self._path.stem}-{number}"
                path = self._path.with_stem(stem)
                self._file = path.open("wb", buffering=1 << 20)
                self.written.append(BatchFile(path))
            self._file.write(line)
        last = self.written[-1]
        last.lines += 1
        last.size += len(line)

    def _is_full(self, last: BatchFile, more: int) -> bool:
        lines, size = self._limits
        too_many = lines is not None and last.lines >= lines
        return too_many or (size is not None and last.size + more > size)

    def close(self) -> None:
        """Writes what is buffered; closing twice is harmless."""
        file, self._file = self._file, None
        if file is not None:
            with self._writing():
                file.close()

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(f"{self._path}: can't be written: {error.strerror}") from None


@dataclass(slots=True, kw_only=True)
class BatchWriter(Client):
    """Answers from the results of batches or the reply cache, and writes down other requests.

    Attributes:
        files: Files that requests are written to.
        place: Text that distinguishes the model's endpoint from others, see ``served.place_of``.
        body: Makes the body of a call.
        results: This run's results; None if there can be none.
        cache: Replies of other runs, or None.
        form: Format in which the endpoint is asked for the reply's schema.
        count: Number of requests written.
    """

    files: BatchFiles
    place: str
    body: Callable[[Request], dict[str, Any]]
    results: BatchResults | None = None
    cache: ReplyCache | None = None
    form: Format = FORMATS[0]
    count: int = 0
    _written: set[int] = field(default_factory=set[int])

    async def complete(self, request: Request) -> Completion:
        """The reply if there is one; see ``Client``.

        Raises:
            PendingError: If the request has been written.
            JudgeError: The failure that it ended in.
        """
        key, results = request.key(self.place), self.results
        if results is not None and (reply := results.completion(key)) is not None:
            return reply
        form = request.format_at(self.form)
        data = self.cache.get(cache_key(key, form)) if self.cache else None
        if data is not None and (reply := load_completion(data)) is not None:
            return reply
        if results is not None and (failure := results.failure(key)) is not None:
            raise failure
        self._write(key, request)
        raise PendingError("the reply comes with a batch")

    def _write(self, key: str, request: Request) -> None:
        if _short(key) in self._written:
            return
        form = request.format_at(self.form)
        body = self.body(replace(request, format=form))
        name = cache_key(key, form) if request.reply is not None else f"{key}-{_PLAIN}"
        values = {"custom_id": name, "method": "POST", "url": URL, "body": body}
        line = orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)
        if len(line) > MAX_LINE_BYTES:
            raise JudgeError(f"a request of {len(line)} bytes is too long for a batch file")
        self._written.add(_short(key))
        self.files.add(line)
        self.count += 1

    async def close(self) -> None:
        """Writes what is buffered and closes the files."""
        try:
            self.files.close()
        finally:
            if self.cache is not None:
                self.cache.close()


# Bodies -------------------------------------------------------------------------------------------

_ROLES = ("system", "user", "assistant")


def provider_of(model: str) -> tuple[str, str]:
    """Provider and name of a model; litellm looks up the provider if the name has none."""
    provider, slash, name = model.partition("/")
    if slash:
        return provider, name
    try:
        name, provider, *_ = load_litellm().get_llm_provider(model)
    except Exception as error:  # noqa: BLE001 - every failure is translated
        raise OptionError(f"{model}: {translate(error)}") from None
    return str(provider), str(name)


def body_maker(model: str) -> Callable[[Request], dict[str, Any]]:
    """A function that makes the body of a batch line for a model.

    Servers that speak the OpenAI protocol get the result of ``chat_body``; for models whose
    parameters litellm renames, litellm is asked once per form of request, with a dummy key and
    address.
    """
    provider, name = provider_of(model)

    def body(request: Request) -> dict[str, Any]:
        plain = chat_body(request, name)
        # litellm itself converts OpenAI's terms into Google's when it uploads
        exact = provider == "vertex_ai" or serves_exactly(
            f"{provider}/{name}", api_base=True, params=request.settings
        )
        template = None if exact else _template_of(f"{provider}/{name}", request)
        return plain if template is None else _spliced(template, request.messages)

    return body


def _spliced(template: Mapping[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The template with other messages; roles that litellm renames are renamed."""
    roles = dict(zip(_ROLES, (m["role"] for m in template["messages"]), strict=True))
    renamed = [m | {"role": roles.get(m["role"], m["role"])} for m in messages]
    return {**template, "messages": renamed}


def _template_of(model: str, request: Request) -> Mapping[str, Any] | None:
    settings = orjson.dumps(request.settings, option=orjson.OPT_SORT_KEYS)
    form = (request.reply, request.format)
    return _template(model, form, request.max_tokens, settings, logprobs=request.logprobs)


@lru_cache(maxsize=1024)
def _template(
    model: str,
    form: tuple[type[BaseModel] | None, Format],
    max_tokens: int,
    settings: bytes,
    *,
    logprobs: bool,
) -> Mapping[str, Any] | None:
    """The body that litellm would send, except the messages; None if it does not state it.

    Returns:
        The body, with one message for each of _ROLES, in that order.
    """
    reply, kind = form
    blank = Request(model=model, messages=[], reply=reply, format=kind, logprobs=logprobs)
    arguments = {
        "messages": [{"role": role, "content": "x"} for role in _ROLES],
        "max_tokens": max_tokens,
        **orjson.loads(settings),
        **shape_arguments(blank),
    }
    template = body_of(model, arguments)
    if template is None:
        return None
    extra: dict[str, Any] = template.pop("extra_body", None) or {}
    return {**template, **extra} if len(template.get("messages", ())) == len(_ROLES) else None

"""Requests written to batch files, and the responses read back from them.

A request is one line of an OpenAI batch file, its key is the line's ``custom_id``; the same lines
are what ``vllm run-batch`` reads, and both answer in the same form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import BaseModel

from ..errors import InputError, JudgeError, OptionError, PendingError, RowError
from ..jsonl import MAX_LINE_BYTES, read_lines
from ..records import Usage
from .base import FORMATS, Client, Completion, Format, Request, cache_key
from .batch_outcomes import Outcome, outcome_of, read_outcome
from .cache import ReplyCache
from .chat_format import chat_body, completion_of, shape_arguments
from .direct import serves_exactly
from .engine import dump_completion, is_cacheable, load_completion
from .failures import failure_of, translate
from .litellm_client import load_litellm

URL = "/v1/chat/completions"
MAX_LINES = 50_000
MAX_BYTES = 190_000_000
"""Limits of one batch file: OpenAI takes 50,000 lines and 200 MB."""


_KEY = re.compile(r"([0-9a-f]{32})(?:-(tool|json_object|text))?")
_NO_ANSWER = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to one request: a completion, or why there is none.

    Attributes:
        key: Key of the request.
        form: Format that the reply was requested in.
        completion: The completion; its price is not known yet.
        error: The failure; exactly one of the two is set.
    """

    key: str
    form: Format = FORMATS[0]
    completion: Completion | None = None
    error: JudgeError | None = None

    @property
    def is_good(self) -> bool:
        """Whether the reply is fit for the reply cache."""
        return self.completion is not None and is_cacheable(self.completion)


def read_answer(line: Mapping[str, Any]) -> Answer:
    """Reads a line of a batch's output or error file, of a provider or of ``vllm run-batch``.

    Args:
        line: The line's JSON object.

    Raises:
        RowError: If it answers no request.
    """
    name = line.get("custom_id")
    match = _KEY.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise RowError("custom_id", "the key of a request, 32 hex digits", name)
    key, form = match[1], cast("Format", match[2] or FORMATS[0])
    response, error = _object(line.get("response")), line.get("error")
    body = response.get("body")
    status = response.get("status_code", 200 if isinstance(body, dict) else None)
    if not response and error is None:
        raise RowError("response", "an answer or an error", line.get("response"))
    try:
        if status == 200 and error is None and isinstance(body, dict):
            return Answer(key, form, completion_of(cast("dict[str, Any]", body)))
    except JudgeError as failure:
        return Answer(key, form, error=failure)
    failure = _failure(status, cast("object", body) if error is None else error)
    return Answer(key, form, error=failure)


def _failure(status: object, details: object) -> JudgeError:
    """What an error line means; one without any status may pass, as an expired batch does."""
    error = _object(details)
    error = _object(error.get("error")) or error
    codes = (status, error.get("code"), error.get("status_code"))
    code = next((c for c in codes if isinstance(c, int) and c >= 400), _NO_ANSWER)
    if not isinstance(error.get("message"), str):
        error = {"message": str(details)}
    return failure_of(code, orjson.dumps({"error": error}, default=str).decode(), {})


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def read_answers(path: Path) -> Iterator[Answer | InputError]:
    """Yields the answers in a file; a line that is none comes as the complaint, with its place.

    Raises:
        InputError: If the file can't be read.
    """
    for line in read_lines(path):
        try:
            if isinstance(line.values, RowError):
                raise line.values
            yield read_answer(line.values)
        except RowError as error:
            yield InputError(f"{path}:{line.number}: {error}")


@dataclass(slots=True)
class Part:
    """One batch file as written.

    Attributes:
        path: Where it is.
        lines: Requests in it.
        size: Its bytes.
        digest: SHA-256 of its bytes.
    """

    path: Path
    lines: int = 0
    size: int = 0
    digest: Any = field(default_factory=sha256)


class BatchFiles:
    """Writes lines into one file after the other, each within the limits.

    Args:
        path: The first file; the others get a number. An older file is overwritten.
        max_lines: Lines of a file at most.
        max_bytes: Bytes of a file at most.
    """

    def __init__(
        self, path: Path, *, max_lines: int | None = MAX_LINES, max_bytes: int | None = MAX_BYTES
    ) -> None:
        self.written: list[Part] = []
        self._path = path
        self._limits = (max_lines, max_bytes)
        self._file: Any = None

    def add(self, line: bytes) -> None:
        """Adds a line, which ends in a newline.

        Raises:
            InputError: If the file can't be written.
        """
        try:
            if not self.written or self._is_full(self.written[-1], len(line)):
                self._open_next()
            self._file.write(line)
        except OSError as error:
            raise self._complaint(error) from None
        part = self.written[-1]
        part.lines += 1
        part.size += len(line)
        part.digest.update(line)

    def _is_full(self, part: Part, more: int) -> bool:
        lines, size = self._limits
        too_many = lines is not None and part.lines >= lines
        return too_many or (size is not None and part.size + more > size)

    def _open_next(self) -> None:
        self.close()
        number = len(self.written) + 1
        name = self._path if number == 1 else self._path.with_stem(f"{self._path.stem}-{number}")
        self._file = name.open("wb", buffering=1 << 20)
        self.written.append(Part(name))

    def close(self) -> None:
        """Writes what is buffered; closing twice is harmless."""
        file, self._file = self._file, None
        try:
            if file is not None:
                file.close()
        except OSError as error:
            raise self._complaint(error) from None

    def _complaint(self, error: OSError) -> InputError:
        return InputError(f"{self._path}: can't be written: {error.strerror}")


@dataclass(slots=True, kw_only=True)
class BatchWriter(Client):
    """Answers what is known already and writes down the rest.

    Attributes:
        parts: Where the requests are written.
        place: What tells the model's endpoint from another, as ``engine.place_of`` gives it.
        body: Makes the body of a call.
        answers: This run's answers, with their price; None when there can be none.
        cache: Replies of other runs, or None.
        form: How the endpoint is asked to keep to the reply's schema.
        retries: How often a request without answer is ordered again.
        since: The first round that counts against ``retries``.
        patient: Whether a request that failed too often is still kept pending; a last pass gives
            it up.
        count: Requests written down.
        held: Requests that failed too often and are kept pending.
    """

    parts: BatchFiles
    place: str
    body: Callable[[Request], dict[str, Any]]
    answers: ReplyCache | None = None
    cache: ReplyCache | None = None
    form: Format = FORMATS[0]
    retries: int = 0
    since: int = 1
    patient: bool = True
    count: int = 0
    held: int = 0
    _written: set[int] = field(default_factory=set[int])

    async def complete(self, request: Request) -> Completion:
        """Gives the reply if there is one; see ``Client``.

        Raises:
            PendingError: If the request has been written down.
            JudgeError: The failure that it ended in.
        """
        key = request.key(self.place)
        outcome = self._outcome(key)
        known = outcome.completion or self._cached(cache_key(key, request.format_at(self.form)))
        if known is not None:
            return known
        if outcome.gives_up(self.retries, self.since):
            self._refuse(outcome)
        else:
            self._order(key, request)
        raise PendingError("the reply is ordered")

    def _outcome(self, key: str) -> Outcome:
        data = self.answers.get(key) if self.answers else None
        return read_outcome(data)

    def _cached(self, key: str) -> Completion | None:
        data = self.cache.get(key) if self.cache else None
        return load_completion(data) if data is not None else None

    def _refuse(self, outcome: Outcome) -> None:
        """Raises the failure; one that may pass only when nothing else is awaited."""
        if outcome.is_final or outcome.ends_run or not self.patient:
            raise outcome.failure()
        self.held += 1

    def _order(self, key: str, request: Request) -> None:
        short = int(key[:16], 16)
        if short in self._written:
            return
        form = request.format_at(self.form)
        body = self.body(replace(request, format=form))
        name = cache_key(key, form)
        values = {"custom_id": name, "method": "POST", "url": URL, "body": body}
        line = orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)
        if len(line) > MAX_LINE_BYTES:
            raise JudgeError(f"a request of {len(line)} bytes is too long for a batch file")
        self._written.add(short)
        self.parts.add(line)
        self.count += 1

    async def close(self) -> None:
        """Writes what is buffered and lets go of the files."""
        try:
            self.parts.close()
        finally:
            for cache in (self.answers, self.cache):
                if cache is not None:
                    cache.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResults:
    """Where the answers of a batch are entered.

    Attributes:
        answers: This run's answers.
        cache: Replies for other runs too, or None.
        price: Price of a reply, None where not known.
        turn: Number of the round in which the requests were ordered.
        form: The format in which they were.
    """

    answers: ReplyCache
    cache: ReplyCache | None
    price: Callable[[Usage], float | None]
    turn: int
    form: Format

    def enter(self, answer: Answer) -> bool:
        """Enters an answer; entering it again, as after a kill, changes nothing.

        Returns:
            Whether the endpoint did not take the format of the request.
        """
        before = read_outcome(self.answers.get(answer.key))
        if before.completion is not None:
            return False
        after = outcome_of(
            before,
            answer.completion,
            answer.error,
            turn=self.turn,
            form=self.form,
            price=self.price,
        )
        self.answers.put(answer.key, after.dumped())
        if self.cache is not None and answer.completion is not None and answer.is_good:
            # ids without a format are of the round's, or of the strictest
            form = self.form if answer.form == FORMATS[0] else answer.form
            self.cache.put(cache_key(answer.key, form), dump_completion(answer.completion))
        return after.wants_other_format

    def enter_missing(self, requests: Path, error: JudgeError) -> int:
        """Enters a failure for every request of a file that was not answered in this round.

        Returns:
            How many there were.
        """
        missing = 0
        for line in read_lines(requests):
            key = str(_object(line.values)["custom_id"])[:32]
            outcome = read_outcome(self.answers.get(key))
            if outcome.completion is None and not outcome.is_of(self.turn):
                self.enter(Answer(key, error=error))
                missing += 1
        return missing

    def close(self) -> None:
        """Writes everything."""
        self.answers.close()
        if self.cache is not None:
            self.cache.close()


_NOWHERE = "http://127.0.0.1:9"
_ROLES = ("system", "user", "assistant")


def provider_of(model: str) -> tuple[str, str]:
    """Provider and name of a model; litellm looks up the provider of one without."""
    provider, slash, name = model.partition("/")
    if slash:
        return provider, name
    try:
        name, provider, *_ = load_litellm().get_llm_provider(model)
    except Exception as error:  # noqa: BLE001 - every failure is translated
        raise OptionError(f"--judge {model}: {translate(error)}") from None
    return str(provider), str(name)


def body_maker(model: str) -> Callable[[Request], dict[str, Any]]:
    """What makes the body of a batch line for a model.

    Servers that speak the OpenAI protocol get what ``chat_body`` makes; for models whose
    parameters litellm renames, litellm is asked once per form of request, with a key and an
    address that lead nowhere.
    """
    provider, name = provider_of(model)

    def body(request: Request) -> dict[str, Any]:
        plain = chat_body(request, name)
        # litellm itself turns OpenAI's words into Google's when it uploads
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
    """What litellm would send, but for the messages; None when it does not say.

    Returns:
        The body, whose messages are one of each of _ROLES, in that order.
    """
    litellm = load_litellm()
    reply, kind = form
    blank = Request(model=model, messages=[], reply=reply, format=kind, logprobs=logprobs)
    arguments: dict[str, Any] = {
        "model": model,
        "messages": [{"role": role, "content": "x"} for role in _ROLES],
        "max_tokens": max_tokens,
        "timeout": 1.0,
        "num_retries": 0,
        "max_retries": 0,
        "api_base": _NOWHERE,
        "api_version": "2024-10-21",
        **orjson.loads(settings),
        **shape_arguments(blank),
    }
    call = litellm.types.utils.CallTypes.completion
    body: Any = litellm.utils.return_raw_request(call, arguments).get("raw_request_body")
    if not isinstance(body, dict):
        return None
    template = cast("dict[str, Any]", body)
    extra: dict[str, Any] = template.pop("extra_body", None) or {}
    return {**template, **extra} if len(template.get("messages", ())) == len(_ROLES) else None

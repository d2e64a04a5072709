"""Requests written down instead of sent, and the answers that come back for them in a file.

A request is one line of an OpenAI batch file, its key is the line's ``custom_id``; the same lines
are what ``vllm run-batch`` reads, and both answer in the same form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import orjson

from ..errors import InputError, JudgeError, PendingError, RowError
from ..jsonl import MAX_LINE_BYTES, read_lines
from ..records import Usage
from .base import FORMATS, Client, Completion, Format, Request
from .body import completion_of
from .cache import ReplyCache
from .engine import WORTH_KEEPING, kept, read_kept
from .failures import failure_of
from .outcomes import Outcome, outcome_of, read_outcome

URL = "/v1/chat/completions"
MAX_LINES = 50_000
MAX_BYTES = 190_000_000
"""Limits of one batch file: OpenAI takes 50,000 lines and 200 MB."""


_KEY = re.compile(r"[0-9a-f]{32}")
_NO_ANSWER = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one request: a completion, or why there is none.

    Attributes:
        key: Key of the request.
        completion: The completion; its price is not known yet.
        error: The failure; exactly one of the two is given.
    """

    key: str
    completion: Completion | None = None
    error: JudgeError | None = None

    @property
    def is_good(self) -> bool:
        """Whether the reply is worth keeping for other runs."""
        reply = self.completion
        return bool(reply and reply.text and reply.finish_reason in WORTH_KEEPING)


def read_answer(line: Mapping[str, Any]) -> Answer:
    """Reads a line of a batch's output or error file, of a provider or of ``vllm run-batch``.

    Args:
        line: The line's JSON object.

    Raises:
        RowError: If it answers no request.
    """
    key = line.get("custom_id")
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise RowError("custom_id", "the key of a request, 32 hex digits", key)
    response, error = _object(line.get("response")), line.get("error")
    body = response.get("body")
    status = response.get("status_code", 200 if isinstance(body, dict) else None)
    if not response and error is None:
        raise RowError("response", "an answer or an error", line.get("response"))
    try:
        if status == 200 and error is None and isinstance(body, dict):
            return Answer(key, completion_of(cast("dict[str, Any]", body)))
    except JudgeError as failure:
        return Answer(key, error=failure)
    return Answer(key, error=_failure(status, cast("object", body) if error is None else error))


def _failure(status: object, said: object) -> JudgeError:
    """What an error line means; one without any status may pass, as an expired batch does."""
    error = _object(said)
    error = _object(error.get("error")) or error
    codes = (status, error.get("code"), error.get("status_code"))
    code = next((c for c in codes if isinstance(c, int) and c >= 400), _NO_ANSWER)
    told = error if isinstance(error.get("message"), str) else {"message": str(said)}
    return failure_of(code, orjson.dumps({"error": told}, default=str).decode(), {})


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


class Parts:
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
class OrderBook(Client):
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

    parts: Parts
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
        known = outcome.completion or self._kept(key)
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

    def _kept(self, key: str) -> Completion | None:
        data = self.cache.get(key) if self.cache else None
        return read_kept(data) if data is not None else None

    def _refuse(self, outcome: Outcome) -> None:
        """Raises the failure; one that may pass only when nothing else is awaited."""
        if outcome.is_final or outcome.ends_run or not self.patient:
            raise outcome.failure()
        self.held += 1

    def _order(self, key: str, request: Request) -> None:
        short = int(key[:16], 16)
        if short in self._written:
            return
        body = self.body(replace(request, format=self.form))
        values = {"custom_id": key, "method": "POST", "url": URL, "body": body}
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
class Ledger:
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
            self.cache.put(answer.key, kept(answer.completion))
        return after.wants_other_format

    def enter_missing(self, requests: Path, error: JudgeError) -> int:
        """Enters a failure for every request of a file that was not answered in this round.

        Returns:
            How many there were.
        """
        missing = 0
        for line in read_lines(requests):
            key = str(_object(line.values)["custom_id"])
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

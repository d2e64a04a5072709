"""The outcome of a batched request so far: stored as JSON, updated round by round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from ..errors import (
    AccessError,
    CallTimeoutError,
    FormatUnsupportedError,
    JudgeError,
    RateLimitedError,
    RefusalError,
    ReplyError,
    TransportError,
    TruncatedError,
)
from ..records import Usage
from .base import FORMATS, Completion, Format
from .engine import dump_completion, load_completion

_KINDS: Mapping[str, type[JudgeError]] = {
    kind.__name__: kind
    for kind in (
        AccessError,
        CallTimeoutError,
        FormatUnsupportedError,
        JudgeError,
        RateLimitedError,
        RefusalError,
        ReplyError,
        TransportError,
        TruncatedError,
    )
}
_MAY_PASS = (TransportError, AccessError)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has become of a request.

    Attributes:
        completion: The reply, with what it cost; None when there is none.
        failed: Round and kind of each failure, oldest first.
        message: Message of the last failure.
        is_final: Whether asking again would change nothing.
    """

    completion: Completion | None = None
    failed: tuple[tuple[int, str], ...] = ()
    message: str = ""
    is_final: bool = False

    def is_of(self, turn: int) -> bool:
        """Whether the last failure was of a round."""
        return bool(self.failed) and self.failed[-1][0] == turn

    @property
    def kind(self) -> type[JudgeError]:
        """The kind of the last failure."""
        return _KINDS.get(self.failed[-1][1], TransportError)

    @property
    def wants_other_format(self) -> bool:
        """Whether the endpoint would not take the format; a less strict one may serve."""
        if self.completion is not None or self.is_final or not self.failed:
            return False
        return self.kind is FormatUnsupportedError

    @property
    def ends_run(self) -> bool:
        """Whether no request of the run can succeed."""
        return bool(self.failed) and issubclass(self.kind, AccessError)

    def gives_up(self, retries: int, since: int) -> bool:
        """Whether the request is not ordered again.

        Args:
            retries: How often one that failed is.
            since: The first round whose failures count.
        """
        if self.is_final:
            return True
        counted = [kind for turn, kind in self.failed if turn >= since]
        if counted and self.ends_run:
            return True
        return sum(kind != FormatUnsupportedError.__name__ for kind in counted) > retries

    def failure(self) -> JudgeError:
        """The last failure as an error that counts the calls made."""
        error = self.kind(self.message)
        error.calls = len(self.failed)
        return error

    def dumped(self) -> bytes:
        """The outcome as JSON."""
        reply = self.completion
        values: dict[str, Any] = {"failed": self.failed, "message": self.message}
        values["final"] = self.is_final
        if reply is not None:
            values["reply"] = orjson.Fragment(dump_completion(reply))
            values["refusal"] = reply.refusal
            values["usage"] = reply.usage.__dict__
            values["cost_usd"] = reply.cost_usd
        return orjson.dumps(values)


def read_outcome(data: bytes | None) -> Outcome:
    """Reads an outcome back; one of a request that is not known, or not readable, is empty."""
    try:
        values: Any = orjson.loads(data) if data is not None else {}
        failed = tuple((int(turn), str(kind)) for turn, kind in values.get("failed", ()))
        outcome = Outcome(None, failed, values.get("message", ""), values.get("final", False))
        return replace(outcome, completion=_reply(values)) if "reply" in values else outcome
    except (ValueError, TypeError, KeyError, AttributeError):
        return Outcome()


def _reply(values: Mapping[str, Any]) -> Completion | None:
    reply = load_completion(orjson.dumps(values["reply"]))
    paid = {name: values[name] for name in ("cost_usd", "refusal")}
    paid["usage"] = Usage(**values["usage"])
    return reply.model_copy(update=paid) if reply is not None else None


def outcome_of(
    before: Outcome,
    completion: Completion | None,
    error: JudgeError | None,
    *,
    turn: int,
    form: Format,
    price: Callable[[Usage], float | None],
) -> Outcome:
    """What has become of a request after one more answer.

    Args:
        before: What was known.
        completion: The reply, if there is one.
        error: The failure, if there is none.
        turn: Number of the round.
        form: The format in which the request was ordered.
        price: Price of a reply, None where not known.
    """
    if completion is not None:
        usage = completion.usage.model_copy(update={"calls": 1 + len(before.failed)})
        paid = {"usage": usage, "cost_usd": price(completion.usage)}
        return replace(before, completion=completion.model_copy(update=paid))
    if error is None or before.is_of(turn):
        return before
    kind = next((k for k in type(error).__mro__ if k.__name__ in _KINDS), JudgeError)
    passes = issubclass(kind, _MAY_PASS)
    passes = passes or (kind is FormatUnsupportedError and form != FORMATS[-1])
    failed = (*before.failed, (turn, kind.__name__))
    return Outcome(None, failed, str(error), is_final=not passes)

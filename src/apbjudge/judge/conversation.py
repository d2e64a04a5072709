"""A conversation with a judge: its messages, what it cost, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import JudgeError, RefusalError, ReplyError, TruncatedError
from ..llm.base import Client, Completion, Request
from ..llm.failures import fit_to_show
from ..llm.logprobs import TokenChoice
from ..llm.replies import read_reply
from ..records import Override, Usage
from ..rubrics import Rubric, reply_model
from .consistency import ParsedVerdict, contradiction, parsed_verdict, resolve

LONGER = 4
"""Factor on the token limit when a truncated reply is asked for again."""

_REFUSED = ("content_filter", "refusal", "safety")
_AGAIN = (
    "Give your verdict again as one JSON object with the same keys, changed so that its parts "
    "agree with each other and with the rules above."
)


_NOTHING = Usage()


class InconsistentError(ReplyError):
    """The reply contradicts itself beyond what the written rule can change."""

    reason = "inconsistent"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A consistent verdict, and how it came about.

    Attributes:
        verdict: The verdict.
        reasoning: What the judge gave as its reasons.
        overrides: What the written rule changed.
        inconsistent: Whether the judge contradicted itself to the end.
        tokens: Probabilities of the reply's tokens, empty when not asked for.
    """

    verdict: ParsedVerdict
    reasoning: str
    overrides: tuple[Override, ...] = ()
    inconsistent: bool = False
    tokens: tuple[TokenChoice, ...] = ()


@dataclass(slots=True)
class Conversation:
    """One conversation about one item.

    Attributes:
        client: Who answers.
        rubric: What the verdict must fit.
        request: Makes a request from messages and a token limit.
        messages: Messages so far.
        max_tokens: Limit of a reply.
        max_reasks: How often the judge is asked again in all.
        reasked: How often it was.
    """

    client: Client
    rubric: Rubric
    request: Callable[[list[dict[str, Any]], int], Request]
    messages: list[dict[str, Any]]
    max_tokens: int
    max_reasks: int
    reasked: int = 0
    replies: list[str] = field(default_factory=list[str])
    usage: Usage = _NOTHING
    cost_usd: float | None = 0.0

    async def outcome(self) -> Outcome:
        """The judge's first consistent verdict, or its last one made consistent by rule.

        Raises:
            JudgeError: If there is none.
        """
        last: Outcome | None = None
        while True:
            try:
                last = await self._ask()
                failure, complaint = None, contradiction(last.verdict, self.rubric)
            except ReplyError as error:
                failure, complaint = error, str(error)
            if complaint is None and last is not None:
                return last
            if not self._may_ask_again():
                break
            self._object(f"{complaint}. {_AGAIN}")
        if last is None:
            raise failure or ReplyError("no reply")
        try:
            verdict, overrides = resolve(last.verdict, self.rubric)
        except ReplyError as error:
            raise InconsistentError(str(error)) from None
        return Outcome(verdict, last.reasoning, overrides, inconsistent=True, tokens=last.tokens)

    def _may_ask_again(self) -> bool:
        """Takes one of the re-asks, if any is left."""
        if self.reasked == self.max_reasks:
            return False
        self.reasked += 1
        return True

    async def _ask(self) -> Outcome:
        """One reply, read. A cut-off reply is asked for once more with a higher limit."""
        completion = await self._call(self.max_tokens)
        limit = self.max_tokens
        if completion.finish_reason == "length" and self._may_ask_again():
            limit *= LONGER
            completion = await self._call(limit)
        if completion.finish_reason == "length":
            raise TruncatedError(f"the reply did not end within {limit} tokens")
        if completion.refusal or completion.finish_reason in _REFUSED:
            reason = completion.refusal or f"stopped: {completion.finish_reason}"
            raise RefusalError(fit_to_show(reason))
        reply = read_reply(completion.text, reply_model(self.rubric))
        verdict = parsed_verdict(reply, self.rubric)
        return Outcome(verdict, reply.reasoning, tokens=completion.logprobs)

    async def _call(self, max_tokens: int) -> Completion:
        try:
            completion = await self.client.complete(self.request(list(self.messages), max_tokens))
        except JudgeError as error:
            self.usage += Usage(calls=error.calls, lost=error.lost)
            raise
        first = self.usage is _NOTHING
        self.usage = completion.usage if first else self.usage + completion.usage
        self.replies.append(completion.text)
        if self.cost_usd is not None:
            cost = completion.cost_usd
            self.cost_usd = None if cost is None else self.cost_usd + cost
        return completion

    def _object(self, complaint: str) -> None:
        """Tells the judge what is wrong with its last reply."""
        last = self.replies[-1] if self.replies else ""
        if last:
            self.messages.append({"role": "assistant", "content": last})
        self.messages.append({"role": "user", "content": complaint})

"""A conversation with a judge: what was said, what it cost, and how it is brought to an end."""

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
from .settle import Ruling, contradiction, resolve, ruling_of

LONGER = 4
"""Factor on the token limit when a truncated reply is asked for again."""

_REFUSED = ("content_filter", "refusal", "safety")
_AGAIN = (
    "Give your verdict again as one JSON object with the same keys, changed so that its parts "
    "agree with each other and with the rules above."
)


_NOTHING = Usage()


class InconsistentError(ReplyError):
    """The reply contradicts itself beyond what the written rule can settle."""

    reason = "inconsistent"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A consistent ruling, and how it came about.

    Attributes:
        ruling: The ruling.
        reasoning: What the judge gave as its reasons.
        overrides: What the written rule changed.
        inconsistent: Whether the judge contradicted itself to the end.
        tokens: Probabilities of the reply's tokens, empty when not asked for.
    """

    ruling: Ruling
    reasoning: str
    overrides: tuple[Override, ...] = ()
    inconsistent: bool = False
    tokens: tuple[TokenChoice, ...] = ()


@dataclass(slots=True)
class Talk:
    """One conversation about one item.

    Attributes:
        client: Who answers.
        rubric: What the verdict must fit.
        request: Makes a request from messages and a token limit.
        messages: What was said so far.
        max_tokens: Limit of a reply.
    """

    client: Client
    rubric: Rubric
    request: Callable[[list[dict[str, Any]], int], Request]
    messages: list[dict[str, Any]]
    max_tokens: int
    replies: list[str] = field(default_factory=list[str])
    usage: Usage = _NOTHING
    cost_usd: float | None = 0.0

    async def ruling(self) -> Outcome:
        """The judge's consistent ruling: its first, its second, or one settled by rule.

        Raises:
            JudgeError: If there is none.
        """
        kept: Outcome | None = None
        try:
            kept = await self._ask()
            complaint = contradiction(kept.ruling, self.rubric)
        except ReplyError as error:
            complaint = str(error)
        if kept is not None and complaint is None:
            return kept
        self._object(f"{complaint}. {_AGAIN}")
        try:
            second = await self._ask()
        except ReplyError:
            if kept is None:
                raise
            second = kept
        if contradiction(second.ruling, self.rubric) is None:
            return second
        try:
            ruling, overrides = resolve(second.ruling, self.rubric)
        except ReplyError as error:
            raise InconsistentError(str(error)) from None
        return Outcome(ruling, second.reasoning, overrides, inconsistent=True, tokens=second.tokens)

    async def _ask(self) -> Outcome:
        """One reply, read. A cut-off reply is asked for once more with a higher limit."""
        completion = await self._call(self.max_tokens)
        if completion.finish_reason == "length":
            completion = await self._call(self.max_tokens * LONGER)
            if completion.finish_reason == "length":
                limit = self.max_tokens * LONGER
                raise TruncatedError(f"the reply did not end within {limit} tokens")
        if completion.refusal or completion.finish_reason in _REFUSED:
            said = completion.refusal or f"stopped: {completion.finish_reason}"
            raise RefusalError(fit_to_show(said))
        reply = read_reply(completion.text, reply_model(self.rubric))
        ruling = ruling_of(reply, self.rubric)
        return Outcome(ruling, reply.reasoning, tokens=completion.logprobs)

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

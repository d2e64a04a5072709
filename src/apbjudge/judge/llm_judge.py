"""A language model as judge: one conversation per item, settled by written rules."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from ..errors import (
    AccessError,
    FormatUnsupportedError,
    JudgeError,
    RefusalError,
    ReplyError,
    TruncatedError,
)
from ..llm.base import Client, Completion, Request
from ..llm.replies import read_reply
from ..llm.retry import Sleep, with_retries
from ..protocols.images import ImagePart, is_image, load_images
from ..protocols.prompts import Prompt, PromptMaker
from ..records import Item, Override, Unscored, Usage, Verdict
from ..rubrics import reply_model
from .settle import Ruling, contradiction, enforce, resolve, ruling_of
from .spec import JudgeSpec
from .task import Task

LONGER = 4
"""Factor on the token limit when a truncated reply is asked for again."""

_REFUSED = ("content_filter", "refusal", "safety")


class LLMJudge:
    """Asks a model, checks its reply, asks once more where it contradicts itself.

    Args:
        spec: Model and settings.
        client: What answers requests.
        data_root: Folder that pictures may lie in.
        sees: Whether pictures are sent.
        sleep: Waits between retries.
    """

    def __init__(
        self,
        spec: JudgeSpec,
        client: Client,
        *,
        data_root: Path,
        sees: bool,
        sleep: Sleep | None = None,
    ) -> None:
        self.name = spec.model
        self._spec = spec
        self._client = client
        self._root = data_root
        self._sees = sees and spec.images
        self._prompts = PromptMaker(blind=spec.blind, evidence=spec.evidence)
        self._structured = True
        self.withheld = 0  # items whose pictures the judge could not be shown
        self._sleep: dict[str, Any] = {} if sleep is None else {"sleep": sleep}

    async def close(self) -> None:
        """Releases the client's connections."""
        await self._client.close()

    def prompt(self, task: Task) -> Prompt:
        """What the model is sent for an item.

        Raises:
            RowError: If a picture of the item can't be used.
        """
        return self._prompts.make(
            task.item,
            task.rubric,
            template=task.protocol.template,
            findings=task.findings,
            images=self._images(task.item),
        )

    def _images(self, item: Item) -> tuple[ImagePart, ...]:
        if not self._sees:
            self.withheld += self._spec.images and any(map(is_image, item.files))
            return ()
        limits = {"max_images": self._spec.max_images, "max_bytes": self._spec.max_image_bytes}
        return load_images(item, self._root, **limits)

    def fingerprint(self, task: Task, prompt: Prompt) -> str:
        """Hash of prompt, schema, rubric, model and settings: all that can move the verdict."""
        content = {
            "messages": prompt.messages(),
            "schema": reply_model(task.rubric).model_json_schema(),
            "rubric": [task.rubric.ref, task.rubric.digest],
            "protocol": [task.protocol.name, task.protocol.template],
            "settings": self._spec.scoring,
            "sample": 0,
        }
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]

    async def judge(self, task: Task, prompt: Prompt, fingerprint: str) -> Verdict | Unscored:
        """Judges one item; a failure of the judge comes back as Unscored.

        Raises:
            AccessError: If no call of this run can succeed.
        """
        talk = _Talk(prompt.messages())
        started = time.monotonic()
        try:
            outcome = await self._decide(task, talk)
        except AccessError:
            raise
        except JudgeError as error:
            return Unscored(
                reason=error.reason,
                detail=str(error),
                **self._account(task, talk, fingerprint, started),
            )
        return Verdict(
            is_correct=outcome.ruling.is_correct,
            grade=outcome.ruling.grade,
            errors=outcome.ruling.errors,
            category=outcome.ruling.category,
            overrides=outcome.overrides,
            inconsistent=outcome.inconsistent,
            reasoning=outcome.reasoning,
            **self._account(task, talk, fingerprint, started),
        )

    def _account(self, task: Task, talk: _Talk, fingerprint: str, started: float) -> dict[str, Any]:
        return {
            "judge": self.name,
            "raw": "\n\n".join(talk.replies) or None,
            "usage": talk.usage,
            "cost_usd": talk.cost_usd,
            "latency_s": round(time.monotonic() - started, 3),
            "fingerprint": fingerprint,
            **task.common(),
        }

    async def _decide(self, task: Task, talk: _Talk) -> _Outcome:
        outcome = await self._consistent(task, talk)
        if not self._spec.evidence:
            return outcome
        ruling, overrides = enforce(
            outcome.ruling, task.item, task.protocol, task.rubric, task.findings
        )
        return replace(outcome, ruling=ruling, overrides=(*outcome.overrides, *overrides))

    async def _consistent(self, task: Task, talk: _Talk) -> _Outcome:
        """The judge's consistent ruling: its first, its second, or one settled by rule."""
        kept: _Outcome | None = None
        try:
            kept = await self._ask(task, talk)
            complaint = contradiction(kept.ruling, task.rubric)
        except ReplyError as error:
            complaint = str(error)
        if kept is not None and complaint is None:
            return kept
        talk.object(f"{complaint}. {_AGAIN}")
        try:
            second = await self._ask(task, talk)
        except ReplyError:
            if kept is None:
                raise
            second = kept
        if contradiction(second.ruling, task.rubric) is None:
            return second
        try:
            ruling, overrides = resolve(second.ruling, task.rubric)
        except ReplyError as error:
            raise _InconsistentError(str(error)) from None
        return _Outcome(ruling, second.reasoning, overrides, inconsistent=True)

    async def _ask(self, task: Task, talk: _Talk) -> _Outcome:
        """One reply, read. A cut-off reply is asked for once more with a higher limit."""
        completion = await self._call(task, talk, self._spec.max_tokens)
        if completion.finish_reason == "length":
            completion = await self._call(task, talk, self._spec.max_tokens * LONGER)
            if completion.finish_reason == "length":
                limit = self._spec.max_tokens * LONGER
                raise TruncatedError(f"the reply did not end within {limit} tokens")
        if completion.refusal or completion.finish_reason in _REFUSED:
            raise RefusalError(completion.refusal or f"stopped: {completion.finish_reason}")
        reply = read_reply(completion.text, reply_model(task.rubric))
        return _Outcome(ruling_of(reply, task.rubric), reply.reasoning)

    async def _call(self, task: Task, talk: _Talk, max_tokens: int) -> Completion:
        request = Request(
            model=self._spec.model,
            messages=list(talk.messages),
            reply=reply_model(task.rubric),
            structured=self._structured,
            max_tokens=max_tokens,
            api_base=self._spec.api_base,
            timeout_s=self._spec.timeout_s,
            settings=self._spec.sampling,
        )

        async def call() -> Completion:
            talk.calls += 1
            return await self._client.complete(request)

        try:
            completion = await with_retries(call, retries=self._spec.retries, **self._sleep)
        except FormatUnsupportedError:
            if not request.structured:
                raise
            request = replace(request, structured=False)  # the prompt says the format too
            completion = await with_retries(call, retries=self._spec.retries, **self._sleep)
            self._structured = False
        talk.add(completion)
        return completion


_AGAIN = (
    "Give your verdict again as one JSON object with the same keys, changed so that its parts "
    "agree with each other and with the rules above."
)


class _InconsistentError(ReplyError):
    reason = "inconsistent"


@dataclass(frozen=True, slots=True)
class _Outcome:
    ruling: Ruling
    reasoning: str
    overrides: tuple[Override, ...] = ()
    inconsistent: bool = False


@dataclass(slots=True)
class _Talk:
    """A conversation with the judge, and what it has cost so far."""

    messages: list[dict[str, Any]]
    replies: list[str] = field(default_factory=list[str])
    completions: list[Completion] = field(default_factory=list[Completion])
    calls: int = 0

    def add(self, completion: Completion) -> None:
        self.completions.append(completion)
        self.replies.append(completion.text)

    def object(self, complaint: str) -> None:
        """Tells the judge what is wrong with its last reply."""
        last = self.replies[-1] if self.replies else ""
        if last:
            self.messages.append({"role": "assistant", "content": last})
        self.messages.append({"role": "user", "content": complaint})

    @property
    def usage(self) -> Usage:
        """Tokens of all replies; calls include those that failed."""
        return Usage(
            prompt_tokens=sum(c.usage.prompt_tokens for c in self.completions),
            completion_tokens=sum(c.usage.completion_tokens for c in self.completions),
            cached_tokens=sum(c.usage.cached_tokens for c in self.completions),
            calls=self.calls,
        )

    @property
    def cost_usd(self) -> float | None:
        """Price of all replies; None as soon as one of them is unknown."""
        costs = [c.cost_usd for c in self.completions]
        if not costs or any(cost is None for cost in costs):
            return None
        return sum(cost for cost in costs if cost is not None)

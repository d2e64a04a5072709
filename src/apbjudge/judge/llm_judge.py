"""A language model as judge: one or several conversations per item, and written rules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from ..errors import AccessError, JudgeError, PendingError
from ..llm.base import Client, Request, schema_json
from ..protocols.images import ImagePart, is_image, load_images
from ..protocols.prompts import Prompt, PromptMaker
from ..records import Doubt, Item, Unscored, Verdict
from ..rubrics import reply_model
from .consistency import enforce
from .conversation import Conversation, Outcome
from .source import Task
from .spec import JudgeSpec
from .uncertainty import combine, token_uncertainty, uncertainty_of


class LLMJudge:
    """Asks a model, checks its reply, asks again where it is unusable or contradicts itself.

    Args:
        spec: Model and settings.
        client: What answers requests.
        roots: Folders that pictures may lie in.
        sees: Whether pictures are sent.
    """

    def __init__(
        self, spec: JudgeSpec, client: Client, *, roots: Sequence[Path], sees: bool
    ) -> None:
        self.name = spec.model
        self.leads = spec.lead
        self.is_blind = spec.blind
        self._spec = spec
        self._client = client
        self._roots = roots
        self._sees = sees and spec.images
        self._prompts = PromptMaker(blind=spec.blind, evidence=spec.evidence)
        self.withheld = 0  # items whose pictures the judge could not be shown
        self.silent = 0  # verdicts without the token probabilities that were asked for

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
            rules=task.protocol.rules,
            images=self._images(task.item),
        )

    def _images(self, item: Item) -> tuple[ImagePart, ...]:
        if not self._sees:
            self.withheld += self._spec.images and any(map(is_image, item.files))
            return ()
        limits = {"max_images": self._spec.max_images, "max_bytes": self._spec.max_image_bytes}
        return load_images(item, self._roots, **limits)

    def fingerprint(self, task: Task, prompt: Prompt) -> str:
        """Hash of prompt, schema, rubric, model and settings: all that can move the verdict."""
        content = {
            "messages": prompt.messages(),
            "schema": orjson.Fragment(schema_json(reply_model(task.rubric))),
            "rubric": [task.rubric.ref, task.rubric.digest],
            "protocol": [task.protocol.name, task.protocol.template],
            "settings": self._spec.scoring,
        }
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]

    async def judge(self, task: Task, prompt: Prompt, fingerprint: str) -> Verdict | Unscored:
        """Judges one item; a failure of the judge comes back as Unscored.

        Raises:
            AccessError: If no call of this run can succeed.
            PendingError: If a reply is still to come.
        """
        started = time.monotonic()
        spec = self._spec
        conversations = [self._conversation(task, prompt, n) for n in range(spec.samples)]
        # the first fills the endpoint's prefix cache
        ended = [await _end(conversations[0])] if self.leads or spec.samples == 1 else []
        if left := conversations[len(ended) :]:
            ended += await asyncio.gather(*map(_end, left))
        for outcome in ended:
            if isinstance(outcome, AccessError | PendingError):
                raise outcome
        account = self._account(task, conversations, fingerprint, started)
        outcomes = [outcome for outcome in ended if isinstance(outcome, Outcome)]
        if not outcomes:
            failure = next(o for o in ended if isinstance(o, JudgeError))
            return Unscored(reason=failure.reason, detail=str(failure), **account)
        outcome = _merged(task, outcomes)
        verdict, overrides = outcome.verdict, outcome.overrides
        if spec.evidence:
            verdict, more = enforce(verdict, task.item, task.protocol, task.rubric, task.findings)
            overrides = (*overrides, *more)
        return Verdict(
            **verdict.fields(),
            overrides=overrides,
            inconsistent=outcome.inconsistent,
            reasoning=outcome.reasoning,
            doubt=self._doubt(task, outcomes),
            **account,
        )

    def _doubt(self, task: Task, outcomes: list[Outcome]) -> Doubt | None:
        """The judge's own uncertainty, before anything proven was enforced."""
        if self._spec.samples > 1:
            return uncertainty_of([outcome.verdict for outcome in outcomes], "samples", task.rubric)
        if not self._spec.logprobs:
            return None
        doubt = token_uncertainty(outcomes[0].tokens, task.rubric)
        self.silent += doubt is None
        return doubt

    def _conversation(self, task: Task, prompt: Prompt, sample: int) -> Conversation:
        spec, reply = self._spec, reply_model(task.rubric)

        def request(messages: list[dict[str, Any]], max_tokens: int) -> Request:
            return Request(
                model=spec.model,
                messages=messages,
                reply=reply,
                max_tokens=max_tokens,
                timeout_s=spec.timeout_s,
                settings=spec.sampling(sample),
                logprobs=spec.logprobs,
                sample=sample,
                prefix=task.case_id,
            )

        return Conversation(
            client=self._client,
            rubric=task.rubric,
            request=request,
            messages=prompt.messages(),
            max_tokens=spec.max_reply_tokens,
            max_reasks=spec.max_reasks,
        )

    def _account(
        self, task: Task, conversations: Sequence[Conversation], fingerprint: str, started: float
    ) -> dict[str, Any]:
        costs = [each.cost_usd for each in conversations]
        known = [cost for cost in costs if cost is not None]
        first, *others = (each.usage for each in conversations)
        return {
            "judge": self.name,
            "raw": "\n\n".join(reply for each in conversations for reply in each.replies) or None,
            "usage": sum(others, first),
            "cost_usd": sum(known) if len(known) == len(costs) else None,
            "latency_s": round(time.monotonic() - started, 3),
            "fingerprint": fingerprint,
            **task.common(),
        }


def _merged(task: Task, outcomes: list[Outcome]) -> Outcome:
    """One outcome of several replies; the reasons are those of the first that agrees."""
    if len(outcomes) == 1:
        return outcomes[0]
    verdict, overrides = combine([outcome.verdict for outcome in outcomes], task.rubric)
    agreeing = (o.reasoning for o in outcomes if o.verdict.is_correct == verdict.is_correct)
    inconsistent = any(outcome.inconsistent for outcome in outcomes)
    return Outcome(verdict, next(agreeing), overrides, inconsistent=inconsistent)


async def _end(conversation: Conversation) -> Outcome | JudgeError:
    """How a conversation ends: with a verdict, or with the reason why there is none."""
    try:
        return await conversation.outcome()
    except JudgeError as error:
        return error

"""A language model as judge: one or several conversations per item, settled by written rules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from ..errors import AccessError, JudgeError, PendingError
from ..llm.base import Client, Request, schema_json
from ..protocols.images import ImagePart, is_image, load_images
from ..protocols.prompts import Prompt, PromptMaker
from ..records import Doubt, Item, Unscored, Usage, Verdict
from ..rubrics import reply_model
from .consistency import enforce
from .conversation import Outcome, Talk
from .spec import JudgeSpec
from .task import Task
from .uncertainty import combine, doubt_of, doubt_of_tokens


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
        talks = [self._talk(task, prompt, sample) for sample in range(self._spec.samples)]
        outcomes = await self._outcomes(talks)
        account = self._account(task, talks, fingerprint, started)
        found = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
        if found:
            return self._verdict(task, found, account)
        failure = next(o for o in outcomes if isinstance(o, JudgeError))
        return Unscored(reason=failure.reason, detail=str(failure), **account)

    async def _outcomes(self, talks: Sequence[Talk]) -> list[Outcome | JudgeError]:
        """How each conversation ended; the first fills the endpoint's prefix cache."""
        ended = [await _end(talks[0])] if self.leads or len(talks) == 1 else []
        if len(ended) < len(talks):
            ended += await asyncio.gather(*map(_end, talks[len(ended) :]))
        for outcome in ended:
            if isinstance(outcome, AccessError | PendingError):
                raise outcome
        return ended

    def _verdict(self, task: Task, found: list[Outcome], account: dict[str, Any]) -> Verdict:
        outcome = self._enforced(task, self._merged(task, found))
        return Verdict(
            is_correct=outcome.ruling.is_correct,
            grade=outcome.ruling.grade,
            errors=outcome.ruling.errors,
            category=outcome.ruling.category,
            overrides=outcome.overrides,
            inconsistent=outcome.inconsistent,
            reasoning=outcome.reasoning,
            doubt=self._doubt(task, found),
            **account,
        )

    def _merged(self, task: Task, found: list[Outcome]) -> Outcome:
        """One outcome of several replies; the reasons are those of the first that agrees."""
        if len(found) == 1:
            return found[0]
        ruling, overrides = combine([outcome.ruling for outcome in found], task.rubric)
        agreeing = (o.reasoning for o in found if o.ruling.is_correct == ruling.is_correct)
        inconsistent = any(outcome.inconsistent for outcome in found)
        return Outcome(ruling, next(agreeing), overrides, inconsistent=inconsistent)

    def _enforced(self, task: Task, outcome: Outcome) -> Outcome:
        if not self._spec.evidence:
            return outcome
        ruling, overrides = enforce(
            outcome.ruling, task.item, task.protocol, task.rubric, task.findings
        )
        return replace(outcome, ruling=ruling, overrides=(*outcome.overrides, *overrides))

    def _doubt(self, task: Task, found: list[Outcome]) -> Doubt | None:
        """The judge's own doubt, before anything proven was enforced."""
        if self._spec.samples > 1:
            return doubt_of([outcome.ruling for outcome in found], "samples", task.rubric)
        if not self._spec.logprobs:
            return None
        doubt = doubt_of_tokens(found[0].tokens, task.rubric)
        self.silent += doubt is None
        return doubt

    def _talk(self, task: Task, prompt: Prompt, sample: int) -> Talk:
        request = partial(self._request, task, sample)
        return Talk(
            client=self._client,
            rubric=task.rubric,
            request=request,
            messages=prompt.messages(),
            max_tokens=self._spec.max_reply_tokens,
            max_reasks=self._spec.max_reasks,
        )

    def _request(
        self,
        task: Task,
        sample: int,
        messages: list[dict[str, Any]],
        max_tokens: int,
    ) -> Request:
        return Request(
            model=self._spec.model,
            messages=messages,
            reply=reply_model(task.rubric),
            max_tokens=max_tokens,
            timeout_s=self._spec.timeout_s,
            settings=self._spec.sampling(sample),
            logprobs=self._spec.logprobs,
            sample=sample,
            prefix=task.item.case_id,
        )

    def _account(
        self, task: Task, talks: Sequence[Talk], fingerprint: str, started: float
    ) -> dict[str, Any]:
        costs = [talk.cost_usd for talk in talks]
        known = [cost for cost in costs if cost is not None]
        usage = talks[0].usage if len(talks) == 1 else sum((t.usage for t in talks), Usage())
        return {
            "judge": self.name,
            "raw": "\n\n".join(reply for talk in talks for reply in talk.replies) or None,
            "usage": usage,
            "cost_usd": sum(known) if len(known) == len(costs) else None,
            "latency_s": round(time.monotonic() - started, 3),
            "fingerprint": fingerprint,
            **task.common(),
        }


async def _end(talk: Talk) -> Outcome | JudgeError:
    """How a conversation ends: with a ruling, or with the reason why there is none."""
    try:
        return await talk.ruling()
    except JudgeError as error:
        return error

"""A language model as judge: one or several conversations per item, and written rules.

A conversation asks for a verdict, checks the reply, and asks again where it is unusable or
contradicts itself; what stays contradictory is made consistent by the rule of ``consistency``.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from ..errors import (
    AccessError,
    InputError,
    JudgeError,
    OptionError,
    PendingError,
    RefusalError,
    ReplyError,
    RowError,
    TruncatedError,
)
from ..llm.base import Client, Completion, Request, ScriptedClient, schema_json
from ..llm.engine import concurrency_of
from ..llm.failures import fit_to_show
from ..llm.logprobs import TokenChoice
from ..llm.reasks import ask_until
from ..llm.replies import read_reply
from ..llm.resources import Resources, can_see, make_engine
from ..protocols.images import show_files
from ..protocols.prompts import Prompt, PromptMaker
from ..protocols.video import check_decoder
from ..records import Override, Uncertainty, Unscored, Usage, Verdict
from ..records.judgements import unseen_of
from ..rubrics import Rubric, published_form, reply_model
from ..runs.loop import QUIET, Job
from ..trajectories.conservation import Conservation
from .config import GradeConfig, InputConfig, JudgeSpec
from .consistency import ParsedVerdict, contradiction, enforce, parsed_verdict, resolve
from .source import JudgeTask, Rows, source_of
from .static import StaticJudge
from .uncertainty import combine, joint_account, token_uncertainty, uncertainty_of
from .worker import Judge, Judgement, record_fields

LONGER = 4
"""Factor on the token limit when a truncated reply is asked for again."""

REFUSED = ("content_filter", "refusal", "safety")
"""Reasons to finish that are a refusal of the provider's."""
_UNREADABLE = (
    "Your reply could not be read: {}. Send the same verdict once more as one JSON object with "
    "exactly these keys: {}."
)
_CONTRADICTORY = (
    "{} Give your verdict again as one JSON object with the same keys, changed so that its parts "
    "agree with each other and with the rules above."
)
_ALL_THINKING = ", and all of it is the model's thinking: apbjudge doctor says what helps"
_NOTHING = Usage()


class InconsistentError(ReplyError):
    """The reply contradicts itself in a way that the written rule can't resolve."""

    reason = "inconsistent"


@dataclass(frozen=True, slots=True)
class JudgeOutcome:
    """A consistent verdict, and how it came about.

    Attributes:
        overrides: Changes by the written rule.
        inconsistent: True if the judge contradicted itself to the end.
        reply_fields: The rubric's own fields.
        tokens: Probabilities of the reply's tokens, empty when not asked for.
    """

    verdict: ParsedVerdict
    reasoning: str
    overrides: tuple[Override, ...] = ()
    inconsistent: bool = False
    reply_fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tokens: tuple[TokenChoice, ...] = ()


@dataclass(slots=True)
class Conversation:
    """One conversation about one item.

    Attributes:
        rubric: Rubric that the verdict must fit.
        request: The first request, then the next.
        factor: By which its token limit is multiplied.
        reasks: Number of times that the judge may still be asked again.
        last: The last verdict that could be read, consistent or not.
        replies: All text of the judge; its thinking if there is no other.
        last_reply: The text of its last reply.
        lenient_replies: Replies read although not in the requested form; see ``read_reply``.
    """

    client: Client
    rubric: Rubric
    request: Request
    reasks: int
    factor: int = 1
    last: JudgeOutcome | None = None
    replies: list[str] = field(default_factory=list[str])
    last_reply: str = ""
    lenient_replies: int = 0
    usage: Usage = _NOTHING
    cost_usd: float | None = 0.0

    @property
    def raw(self) -> str | None:
        """All replies."""
        return "\n\n".join(self.replies) or None

    async def end(self) -> JudgeOutcome | JudgeError:
        """Ends the conversation: returns a verdict, or the reason why there is none."""
        try:
            return await ask_until(self._ask, self._outcome, reasks=self.reasks)
        except JudgeError as error:
            return error

    def _outcome(self, completion: Completion) -> JudgeOutcome | None:
        """The first consistent verdict, or the last one made consistent by rule.

        None where the judge is to be asked again: a cut-off reply with a higher limit, any other
        by what is wrong with it.
        """
        if completion.finish_reason == "length":
            if self.factor == 1 and self._may_ask_again():
                self.factor = LONGER
                return None
            of = "" if completion.reply_text or not completion.reasoning else _ALL_THINKING
            limit = self.factor * self.request.max_tokens
            raise TruncatedError(f"the reply did not end within {limit} tokens{of}")
        self.factor = 1
        if completion.refusal or completion.finish_reason in REFUSED:
            reason = completion.refusal or f"stopped: {completion.finish_reason}"
            raise RefusalError(fit_to_show(reason))
        try:
            self.last = last = self._read(completion)
            failure, complaint = None, contradiction(last.verdict, self.rubric)
            if complaint is None:
                return last
            complaint = _CONTRADICTORY.format(complaint)
        except ReplyError as error:
            keys = ", ".join(reply_model(self.rubric).model_fields)
            failure, complaint = error, _UNREADABLE.format(error, keys)
        if self._may_ask_again():
            messages = list(self.request.messages)
            if self.last_reply:
                messages.append({"role": "assistant", "content": self.last_reply})
            messages.append({"role": "user", "content": complaint})
            self.request = replace(self.request, messages=messages)
            return None
        if self.last is None:
            raise failure or ReplyError("no reply")
        try:
            verdict, overrides = resolve(self.last.verdict, self.rubric)
        except ReplyError as error:
            raise InconsistentError(str(error)) from None
        return replace(self.last, verdict=verdict, overrides=overrides, inconsistent=True)

    def _may_ask_again(self) -> bool:
        """Takes one of the re-asks, if any is left."""
        self.reasks -= 1
        return self.reasks >= 0

    def _read(self, completion: Completion) -> JudgeOutcome:
        text, thinking = completion.reply_text, completion.reasoning
        if not text and not thinking:
            raise ReplyError(f"the reply is empty (finish_reason: {completion.finish_reason})")
        model, form = reply_model(self.rubric), published_form(self.rubric)
        reading = read_reply(text, model, thinking=thinking, form=form)
        self.lenient_replies += reading.is_lenient
        reply = reading.reply
        verdict = parsed_verdict(reply, self.rubric)
        own = {field.name: getattr(reply, field.name) for field in self.rubric.reply_fields}
        return JudgeOutcome(verdict, reply.reasoning, reply_fields=own, tokens=completion.logprobs)

    async def _ask(self) -> Completion:
        request = self.request
        if self.factor > 1:
            request = replace(request, max_tokens=self.factor * request.max_tokens)
        try:
            completion = await self.client.complete(request)
        except JudgeError as error:
            self.usage += Usage(calls=error.calls, lost=error.lost)
            raise
        first = self.usage is _NOTHING
        self.usage = completion.usage if first else self.usage + completion.usage
        self.last_reply = completion.reply_text
        self.replies.append(self.last_reply or completion.reasoning)
        if self.cost_usd is not None:
            cost = completion.cost_usd
            self.cost_usd = None if cost is None else self.cost_usd + cost
        return completion


class LLMJudge(Judge):
    """Asks a model about each item, and enforces proven findings on its verdict.

    Args:
        spec: Model and settings.
        client: Answers requests.
        roots: Folders that pictures may lie in.
        sees: True if the model can be sent pictures.

    Attributes:
        option: By which the user named the model.
        unseen: Items by what of their files the judge was not shown; see ``unseen_of``.
        silent: Verdicts without the token probabilities that were asked for.
    """

    waits = True
    option = "--judge"

    def __init__(
        self, spec: JudgeSpec, client: Client, *, roots: Sequence[Path], sees: bool
    ) -> None:
        if spec.frames:
            check_decoder()
        self.name = spec.model
        self.unseen = Counter[str]()
        self.silent = 0
        self._spec = spec
        self._client = client
        self._roots = roots
        self._sees = sees and spec.images
        self._prompts = PromptMaker(blind=spec.blind, evidence=spec.evidence)
        self._scoring = spec.scoring
        self._sampling = [spec.sampling(sample) for sample in range(spec.samples)]

    @property
    def concurrency(self) -> int:
        """Largest number of calls in flight."""
        return concurrency_of(self._client, self._spec)

    async def close(self) -> None:
        """Releases the client's connections."""
        await self._client.close()

    def job_of(self, row: JudgeTask) -> Job[Judgement]:
        """The job of judging a task; raises RowError if it can't be shown, or nothing was asked.

        No model is asked about an empty reply: code proves that it has no plan where one was due.
        """
        if row.is_silent:
            return self._by_rule(row)
        prompt = self.prompt(row)
        fingerprint = self.fingerprint(row, prompt)
        # prompts that begin alike: of one case, with its reference or not
        prefix = (self.name, self._spec.blind, row.case_id) if self._spec.lead else None
        fields = record_fields(row, fingerprint)
        return Job(fields, lambda: self.judge(row, prompt, fingerprint), prefix, row.attempt)

    def _by_rule(self, row: JudgeTask) -> Job[Judgement]:
        static, rubric = StaticJudge(), row.rubric
        fingerprint = static.fingerprint(row)
        verdict = static.judge(row, fingerprint)
        if verdict.is_correct and not rubric.only:  # else another of the codes stands for it
            raise RowError("model_response", "a reply", "an empty text")
        flags = [code for code, is_set in (verdict.errors or {}).items() if is_set]
        grade = rubric.scale.nearest(0.0, flags) if rubric.shape == "flags" else None

        async def work() -> Judgement:
            return verdict.model_copy(update={"judge": self.name, "grade": grade})

        return Job(record_fields(row, fingerprint), work)

    def prompt(self, task: JudgeTask) -> Prompt:
        """The prompt of a task; raises RowError as ``job_of`` does."""
        if task.protocol.needs_query and not task.item.is_asked:
            raise RowError("query", "what the tested model was asked", task.item.query)
        item = task.item
        for number, example in enumerate(task.rubric.examples, start=1):
            if example.is_of(item.case_id, item.query, item.response):
                expected = f"a row that no example of {task.rubric.ref} is made of"
                raise RowError("case_id", expected, f"{item.case_id}: example {number}")
        spec = self._spec
        files = show_files(
            task.item,
            self._roots,
            max_images=spec.max_images if self._sees else 0,
            max_image_bytes=spec.max_image_bytes,
            max_text_bytes=spec.max_text_bytes,
            frames=spec.frames,
            requires_all=spec.require_files,
        )
        if item.files:
            self.unseen.update(unseen_of(**files.unseen))
        return self._prompts.make(
            task.item,
            task.rubric,
            template=task.protocol.template,
            findings=task.findings,
            rules=task.protocol.rules,
            files=files,
        )

    def fingerprint(self, task: JudgeTask, prompt: Prompt) -> str:
        """Hash of prompt, schema, rubric, model and settings: all that can move the verdict."""
        content = {
            "messages": prompt.messages(),
            "schema": orjson.Fragment(schema_json(reply_model(task.rubric))),
            "rubric": [task.rubric.ref, task.rubric.digest],
            "protocol": [task.protocol.name, task.protocol.template],
            "settings": self._scoring,
        }
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]

    def requests(self, task: JudgeTask, prompt: Prompt) -> list[Request]:
        """The first request of each sample."""
        spec = self._spec
        return [
            Request(
                model=spec.model,
                messages=prompt.messages(),
                reply=reply_model(task.rubric),
                max_tokens=spec.max_reply_tokens,
                timeout_s=spec.timeout_s,
                settings=settings,
                logprobs=spec.logprobs,
                sample=sample,
                prefix=task.case_id,
            )
            for sample, settings in enumerate(self._sampling)
        ]

    async def judge(self, task: JudgeTask, prompt: Prompt, fingerprint: str) -> Judgement:
        """Judges one item; a failure of the judge becomes an Unscored."""
        started = time.monotonic()
        spec = self._spec
        conversations = [
            Conversation(self._client, task.rubric, request, spec.max_reasks)
            for request in self.requests(task, prompt)
        ]
        # the first fills the endpoint's prefix cache
        ended = [await conversations[0].end()] if spec.lead or spec.samples == 1 else []
        if others := conversations[len(ended) :]:
            ended += await asyncio.gather(*(each.end() for each in others))
        for outcome in ended:
            if isinstance(outcome, AccessError):
                raise AccessError(f"{self.option} {self.name}: {outcome}")
            if isinstance(outcome, PendingError):
                raise outcome
        account: dict[str, Any] = {
            "judge": self.name,
            **joint_account(conversations),
            "latency_s": round(time.monotonic() - started, 3),
            "fingerprint": fingerprint,
            **task.common(),
            **prompt.files.account,
        }
        outcomes = [outcome for outcome in ended if isinstance(outcome, JudgeOutcome)]
        if not outcomes:
            failure = next(o for o in ended if isinstance(o, JudgeError))
            return Unscored(reason=failure.reason, detail=str(failure), **account)
        outcome = _merged(task, outcomes) if len(outcomes) > 1 else outcomes[0]
        verdict, overrides = outcome.verdict, outcome.overrides
        if spec.evidence:
            verdict, more = enforce(verdict, task.item, task.protocol, task.rubric, task.findings)
            overrides = (*overrides, *more)
        return Verdict(
            **verdict.fields(),
            overrides=overrides,
            inconsistent=outcome.inconsistent,
            reasoning=outcome.reasoning,
            reply_fields=dict(outcome.reply_fields) or None,
            uncertainty=self._uncertainty(task, outcomes),
            **account,
        )

    def _uncertainty(self, task: JudgeTask, outcomes: list[JudgeOutcome]) -> Uncertainty | None:
        """The judge's own uncertainty, before anything proven was enforced."""
        if self._spec.samples > 1:
            return uncertainty_of([outcome.verdict for outcome in outcomes], "samples", task.rubric)
        if not self._spec.logprobs:
            return None
        uncertainty = token_uncertainty(outcomes[0].tokens, task.rubric)
        self.silent += uncertainty is None
        return uncertainty


def _merged(task: JudgeTask, outcomes: list[JudgeOutcome]) -> JudgeOutcome:
    """One outcome of several replies; the reasons are those of the first that agrees."""
    verdict, overrides = combine([outcome.verdict for outcome in outcomes], task.rubric)
    agreeing = next(o for o in outcomes if o.verdict.is_correct == verdict.is_correct)
    inconsistent = any(outcome.inconsistent for outcome in outcomes)
    return replace(agreeing, verdict=verdict, overrides=overrides, inconsistent=inconsistent)


def make_judge(spec: JudgeSpec, roots: Sequence[Path], resources: Resources) -> LLMJudge:
    """The model judge of a run; see ``make_judges``."""
    return make_judges([(spec, resources)], roots)[0]


def make_judges(
    settings: Sequence[tuple[JudgeSpec, Resources]], roots: Sequence[Path]
) -> list[LLMJudge]:
    """Model judges that ask the same endpoint: they share its addresses, limits and rates.

    Their settings differ in what is asked and not in who is, their resources in the cache alone.
    """
    first, resources = settings[0]
    engine = make_engine(first, resources)
    sees = can_see(first, known=resources.client is None)
    engines = {resources.cache: engine}
    for _, other in settings[1:]:
        if other.cache not in engines:
            engines[other.cache] = engine.sharing(other.open_cache())
    return [LLMJudge(spec, engines[own.cache], roots=roots, sees=sees) for spec, own in settings]


def _steps_or_rows(rows: Rows, config: InputConfig) -> Rows:
    from .trajectory_source import is_log, steps_of  # which import much that no judge needs

    settings = GradeConfig(**config.model_dump(include=set(InputConfig.model_fields)))
    return steps_of(rows, settings, QUIET, Conservation()) if is_log(rows, settings) else rows


def prompts_for(
    rows: Rows,
    config: InputConfig | None = None,
    *,
    item_id: str,
    tested_model: str | None = None,
    spec: JudgeSpec | None = None,
    **settings: Any,
) -> Iterator[tuple[JudgeTask, Prompt]]:
    """Yields the messages that a judge would be sent for an item, for each of its tested models.

    Args:
        rows: As for ``grade``; of a log, its steps.
        config: Settings of the reading; else they are passed one by one.
        item_id: The item.
        tested_model: The only tested model, if stated.
        spec: The judge's settings: pictures are shown unless ``images`` is off.
        **settings: The fields of ``InputConfig``, in place of ``config``.

    Raises:
        OptionError: If no row has the id.
        InputError: If the row with the id is bad.
    """
    spec = spec or JudgeSpec(model="prompt")
    config = config or InputConfig(**settings)
    source = source_of(_steps_or_rows(rows, config), config)
    client = ScriptedClient(lambda request: "")  # prompts are only rendered here
    judge = LLMJudge(spec, client, roots=source.roots, sees=spec.vision != "no")
    is_there = False
    for entry in source:
        row = entry.item if isinstance(entry, JudgeTask) else entry
        if row.item_id != item_id or tested_model not in (None, row.tested_model):
            continue
        try:
            if not isinstance(entry, JudgeTask):
                raise entry.error
            is_there = True
            yield entry, judge.prompt(entry)
        except RowError as error:
            raise InputError(f"{source.name}:{row.line}: {error}") from None
    if not is_there:
        of = f" of tested model {tested_model!r}" if tested_model is not None else ""
        raise OptionError(f"--id: no row with id {item_id!r}{of} in {source.name}")

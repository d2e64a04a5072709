"""Reviewers of drafts: a model, rules, or a judge; only an oracle sees more than the case shows.

A review is a text for the tested model. In the paper models write it (arXiv:2606.04874, section
5.3). Rules list faults that the tested model could have seen itself; a judge's verdict is a review
only if the user chooses that. An oracle is a judge that sees the reference.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from ...judge.llm_judge import LLMJudge
from ...judge.source import JudgeTask
from ...llm.base import Completion
from ...protocols import get_protocol, protocol_of
from ...protocols.images import content_of
from ...records import Condition, Item, Usage, Verdict
from .config import Guide
from .prompt_sets import PromptSet
from .prompts import CasePrompt, placed
from .worker import AskedModel

_PARTS = ("review.system", "review.user", "final")
REVIEW_PATHS = tuple(f"{form}.{part}" for form in ("plan", "steps") for part in _PARTS)
REVIEW_NAMES = ("draft", "critique", "is_critique_above", "guide")
"""The values that review prompts may use besides those of a case.

``is_critique_above``: true if the messages before the request for a final answer have the critique.
"""

PROVEN_IN_VIEW = frozenset(
    "unknown-tool missing-parameter unknown-parameter wrong-type not-allowed-value "
    "schema-violation used-before-made format".split()
)
"""Rules whose proof needs only facts that the tested model saw."""

_VERDICT = re.compile(r"[\W_]*verdict[\W_]+(keep|change)[\W_]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Review:
    """A reviewer's text about a draft.

    Attributes:
        text: Text for the tested model; empty if there is nothing to change, or no review.
        endorses: True if the draft should stay; None if the review does not say.
        usage: Its tokens and calls.
        cost_usd: Its price; None if unknown.
        latency_s: Its duration in seconds; None if not measured.
        finish_reason: End of the reply; None if no model replied.
        served_model: Name of the model that the endpoint reported; None if it reported none.
        failure: Reason and detail if there is no review.
    """

    text: str
    endorses: bool | None
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = 0.0
    latency_s: float | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    failure: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A draft as a reviewer gets it.

    Attributes:
        item: The case with the draft as its response.
        prompt: The case as the tested model saw it.
        sample: Number of the prediction among several.
        asked_model: The model of the draft.
    """

    item: Item
    prompt: CasePrompt
    sample: int
    asked_model: AskedModel

    @property
    def text(self) -> str:
        """The draft as it is quoted."""
        return self.item.response.strip() or "(The answer was empty.)"


class Reviewer(ABC):
    """Reviews drafts.

    Attributes:
        model: The reviewing model; None if it is the tested model, or if rules review.
    """

    model: str | None = None

    @abstractmethod
    async def review(self, draft: Draft) -> Review:
        """Reviews a draft.

        Raises:
            JudgeError: If the reviewer could not be reached.
        """

    def check(self, draft: Draft) -> None:
        """Raises RowError if the reviewer can't be shown a draft with its case."""
        del draft

    def continues(self, draft: Draft) -> bool:
        """True if the review is part of the exchange that requests the final answer."""
        del draft
        return False

    def continued(self, draft: Draft, critique: str) -> list[dict[str, Any]]:
        """The exchange up to the final answer, without the request for it."""
        del critique
        return [*draft.prompt.messages(), {"role": "assistant", "content": draft.text}]


class ModelReviewer(Reviewer):
    """Asks the tested model itself, or a critic.

    Args:
        prompts: The texts of reviews.
        guide: ``codes`` if the review goes by the error codes, else ``none``.
        critic: The reviewing model; None for the tested model.
    """

    def __init__(self, prompts: PromptSet, guide: Guide, critic: AskedModel | None) -> None:
        self.model = critic.spec.model if critic is not None else None
        self._prompts = prompts
        self._guide: Guide = guide
        self._critic = critic

    def check(self, draft: Draft) -> None:
        """Raises RowError if the critic can't be shown the case's pictures."""
        if self._critic is not None:
            self._critic.check(draft.prompt)

    async def review(self, draft: Draft) -> Review:
        """Asks for a review."""
        asked_model = self._critic or draft.asked_model
        request = asked_model.request(self._messages(draft), draft.sample, draft.item.case_id)
        completion = await asked_model.ask(request)
        return _review_of(completion)

    def _messages(self, draft: Draft) -> list[dict[str, Any]]:
        view, images = draft.prompt.view, draft.prompt.images
        form = "steps" if view.k else "plan"
        quoted = draft.text.replace("\0", "\ufffd")  # NUL marks the places of pictures
        values = {**asdict(view), "draft": quoted, "guide": self._guide}
        values |= {"critique": "", "is_critique_above": False}
        user = self._prompts.render(f"{form}.review.user", values)
        if self.continues(draft):
            asked = {"role": "user", "content": user}
            return [*draft.prompt.messages(), {"role": "assistant", "content": draft.text}, asked]
        system = self._prompts.render(f"{form}.review.system", values)
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": content_of(placed(user, images))},
        ]

    def continues(self, draft: Draft) -> bool:
        """True for plans, if the prompt set continues their exchange."""
        return self._prompts.continues and not draft.prompt.view.k

    def continued(self, draft: Draft, critique: str) -> list[dict[str, Any]]:
        """The exchange, with the review if that is part of it."""
        if not self.continues(draft):
            return super().continued(draft, critique)
        return [*self._messages(draft), {"role": "assistant", "content": critique}]


def _review_of(completion: Completion) -> Review:
    """A model's reply as a review; an empty reply changes nothing.

    The verdict is the last line with a word in it: a fence or a rule may follow. If this line is
    the reply's only objection, the line is the review.
    """
    text = completion.text.strip()
    lines = _without_marks(text.splitlines())
    match = _VERDICT.fullmatch(lines[-1]) if lines else None
    endorses = None if match is None else match[1].lower() == "keep"
    if match is not None:
        rest = "\n".join(lines[:-1]).strip()
        text = rest if rest or endorses else text
    return Review(
        text=text,
        endorses=endorses,
        usage=completion.usage,
        cost_usd=completion.cost_usd,
        latency_s=completion.latency_s,
        finish_reason=completion.finish_reason,
        served_model=completion.served_model,
    )


def _without_marks(lines: list[str]) -> list[str]:
    """The lines up to the last one with a letter or a number."""
    n = max((i for i, line in enumerate(lines, start=1) if any(map(str.isalnum, line))), default=0)
    return lines[:n]


def in_view(item: Item) -> Item:
    """The item as the tested model could see it: without reference and conditions, except k."""
    return item.model_copy(
        update={
            "split": None,
            "reference": None,
            "condition": Condition(horizon=item.condition.horizon),
            "groups": {},
        }
    )


def task_of(item: Item, *, stripped: bool) -> JudgeTask:
    """An item as a judge gets it, unchanged or stripped to the tested model's view.

    Findings about a stripped item are limited to those that the item alone proves: for instance,
    they do not include that a rejected task can be solved.
    """
    name = "holistic" if item.form == "plan" else "step-wise"
    protocol = get_protocol(name) if stripped else protocol_of(item)
    rubric = protocol.rubric_for(item)
    protocol.admit(item)
    digest = sha256(item.response.encode()).digest()
    findings = protocol.find(item, rubric)
    if stripped:
        findings = tuple(finding for finding in findings if finding.rule in PROVEN_IN_VIEW)
    return JudgeTask(item, protocol, rubric, findings, digest, 0)


class StaticReviewer(Reviewer):
    """Lists faults that rules prove from the tested model's view; asks no model."""

    async def review(self, draft: Draft) -> Review:
        """Lists the faults; a draft without any is endorsed."""
        task = task_of(in_view(draft.item), stripped=True)
        faults = [
            f"- {fault.where}: {fault.message}"
            for fault in task.findings
            if fault.certainty == "proven"
        ]
        if not faults:
            return Review("", endorses=True)
        listed = "\n".join(dict.fromkeys(faults))
        return Review(f"A check by program found these faults:\n{listed}", endorses=False)


class JudgeReviewer(Reviewer):
    """Turns a judge's verdict into a review.

    Args:
        judge: The judge; blind, unless it is an oracle.
        critic: Its model, as requested.
        is_oracle: True if it sees the reference and the conditions of the case.
    """

    def __init__(self, judge: LLMJudge, critic: AskedModel, *, is_oracle: bool) -> None:
        self.model = judge.name
        self._judge = judge
        self._critic = critic
        self._is_oracle = is_oracle

    def check(self, draft: Draft) -> None:
        """Raises RowError if the judge can't be shown the case with all its pictures."""
        self._critic.check(draft.prompt)
        self._judge.prompt(self._task(draft))

    def _task(self, draft: Draft) -> JudgeTask:
        item = draft.item if self._is_oracle else in_view(draft.item)
        return task_of(item, stripped=not self._is_oracle)

    async def review(self, draft: Draft) -> Review:
        """Asks the judge; endorses a draft that the judge grades as correct."""
        task = self._task(draft)
        prompt = self._judge.prompt(task)
        fingerprint = self._judge.fingerprint(task, prompt)
        verdict = await self._judge.judge(task, prompt, fingerprint)
        account: dict[str, Any] = {
            "usage": verdict.usage or Usage(),
            "cost_usd": verdict.cost_usd,
            "latency_s": verdict.latency_s,
        }
        if not isinstance(verdict, Verdict):
            failure = (verdict.reason, f"the judge gave no verdict: {verdict.detail}")
            return Review("", None, **account, failure=failure)
        if verdict.is_correct:
            return Review("", endorses=True, **account)
        names = {criterion.code: criterion.name for criterion in task.rubric.criteria}
        codes = [code for code, flag in (verdict.errors or {}).items() if flag]
        head = "A judge finds your answer wrong"
        if codes:
            head += ": " + ", ".join(f"{code} ({names.get(code, code)})" for code in codes)
        return Review(f"{head}.\n\n{verdict.reasoning}".strip(), endorses=False, **account)

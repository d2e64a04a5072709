"""A language model as the agent: its prompts, and the reading of its answers."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from math import exp, fsum
from typing import Any

from jinja2 import Template
from pydantic import BaseModel

from ....errors import ReplyError
from ....llm.base import Client, Completion, Request
from ....llm.logprobs import TokenChoice
from ....llm.model_spec import ModelSpec
from ....llm.replies import read_reply
from ....protocols.fence import fence
from ....protocols.prompts import compiled
from ....records import Usage
from ....records.loose_json import as_object, json_values
from ....records.tools import pretty
from ....records.trajectories import ToolCall, Trajectory, TrajectoryStep
from ..plans import PlanAction, PlanLine, Situation
from .distributions import (
    MIN_SHARE,
    MOST_LABELS,
    LabelKind,
    beginnings,
    from_labels,
    from_samples,
    label_shares,
    labels,
)
from .policy import Decision, EstimatedDistribution
from .search import Opinion

Tool = Mapping[str, Any]
Retriever = Callable[[Situation, int], Sequence[Tool]]
"""Chooses the tools that a model is shown for a substep, a number at most."""
PROMPTS = "execute@1"
"""Folder of the texts that a model is sent."""
_LABEL_TOKENS = 4  # two digits, or a blank before them, and an end


class ActionReply(BaseModel):
    """The form of an action, for endpoints that keep to a schema."""

    tool: str | None
    arguments: dict[str, Any] = {}


class ModelPolicy:
    """A model that is asked for each substep anew, with all that was done before; see ``Policy``.

    Args:
        client: What answers; not closed here.
        spec: The model and its sampling settings, by which ``act`` asks.
        m: Samples at each substep, of whole calls at ``temperature``; 0 for the probabilities of
            labels instead, which asks once and again for the arguments of each call.
        temperature: Of samples.
        kind: Labels of candidates; None for letters where there are enough, which most vocabularies
            have as single tokens, and else digits.
        structured: Whether the endpoint is asked to keep calls to a schema, which small models
            need. Some refuse a schema whose arguments are open.
        max_candidates: Choices shown, doing without a tool among them.
        retrieve: Chooses tools where there are more; None for ``by_words``.
        continuation: Settings by which the endpoint goes on with a message of the assistant: for
            vLLM ``{"continue_final_message": True, "add_generation_prompt": False}``, for llama.cpp
            none (``{}``). With them the second digit is asked for after every likely first one;
            without (None), after the model's own alone: the mass of the others is not captured,
            nor any where its reply begins otherwise.

    Raises:
        ValueError: If m is below 0, or there are more candidates than labels.
    """

    def __init__(
        self,
        client: Client,
        spec: ModelSpec,
        *,
        m: int = 10,
        temperature: float = 1.0,
        kind: LabelKind | None = None,
        structured: bool = False,
        max_candidates: int = 100,
        retrieve: Retriever | None = None,
        continuation: Mapping[str, Any] | None = None,
    ) -> None:
        if m < 0 or max_candidates < 2:
            expected = "m >= 0 and max_candidates >= 2"
            raise ValueError(f"ModelPolicy: expected {expected}, got {m=} {max_candidates=}")
        if not m:
            labels(max_candidates, kind or "digits")
        self._client, self._spec, self._m = client, spec, m
        self._temperature = temperature
        self._kind: LabelKind | None = kind
        self._reply = ActionReply if structured else None
        self._max_tools = max_candidates - 1
        self._retrieve = retrieve or by_words
        self._continuation = continuation

    async def distribution(self, situation: Situation) -> EstimatedDistribution:
        """Samples of the whole action, or the probabilities of the candidates' labels."""
        if not self._m:
            return await self._by_labels(situation)
        messages = self._messages(situation, "act")
        settings = [self._sampling(i) | {"temperature": self._temperature} for i in range(self._m)]
        replies = await asyncio.gather(
            *(self._ask(messages, situation, each, sample=i) for i, each in enumerate(settings))
        )
        usage = sum((reply.usage for reply in replies), Usage())
        return EstimatedDistribution(from_samples([action_of(reply) for reply in replies]), usage)

    async def act(self, situation: Situation) -> Decision:
        """One action, by the model's own settings."""
        reply = await self._ask(self._messages(situation, "act"), situation, self._sampling(0))
        return Decision(action_of(reply), reply.usage)

    async def complete(self, situation: Situation, tool: str | None) -> Decision:
        """The arguments for a tool; doing without one asks for nothing."""
        if tool is None:
            return Decision(PlanAction())
        definition = [dict(each) for each in situation.tools if each["name"] == tool]
        messages = self._messages(situation, "arguments", tool=pretty(definition))
        reply = await self._ask(messages, situation, self._sampling(0))
        call = action_of(reply).call
        if call is None:
            call = ToolCall(tool, reply.reply_text, parse_error="the reply has no arguments")
        return Decision(PlanAction(replace(call, name=tool), reply.reply_text), reply.usage)

    async def ask_at_end(self, situation: Situation) -> Completion:
        """The model's answer about a run that is complete."""
        messages = self._messages(situation, "verify")
        return await self._ask(messages, situation, self._sampling(0))

    async def _by_labels(self, situation: Situation) -> EstimatedDistribution:
        tools = self._tools(situation)
        names: list[str | None] = [*(tool["name"] for tool in tools), None]
        letters = len(names) <= MOST_LABELS["letters"]
        kind: LabelKind = self._kind or ("letters" if letters else "digits")
        known = labels(len(names), kind)
        described = [f"{tool['name']}: {tool.get('description', '')}" for tool in tools]
        options = "\n".join(map(" ".join, zip(known, [*described, "no tool"], strict=True)))
        messages = self._messages(situation, "label", options=options, kind=kind)
        reply = await self._ask(messages, situation, self._sampling(0), logprobs=True)
        usage, tokens, reach = reply.usage, list(reply.logprobs), 1.0
        while tokens and not tokens[0].token.strip():
            reach *= exp(tokens.pop(0).logprob)
        if not tokens or not tokens[0].top:
            raise ReplyError("the endpoint reports no probabilities of tokens", raw=reply.text)
        first, following = tokens[0], dict[str, TokenChoice]()
        begun = beginnings(known, first)
        if first.token.strip() in begun and len(tokens) > 1:
            following[first.token.strip()] = tokens[1]
        for text, share in begun.items():
            if self._continuation is None or text in following or share < MIN_SHARE:
                continue
            more = await self._ask(
                [*messages, {"role": "assistant", "content": text}],
                situation,
                self._sampling(0) | dict(self._continuation),
                logprobs=True,
            )
            usage += more.usage
            if more.logprobs:
                following[text] = more.logprobs[0]
        distribution = from_labels(names, known, label_shares(known, first, following))
        captured = distribution.captured * reach
        return EstimatedDistribution(replace(distribution, captured=captured), usage)

    def _sampling(self, sample: int) -> dict[str, Any]:
        return self._spec.sampling(sample)

    def _tools(self, situation: Situation) -> Sequence[Tool]:
        if len(situation.tools) <= self._max_tools:
            return situation.tools
        return self._retrieve(situation, self._max_tools)[: self._max_tools]

    def _messages(self, situation: Situation, ask: str, **values: str) -> list[dict[str, Any]]:
        plan = "\n".join(f"{line.step} {line.description}".rstrip() for line in situation.plan)
        case = _template("case").render(
            fence=fence,
            query=situation.query,
            plan=plan,
            tools=pretty([dict(tool) for tool in self._tools(situation)]),
            history=[_shown(step) for step in situation.history],
        )
        asked = _template(ask).render(fence=fence, substep=situation.substep, **values)
        return [
            {"role": "system", "content": _template("system").render().strip()},
            {"role": "user", "content": f"{case.strip()}\n\n{asked.strip()}"},
        ]

    async def _ask(
        self,
        messages: list[dict[str, Any]],
        situation: Situation,
        settings: dict[str, Any],
        *,
        sample: int = 0,
        logprobs: bool = False,
    ) -> Completion:
        return await self._client.complete(
            Request(
                model=self._spec.model,
                messages=messages,
                reply=None if logprobs else self._reply,
                max_tokens=_LABEL_TOKENS if logprobs else self._spec.max_reply_tokens,
                timeout_s=self._spec.timeout_s,
                settings=settings,
                logprobs=logprobs,
                sample=sample,
                prefix=situation.task,
            )
        )


@cache
def _template(name: str) -> Template:
    folder = resources.files(__name__.rpartition(".")[0]).joinpath("templates", PROMPTS)
    return compiled(folder.joinpath(f"{name}.j2").read_text(encoding="utf-8"))


class _Stated(BaseModel):
    """The reply of a verifier."""

    right: bool


class ModelVerifier:
    """A model that says of a complete run whether it is right, without the reference.

    A reply that is cut off, refused, says nothing or contradicts itself accepts nothing.

    Args:
        client: What answers; not closed here.
        spec: The model and its settings.
        plans: The plan of each case by its id, as the agent sees it.
    """

    def __init__(
        self, client: Client, spec: ModelSpec, plans: Mapping[str, tuple[PlanLine, ...]]
    ) -> None:
        self._policy = ModelPolicy(client, spec, m=1)
        self._plans = plans

    async def __call__(self, run: Trajectory) -> Opinion:
        """Asks about one run."""
        situation = Situation(
            task=run.case_id,
            query=run.query,
            plan=self._plans[run.case_id],
            substep="",
            history=run.steps,
            tools=(),
        )
        reply = await self._policy.ask_at_end(situation)
        try:
            stated = read_reply(reply.reply_text, _Stated, thinking=reply.reasoning).reply.right
        except ReplyError:
            stated = False
        return Opinion(stated and not _is_broken(reply), reply.usage)


def _shown(step: TrajectoryStep) -> dict[str, str]:
    """The view of a finished substep that a model is shown."""
    shown = {"substep": str(step.extra.get("substep", "")), "what": "", "call": "", "output": ""}
    if step.kind == "invalid":
        return shown | {"what": "the answer could not be read, nothing was done"}
    if not step.calls:
        return shown | {"what": "no tool was called"}
    call = step.calls[0]
    outputs = [each.content for each in step.observations]
    has_failed = any(each.is_error for each in step.observations)
    return shown | {
        "what": "the call failed" if has_failed else "a tool was called",
        "call": pretty({"tool": call.name, "arguments": call.arguments}),
        "output": "\n".join(each if isinstance(each, str) else pretty(each) for each in outputs),
    }


def action_of(reply: Completion) -> PlanAction:
    """The action that a reply states; one that was refused, cut off or says nothing is no action.

    The last JSON object with ``tool`` counts. Arguments that are no object are kept as they are,
    with the complaint.
    """
    text = reply.reply_text
    unreadable = PlanAction(text=text, is_readable=False)
    if _is_broken(reply):
        return unreadable
    stated = [each for each in map(as_object, json_values(text)) if each and "tool" in each]
    if not stated:
        return unreadable
    tool, arguments = stated[-1]["tool"], stated[-1].get("arguments", {})
    if tool is None:
        return PlanAction(None, text)
    if not isinstance(tool, str) or not tool.strip():
        return unreadable
    if as_object(arguments) is None:
        return PlanAction(
            ToolCall(tool, arguments, parse_error="arguments are no JSON object"), text
        )
    return PlanAction(ToolCall(tool, arguments), text)


def _is_broken(reply: Completion) -> bool:
    return bool(reply.refusal) or reply.finish_reason in ("length", "content_filter")


_WORD = re.compile(r"[^\W_]+")


def by_words(situation: Situation, limit: int) -> Sequence[Tool]:
    """The tools that share most words with the substep and the request, rare words counting most.

    It stands in for the embedding search of the paper where nobody gives another.
    """
    words = [
        set(_words(f"{tool['name']} {tool.get('description', '')}")) for tool in situation.tools
    ]
    known_by = Counter(word for of_tool in words for word in of_tool)
    substep, query = set(_words(situation.description)), set(_words(situation.query))

    def likeness(at: int) -> float:
        wanted = ((substep, 2.0), (query, 1.0))
        return fsum(weight / known_by[w] for text, weight in wanted for w in words[at] & text)

    ranked = sorted(range(len(words)), key=lambda at: -likeness(at))
    return [situation.tools[at] for at in ranked[:limit]]


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}

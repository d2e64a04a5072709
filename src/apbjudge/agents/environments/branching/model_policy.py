"""A language model as the agent: its prompts, and the reading of its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any

from pydantic import BaseModel

from ....errors import ReplyError
from ....llm.base import Client, Completion, Request
from ....llm.logprobs import TokenChoice
from ....llm.model_spec import ModelSpec
from ....llm.replies import is_broken, read_reply
from ....records import Usage
from ....records.tools import pretty
from ....records.trajectories import ToolCall, Trajectory
from ..plans import PlanAction, PlanEnvironment, Situation
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
from .policy import Decision, EstimatedDistribution, Reflection
from .prompts import (
    Tool,
    action_of,
    by_words,
    substep_messages,
)
from .search import Opinion

Retriever = Callable[[Situation, int], Sequence[Tool]]
"""Chooses the tools to show for a situation, at most a number of them."""
_LABEL_TOKENS = 4  # two digits, or a blank before them, and an end


class ActionReply(BaseModel):
    """The form of an action, for endpoints that enforce a schema."""

    tool: str | None
    arguments: dict[str, Any] = {}


@dataclass(slots=True)
class AskedCounts:
    """Costs of a case as the paper counts them (table 5), cached replies included.

    Attributes:
        requests: Requests for text; one for several samples counts once.
        samples: Replies to these requests.
        forward_passes: Requests for the probabilities of labels, which generate no text.
        forward_tokens: Prompt tokens of forward passes.
    """

    requests: int = 0
    samples: int = 0
    forward_passes: int = 0
    forward_tokens: int = 0


class ModelPolicy:
    """A model that gets a separate request for each substep, with the history; see ``Policy``.

    Args:
        client: Client that answers; not closed here.
        spec: The model and its sampling settings, which ``act`` uses.
        m: Number of samples of whole calls at each substep, at temperature 1; 0 to use the
            probabilities of labels instead, with another request for the arguments of each call.
        kind: Labels of candidates; None for letters, which are single tokens in most vocabularies,
            if there are enough, else digits.
        structured: True to make the endpoint enforce a schema for calls, which small models need.
            Some endpoints refuse a schema with open arguments.
        max_candidates: Largest number of choices shown, "no tool" included.
        retrieve: Chooses tools if there are more; None for ``by_words``.
        continuation: Settings with which the endpoint continues a message of the assistant: for
            vLLM ``{"continue_final_message": True, "add_generation_prompt": False}``, for llama.cpp
            none (``{}``). With them, the second digit is requested after every likely first digit.
            Without (None), it is known after the model's own first digit alone: the probability of
            other first digits is not captured, and none if the reply begins with another token.

    Attributes:
        asked: Counts of requests to the model so far.

    Raises:
        ValueError: If m is below 0, or there are more candidates than labels.
    """

    def __init__(
        self,
        client: Client,
        spec: ModelSpec,
        *,
        m: int = 10,
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
        self._kind: LabelKind | None = kind
        self._reply = ActionReply if structured else None
        self._max_tools = max_candidates - 1
        self._retrieve = retrieve or by_words
        self._continuation = continuation
        self.asked = AskedCounts()

    async def distribution(self, situation: Situation) -> EstimatedDistribution:
        """The distribution by samples of whole actions, or by probabilities of labels."""
        if not self._m:
            return await self._by_labels(situation)
        messages = self._messages(situation, "act")
        settings = [self._sampling(i) | {"temperature": 1.0} for i in range(self._m)]
        replies = await asyncio.gather(
            *(self._ask(messages, situation, each, sample=i) for i, each in enumerate(settings))
        )
        self.asked.requests += 1
        usage = sum((reply.usage for reply in replies), Usage())
        return EstimatedDistribution(from_samples([action_of(reply) for reply in replies]), usage)

    async def act(self, situation: Situation, sample: int = 0) -> Decision:
        """One action, by the model's own settings."""
        reply = await self._ask_once(self._messages(situation, "act"), situation, sample)
        return Decision(action_of(reply), reply.usage)

    async def complete(self, situation: Situation, tool: str | None) -> Decision:
        """Requests the arguments for a tool; no tool needs no request."""
        if tool is None:
            return Decision(PlanAction())
        definition = [dict(each) for each in situation.tools if each["name"] == tool]
        messages = self._messages(situation, "arguments", tool=pretty(definition))
        reply = await self._ask_once(messages, situation)
        call = action_of(reply).call
        if call is None:
            call = ToolCall(tool, reply.reply_text, parse_error="the reply has no arguments")
        return Decision(PlanAction(replace(call, name=tool), reply.reply_text), reply.usage)

    async def reflect(self, situation: Situation, sample: int = 0) -> Reflection:
        """The model's reflection; empty if its reply is refused or cut off."""
        reply = await self.ask_at_end(situation, "reflect", sample)
        text = "" if is_broken(reply) else reply.reply_text.strip()
        return Reflection(text, reply.usage)

    async def ask_at_end(self, situation: Situation, ask: str, sample: int = 0) -> Completion:
        """The model's answer about a complete run.

        Args:
            situation: The run.
            ask: Name of the template of the question.
            sample: Number of the sample.
        """
        messages = self._messages(situation, ask)
        return await self._ask_once(messages, situation, sample, is_action=False)

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
        return substep_messages(situation, ask, self._tools(situation), **values)

    async def _ask_once(
        self,
        messages: list[dict[str, Any]],
        situation: Situation,
        sample: int = 0,
        *,
        is_action: bool = True,
    ) -> Completion:
        """The reply to a request for one sample, with the model's own settings."""
        self.asked.requests += 1
        settings = self._sampling(sample)
        return await self._ask(messages, situation, settings, sample=sample, is_action=is_action)

    async def _ask(
        self,
        messages: list[dict[str, Any]],
        situation: Situation,
        settings: dict[str, Any],
        *,
        sample: int = 0,
        logprobs: bool = False,
        is_action: bool = True,
    ) -> Completion:
        completion = await self._client.complete(
            Request(
                model=self._spec.model,
                messages=messages,
                reply=self._reply if is_action and not logprobs else None,
                max_tokens=_LABEL_TOKENS if logprobs else self._spec.max_reply_tokens,
                timeout_s=self._spec.timeout_s,
                settings=settings,
                logprobs=logprobs,
                sample=sample,
                prefix=situation.task,
            )
        )
        if logprobs:
            self.asked.forward_passes += 1
            self.asked.forward_tokens += completion.usage.prompt_tokens
        else:
            self.asked.samples += 1
        return completion


class _Stated(BaseModel):
    """The reply of a verifier."""

    right: bool


class ModelVerifier:
    """A model that decides if a complete run is right, without the reference.

    It does not accept a run if its reply is cut off, refused, unreadable or contradictory.

    Args:
        client: Client that answers; not closed here.
        spec: The model and its settings.
        environment: Environment of the run; its plan is shown.
    """

    def __init__(self, client: Client, spec: ModelSpec, environment: PlanEnvironment) -> None:
        self._policy = ModelPolicy(client, spec, m=1)
        self._environment = environment

    async def __call__(self, run: Trajectory) -> Opinion:
        """Asks the model about one run."""
        situation = Situation(
            task=run.case_id,
            query=run.query,
            plan=self._environment.plan,
            substep="",
            history=run.steps,
            tools=(),
        )
        reply = await self._policy.ask_at_end(situation, "verify")
        try:
            stated = read_reply(reply.reply_text, _Stated, thinking=reply.reasoning).reply.right
        except ReplyError:
            stated = False
        return Opinion(stated and not is_broken(reply), reply.usage)

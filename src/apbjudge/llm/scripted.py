"""Replies without a model, to try every command: no key, no network, no cost.

They are made up in the requested form; equal requests have equal replies. All results made of them
have the name ``SCRIPTED``, which shows that it is not a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any, cast

import orjson

from ..records import Usage
from .base import Completion, NativeCall, Request

SCRIPTED = "scripted/no-model"
"""The name by which it is asked, and that all results have."""
NOTE = (
    f"{SCRIPTED} is no model: its replies are made up, for dry walks, so figures made with it say "
    "nothing"
)
_WORDS = "Made up: no model was asked."
_NAME = re.compile(r'"name": ?"(\w[\w.-]*)"')
_MOST_CALLS = 3
"""Number of native calls in an episode before the answer."""


class ScriptedModel:
    """A client that makes up answers; see ``Client``."""

    async def complete(self, request: Request) -> Completion:
        """Makes a reply up."""
        rng = Random(request.key())  # noqa: S311 - nothing is secret here
        n_results = sum(message.get("role") == "tool" for message in request.messages)
        calls: tuple[NativeCall, ...] = ()
        if request.tools and n_results < _MOST_CALLS:
            tool = rng.choice(request.tools)["function"]
            arguments: Any = _value(tool.get("parameters") or {}, is_right=True) or {}
            calls = (NativeCall(name=tool["name"], arguments=_json(arguments)),)
        return Completion(
            text="" if calls else _WORDS if request.tools else _text(request, rng),
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            served_model=SCRIPTED,
            usage=Usage(calls=1),
            cost_usd=0.0,
        )

    async def close(self) -> None:
        """Nothing to release."""


def _text(request: Request, rng: Random) -> str:
    """The reply if it is not a call, in the form that a schema or the prompt asks for."""
    if request.reply is not None:
        return _json(_verdict(request.reply.model_json_schema()["properties"], rng))
    texts = [str(message.get("content")) for message in request.messages]
    prompt, last = "\n".join(texts), [message["role"] for message in request.messages][-2:-1]
    if last == ["assistant"]:
        return texts[-2]  # the final answer after a review
    if "<final_answer>" in prompt:
        return f"<final_answer>{_WORDS}</final_answer>"
    if "VERDICT: KEEP" in prompt:
        return f"{_WORDS}\n\nVERDICT: {rng.choice(('KEEP', 'CHANGE'))}"
    names = list(dict.fromkeys(_NAME.findall(prompt)))[:_MOST_CALLS]
    if '"tool_calls"' not in prompt:
        chain: Any = [
            {"name": name, "parameter_description": {}, "reason": _WORDS} for name in names
        ]
        return _json({"plan": _WORDS, "tool_chain": chain})
    asked = re.search(r"exactly (\d+) objects", prompt)
    called = names[:1] if asked or rng.random() < 1 / 2 else []  # an agent has to stop
    calls: Any = [{"type": "function", "function": {"name": n, "arguments": {}}} for n in called]
    step = {"role": "assistant", "thought": _WORDS, "tool_calls": calls}
    return _json([step] * int(asked[1]) if asked else step)


def _verdict(rules: Mapping[str, Any], rng: Random) -> dict[str, Any]:
    """A consistent reply in a judge's schema; correct or incorrect at random."""
    is_right = rng.random() < 1 / 2
    reply = {name: _value(rule, is_right=is_right) for name, rule in rules.items()}
    flags = [n for n, of in rules.items() if of.get("type") == "boolean" and n != "is_correct"]
    return reply | dict.fromkeys(flags, False) | dict.fromkeys(flags[-1:], not is_right)


def _value(rule: Mapping[str, Any], *, is_right: bool) -> Any:
    """A value for its JSON schema; of an enumeration the best one or the worst."""
    match rule:
        case {"enum": [first, *_] as values}:
            return values[0 if isinstance(first, str) == is_right else -1]
        case {"properties": properties}:
            fields = cast("dict[str, Any]", properties)
            return {name: _value(of, is_right=is_right) for name, of in fields.items()}
        case _:
            plain: Any = {"string": _WORDS, "boolean": is_right, "array": [], "object": {}}
            numbers = dict.fromkeys(("number", "integer"), rule.get("minimum", 0))
            return {**plain, **numbers}.get(str(rule.get("type")))


def _json(value: object) -> str:
    return orjson.dumps(value).decode()

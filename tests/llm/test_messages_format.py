"""Anthropic's Messages: what batches send and read is what litellm would send and read."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel

from apbjudge.llm.base import FORMATS, Format, Request
from apbjudge.llm.chat_format import completion_of
from apbjudge.llm.litellm_client import LitellmClient
from apbjudge.llm.messages_format import chat_of, messages_maker
from tests.llm.talk import TALK
from tests.support.server import Body, ChatServer, in_turn

SCHEMA = "anthropic/claude-sonnet-4-5"
TOOL = "anthropic/claude-3-5-haiku-20241022"


class Reply(BaseModel):
    reasoning: str
    ok: bool


def asked(model: str = SCHEMA, form: Format = "json_schema", **changes: Any) -> Request:
    settings = {"temperature": 0.0, "seed": 0}
    usual: dict[str, Any] = {"messages": TALK, "reply": Reply, "settings": settings}
    return Request(model=model, format=form, max_tokens=77, **{**usual, **changes})


def sent_and_read(
    request: Request, message: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], Any]:
    """The body that litellm sends for a request, and what it reads in an answer."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")

    async def main() -> Any:
        client = LitellmClient()
        try:
            return await client.complete(request)
        finally:
            await client.close()

    with ChatServer(in_turn([Body(json.dumps(message).encode())])) as server:
        object.__setattr__(request, "api_base", server.address.removesuffix("/v1"))
        completion = asyncio.run(main())
    return server.requests[-1].body, completion


def message(*content: dict[str, Any], reason: str = "end_turn", **usage: int) -> dict[str, Any]:
    counts = {"input_tokens": 11, "output_tokens": 5, **usage}
    return {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": list(content),
        "stop_reason": reason,
        "usage": counts,
    }


TEXT = {"type": "text", "text": '{"ok": true}'}
SPACED = [TALK[0], {"role": "user", "content": "a"}, {"role": "user", "content": " b \n"}]
TOOLS = (
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
    },
)
CALLED = [
    {"role": "user", "content": "Go."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
]


@pytest.mark.parametrize(
    "request_",
    [
        *(asked(model, form) for model in (SCHEMA, TOOL) for form in FORMATS),
        asked(settings={"reasoning_effort": "low"}),
        asked(messages=SPACED),
        asked(messages=CALLED, reply=None, tools=TOOLS),
    ],
    ids=str,
)
def test_a_body_is_what_litellm_would_send(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = messages_maker(request_.model)
    sent, _ = sent_and_read(request_, message(TEXT), monkeypatch)
    assert body(request_) == body(request_) == sent


ANSWERS = {
    "text": message(TEXT, {"type": "text", "text": " more"}),
    "cut off": message(TEXT, reason="max_tokens"),
    "refused": message(reason="refusal"),
    "thinking": message({"type": "thinking", "thinking": "hm", "signature": "s"}, TEXT),
    "cached": message(TEXT, cache_read_input_tokens=40, cache_creation_input_tokens=3),
    "call": message(
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}, reason="tool_use"
    ),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_what_litellm_would_read(
    answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, read = sent_and_read(asked(), answer, monkeypatch)
    assert completion_of(chat_of(answer)) == read.model_copy(update={"cost_usd": None})


def test_json_that_came_as_a_call_is_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"type": "tool_use", "id": "t", "name": "json_tool_call", "input": {"ok": True}}
    answer = message(call, reason="tool_use")
    _, read = sent_and_read(asked(TOOL), answer, monkeypatch)
    assert completion_of(chat_of(answer)) == read.model_copy(update={"cost_usd": None})

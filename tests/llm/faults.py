"""What real servers answer when something is wrong, and what no server should answer."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.support.judging import RIGHT
from tests.support.server import Answer, Behaviour, Body, Hang, Reset, Status, completion

PASSING: dict[str, Behaviour] = {
    **{str(code): Status(code) for code in (408, 409, 425, 429, 500, 502, 503, 504, 520, 529)},
    "reset in the middle of the body": Reset(midway=True),
    "no body": Body(b""),
    "half a body": Body(completion([])[:-9]),
    "no UTF-8": Body(b"\xff\xfe{}"),
    "choices are null": Body(completion(None)),
    "a list": Body(b"[]"),
    "content is an object": Answer({"is_correct": True}),
}


def body(choice: Any, **more: Any) -> Body:
    return Body(json.dumps({**json.loads(completion([choice])), **more}).encode())


def message(**changes: Any) -> Body:
    told = {"role": "assistant", "content": RIGHT, **changes}
    return body({"index": 0, "message": told, "finish_reason": "stop"})


SAID = {"index": 0, "message": {"role": "assistant", "content": RIGHT}, "finish_reason": "stop"}
ODD = {
    "no choices": Body(b'{"detail": "not found"}'),
    "finish_reason is a list": body({"message": {"content": RIGHT}, "finish_reason": []}),
    "content in parts": message(content=[{"type": "text", "text": RIGHT}]),
    "a tool call": message(content=None, tool_calls=[{"type": "function", "function": {}}]),
    "usage is a list": Answer(RIGHT, usage=[1]),
    "tokens beyond 64 bits": Answer(RIGHT, usage={"prompt_tokens": 10**30}),
    "a price in the reply": body(SAID, _hidden_params={"response_cost": "free"}),
}


def flat(code: int, text: str, kind: str = "BadRequestError") -> Body:
    """An error as older vLLM servers write it."""
    said = {"object": "error", "message": text, "type": kind, "param": None, "code": code}
    return Body(json.dumps(said).encode(), code=code)


def wrapped(status: int, text: str, kind: str = "invalid_request_error", code: Any = None) -> Body:
    """An error as OpenAI, llama.cpp and newer vLLM servers write it."""
    error = {"message": text, "type": kind, "param": None, "code": code}
    return Body(json.dumps({"error": error}).encode(), code=status)


def plain(status: int, text: str, content_type: str = "text/html") -> Body:
    return Body(text.encode(), content_type, code=status)


def used(**usage: Any) -> Answer:
    counts = {"prompt_tokens": 90, "completion_tokens": 8, "total_tokens": 98}
    return Answer(RIGHT, usage={**counts, **usage})


GOOD = completion([SAID])
CALL = [{"id": "a", "type": "function", "function": {"name": "give_verdict", "arguments": RIGHT}}]
NO_CALL = [{**CALL[0], "function": {"name": "give_verdict", "arguments": "{}"}}]
TOO_LONG = "This model's maximum context length is 4096 tokens, you requested 9000 tokens"

SERVERS: dict[str, Behaviour] = {
    "vllm: too long": flat(400, TOO_LONG),
    "vllm: no guided decoding": flat(400, "guided_json is not supported with this backend"),
    "llama.cpp: too long": wrapped(
        400,
        "the request exceeds the available context size, try increasing it",
        "exceed_context_size_error",
        400,
    ),
    "llama.cpp: loading": wrapped(503, "Loading model", "unavailable_error", 503),
    "openai: no money": wrapped(
        429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota"
    ),
    "openai: policy": wrapped(
        400, "rejected by our safety system", code="content_policy_violation"
    ),
    "openai: schema": wrapped(400, "Invalid schema for response_format 'FlagsVerdict'"),
    "azure: filter": wrapped(
        400, "triggered Azure OpenAI's content management policy.", code="content_filter"
    ),
    "fastapi: no such path": plain(404, '{"detail":"Not Found"}', "application/json"),
    "nginx: gateway": plain(502, "<html><title>502 Bad Gateway</title></html>"),
    **{f"{code} without a word": plain(code, "") for code in (400, 401, 404, 429, 504)},
    **{str(code): Status(code) for code in (402, 405, 451)},
    "moved": Body(b"", code=301, headers={"Location": "/v1/else"}),
    "no content": Body(b"", code=204),
    "an error beside a choice": body(SAID, error={"message": "boom", "code": 500}),
    "an error that is null": body(SAID, error=None),
}
REPLIES: dict[str, Behaviour] = {
    "no choices": Body(completion([])),
    "content is null": Answer(None),
    "a tool call": message(content=None, tool_calls=CALL),
    "a tool call beside content": message(tool_calls=NO_CALL),
    "a refusal": Answer(None, message={"refusal": "no"}),
    "thoughts": Answer(f'<think>hm {{"a": 1}}</think>{RIGHT}'),
    **{
        f"finished: {reason}": Answer(RIGHT, reason)
        for reason in "content_filter tool_calls eos end_turn STOP SAFETY abort whatever".split()
    },
    "not finished": Answer(RIGHT[:20], "length"),
    "usage is null": Answer(RIGHT, usage=None),
    "usage below nothing": used(prompt_tokens=-5),
    "cached tokens": used(prompt_tokens_details={"cached_tokens": 64}),
}
BODIES: dict[str, Behaviour] = {
    "gzip": Body(gzip.compress(GOOD), headers={"Content-Encoding": "gzip"}),
    "no gzip": Body(b"not gzip", headers={"Content-Encoding": "gzip"}),
    "three megabytes": Answer(RIGHT + " " * 3_000_000),
    "another charset": Body(GOOD[:-1] + b', "x": "\xe9"}', "application/json; charset=latin-1"),
    "half a character": message(content=RIGHT.replace("as scripted", "\ud800")),
    "an error with half a character": Body(b'{"error": {"message": "\\ud800", "code": 500}}'),
}
ALIKE: dict[str, Behaviour] = {**PASSING, "hang": Hang(), **SERVERS, **REPLIES, **BODIES}

"""What real servers answer when something is wrong, and what no server should answer."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

from tests.support.judging import RIGHT
from tests.support.server import Answer, Behaviour, Body, Hang, Reset, Status, completion

PASSING: dict[str, Behaviour] = {
    **{str(code): Status(code) for code in (408, 409, 425, 429, 500, 502, 503, 504, 520, 529)},
    "reset in the middle of the body": Reset(midway=True),
    "a web page": Body(b"<html>busy</html>", "text/html"),
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
    "no body but null": Body(b"null"),
    "a number": Body(b"5"),
    "an error with status 200": Body(b'{"error": {"message": "overloaded"}}'),
    "no choices": Body(b'{"detail": "not found"}'),
    "an empty choice": body({}),
    "a choice is null": body(None),
    "message is null": body({"message": None}),
    "finish_reason is a list": body({"message": {"content": RIGHT}, "finish_reason": []}),
    "text instead of a message": body({"text": RIGHT}),
    "content in parts": message(content=[{"type": "text", "text": RIGHT}]),
    "content is a number": message(content=5),
    "a tool call": message(content=None, tool_calls=[{"type": "function", "function": {}}]),
    "tool calls are a string": message(tool_calls="none"),
    "refusal is an object": message(refusal={"because": "no"}),
    "usage is a list": Answer(RIGHT, usage=[1]),
    "half a token": Answer(RIGHT, usage={"prompt_tokens": 1.5}),
    "tokens beyond 64 bits": Answer(RIGHT, usage={"prompt_tokens": 10**30}),
    "tokens are words": Answer(RIGHT, usage={"prompt_tokens": "many"}),
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
    "vllm: no such model": flat(404, "The model `x` does not exist.", "NotFoundError"),
    "vllm: no key": plain(401, '{"error":"Unauthorized"}', "application/json"),
    "vllm: no guided decoding": flat(400, "guided_json is not supported with this backend"),
    "vllm: reply too long": wrapped(400, f"'max_tokens' is too large. {TOO_LONG}", code=400),
    "llama.cpp: too long": wrapped(
        400,
        "the request exceeds the available context size, try increasing it",
        "exceed_context_size_error",
        400,
    ),
    "llama.cpp: loading": wrapped(503, "Loading model", "unavailable_error", 503),
    "llama.cpp: grammar": wrapped(400, "failed to parse grammar", code=400),
    "openai: no money": wrapped(
        429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota"
    ),
    "openai: too fast": wrapped(429, "Rate limit reached", "tokens", "rate_limit_exceeded"),
    "openai: key": wrapped(401, "Incorrect API key provided: sk-abc.", code="invalid_api_key"),
    "openai: no such model": wrapped(404, "The model `x` is not there", code="model_not_found"),
    "openai: policy": wrapped(
        400, "rejected by our safety system", code="content_policy_violation"
    ),
    "openai: schema": wrapped(400, "Invalid schema for response_format 'FlagsVerdict'"),
    "openai: too long": wrapped(400, TOO_LONG, code="context_length_exceeded"),
    "azure: filter": wrapped(
        400, "triggered Azure OpenAI's content management policy.", code="content_filter"
    ),
    "ollama: no such model": plain(404, '{"error":"model not found"}', "application/json"),
    "fastapi: no such path": plain(404, '{"detail":"Not Found"}', "application/json"),
    "fastapi: a field": plain(422, '{"detail":[{"loc":["body"]}]}', "application/json"),
    "nginx: gateway": plain(502, "<html><title>502 Bad Gateway</title></html>"),
    "nginx: too large": plain(413, "<html>413 Request Entity Too Large</html>"),
    "cloudflare: late": plain(524, "error code: 524", "text/plain"),
    **{f"{code} without a word": plain(code, "") for code in (400, 401, 404, 429, 504)},
    **{str(code): Status(code) for code in (402, 405, 451)},
    "moved": Body(b"", code=301, headers={"Location": "/v1/else"}),
    "not modified": Body(b"", code=304),
    "no content": Body(b"", code=204),
    "created": Body(GOOD, code=201),
    "accepted": Body(b"{}", code=202),
    "an error beside a choice": body(SAID, error={"message": "boom", "code": 500}),
    "an error that is null": body(SAID, error=None),
}
REPLIES: dict[str, Behaviour] = {
    "no choices": Body(completion([])),
    "two choices": Body(completion([SAID, SAID])),
    "content is null": Answer(None),
    "content is empty": Answer(""),
    "a tool call": message(content=None, tool_calls=CALL),
    "a tool call beside content": message(tool_calls=NO_CALL),
    "a function call": message(content=None, function_call=CALL[0]["function"]),
    "a refusal": Answer(None, message={"refusal": "no"}),
    "an empty refusal": Answer(RIGHT, message={"refusal": ""}),
    "reasoning": message(reasoning_content="hm"),
    "thoughts": Answer(f'<think>hm {{"a": 1}}</think>{RIGHT}'),
    **{
        f"finished: {reason}": Answer(RIGHT, reason)
        for reason in "content_filter tool_calls eos end_turn STOP SAFETY abort whatever".split()
    },
    "not finished": Answer(RIGHT[:20], "length"),
    "not finished: max_tokens": Answer(RIGHT[:20], "max_tokens"),
    "usage is null": Answer(RIGHT, usage=None),
    "usage below nothing": used(prompt_tokens=-5),
    "usage of nulls": used(prompt_tokens=None, completion_tokens=None, total_tokens=None),
    "cached tokens": used(prompt_tokens_details={"cached_tokens": 64}),
    "no details": used(prompt_tokens_details=None),
}
BODIES: dict[str, Behaviour] = {
    "gzip": Body(gzip.compress(GOOD), headers={"Content-Encoding": "gzip"}),
    "deflate": Body(zlib.compress(GOOD), headers={"Content-Encoding": "deflate"}),
    "no gzip": Body(b"not gzip", headers={"Content-Encoding": "gzip"}),
    "half a gzip": Body(gzip.compress(GOOD)[:-20], headers={"Content-Encoding": "gzip"}),
    "three megabytes": Answer(RIGHT + " " * 3_000_000),
    "events": Body(b"data: {}\n\n", "text/event-stream"),
    "plain text": Body(GOOD, "text/plain"),
    "a byte-order mark": Body(b"\xef\xbb\xbf" + GOOD),
    "NaN": Body(GOOD[:-1] + b', "x": NaN}'),
    "another charset": Body(GOOD[:-1] + b', "x": "\xe9"}', "application/json; charset=latin-1"),
    "half a character": message(content=RIGHT.replace("as scripted", "\ud800")),
    "an error with half a character": Body(b'{"error": {"message": "\\ud800", "code": 500}}'),
    "keys twice": Body(b'{"choices": [],' + GOOD[1:]),
}
ALIKE: dict[str, Behaviour] = {**PASSING, "hang": Hang(), **SERVERS, **REPLIES, **BODIES}

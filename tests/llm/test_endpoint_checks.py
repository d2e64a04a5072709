"""Checks of endpoints that can this and not that, over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from apbjudge import ScriptedClient
from apbjudge.errors import RateLimitedError
from apbjudge.llm.base import FORMATS, Format
from apbjudge.llm.direct import DirectClient
from apbjudge.llm.endpoint_checks import MAX_TOKENS, EndpointReport, Target, check_endpoint
from apbjudge.llm.litellm_client import LitellmClient
from apbjudge.llm.model_spec import ModelSpec
from tests.support.server import Answer, Behaviour, Body, ChatServer, Seen, Status

MODEL = "hosted_vllm/m"
KEY = "HOSTED_VLLM_API_KEY"
FITS = '{"violet": 7}'
HELLO = "Hello! How can I help you today?"
NOWHERE = "http://127.0.0.1:1/v1"
"""Nobody listens there: a free port is never one below 1024."""
Rung = Literal["enforced", "ignored", "refused"]


@dataclass(frozen=True)
class Able:
    """What a server can do, and how it answers."""

    json_schema: Rung = "enforced"
    tool: Rung = "enforced"
    json_object: Rung = "enforced"
    alternatives: int | None = 20
    pictures: str | None = "Red."
    key: str | None = None

    def __call__(self, seen: Seen) -> Behaviour:
        headers = {name.lower(): value for name, value in seen.headers.items()}
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            return Status(401, "Incorrect API key provided")
        if _shows_a_picture(seen.body):
            said = self.pictures
            return Answer(said) if said is not None else Status(400, "no multimodal model")
        if "logprobs" in seen.body and self.alternatives is None:
            return Status(400, "logprobs are not supported")
        return self._in_form(seen.body)

    def _in_form(self, body: Mapping[str, Any]) -> Behaviour:
        asked = body.get("response_format", {}).get("type")
        form = "tool" if "tools" in body else asked
        rung: Rung = getattr(self, form) if form else "ignored"
        if rung == "refused":
            return Status(400, f"{form}: response_format is not supported")
        if rung == "ignored":
            return self._said(HELLO, body)
        if form == "tool":
            call = {"type": "function", "id": "c", "function": {"arguments": FITS}}
            call["function"]["name"] = body["tools"][0]["function"]["name"]
            return Answer(None, message={"tool_calls": [call]}, finish_reason="tool_calls")
        return self._said(FITS if form == "json_schema" else '{"hello": "world"}', body)

    def _said(self, text: str, body: Mapping[str, Any]) -> Behaviour:
        if not body.get("logprobs") or not self.alternatives:
            return Answer(text)
        top = [{"token": str(n), "logprob": -1.0 - n, "bytes": None} for n in range(20)]
        entry = {"token": text, "logprob": -0.1, "bytes": None}
        content = [{**entry, "top_logprobs": top[: self.alternatives]}]
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {"id": "s", "object": "chat.completion", "created": 0, "model": "m"}
        choices = [{**choice, "logprobs": {"content": content}}]
        return Body(json.dumps({**whole, "choices": choices}).encode())


def _shows_a_picture(body: Mapping[str, Any]) -> bool:
    content = body["messages"][0]["content"]
    return not isinstance(content, str) and any(part["type"] == "image_url" for part in content)


IGNORES = Able("ignored", "ignored", "ignored", alternatives=0, pictures="I see nothing.")
REFUSES = Able("refused", "refused", "refused", alternatives=None, pictures=None)


class AbleServer(ChatServer):
    """A chat server that has pages too, JSON or bytes."""

    def __init__(self, able: Callable[[Seen], Behaviour], **pages: Any) -> None:
        super().__init__(able)
        self.pages = {{"models": "/v1/models", "props": "/props"}[n]: p for n, p in pages.items()}


def ask(client: Any, address: str | None = None, **target: Any) -> EndpointReport:
    """The report of an endpoint, with a transport of its own."""

    async def main() -> EndpointReport:
        try:
            spec = {name: target.pop(name) for name in ("model", "temperature") if name in target}
            judge = ModelSpec(**{"model": MODEL, **spec})
            goal = Target(client=client, spec=judge, address=address, **target)
            return await check_endpoint(goal)
        finally:
            await client.close()

    return asyncio.run(main())


def detail(report: EndpointReport, name: str) -> tuple[str, str]:
    check = report.check(name)
    return check.outcome, check.detail


# --- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", [DirectClient, LitellmClient])
@pytest.mark.parametrize(
    ("able", "outcome", "best"),
    [
        (Able(), "enforced", "json_schema"),
        (IGNORES, "ignored", "text"),
        (REFUSES, "refused", "text"),
        (replace(IGNORES, tool="enforced"), None, "tool"),
    ],
)
def test_the_strictest_format_that_is_enforced_will_be_used(
    transport: Any, able: Able, outcome: str | None, best: Format
) -> None:
    with AbleServer(able) as server:
        report = ask(transport(), server.address, temperature=0.5)
    result, text = detail(report, "replies")
    assert (report.works, report.format, result) == (True, best, "passed")
    assert f": {best} will be used" in text
    if outcome:
        assert text.startswith(", ".join(f"{form} {outcome}" for form in FORMATS[:-1]))
    assert ("response_format is not supported" in text) is (able.json_schema == "refused")
    checked = server.requests[2:5]
    assert [seen.text for seen in checked] == ["Say hello.", "Say hello.", "Say hello. (json)"]
    sent = [(seen.body["max_tokens"], seen.body["temperature"]) for seen in server.requests]
    assert sent == [(MAX_TOKENS, 0.5)] * 7


def test_a_busy_endpoint_has_not_refused() -> None:
    def busy(asked: Any) -> str:
        if asked.format == "text":
            return HELLO
        raise RateLimitedError("HTTP 429: slow down")

    report = ask(ScriptedClient(busy))
    assert (report.format, report.check("replies").outcome) == (None, "unclear")


@pytest.mark.parametrize("reply", ['{"violet": "7"}', f"```\n{FITS}\n```"])
def test_a_reply_that_does_not_keep_to_the_schema_shows_that_it_is_not_enforced(reply: str) -> None:
    report = ask(ScriptedClient(lambda asked: reply))
    assert report.check("replies").detail.startswith("json_schema ignored, ")


# --- the model -----------------------------------------------------------------------------------


def test_a_server_that_needs_a_key_gets_the_one_that_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(KEY, raising=False)
    with AbleServer(Able(key="right-horse")) as server:
        without = ask(DirectClient(), server.address)
        monkeypatch.setenv(KEY, "right-horse")
        with_key = ask(DirectClient(), f"{server.address}/")
    assert (without.works, with_key.works) == (False, True)
    assert "Incorrect API key" in without.check("model").detail
    assert detail(without, "key") == ("failed", f"none sent: {KEY} is not set")
    assert detail(with_key, "key") == ("passed", f"{KEY} is set")
    for name in ("replies", "logprobs", "pictures"):
        assert detail(without, name) == ("skipped", "not asked")
    assert server.fetched == [("/v1/models", None), ("/v1/models", "Bearer right-horse")]


# --- probabilities and pictures ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("able", "outcome", "text"),
    [
        (Able(alternatives=5), "passed", "5 alternatives per token"),
        (IGNORES, "failed", "ignored"),
        (REFUSES, "failed", "refused: HTTP 400: logprobs are not supported scripted"),
    ],
)
def test_probabilities_reported_ignored_and_refused(able: Able, outcome: str, text: str) -> None:
    with AbleServer(able) as server:
        report = ask(DirectClient(), server.address)
    assert detail(report, "logprobs") == (outcome, text)
    assert ("response_format" in server.requests[5].body) is (able.json_schema == "enforced")


@pytest.mark.parametrize(
    ("reply", "outcome", "text"),
    [
        ("It is a RED square", "passed", "sees them"),
        ("Coloured", "failed", "takes them but did not name the colour of one"),
        (" ", "unclear", f"unclear: no reply within {MAX_TOKENS} tokens"),
        (None, "failed", "refused: HTTP 400: no multimodal model scripted"),
    ],
)
def test_pictures_are_seen_by_who_names_the_colour(
    reply: str | None, outcome: str, text: str
) -> None:
    with AbleServer(Able(pictures=reply)) as server:
        assert detail(ask(DirectClient(), server.address), "pictures") == (outcome, text)


# --- context -------------------------------------------------------------------------------------


def listed(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(entries)}


SLOTS = {"default_generation_settings": {"n_ctx": 4096}}
LLAMA = {"id": "/models/q.gguf", "meta": {"n_ctx_train": 131072}}


@pytest.mark.parametrize(
    ("pages", "tokens", "names"),
    [
        ({"models": listed({"id": "m", "max_model_len": 32768})}, 32768, " s"),
        ({"models": listed(LLAMA), "props": SLOTS}, 4096, "in the endpoint's list: /models/q.gguf"),
        ({"models": listed(LLAMA)}, 131072, "; not in the endpoint's list: /models/q.gguf"),
        ({"models": listed(*({"id": c} for c in "abcdefg"))}, None, "list: a, b, c, d, e"),
        ({"models": ["m"]}, None, " s"),
        ({"models": listed({"id": "m", "max_model_len": "long"}), "props": b"x"}, None, " s"),
    ],
)
def test_the_context_is_what_the_server_says(
    pages: dict[str, Any], tokens: int | None, names: str
) -> None:
    with AbleServer(Able(), **pages) as server:
        report = ask(DirectClient(), server.address)
    assert (report.context_tokens, report.is_total) == (tokens, tokens is not None)
    outcome, text = detail(report, "context")
    assert (outcome == "passed") is (tokens is not None) is (text != "not known")
    assert report.check("model").detail.endswith(names)

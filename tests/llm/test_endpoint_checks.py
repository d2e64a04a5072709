"""Checks of endpoints that can this and not that, over a real socket."""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest

from apbjudge import Completion, ScriptedClient
from apbjudge.errors import RateLimitedError
from apbjudge.llm.base import FORMATS, Format
from apbjudge.llm.direct import DirectClient
from apbjudge.llm.endpoint_checks import (
    MAX_TOKENS,
    RED_PNG,
    Check,
    EndpointReport,
    Target,
    check_endpoint,
)
from apbjudge.llm.litellm_client import LitellmClient
from apbjudge.llm.model_spec import ModelSpec
from tests.support.clock import VirtualClock
from tests.support.server import Answer, Behaviour, Body, ChatServer, Seen, Status

MODEL = "hosted_vllm/m"
KEY = "HOSTED_VLLM_API_KEY"
FITS = '{"violet": 7}'
HELLO = "Hello! How can I help you today?"
UNKNOWN = "none missing, as far as litellm knows"
Rung = Literal["enforced", "ignored", "refused", "silent"]


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
        if rung == "silent":
            return Answer("", finish_reason="length")
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


def nowhere() -> str:
    """An address at which nobody listens."""
    with ChatServer(IGNORES) as server:
        return server.address


@pytest.fixture(params=[DirectClient, LitellmClient])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv(KEY, raising=False)
    return request.param


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


@pytest.mark.parametrize(
    ("able", "outcome", "best"),
    [
        (Able(), "enforced", "json_schema"),
        (IGNORES, "ignored", "text"),
        (REFUSES, "refused", "text"),
        (replace(IGNORES, json_schema="enforced"), None, "json_schema"),
        (replace(IGNORES, tool="enforced"), None, "tool"),
        (replace(REFUSES, json_object="enforced"), None, "json_object"),
    ],
)
def test_the_strictest_format_that_is_enforced_will_be_used(
    transport: Any, able: Able, outcome: str | None, best: Format
) -> None:
    with AbleServer(able) as server:
        report = ask(transport(), server.address)
    result, text = detail(report, "replies")
    assert (report.works, report.format, result) == (True, best, "passed")
    assert f": {best} will be used" in text
    if outcome:
        assert text.startswith(", ".join(f"{form} {outcome}" for form in FORMATS[:-1]))
    assert ("response_format is not supported" in text) is (able.json_schema == "refused")
    assert len(server.requests) == 7
    checked = server.requests[2:5]
    assert [seen.text for seen in checked] == ["Say hello.", "Say hello.", "Say hello. (json)"]
    assert all(seen.body["max_tokens"] == MAX_TOKENS <= 64 for seen in server.requests)


def test_a_reply_that_never_began_says_nothing_of_a_format(transport: Any) -> None:
    with AbleServer(replace(IGNORES, json_schema="silent")) as server:
        report = ask(transport(), server.address)
    assert report.format is None
    text = "json_schema unclear, tool ignored, json_object ignored: json_schema will be tried "
    text += f"(no reply within {MAX_TOKENS} tokens)"
    assert detail(report, "replies") == ("unclear", text)


def test_a_busy_endpoint_has_not_refused() -> None:
    def busy(asked: Any) -> str:
        if asked.format == "text":
            return HELLO
        raise RateLimitedError("HTTP 429: slow down")

    report = ask(ScriptedClient(busy))
    assert (report.format, report.check("replies").outcome) == (None, "unclear")


def test_a_server_error_at_a_format_is_a_refusal(transport: Any) -> None:
    def behave(seen: Seen) -> Behaviour:
        return Status(500, "grammar") if "response_format" in seen.body else IGNORES(seen)

    with AbleServer(behave) as server:
        report = ask(transport(), server.address)
    assert report.check("replies").detail.startswith("json_schema refused, ")
    assert report.format == "text"


@pytest.mark.parametrize(
    "reply",
    [
        '{"violet": "7"}',
        '{"violet": 7, "more": 1}',
        f"```\n{FITS}\n```",
    ],
)
def test_a_reply_that_does_not_keep_to_the_schema_shows_that_it_is_not_enforced(reply: str) -> None:
    report = ask(ScriptedClient(lambda asked: reply))
    assert report.check("replies").detail.startswith("json_schema ignored, ")


@pytest.mark.parametrize(
    ("form", "outcome"), [("json_schema", "enforced"), ("json_object", "unclear")]
)
def test_a_schema_shows_in_a_reply_that_is_cut_off(form: Format, outcome: str) -> None:
    def script(asked: Any) -> Completion:
        reason = "length" if asked.format == form else "stop"
        text = '{"violet":' if asked.format == form else HELLO
        return Completion(text=text, finish_reason=reason)

    assert f"{form} {outcome}" in ask(ScriptedClient(script)).check("replies").detail


# --- the model -----------------------------------------------------------------------------------


def test_the_time_of_the_second_call_counts() -> None:
    clock = VirtualClock()

    def reply(_: Any) -> str:
        clock.time += 8.0 if clock.time == 1000.0 else 0.25
        return HELLO

    report = ask(ScriptedClient(reply), clock=clock)
    assert detail(report, "model") == ("passed", "answers in 0.25 s")


def test_the_sampling_settings_of_the_judge_are_sent(transport: Any) -> None:
    with AbleServer(Able()) as server:
        ask(transport(), server.address, temperature=0.5)
    assert {seen.body["temperature"] for seen in server.requests} == {0.5}


def test_a_server_that_needs_a_key_gets_the_one_that_is_set(
    transport: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AbleServer(Able(key="right-horse")) as server:
        without = ask(transport(), server.address)
        monkeypatch.setenv(KEY, "right-horse")
        with_key = ask(transport(), server.address)
    assert (without.works, with_key.works) == (False, True)
    assert "Incorrect API key" in without.check("model").detail
    assert detail(without, "key") == ("failed", f"none sent: {KEY} is not set")
    assert detail(with_key, "key") == ("passed", f"{KEY} is set")
    for name in ("replies", "logprobs", "pictures"):
        assert detail(without, name) == ("skipped", "not asked")


def test_a_server_that_is_not_there(transport: Any) -> None:
    report = ask(transport(), nowhere())
    assert not report.works
    assert report.check("model").detail.startswith("no answer: ")


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


def test_no_reply_says_nothing_of_probabilities() -> None:
    def script(asked: Any) -> Completion:
        return Completion(text="" if asked.logprobs else HELLO, finish_reason="length")

    report = ask(ScriptedClient(script))
    assert detail(report, "logprobs") == (
        "unclear",
        f"unclear: no reply within {MAX_TOKENS} tokens",
    )


def test_the_picture_is_a_png_that_is_red_all_over() -> None:
    data = base64.b64decode(RED_PNG)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    size = int.from_bytes(data[33:37], "big")
    assert data[37:41] == b"IDAT"
    assert zlib.decompress(data[41 : 41 + size]) == (b"\0" + b"\xff\0\0" * 64) * 64


# --- context -------------------------------------------------------------------------------------


def listed(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(entries)}


@dataclass(frozen=True)
class Listed:
    """Pages of an endpoint, and what they mean."""

    pages: dict[str, Any]
    tokens: int | None
    is_listed: bool | None
    names: tuple[str, ...] = field(default=())


SLOTS = {"default_generation_settings": {"n_ctx": 4096}}
LLAMA = {"id": "/models/q.gguf", "meta": {"n_ctx_train": 131072}}


@pytest.mark.parametrize(
    "pages",
    [
        Listed({"models": listed({"id": "m", "max_model_len": 32768})}, 32768, True),
        Listed({"models": listed({"id": "m", "context_length": 8192}, {"id": "n"})}, 8192, True),
        Listed({"models": listed(LLAMA), "props": SLOTS}, 4096, False, ("/models/q.gguf",)),
        Listed({"models": listed(LLAMA)}, 131072, False, ("/models/q.gguf",)),
        Listed(
            {"models": listed({"id": "a", "max_model_len": 9}, {"id": "b"})},
            None,
            False,
            ("a", "b"),
        ),
        Listed({"models": listed(*({"id": c} for c in "abcdefg"))}, None, False, tuple("abcde")),
        Listed({"models": listed()}, None, None),
        Listed({"models": ["m"]}, None, None),
        Listed({"models": listed({"id": "m", "max_model_len": "long"}), "props": b"x"}, None, True),
    ],
)
def test_the_context_is_what_the_server_says(pages: Listed) -> None:
    with AbleServer(Able(), **pages.pages) as server:
        report = ask(DirectClient(), server.address)
    assert report.context_tokens == pages.tokens
    assert report.is_total is (pages.tokens is not None)
    outcome, text = detail(report, "context")
    assert (outcome == "passed") is (pages.tokens is not None) is (text != "not known")
    names = ", ".join(pages.names)
    listed = f"; not in the endpoint's list: {names}" if names else " s"
    assert report.check("model").detail.endswith(listed)
    assert len(server.requests) == 7


def test_a_list_longer_than_any_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apbjudge.llm.direct.MAX_LIST_BYTES", 100)
    page = listed({"id": "m", "max_model_len": 32768, "more": "x" * 100})
    with AbleServer(Able(), models=page) as server:
        assert ask(DirectClient(), server.address).context_tokens is None


def test_the_table_knows_what_the_server_does_not_say() -> None:
    with AbleServer(Able()) as server:
        report = ask(DirectClient(), server.address, model="openai/gpt-4o")
    assert (detail(report, "context")[1], report.is_total) == ("128,000 tokens", False)


def test_the_list_is_requested_with_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with AbleServer(Able()) as server:
        monkeypatch.delenv(KEY, raising=False)
        ask(DirectClient(), server.address)
        monkeypatch.setenv(KEY, "right-horse")
        ask(DirectClient(), f"{server.address}/")
    assert server.fetched == [("/v1/models", None), ("/v1/models", "Bearer right-horse")]


def test_without_a_network_only_the_client_is_asked() -> None:
    with AbleServer(Able(), models=listed({"id": "m", "max_model_len": 9})) as server:
        report = ask(ScriptedClient(lambda asked: HELLO), server.address, network=False)
    assert (detail(report, "context")[1], server.fetched) == ("not known", [])
    assert detail(report, "key") == ("skipped", "not looked for")


# --- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "variables", "answers", "expected"),
    [
        ({}, {KEY: "right-horse"}, False, ("passed", f"{KEY} is set")),
        ({}, {KEY: ""}, False, ("failed", f"none sent: {KEY} is not set")),
        ({}, {KEY: ""}, True, ("passed", "none needed, none sent")),
        ({"model": "mistral/x"}, {"MISTRAL_API_KEY": "x"}, False, ("passed", UNKNOWN)),
        ({"model": "ollama/m"}, {}, False, ("failed", "none sent: OLLAMA_API_BASE is not set")),
        ({"model": "ollama/m", "address": "http://127.0.0.1:1"}, {}, False, ("passed", UNKNOWN)),
    ],
)
def test_a_key_is_looked_for_and_never_shown(
    target: dict[str, Any],
    variables: dict[str, str],
    answers: Any,
    expected: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def script(asked: Any) -> str:
        if answers:
            return HELLO
        raise RateLimitedError("busy")

    for name in (KEY, "MISTRAL_API_KEY", "OLLAMA_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    report = ask(ScriptedClient(script), **target)
    assert detail(report, "key") == expected
    assert isinstance(report.checks[0], Check)

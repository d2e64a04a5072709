"""What is found out of endpoints that can this and not that, over a real socket."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge import Completion, ScriptedClient
from apbjudge.errors import RateLimitedError
from apbjudge.llm.base import FORMATS, Format
from apbjudge.llm.direct import DirectClient
from apbjudge.llm.litellm_client import LitellmClient
from apbjudge.llm.probes import (
    LONGEST_FAILURE,
    MAX_TOKENS,
    FormatsFound,
    KeyFound,
    LogprobsFound,
    Outcome,
    PicturesFound,
    Probe,
    Target,
    find_key,
    probe_context,
    probe_formats,
    probe_logprobs,
    probe_model,
    probe_pictures,
    red_png,
)
from tests.support.clock import VirtualClock
from tests.support.server import Answer, Behaviour, Body, ChatServer, Handler, Seen, Status

T = TypeVar("T")
MODEL = "hosted_vllm/m"
KEY = "HOSTED_VLLM_API_KEY"
FITS = '{"violet": 7}'
HELLO = "Hello! How can I help you today?"
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


class _Pages(Handler):
    """Answers GET with the pages of its server."""

    def do_GET(self) -> None:  # noqa: N802
        owner = cast("AbleServer", self.server.owner)
        owner.fetched.append((self.path, self.headers.get("Authorization")))
        page = owner.pages.get(self.path)
        if page is None:
            self.reply(404, b'{"error": {"message": "Not Found"}}')
        elif isinstance(page, bytes):
            self.reply(200, page)
        else:
            self.reply(200, json.dumps(page).encode())


class AbleServer(ChatServer):
    """A chat server that has pages too: path to JSON or bytes."""

    def __init__(self, able: Callable[[Seen], Behaviour], **pages: Any) -> None:
        super().__init__(able)
        self.pages = {{"models": "/v1/models", "props": "/props"}[n]: p for n, p in pages.items()}
        self.fetched: list[tuple[str, str | None]] = []
        self._server.RequestHandlerClass = _Pages


def nowhere() -> str:
    """An address at which nobody listens."""
    with ChatServer(IGNORES) as server:
        return server.address


@pytest.fixture(params=[DirectClient, LitellmClient])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv(KEY, raising=False)
    return request.param


def ask(
    probe: Callable[..., Awaitable[T]], client: Any, address: str | None, *more: Any, **target: Any
) -> T:
    """What a probe finds, with a transport of its own."""

    async def main() -> T:
        try:
            goal = Target(**{"client": client, "model": MODEL, "address": address, **target})
            return await probe(goal, *more)
        finally:
            await client.close()

    return asyncio.run(main())


# --- formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("able", "outcome", "best"),
    [
        (Able(), "enforced", "json_schema"),
        (IGNORES, "ignored", "text"),
        (REFUSES, "refused", "text"),
    ],
)
def test_what_becomes_of_each_format(
    transport: Any, able: Able, outcome: Outcome, best: Format
) -> None:
    with AbleServer(able) as server:
        found = ask(probe_formats, transport(), server.address)
    assert found.outcomes == dict.fromkeys(FORMATS[:-1], outcome)
    assert found.best == best
    assert set(found.failures) == (set(FORMATS[:-1]) if outcome == "refused" else set())


@pytest.mark.parametrize("form", FORMATS[:-1])
def test_the_only_enforced_format_is_the_best(transport: Any, form: str) -> None:
    with AbleServer(replace(IGNORES, **{form: "enforced"})) as server:
        assert ask(probe_formats, transport(), server.address).best == form


def test_no_prompt_of_a_format_says_what_is_expected(transport: Any) -> None:
    with AbleServer(Able()) as server:
        ask(probe_formats, transport(), server.address)
    assert [seen.text for seen in server.requests] == [
        "Say hello.",
        "Say hello.",
        "Say hello. (json)",
    ]
    assert all(seen.body["max_tokens"] == MAX_TOKENS <= 64 for seen in server.requests)


def test_a_reply_that_never_began_says_nothing_of_a_format(transport: Any) -> None:
    with AbleServer(replace(IGNORES, json_schema="silent")) as server:
        found = ask(probe_formats, transport(), server.address)
    assert found.outcomes["json_schema"] == "unclear"
    assert found.best is None
    assert found.text == (
        "json_schema unclear, tool ignored, json_object ignored: json_schema will be tried "
        f"(no reply within {MAX_TOKENS} tokens)"
    )


def test_a_busy_endpoint_has_not_refused() -> None:
    def busy(_: Any) -> str:
        raise RateLimitedError("HTTP 429: slow down")

    found = ask(probe_formats, ScriptedClient(busy), None)
    assert set(found.outcomes.values()) == {"unclear"}
    assert found.best is None


def test_a_server_error_at_a_format_is_a_refusal(transport: Any) -> None:
    def behave(seen: Seen) -> Behaviour:
        return Status(500, "grammar") if "response_format" in seen.body else IGNORES(seen)

    with AbleServer(behave) as server:
        found = ask(probe_formats, transport(), server.address)
    assert found.outcomes["json_schema"] == "refused"
    assert found.best == "text"


@pytest.mark.parametrize(
    "reply",
    [
        "{}",
        '{"violet": 8}',
        '{"violet": "7"}',
        '{"violet": 7, "more": 1}',
        f"```\n{FITS}\n```",
        "[7]",
    ],
)
def test_a_reply_that_does_not_keep_to_the_schema_shows_that_it_is_not_enforced(reply: str) -> None:
    found = ask(probe_formats, ScriptedClient(lambda asked: reply), None)
    assert found.outcomes["json_schema"] == "ignored"


OUTCOMES = st.sampled_from(["enforced", "ignored", "refused", "unclear"])


@given(st.fixed_dictionaries(dict.fromkeys(FORMATS[:-1], OUTCOMES)))
def test_the_best_format_is_the_first_enforced_or_one_that_always_works(
    outcomes: dict[Format, Outcome],
) -> None:
    best = FormatsFound(outcomes=outcomes).best
    enforced = [form for form in FORMATS[:-1] if outcomes[form] == "enforced"]
    if enforced:
        assert best == enforced[0]
    else:
        assert best == (None if "unclear" in outcomes.values() else "text")


def test_the_schema_that_is_asked_for_is_one_that_strict_providers_take() -> None:
    schema = Probe.model_json_schema()
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"]) == ["violet"]


# --- the model -----------------------------------------------------------------------------------


def test_a_model_that_answers(transport: Any) -> None:
    with AbleServer(Able()) as server:
        found = ask(probe_model, transport(), server.address)
    assert found.answers
    assert found.latency_s is not None
    assert found.failure is None
    assert len(server.requests) == 2


def test_the_time_of_the_second_call_counts() -> None:
    clock = VirtualClock()

    def reply(_: Any) -> str:
        clock.time += 8.0 if clock.time == 1000.0 else 0.25
        return HELLO

    found = ask(probe_model, ScriptedClient(reply), None, clock=clock)
    assert found.text == "answers in 0.25 s"


def test_the_sampling_settings_of_the_judge_are_sent(transport: Any) -> None:
    with AbleServer(Able()) as server:
        settings = {"temperature": 0.5, "seed": 3}
        ask(probe_model, transport(), server.address, settings=settings)
    assert settings.items() <= server.requests[0].body.items()


def test_a_server_that_needs_a_key_gets_the_one_that_is_set(
    transport: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AbleServer(Able(key="right-horse")) as server:
        without = ask(probe_model, transport(), server.address)
        monkeypatch.setenv(KEY, "right-horse")
        with_key = ask(probe_model, transport(), server.address)
    assert not without.answers
    assert without.text.startswith("no answer: ")
    assert "Incorrect API key" in without.text
    assert with_key.answers


def test_a_server_that_is_not_there(transport: Any) -> None:
    found = ask(probe_model, transport(), nowhere())
    assert not found.answers
    assert found.latency_s is None
    assert found.text.startswith("no answer: ")


def test_a_failure_is_told_shortly(transport: Any) -> None:
    with AbleServer(lambda seen: Status(404, "no such model " * 50)) as server:
        found = ask(probe_model, transport(), server.address)
    assert found.failure is not None
    assert len(found.failure) <= LONGEST_FAILURE


# --- probabilities and pictures ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("able", "text"),
    [
        (Able(alternatives=5), "5 alternatives per token"),
        (IGNORES, "ignored"),
    ],
)
def test_probabilities_given_and_ignored(transport: Any, able: Able, text: str) -> None:
    with AbleServer(able) as server:
        assert ask(probe_logprobs, transport(), server.address, "json_schema").text == text
    assert server.requests[0].body["response_format"]["type"] == "json_schema"


def test_probabilities_refused(transport: Any) -> None:
    with AbleServer(REFUSES) as server:
        found = ask(probe_logprobs, transport(), server.address, "text")
    assert found.outcome == "refused"
    assert found.text.startswith("refused: ")
    assert "logprobs are not supported" in found.text


def test_no_reply_says_nothing_of_probabilities() -> None:
    silent = Completion(text="", finish_reason="length")
    found = ask(probe_logprobs, ScriptedClient(lambda asked: silent), None, "text")
    assert found == LogprobsFound(outcome="unclear", failure=f"no reply within {MAX_TOKENS} tokens")


@pytest.mark.parametrize(
    ("said", "outcome"),
    [("Red.", "sees"), ("It is a RED square", "sees"), ("Coloured", "blind"), ("Blue", "blind")],
)
def test_pictures_are_seen_by_who_names_the_colour(transport: Any, said: str, outcome: str) -> None:
    with AbleServer(Able(pictures=said)) as server:
        assert ask(probe_pictures, transport(), server.address).outcome == outcome


def test_pictures_refused(transport: Any) -> None:
    with AbleServer(REFUSES) as server:
        found = ask(probe_pictures, transport(), server.address)
    assert found.outcome == "refused"
    assert "no multimodal model" in found.text


def test_no_reply_says_nothing_of_pictures() -> None:
    found = ask(probe_pictures, ScriptedClient(lambda asked: " "), None)
    assert found == PicturesFound(outcome="unclear", failure=f"no reply within {MAX_TOKENS} tokens")


@given(st.integers(1, 80))
def test_the_picture_is_a_png_that_is_red_all_over(side: int) -> None:
    data = red_png(side)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += size + 12
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    assert struct.unpack(">2I5B", chunks[b"IHDR"]) == (side, side, 8, 2, 0, 0, 0)
    assert zlib.decompress(chunks[b"IDAT"]) == (b"\0" + b"\xff\0\0" * side) * side


# --- context -------------------------------------------------------------------------------------


def listed(*entries: Mapping[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(entries)}


@dataclass(frozen=True)
class Told:
    """What an endpoint says of its models, and what is to be made of it."""

    pages: dict[str, Any]
    tokens: int | None
    is_listed: bool | None
    names: tuple[str, ...] = field(default=())


SLOTS = {"default_generation_settings": {"n_ctx": 4096}}
LLAMA = {"id": "/models/q.gguf", "meta": {"n_ctx_train": 131072}}


@pytest.mark.parametrize(
    "told",
    [
        Told({"models": listed({"id": "m", "max_model_len": 32768})}, 32768, True),
        Told({"models": listed({"id": "m", "context_length": 8192}, {"id": "n"})}, 8192, True),
        Told({"models": listed(LLAMA), "props": SLOTS}, 4096, False, ("/models/q.gguf",)),
        Told({"models": listed(LLAMA)}, 131072, False, ("/models/q.gguf",)),
        Told(
            {"models": listed({"id": "a", "max_model_len": 9}, {"id": "b"})},
            None,
            False,
            ("a", "b"),
        ),
        Told({"models": listed(*({"id": c} for c in "abcdefg"))}, None, False, tuple("abcde")),
        Told({}, None, None),
        Told({"models": listed()}, None, None),
        Told({"models": b"<html>"}, None, None),
        Told({"models": ["m"]}, None, None),
        Told({"models": listed({"id": "m", "max_model_len": "long"}), "props": b"x"}, None, True),
    ],
)
def test_the_context_is_what_the_server_says(told: Told) -> None:
    with AbleServer(Able(), **told.pages) as server:
        found = ask(probe_context, DirectClient(), server.address)
    assert (found.tokens, found.is_listed, found.names) == (told.tokens, told.is_listed, told.names)
    assert found.is_total is (told.tokens is not None)
    assert server.requests == []


def test_a_list_longer_than_any_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apbjudge.llm.probes.MAX_LIST_BYTES", 100)
    page = listed({"id": "m", "max_model_len": 32768, "more": "x" * 100})
    with AbleServer(Able(), models=page) as server:
        assert ask(probe_context, DirectClient(), server.address).tokens is None


def test_the_table_knows_what_the_server_does_not_say() -> None:
    with AbleServer(Able()) as server:
        found = ask(probe_context, DirectClient(), server.address, model="openai/gpt-4o")
    assert (found.text, found.is_total) == ("128,000 tokens", False)


def test_the_list_is_asked_for_with_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with AbleServer(Able()) as server:
        monkeypatch.delenv(KEY, raising=False)
        ask(probe_context, DirectClient(), server.address)
        monkeypatch.setenv(KEY, "right-horse")
        ask(probe_context, DirectClient(), f"{server.address}/")
    assert server.fetched == [("/v1/models", None), ("/v1/models", "Bearer right-horse")]


def test_an_endpoint_that_may_not_be_asked_is_not() -> None:
    with AbleServer(Able(), models=listed({"id": "m", "max_model_len": 9})) as server:
        found = ask(probe_context, DirectClient(), server.address, network=False)
    assert (found.text, server.fetched) == ("not known", [])


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/v1", "no address", "ftp://x", ""])
def test_an_address_that_leads_nowhere_has_no_list(address: str) -> None:
    assert ask(probe_context, DirectClient(), address).is_listed is None


# --- keys ----------------------------------------------------------------------------------------


def test_a_key_is_looked_for_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "right-horse")
    assert find_key(MODEL).text == f"{KEY} is set"
    monkeypatch.setenv(KEY, "")
    assert find_key(MODEL).text == f"none sent: {KEY} is not set"


def test_litellm_knows_the_keys_of_other_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    assert find_key("mistral/small").text == "none sent: MISTRAL_API_KEY is not set"
    monkeypatch.setenv("MISTRAL_API_KEY", "right-horse")
    assert find_key("mistral/small").text == "none missing, as far as litellm knows"


def test_a_given_address_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OLLAMA_API_BASE", raising=False)
    assert find_key("ollama/m").names == ("OLLAMA_API_BASE",)
    assert find_key("ollama/m", "http://127.0.0.1:11434").is_set is None


def test_of_an_unknown_provider_nothing_is_said() -> None:
    assert find_key("unheard-of/m") == KeyFound()

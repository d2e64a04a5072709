"""The direct transport sends what litellm sends, or says that it can't."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import instructor
import pytest
from instructor.processing import handle_response_model

import apbjudge
from apbjudge import JudgeSpec, OptionError
from apbjudge.llm import Request, ScriptedClient
from apbjudge.llm.base import FORMATS, Format
from apbjudge.llm.chat_format import format_arguments
from apbjudge.llm.direct import KEYS, PASSED, DirectClient, serves_exactly
from apbjudge.llm.litellm_client import LitellmClient
from apbjudge.llm.resources import transport_of
from apbjudge.rubrics import Reply, load_rubric, reply_model, rubric_names
from tests.support.server import Answer, ChatServer, Seen, in_turn

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(path.stem for path in EXAMPLES.glob("*.jsonl"))
KEY = "sk-local-Ab12Cd34Ef56"
VALUES: dict[str, Any] = {
    "temperature": 0.3,
    "top_p": 0.5,
    "seed": 7,
    "stop": ["\n\n", "END"],
    "frequency_penalty": 0.1,
    "presence_penalty": -0.2,
    "extra_body": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}},
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS.values():
        monkeypatch.setenv(name, KEY)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(in_turn([Answer("{}")])) as found:
        yield found


async def _ask(client: Any, requests: Iterable[Request]) -> None:
    try:
        for request in requests:
            await client.complete(request)
    finally:
        await client.close()


def sent(server: ChatServer, client: Any, requests: list[Request]) -> list[Seen]:
    """What a client sends for some requests."""
    server.forget()
    addressed = [replace(request, api_base=server.address) for request in requests]
    asyncio.run(_ask(client, deepcopy(addressed)))
    assert len(server.requests) == len(requests)
    return server.requests


def assert_equal(server: ChatServer, requests: list[Request]) -> None:
    ours = sent(server, DirectClient(), requests)
    theirs = sent(server, LitellmClient(), requests)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.body == other.body
        assert mine.path == other.path
        for name in ("authorization", "content-type"):
            assert mine.header(name) == other.header(name)


def example_requests(name: str) -> list[Request]:
    """What the judge asks about the rows of an example, pictures included."""
    client = ScriptedClient(lambda request: "")
    spec = JudgeSpec(model="hosted_vllm/m", vision="yes", evidence=True)
    apbjudge.grade(EXAMPLES / f"{name}.jsonl", judge=spec, client=client)
    return client.requests


def plain(model: str = "hosted_vllm/m", **changes: Any) -> Request:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": [{"type": "text", "text": "Is it right?"}, picture]},
        {"role": "assistant", "content": "{}"},
        {"role": "user", "content": "Again."},
    ]
    reply = reply_model(load_rubric("apb-holistic@1"))
    return Request(model=model, messages=messages, reply=reply, **changes)


@pytest.mark.parametrize("name", FILES)
def test_requests_of_every_protocol_are_the_same(server: ChatServer, name: str) -> None:
    requests = example_requests(name)
    assert requests
    assert_equal(server, [replace(r, format=form) for r in requests[:3] for form in FORMATS])


def test_the_examples_hold_pictures_and_all_kinds_of_replies() -> None:
    requests = [request for name in FILES for request in example_requests(name)]
    assert len({request.reply for request in requests}) >= 3
    assert any("image_url" in json.dumps(request.messages) for request in requests)


@pytest.mark.parametrize("provider", KEYS)
def test_every_provider_is_sent_the_same(server: ChatServer, provider: str) -> None:
    model = f"{provider}/org/some-model"
    requests = [plain(model, format=form) for form in FORMATS]
    requests += [plain(model, settings={name: VALUES[name]}) for name in VALUES]
    requests += [plain(model, settings=VALUES), plain(model, logprobs=True, max_tokens=9)]
    assert_equal(server, requests)


def test_every_parameter_that_is_passed_on_was_compared() -> None:
    assert set(VALUES) == PASSED


@pytest.mark.parametrize("provider", [name for name in KEYS if name != "custom_openai"])
def test_without_a_key_none_is_made_up(
    server: ChatServer, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEYS[provider])
    request = [plain(f"{provider}/m")]
    (mine,), (other,) = (sent(server, c, request) for c in (DirectClient(), LitellmClient()))
    assert mine.body == other.body
    assert mine.header("authorization") is None
    assert other.header("authorization") in ("Bearer fake-api-key", "Bearer none")


NAMES = """gpt-5 gpt-5-mini gpt-5.1 gpt-5-chat-latest gpt-6 my-gpt-5-tuned org/GPT-5 o1 o1-mini
    o3-mini o4-mini team/o3-mini o3-pro my-o1 chatgpt-4o-latest gpt-4o gpt-4o-audio-preview gpt-4.1
    gpt-4 gpt-3.5-turbo gpt-3.5-turbo-16k gpt-oss-120b openai/gpt-oss-120b gpt-5-codex
    responses/gpt-4o Qwen/Qwen3-32B qwen2.5-vl-72b meta-llama/Llama-3.1-8B-Instruct deepseek-r1
    mistral-large claude-sonnet-4-5 gemini-2.5-pro grok-4 glm-4.6 gemma-3 ft:gpt-4o:mine olmo
    o200k""".split()


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
def test_where_the_direct_transport_says_that_it_serves_exactly_it_does(
    server: ChatServer, provider: str
) -> None:
    settings = {name: value for name, value in VALUES.items() if name != "extra_body"}
    models = [f"{provider}/{name}" for name in NAMES]
    exact = [m for m in models if serves_exactly(m, api_base=True, params=settings)]
    forms: list[Format] = ["json_schema", "tool", "json_object"]
    requests = [
        plain(model, format=form, settings=settings, logprobs=True)
        for model in exact
        for form in forms
    ]
    assert len(requests) >= 3 * 15
    assert_equal(server, requests)
    local = ("gpt-oss-120b", "Qwen/Qwen3-32B", "qwen2.5-vl-72b", "mistral-large", "gemma-3")
    assert {f"{provider}/{name}" for name in local} <= set(exact)


@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-5",
        "openai/gpt-4o",
        "openai/o3-mini",
        "openai/team/o1",
        "openai/my-gpt-5-tuned",
        "azure/m",
        "anthropic/claude-sonnet-4-5",
        "gemini/gemini-2.5-pro",
        "nonsense",
        "",
    ],
)
def test_what_litellm_changes_or_prices_goes_through_litellm(model: str) -> None:
    assert transport_of(JudgeSpec(model=model, api_base="http://127.0.0.1:1/v1")) == "litellm"


@pytest.mark.parametrize(
    ("settings", "transport"),
    [
        ({}, "direct"),
        ({"transport": "litellm"}, "litellm"),
        ({"api_base": None}, "litellm"),
        ({"params": {"reasoning_effort": "low"}}, "litellm"),
        ({"params": {"top_p": 0.5}}, "direct"),
        ({"params": {"top_k": 5}}, "litellm"),
        ({"params": {"extra_body": {"top_k": 5}}}, "direct"),
    ],
)
def test_the_transport_is_chosen_by_what_is_sent(settings: dict[str, Any], transport: str) -> None:
    usual = {"model": "hosted_vllm/org/m", "api_base": "http://127.0.0.1:1/v1"}
    assert transport_of(JudgeSpec(**{**usual, **settings})) == transport


@pytest.mark.parametrize(
    "settings",
    [{"model": "anthropic/m", "api_base": "http://127.0.0.1:1/v1"}, {"model": "hosted_vllm/m"}],
)
def test_a_direct_transport_that_can_not_serve_is_an_unusable_option(
    settings: dict[str, Any],
) -> None:
    with pytest.raises(OptionError, match="--transport direct"):
        transport_of(JudgeSpec(transport="direct", **settings))


REPLIES = [reply_model(load_rubric(name)) for name in rubric_names()]


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply.__name__)
def test_the_schema_is_asked_for_as_instructor_does(reply: type[Reply]) -> None:
    _, arguments = handle_response_model(
        reply, mode=instructor.Mode.JSON_SCHEMA, messages=[{"role": "user", "content": "x"}]
    )
    form = format_arguments(reply, "json_schema")
    assert form["response_format"] == arguments["response_format"]


def test_no_client_changes_what_is_asked_for(server: ChatServer) -> None:
    """The arguments are made once; litellm takes schemas apart in place."""
    request = plain()
    before = {form: deepcopy(format_arguments(request.reply, form)) for form in FORMATS}
    for client in (LitellmClient(), DirectClient()):
        sent(server, client, [replace(request, format=form) for form in FORMATS])
    assert {form: format_arguments(request.reply, form) for form in FORMATS} == before


@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_an_address_may_end_in_a_slash(server: ChatServer, slash: str) -> None:
    request = replace(plain(), api_base=server.address + slash)
    asyncio.run(_ask(DirectClient(), [request]))
    assert server.requests[0].path == "/v1/chat/completions"

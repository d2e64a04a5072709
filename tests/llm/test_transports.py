"""Both transports: what they send, what they read, and that they agree in every case."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import instructor
import pytest
from instructor.processing import handle_response_model

from apbjudge import JudgeSpec, OptionError, Request
from apbjudge.errors import AccessError
from apbjudge.llm import chat_format, direct
from apbjudge.llm.base import FORMATS, Format
from apbjudge.llm.chat_format import format_arguments
from apbjudge.llm.direct import PASSED, DirectClient, ask_json, serves_exactly
from apbjudge.llm.litellm_client import LitellmClient, load_litellm
from apbjudge.llm.model_spec import KEYS, SERVERS
from apbjudge.llm.pool import Pool
from apbjudge.llm.resources import transport_of
from apbjudge.rubrics import Reply, load_rubric, reply_model, rubric_names
from apbjudge.runs.event_loops import Stop, block_on, current_stop, one_loop
from tests.llm.faults import ALIKE, ODD
from tests.llm.talk import TALK, ask
from tests.support.hurry import hurried
from tests.support.judging import RIGHT, Bench, plan_row, verdict
from tests.support.server import (
    PATIENCE_S,
    Answer,
    Behaviour,
    Body,
    ChatServer,
    Seen,
    completion,
    in_turn,
)

# The direct transport sends what litellm sends, or says that it can't


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
    with ChatServer(in_turn([Answer("{}")])) as result:
        yield result


def sent(server: ChatServer, client: Any, requests: list[Request]) -> list[Seen]:
    """What a client sends for some requests."""
    server.forget()
    addressed = [replace(request, api_base=server.address) for request in requests]
    ask(client, deepcopy(addressed))
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


def plain(model: str = "hosted_vllm/m", **changes: Any) -> Request:
    reply = reply_model(load_rubric("apb-holistic@1"))
    return Request(model=model, messages=TALK, reply=reply, **changes)


@pytest.mark.parametrize("provider", KEYS)
def test_every_provider_is_sent_the_same(server: ChatServer, provider: str) -> None:
    model = f"{provider}/org/some-model"
    requests = [plain(model, format=form) for form in FORMATS]
    requests += [plain(model, settings={name: VALUES[name]}) for name in VALUES]
    requests += [plain(model, settings=VALUES), plain(model, logprobs=True, max_tokens=9)]
    assert_equal(server, requests)


def test_calls_of_one_session_share_connections(server: ChatServer) -> None:
    assert len({seen.client for seen in sent(server, DirectClient(), [plain()] * 3)}) == 1


def test_shared_connections_outlive_a_client_and_a_run(server: ChatServer) -> None:
    """What a later run in the same loop finds in its context is its own."""
    seen_stops, pool = list[bool](), Pool()

    async def ask_once() -> None:
        seen_stops.append(current_stop().is_paused)
        client = DirectClient()
        await client.complete(replace(plain(), api_base=server.address))
        await client.close()

    with asyncio.Runner() as runner, one_loop(runner), pool.shared():
        for is_paused in (False, True):
            stop = Stop()
            stop.is_paused = is_paused
            with stop.applied():
                block_on(ask_once())
        block_on(pool.close())
    block_on(ask_once())
    first, second, apart = (seen.client for seen in server.requests)
    assert first == second != apart
    assert seen_stops == [False, True, False]


def test_every_parameter_that_is_passed_on_was_compared() -> None:
    assert set(VALUES) == PASSED


@pytest.mark.parametrize("provider", ["hosted_vllm", "openai"])
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
    ("settings", "transport"),
    [
        ({}, "direct"),
        ({"transport": "litellm"}, "litellm"),
        ({"api_base": None}, "litellm"),
        ({"params": {"reasoning_effort": "low"}}, "litellm"),
        ({"params": {"top_k": 5}}, "litellm"),
        ({"params": {"extra_body": {"top_k": 5}}}, "direct"),
        *(({"model": f"openai/{name}"}, "litellm") for name in ("gpt-5", "gpt-4o", "team/o1")),
        *(({"model": name}, "litellm") for name in ("azure/m", "gemini/m", "nonsense", "")),
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


# Whatever an endpoint answers, both transports make the same judgement of it


COMPARED = ("kind", "reason", "is_correct", "grade", "errors", "inconsistent", "overrides")
COUNTED = ("prompt_tokens", "completion_tokens", "cached_tokens", "calls")


@pytest.fixture
def judged(tmp_path: Path) -> Any:
    """What is made of a row whose requests all meet the same behaviour, and how many there were."""

    numbers = count()

    def judge(fault: Behaviour, transport: str) -> tuple[dict[str, Any], int]:
        with ChatServer(in_turn([fault])) as server, hurried(server):
            bench = Bench(server.address, tmp_path / str(next(numbers)))
            try:
                done = bench.judge([plan_row("a")], transport=transport, retries=1)
            except OptionError as error:
                return {"raised": type(error).__name__}, len(server.requests)
            return done["a"] | {"waits": len(done.waits)}, len(server.requests)

    return judge


def essence(row: dict[str, Any]) -> dict[str, Any]:
    """What must not depend on the transport; ``raw`` may: litellm takes thoughts out of it."""
    told = {name: row.get(name) for name in (*COMPARED, "raised", "waits")}
    usage = row.get("usage") or {}
    return told | {name: usage.get(name) for name in COUNTED}


@pytest.mark.parametrize("name", ALIKE)
def test_both_transports_make_the_same_of_it(judged: Any, name: str) -> None:
    direct_row, direct_count = judged(ALIKE[name], "direct")
    litellm_row, litellm_count = judged(ALIKE[name], "litellm")
    assert essence(direct_row) == essence(litellm_row)
    assert direct_count == litellm_count


def test_the_faults_lead_to_every_kind_of_end(judged: Any) -> None:
    ends = {
        "an error that is null": (None, None),
        "vllm: too long": ("truncated", None),
        "llama.cpp: too long": ("truncated", None),
        "openai: policy": ("refusal", None),
        "openai: schema": ("unparsable", None),
        "openai: no money": (None, "OptionError"),
        "504 without a word": ("timeout", None),
        "nginx: gateway": ("transport", None),
        "an error with half a character": ("transport", None),
        "half a character": (None, None),
    }
    for name, end in ends.items():
        row, _ = judged(ALIKE[name], "direct")
        assert (row.get("reason"), row.get("raised")) == end, name


def test_a_slip_in_a_field_that_nobody_needs_costs_neither_transport_a_reply(judged: Any) -> None:
    ends = {
        transport: {name: judged(ODD[name], transport)[0]["reason"] for name in ODD}
        for transport in ("direct", "litellm")
    }
    assert ends["direct"] == ends["litellm"]
    assert [ends["litellm"][name] for name in ("usage is a list", "content in parts")] == [None] * 2


WROTE = {
    "content in parts": Answer([{"type": "text", "text": t} for t in (RIGHT[:30], RIGHT[30:])]),
    "the reasoning": Answer(None, message={"reasoning": RIGHT}),
    "the older reasoning": Answer("", message={"reasoning_content": f"Hm.\n{RIGHT}"}),
    "a thinking block": Answer(f"<think>{RIGHT}</think>"),
}
WRONG = json.dumps(verdict("E1"))
VERDICT_CALLS = [
    {"id": name, "type": "function", "function": {"name": "give_verdict", "arguments": said}}
    for name, said in (("a", RIGHT), ("b", WRONG))
]
LACKS = {
    "thinking alone": (Answer(None, message={"reasoning": "Hm."}), "Hm.", "but for the model's th"),
    "thinking cut off": (Answer("", "length", {"reasoning": "Hm."}), "Hm.", "all of it is the mod"),
    "no choices": (Body(completion([])), "", "the reply is empty (finish_reason: no choices)"),
    "two calls that differ": (
        Answer(None, "tool_calls", {"tool_calls": VERDICT_CALLS}),
        f"{RIGHT}\n{WRONG}",
        "several verdicts",
    ),
}


@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_a_verdict_is_read_wherever_an_endpoint_puts_it(judged: Any, transport: str) -> None:
    for name, answer in WROTE.items():
        row, requests = judged(answer, transport)
        assert (row["is_correct"], requests) == (True, 1), name
        assert RIGHT in row["raw"], name
        assert row["lenient_replies"] == ("part" not in name or "reasoning" in name), name
    for name, (answer, raw, cause) in LACKS.items():
        row, requests = judged(answer, transport)
        assert cause in row["detail"], name
        assert row["raw"] == "\n\n".join([raw] * requests), name


@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_an_answer_without_end_is_given_up(
    judged: Any, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    for module in (chat_format, direct):
        monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 100_000)
    row, _ = judged(Answer(RIGHT + " " * 200_000), transport)
    assert row["reason"] == "transport"
    assert "100000 bytes" in row["detail"]
    row, _ = judged(Answer(RIGHT + " " * 50_000), transport)
    assert row["kind"] == "verdict"


def test_litellm_sends_to_no_provider_what_is_for_another() -> None:
    """Every provider that litellm knows, but those that log in to say where they are."""
    litellm = load_litellm()
    providers = {str(getattr(name, "value", name)) for name in litellm.provider_list}
    assert SERVERS.keys() <= providers
    strays: set[str] = set()
    local: set[str] = set()
    for provider in providers - {"github_copilot", "chatgpt", "clarifai", "ragflow"}:
        _, _, _, address = litellm.get_llm_provider(f"{provider}/m")
        if address is None and provider in litellm.openai_compatible_providers:
            strays.add(f"{provider}/m")
        if "localhost" in (address or "") or "127.0.0.1" in (address or ""):
            local.add(provider)
    assert local <= SERVERS.keys()
    strays -= {f"{provider}/m" for provider in SERVERS}

    async def ask_all() -> None:
        for model in {*strays, "ai21/m", "azure/mistral-large-latest"}:
            with pytest.raises(AccessError, match=f"no address of .* for {model} and would send"):
                await LitellmClient().complete(plain(model))

    asyncio.run(ask_all())


@pytest.mark.parametrize("provider", ["xinference", "litellm_proxy"])
def test_a_key_of_openai_goes_to_no_other_server(
    server: ChatServer, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    request = [plain(f"{provider}/m")]
    assert sent(server, LitellmClient(), request)[0].header("authorization") == "Bearer none"
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "own")
    assert sent(server, LitellmClient(), request)[0].header("authorization") == "Bearer own"


@pytest.mark.parametrize("proxied", ["", "http_proxy", "all_proxy"])
@pytest.mark.parametrize("key", ["", "own"])
def test_a_password_of_netrc_goes_to_no_server(
    server: ChatServer, key: str, proxied: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiohttp would read it wherever it looks for a proxy, and refuse a call that has a key."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login ann password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", key)
    address = server.address
    if proxied:  # the server is the proxy, which gets the whole address
        monkeypatch.setenv(proxied, address.replace("//", "//bob:word@").removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "")
        address = "http://nowhere.invalid/v1"
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def ask_all() -> None:
        client = DirectClient()
        await client.complete(plain(api_base=address))
        await client.close()
        url = f"{address}/chat/completions"
        await ask_json("POST", url, headers=headers, timeout_s=PATIENCE_S, json={})

    asyncio.run(ask_all())
    assert [seen.header("authorization") for seen in server.requests] == [
        headers.get("Authorization")
    ] * 2
    assert all(
        bool(seen.header("proxy-authorization")) == bool(proxied) for seen in server.requests
    )

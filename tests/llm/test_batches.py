"""A provider's batches through litellm, over a socket; and the bodies of what is written down."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from apbjudge.errors import OptionError
from apbjudge.llm.base import FORMATS, Format, Request
from apbjudge.llm.batch_requests import body_maker, provider_of
from apbjudge.llm.batches import TERMS, BatchState, Order
from apbjudge.llm.litellm_batches import LitellmBatches
from apbjudge.llm.litellm_client import LitellmClient
from tests.llm.talk import TALK, ask
from tests.support.batch_server import BatchServer
from tests.support.clock import VirtualClock
from tests.support.server import Answer, ChatServer, in_turn

KEY = "0123456789abcdef" * 2
LINE = json.dumps({"custom_id": KEY, "body": {"messages": []}}).encode() + b"\n"


@pytest.fixture(autouse=True)
def no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: Any) -> None:
    """Nothing here is encrypted, and loading certificates is most of what a call takes."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path_factory.getbasetemp()))


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer() as started:
        yield started


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(LINE)
    return path


def api(server: BatchServer, model: str = "openai/m", **settings: Any) -> LitellmBatches:
    settings = {"retries": 0, "clock": VirtualClock(), **settings}
    return LitellmBatches(model=model, address=server.address, **settings)


def order(tag: str, file: str = "") -> Order:
    return Order(tag=tag, count=1, since=0.0, file=file)


def do(work: Any) -> Any:
    return asyncio.run(work)


def test_output_and_errors_come_in_one_file(server: BatchServer, tmp_path: Path) -> None:
    server.files |= {"good": b'{"a": 1}', "bad": b'{"b": 2}\n'}
    state = BatchState("completed", files=("good", "bad"))
    do(api(server).fetch(state, tmp_path / "all.jsonl"))
    assert (tmp_path / "all.jsonl").read_bytes() == b'{"a": 1}\n{"b": 2}\n'


def test_a_batch_is_found_by_its_tag_on_any_page(server: BatchServer, file: Path) -> None:
    provider = api(server)
    orders = [order(f"tag-{n}", do(provider.upload(file))) for n in range(5)]
    names = [[do(provider.create(each, file))] for each in orders]
    assert [do(provider.find(order(each.tag))) for each in orders] == names
    assert do(provider.find(order("tag"))) == []
    assert do(provider.find(order("none", server.batches[1].file))) == names[1]


def test_an_order_without_answer_is_looked_for_before_it_is_placed_again(
    server: BatchServer, file: Path
) -> None:
    provider = api(server, retries=1)
    ordered = order("tag", do(provider.upload(file)))
    create = server.answer

    def placed_but_broken(call: str, *rest: Any) -> tuple[int, Any]:
        status, result = create(call, *rest)
        return (502, {"error": {"message": "gone"}}) if call == "POST batches" else (status, result)

    server.answer = placed_but_broken
    assert do(provider.create(ordered, file)) == "batch-0"
    assert len(server.batches) == 1


def test_no_key_of_another_service_is_sent(
    server: BatchServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str | None] = []
    handler = server._server.RequestHandlerClass
    receive = handler._serve  # type: ignore[attr-defined]

    def noted(self: Any, data: bytes) -> None:
        keys.append(self.headers.get("Authorization"))
        receive(self, data)

    monkeypatch.setattr(handler, "_serve", noted)
    monkeypatch.setenv("OPENAI_API_KEY", "the-key-of-openai")
    do(api(server, "hosted_vllm/m").upload(file))
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "own-key")
    do(api(server, "hosted_vllm/m").upload(file))
    do(api(server).upload(file))
    assert keys == ["Bearer none", "Bearer own-key", "Bearer the-key-of-openai"]


def test_the_list_of_providers_is_that_of_the_installed_litellm() -> None:
    from litellm.types.utils import LIST_BATCHES_SUPPORTED_PROVIDERS

    ours = {"mistral", "gemini", "bedrock", "anthropic", "together_ai"}
    assert TERMS.keys() - ours == LIST_BATCHES_SUPPORTED_PROVIDERS


def test_a_model_without_provider_is_looked_up() -> None:
    assert provider_of("gpt-4o") == ("openai", "gpt-4o")
    with pytest.raises(OptionError, match="nobodys-model: BadRequestError"):
        provider_of("nobodys-model")


class Reply(BaseModel):
    reasoning: str
    ok: bool


MODELS = (
    "openai/gpt-4o openai/o3-mini azure/gpt-5-mini hosted_vllm/m mistral/mistral-small-latest "
    "xai/grok-3 litellm_proxy/m"
).split()


def asked(model: str, form: Format = "json_schema", **settings: Any) -> Request:
    return Request(
        model=model, messages=TALK, reply=Reply, format=form, max_tokens=77, settings=settings
    )


def sent(request: Request, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The body that litellm sends for a request."""
    for name in ("AZURE", "MISTRAL", "XAI", "LITELLM_PROXY"):
        monkeypatch.setenv(f"{name}_API_KEY", "k")
    monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")
    with ChatServer(in_turn([Answer("{}")])) as server:
        ask(LitellmClient(), [replace(request, api_base=server.address)])
    return server.requests[-1].body


@pytest.mark.parametrize("model", MODELS)
def test_a_body_is_what_litellm_would_send(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    request = asked(model, temperature=1.0, seed=3, extra_body={"top_k": 4})
    assert body_maker(model)(request) == sent(request, monkeypatch)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_asked_for_as_litellm_would(
    form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asked("openai/gpt-5-mini", form, seed=1, reasoning_effort="low")
    assert body_maker(request.model)(request) == sent(request, monkeypatch)


def test_a_key_is_never_part_of_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-user")
    text = json.dumps(body_maker("openai/gpt-5-nano")(asked("openai/gpt-5-nano", seed=9)))
    assert "sk-secret" not in text
    assert "api_key" not in text

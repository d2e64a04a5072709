"""The seam to the network: what goes in, what comes out, and the fake that stands in for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apbjudge import Completion, Request, ScriptedClient
from apbjudge.errors import CallTimeoutError
from apbjudge.llm.litellm_client import LitellmClient, sees
from apbjudge.rubrics import load_rubric, reply_model
from tests.support.server import Answer, ChatServer, Hang, in_turn

PASS = reply_model(load_rubric("apb-unsolvable@1"))
TEXT = '{"reasoning": "r", "is_correct": true}'


def request(**changes: Any) -> Request:
    messages = [{"role": "user", "content": "Is it right?"}]
    return Request(model="hosted_vllm/m", messages=messages, reply=PASS, **changes)


def complete(client: Any, asked: Request) -> Completion:
    async def main() -> Completion:
        try:
            return await client.complete(asked)
        finally:
            await client.close()

    return asyncio.run(main())


def test_a_completion_keeps_text_reason_and_usage() -> None:
    with ChatServer(in_turn([Answer(TEXT)])) as server:
        done = complete(LitellmClient(), request(api_base=server.address))
    assert (done.text, done.finish_reason, done.refusal) == (TEXT, "stop", None)
    assert (done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.calls) == (7, 5, 1)


@pytest.mark.parametrize("structured", [True, False])
def test_the_schema_is_sent_only_when_the_endpoint_is_to_enforce_it(structured: bool) -> None:
    with ChatServer(in_turn([Answer(TEXT)])) as server:
        complete(LitellmClient(), request(api_base=server.address, structured=structured))
    assert ("response_format" in server.requests[0].body) is structured


def test_an_openai_compatible_server_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ChatServer(in_turn([Answer(TEXT)])) as server:
        asked = Request(
            model="openai/local", messages=request().messages, reply=PASS, api_base=server.address
        )
        assert complete(LitellmClient(), asked).text == TEXT


def test_a_hung_call_ends_after_its_time() -> None:
    with ChatServer(in_turn([Hang()])) as server, pytest.raises(CallTimeoutError):
        complete(LitellmClient(), request(api_base=server.address, timeout_s=0.2))


@pytest.mark.parametrize(
    ("model", "seen"),
    [("openai/gpt-4o", True), ("hosted_vllm/unheard-of", False), ("nonsense", False), ("", False)],
)
def test_the_table_of_models_says_who_can_see(model: str, seen: bool) -> None:
    assert sees(model) is seen


def test_a_scripted_client_answers_by_its_script_and_keeps_what_it_was_asked() -> None:
    told = Completion(text="cut", finish_reason="length")
    client = ScriptedClient(lambda asked: told if asked.max_tokens < 100 else TEXT)
    short, long = request(max_tokens=50), request()
    assert complete(client, short) is told
    done = complete(client, long)
    assert (done.text, done.finish_reason, done.cost_usd) == (TEXT, "stop", 0.0)
    assert client.requests == [short, long]


def test_a_script_may_raise() -> None:
    def script(asked: Request) -> str:
        raise CallTimeoutError("late")

    with pytest.raises(CallTimeoutError, match="late"):
        complete(ScriptedClient(script), request())

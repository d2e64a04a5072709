"""The seam to the network: what goes in, what comes out, and the fake that stands in for it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from apbjudge import Completion, Request, ScriptedClient
from apbjudge.errors import CallTimeoutError
from apbjudge.llm.base import FORMATS, Format
from apbjudge.llm.direct import DirectClient
from apbjudge.llm.litellm_client import LitellmClient
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


@pytest.fixture(params=[DirectClient, LitellmClient])
def transport(request: pytest.FixtureRequest) -> Any:
    return request.param()


def test_a_completion_keeps_text_reason_and_usage(transport: Any) -> None:
    with ChatServer(in_turn([Answer(TEXT)])) as server:
        done = complete(transport, request(api_base=server.address))
    assert (done.text, done.finish_reason, done.refusal) == (TEXT, "stop", None)
    assert (done.usage.prompt_tokens, done.usage.completion_tokens, done.usage.calls) == (7, 5, 1)


@pytest.mark.parametrize("form", FORMATS)
def test_the_schema_is_sent_only_when_the_endpoint_is_to_enforce_it(
    transport: Any, form: Format
) -> None:
    with ChatServer(in_turn([Answer(TEXT)])) as server:
        complete(transport, request(api_base=server.address, format=form))
    (seen,) = server.requests
    assert ("reasoning" in json.dumps(seen.body)) is (form in ("json_schema", "tool"))
    assert ("tools" in seen.body) is ("tool_choice" in seen.body) is (form == "tool")
    asked = seen.body.get("response_format", {}).get("type")
    assert asked == (form if form in ("json_schema", "json_object") else None)


def test_an_openai_compatible_server_needs_no_key(
    transport: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with ChatServer(in_turn([Answer(TEXT)])) as server:
        asked = Request(
            model="openai/local", messages=request().messages, reply=PASS, api_base=server.address
        )
        assert complete(transport, asked).text == TEXT


def test_a_hung_call_ends_after_its_time(transport: Any) -> None:
    with ChatServer(in_turn([Hang()])) as server, pytest.raises(CallTimeoutError):
        complete(transport, request(api_base=server.address, timeout_s=0.2))


def test_a_transport_that_was_never_used_can_be_closed_and_one_closed_used_again() -> None:
    async def main() -> str:
        client = DirectClient()
        await client.close()
        await client.complete(request(api_base=server.address))
        await client.close()
        done = await client.complete(request(api_base=server.address))
        await client.close()
        await client.close()
        return done.text

    with ChatServer(in_turn([Answer(TEXT)])) as server:
        assert asyncio.run(main()) == TEXT


def test_calls_of_one_session_share_connections() -> None:
    async def main() -> None:
        client = DirectClient()
        for _ in range(3):
            await client.complete(request(api_base=server.address))
        await client.close()

    with ChatServer(in_turn([Answer(TEXT)])) as server:
        asyncio.run(main())
    assert len({seen.client for seen in server.requests}) == 1


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

"""The seam to the network: what goes in, what comes out, and the fake that stands in for it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from apbjudge import Completion, Request, ScriptedClient
from apbjudge.errors import CallTimeoutError
from apbjudge.llm.base import FORMATS, Format, ToolCall
from apbjudge.llm.direct import DirectClient
from apbjudge.llm.litellm_client import LitellmClient
from apbjudge.rubrics import load_rubric, reply_model
from tests.support.server import Answer, ChatServer, Hang, in_turn

PASS = reply_model(load_rubric("apb-unsolvable@1"))
TEXT = '{"reasoning": "r", "is_correct": true}'


def request(**changes: Any) -> Request:
    messages = [{"role": "user", "content": "Is it right?"}]
    return Request(
        **{"model": "hosted_vllm/m", "messages": messages, "reply": PASS, **changes},
    )


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


TOOL = {
    "type": "function",
    "function": {
        "name": "find_train",
        "description": "Finds trains.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALLS = [
    {
        "id": "a",
        "type": "function",
        "function": {"name": "find_train", "arguments": '{"city": "A"}'},
    },
    {"id": "b", "type": "function", "function": {"name": "find_train", "arguments": "{broken"}},
]


@pytest.mark.parametrize("choice", [None, "required"])
def test_tools_are_sent_and_their_calls_come_back(transport: Any, choice: Any) -> None:
    messages = [
        {"role": "user", "content": "Which trains go to A?"},
        {"role": "assistant", "content": "", "tool_calls": CALLS[:1]},
        {"role": "tool", "tool_call_id": "a", "content": "none"},
    ]
    reply = Answer(None, "tool_calls", message={"tool_calls": CALLS})
    with ChatServer(in_turn([reply])) as server:
        asked = request(
            api_base=server.address,
            messages=messages,
            reply=None,
            tools=(TOOL,),
            tool_choice=choice,
        )
        done = complete(transport, asked)
    (seen,) = server.requests
    assert seen.body["tools"] == [TOOL]
    assert seen.body.get("tool_choice") == choice
    assert seen.body["messages"] == messages
    assert "response_format" not in seen.body
    assert done.tool_calls == (
        ToolCall(name="find_train", arguments='{"city": "A"}', id="a"),
        ToolCall(name="find_train", arguments="{broken", id="b"),
    )
    assert (done.text, done.finish_reason, done.served_model) == ("", "tool_calls", "scripted")


def test_a_model_may_answer_in_words_and_call_a_tool(transport: Any) -> None:
    reply = Answer("I'll look.", "tool_calls", message={"tool_calls": CALLS[:1]})
    with ChatServer(in_turn([reply, Answer("None go there.")])) as server:
        asked = request(api_base=server.address, reply=None, tools=(TOOL,))
        both, words = complete(transport, asked), complete(transport, asked)
    assert (both.text, [call.id for call in both.tool_calls]) == ("I'll look.", ["a"])
    assert (words.text, words.tool_calls) == ("None go there.", ())


def test_plain_text_is_requested_without_any_form(transport: Any) -> None:
    with ChatServer(in_turn([Answer("Lisbon")])) as server:
        assert complete(transport, request(api_base=server.address, reply=None)).text == "Lisbon"
    assert not {"response_format", "tools", "tool_choice"} & server.requests[0].body.keys()


def test_a_request_has_a_reply_model_or_tools() -> None:
    with pytest.raises(ValueError, match="reply or tools"):
        request(tools=(TOOL,))


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
    call = ToolCall(name="find_train", arguments="{}")
    told = Completion(text="", finish_reason="tool_calls", tool_calls=(call,))
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

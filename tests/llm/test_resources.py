"""From a model's settings to an engine that answers, for whoever asks a model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from apbjudge import OptionError
from apbjudge.judge import JudgeSpec
from apbjudge.llm import Completion, ModelSpec, Request, ScriptedClient
from apbjudge.llm.budget import Limits
from apbjudge.llm.endpoint_cache import FILE
from apbjudge.llm.resources import Resources, cache_folder, make_engine
from tests.support.server import Answer, ChatServer, Seen

TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
CALL = {"id": "a", "type": "function", "function": {"name": "find", "arguments": "{}"}}


def ask(spec: ModelSpec, resources: Resources, *requests: dict[str, Any]) -> list[Completion]:
    """Completions of one session, one after the other."""

    async def main() -> list[Completion]:
        engine = make_engine(spec, resources)
        messages = [{"role": "user", "content": "Find a train."}]
        sampling = {"model": spec.model, "messages": messages, "settings": spec.sampling()}
        try:
            return [await engine.complete(Request(**sampling | more)) for more in requests]
        finally:
            await engine.close()

    return asyncio.run(main())


@pytest.mark.parametrize("transport", ["direct", "litellm"])
def test_a_tested_model_answers_in_words_and_by_tools(tmp_path: Path, transport: str) -> None:
    def behave(seen: Seen) -> Answer:
        if "tools" in seen.body:
            return Answer("", "tool_calls", message={"tool_calls": [CALL]})
        return Answer("At noon.")

    with ChatServer(behave) as server:
        spec = ModelSpec(
            model="hosted_vllm/m", api_base=server.address, transport=transport, seed=7,
            price_input=2.0, price_output=8.0,
        )  # fmt: skip
        resources = Resources(cache=tmp_path, warn=pytest.fail)
        words, calls, again = ask(spec, resources, {}, {"tools": (TOOL,)}, {"tools": (TOOL,)})
        (later,) = ask(spec, resources, {"tools": (TOOL,)})
    assert len(server.requests) == 2
    assert [seen.body["seed"] for seen in server.requests] == [7, 7]
    assert (words.text, words.tool_calls, words.finish_reason) == ("At noon.", (), "stop")
    assert (calls.text, calls.finish_reason) == ("", "tool_calls")
    assert [(call.name, call.arguments, call.id) for call in calls.tool_calls] == [
        ("find", "{}", "a")
    ]
    assert {words.served_model, calls.served_model} == {"scripted"}
    assert words.cost_usd == pytest.approx((7 * 2.0 + 5 * 8.0) / 1e6)
    assert words.latency_s is not None
    assert 0 < words.latency_s < 60
    for cached in (again, later):
        assert cached.tool_calls == calls.tool_calls
        assert (cached.cost_usd, cached.usage.reused, cached.latency_s) == (0.0, 1, None)
    known = orjson.loads((tmp_path / FILE).read_bytes())[f"hosted_vllm/m {server.address}"]
    assert known["format"] == "json_schema"


def test_a_client_of_the_callers_own_answers_and_is_not_cached(tmp_path: Path) -> None:
    client = ScriptedClient(lambda request: "yes")
    assert cache_folder(wanted=None, client=client) is None
    assert cache_folder(wanted=tmp_path, client=client) == tmp_path
    (reply,) = ask(ModelSpec(model="a/b"), Resources(client=client), {})
    assert (reply.text, client.requests[0].api_base) == ("yes", None)


def test_money_is_not_limited_where_prices_are_not_known() -> None:
    with pytest.raises(OptionError, match="--max-cost: the price of a/b is not known"):
        make_engine(ModelSpec(model="a/b"), Resources(limits=Limits(max_cost=1.0)))
    with pytest.raises(OptionError, match="price_input and price_output"):
        make_engine(ModelSpec(model="a/b", price_input=1.0), Resources())


def test_every_setting_of_a_model_and_a_judge_says_what_it_is() -> None:
    fields = JudgeSpec.model_fields
    assert ModelSpec.model_fields.keys() < fields.keys()
    assert [name for name, field in fields.items() if not field.description] == []
    assert issubclass(JudgeSpec, ModelSpec)
    with pytest.raises(ValueError, match="model"):
        ModelSpec()  # pyright: ignore[reportCallIssue]

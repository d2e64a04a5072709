"""From a model's settings to an engine that answers, for whoever asks a model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from apbjudge import OptionError
from apbjudge.llm import Completion, ModelSpec, Request
from apbjudge.llm.endpoint_cache import FILE
from apbjudge.llm.limits import Limits
from apbjudge.llm.resources import Resources, make_engine
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


def test_a_tested_model_answers_in_words_and_by_tools(tmp_path: Path) -> None:
    def behave(seen: Seen) -> Answer:
        if "tools" in seen.body:
            return Answer("", "tool_calls", message={"tool_calls": [CALL]})
        return Answer("At noon.")

    with ChatServer(behave) as server:
        prices = {"price_input": 2.0, "price_output": 8.0}
        spec = ModelSpec(model="hosted_vllm/m", api_base=server.address, seed=7, **prices)
        resources = Resources(cache=tmp_path, warn=pytest.fail)
        words, calls = ask(spec, resources, {}, {"tools": (TOOL,)})
        (later,) = ask(spec, resources, {"tools": (TOOL,)})
    assert [seen.body["seed"] for seen in server.requests] == [7, 7]
    assert (words.text, words.tool_calls, words.served_model) == ("At noon.", (), "scripted")
    assert words.cost_usd == pytest.approx((7 * 2.0 + 5 * 8.0) / 1e6)
    assert [(call.name, call.arguments, call.id) for call in calls.tool_calls] == [
        ("find", "{}", "a")
    ]
    assert later.tool_calls == calls.tool_calls
    assert (later.cost_usd, later.usage.reused, later.latency_s) == (0.0, 1, None)
    known = orjson.loads((tmp_path / FILE).read_bytes())[f"hosted_vllm/m {server.address}"]
    assert known["format"] == "json_schema"


def test_money_is_not_limited_where_prices_are_not_known() -> None:
    with pytest.raises(OptionError, match="--max-cost: the price of a/b is not known"):
        make_engine(ModelSpec(model="a/b"), Resources(limits=Limits(max_cost=1.0)))
    with pytest.raises(OptionError, match="--price-input, --price-output"):
        make_engine(ModelSpec(model="a/b", price_input=1.0), Resources())

"""The engine: what it makes of a request, whatever the network does in between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apbjudge.errors import BudgetError, FormatUnsupportedError, JudgeError, TransportError
from apbjudge.llm.base import FORMATS, Completion, Format, NativeCall, Request, ScriptedClient
from apbjudge.llm.budget import Budget
from apbjudge.llm.cache import ReplyCache
from apbjudge.llm.endpoints import Endpoint
from apbjudge.llm.engine import Engine, dump_completion, load_completion
from apbjudge.llm.limits import Limits
from apbjudge.llm.logprobs import TokenChoice
from apbjudge.llm.model_spec import ModelSpec
from apbjudge.llm.model_table import Prices
from apbjudge.records import Usage
from apbjudge.rubrics import load_rubric, reply_model
from tests.support.clock import VirtualClock

PASS = reply_model(load_rubric("apb-unsolvable@1"))
USAGE = Usage(prompt_tokens=100, completion_tokens=10, cached_tokens=40, calls=1)
TOOLS = ({"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}},)
Script = Callable[[Request], str | Completion]


def asked(text: str = "Is it right?", **changes: Any) -> Request:
    messages = [{"role": "user", "content": text}]
    return Request(model="hosted_vllm/m", messages=messages, reply=PASS, **changes)


def answer(text: str = "{}", **changes: Any) -> Completion:
    return Completion(**{"text": text, "finish_reason": "stop", "usage": USAGE, **changes})


def failing(error: JudgeError, times: int = 10**9, then: str = "{}") -> Script:
    """Fails so often, then answers."""
    left = [times]

    def script(request: Request) -> str | Completion:
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return answer(then)

    return script


class Slow(ScriptedClient):
    """Answers when everybody else has had a turn."""

    async def complete(self, request: Request) -> Completion:
        await asyncio.sleep(0)
        return await super().complete(request)


class Site:
    """An engine with scripted replicas and a clock that tests move."""

    def __init__(self, *scripts: Script, formats: Sequence[Format] = (), **settings: Any) -> None:
        self.clock = VirtualClock()
        self.clients = [Slow(script) for script in scripts]
        formats = formats or [FORMATS[0]] * len(scripts)
        self.endpoints = [
            Endpoint(client=client, address=f"http://host{n}/v1", most=8, format=form)
            for n, (client, form) in enumerate(zip(self.clients, formats, strict=True))
        ]
        names = settings.keys() & ModelSpec.model_fields.keys()
        spec = {"model": "hosted_vllm/m", **{name: settings.pop(name) for name in names}}
        settings.setdefault("budget", Budget(settings.pop("limits", Limits()), self.clock))
        self.engine = Engine(
            endpoints=self.endpoints,
            spec=ModelSpec(**spec),
            clock=self.clock,
            rng=random.Random(7),
            **settings,
        )

    def ask(self, *requests: Request) -> list[Completion | JudgeError]:
        """What becomes of requests that are made at once."""

        async def main() -> list[Any]:
            asking = (self.engine.complete(request) for request in requests)
            gathered = asyncio.gather(*asking, return_exceptions=True)
            return await asyncio.wait_for(gathered, 30)

        result = asyncio.run(main())
        assert all(isinstance(each, Completion | JudgeError) for each in result), result
        return result

    def answered(self, request: Request | None = None) -> Completion:
        (result,) = self.ask(request or asked())
        assert isinstance(result, Completion), result
        return result

    def failed(self, request: Request | None = None) -> JudgeError:
        (result,) = self.ask(request or asked())
        assert isinstance(result, JudgeError), result
        return result

    def close(self) -> None:
        asyncio.run(self.engine.close())

    @property
    def calls(self) -> list[int]:
        return [len(client.requests) for client in self.clients]


def only(taken: Format) -> Script:
    def script(request: Request) -> Completion:
        if request.format != taken:
            raise FormatUnsupportedError(f"no {request.format}")
        return answer()

    return script


@pytest.mark.parametrize("taken", FORMATS)
def test_each_replica_is_asked_in_the_strictest_form_it_takes_from_then_on(taken: Format) -> None:
    site = Site(only(taken), lambda request: answer())
    tried = FORMATS.index(taken) + 1
    for _ in range(3):
        site.ask(asked(prefix="a"), asked(prefix="b"), asked(), asked())
    assert (site.endpoints[0].format, site.endpoints[1].format) == (taken, "json_schema")
    forms = [request.format for request in site.clients[0].requests]
    assert set(forms[tried * 8 :]) <= {taken}
    assert forms[:1] == ["json_schema"]
    assert {request.format for request in site.clients[1].requests} == {"json_schema"}


def test_calls_without_an_answer_are_counted_as_lost() -> None:
    lost = TransportError("reset", answered=False)
    site = Site(failing(lost, times=2))
    usage = site.answered().usage
    assert (usage.calls, usage.lost, usage.prompt_tokens) == (3, 2, 100)
    site = Site(failing(lost), retries=1)
    assert (site.failed().calls, lost.lost) == (2, 2)
    site = Site(failing(TransportError("503")), retries=1)
    assert site.failed().lost == 0


@pytest.mark.parametrize(
    ("limits", "made", "word"),
    [(Limits(max_calls=3), 3, "max_calls"), (Limits(max_cost=0.0), 1, "max_cost")],
)
def test_a_budget_stops_calls_and_tears_none(limits: Limits, made: int, word: str) -> None:
    site = Site(lambda request: answer(cost_usd=0.1), limits=limits)
    result = site.ask(*(asked(str(n)) for n in range(10)))
    stopped = [each for each in result if isinstance(each, BudgetError)]
    assert len(result) - len(stopped) == made == sum(site.calls)
    assert all(str(each).startswith(word) and each.calls == 0 for each in stopped)
    assert all(endpoint.in_flight == 0 for endpoint in site.endpoints)


@pytest.mark.parametrize(
    ("prices", "told", "cost"),
    [
        (Prices(input=2.0, output=8.0, cached=0.5), None, (60 * 2 + 40 * 0.5 + 10 * 8) / 1e6),
        (Prices(input=2.0, output=8.0), 9.0, (100 * 2 + 10 * 8) / 1e6),
        (Prices(input=0.0, output=0.0), 9.0, 0.0),
        (Prices(), 9.0, 9.0),
        (Prices(), None, None),
    ],
)
def test_given_prices_go_before_those_of_the_transport(
    prices: Prices, told: float | None, cost: float | None
) -> None:
    site = Site(lambda request: answer(cost_usd=told), prices=prices)
    result = site.answered().cost_usd
    assert result == (cost if cost is None else pytest.approx(cost))
    assert site.engine.budget.spent.unpriced == (cost is None)


def cached(folder: Path, *scripts: Script, **settings: Any) -> Site:
    return Site(*scripts, cache=ReplyCache(folder, warn=pytest.fail), **settings)


def test_a_reply_that_is_kept_calls_nobody_and_costs_nothing(tmp_path: Path) -> None:
    tokens = (TokenChoice("{}", -0.5, (("{}", -0.5), ("[", -1.0))),)
    told = answer('{"a": 1}', cost_usd=0.1, logprobs=tokens)
    site = cached(tmp_path, lambda request: told)
    assert site.answered() == told.model_copy(update={"latency_s": 0.0})
    again = site.answered()
    site.close()
    later = cached(tmp_path, failing(TransportError("down")), limits=Limits(max_calls=0))
    for result in (again, later.answered()):
        assert (result.text, result.finish_reason, result.logprobs) == ('{"a": 1}', "stop", tokens)
        assert (result.cost_usd, result.usage) == (0.0, Usage(reused=1))
    assert (site.calls, later.calls) == ([1], [0])
    later.close()


@pytest.mark.parametrize(
    "changes",
    [
        {"sample": 1},
        {"logprobs": True},
        {"reply": reply_model(load_rubric("apb-tool-broken@1"))},
        {"messages": [{"role": "user", "content": "Is it wrong?"}]},
        {"model": "hosted_vllm/other"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_request_is_another_reply(tmp_path: Path, changes: dict[str, Any]) -> None:
    site = cached(tmp_path, lambda request: answer())
    site.answered()
    site.answered(replace(asked(), **changes))
    assert site.calls == [2]
    site.answered(asked(timeout_s=1.0, prefix="x"))
    assert site.calls == [2]
    site.close()


def test_a_reply_serves_requests_of_its_own_format_only(tmp_path: Path) -> None:
    loose = cached(tmp_path, only("text"))
    loose.answered()
    loose.answered()
    loose.close()
    assert loose.calls == [4]
    strict = cached(tmp_path, lambda request: answer('{"strict": 1}'))
    assert strict.answered().text == strict.answered().text == '{"strict": 1}'
    strict.close()
    assert strict.calls == [1]
    again = cached(tmp_path, failing(TransportError("down")), formats=["text"])
    assert again.answered().text == "{}"
    again.close()


def test_tool_calls_are_cached_with_the_model_that_made_them(tmp_path: Path) -> None:
    call = NativeCall(name="find", arguments='{"city": "Porto"}', id="c1")
    reply = answer("", tool_calls=(call,), finish_reason="tool_calls", served_model="m-2026")
    site = cached(tmp_path, lambda request: reply)
    request = replace(asked(), reply=None, tools=TOOLS)
    for _ in range(2):
        completion = site.answered(request)
        assert (completion.tool_calls, completion.served_model) == ((call,), "m-2026")
    site.answered(replace(request, tools=()))
    site.answered(replace(request, tool_choice="required"))
    site.close()
    assert site.calls == [3]


@pytest.mark.parametrize(
    ("told", "calls"),
    [
        (answer(finish_reason="length"), 1),
        (answer(""), 2),
        (answer(finish_reason="content_filter"), 2),
    ],
)
def test_only_replies_that_another_call_would_give_again_are_kept(
    tmp_path: Path, told: Completion, calls: int
) -> None:
    site = cached(tmp_path, lambda request: told)
    site.answered()
    site.answered()
    assert site.calls == [calls]
    site.close()


@pytest.mark.parametrize("data", [b"", b"null", b'["a","stop",[]]'])
def test_what_is_no_reply_of_ours_is_asked_again(data: bytes) -> None:
    assert load_completion(data) is None
    assert load_completion(dump_completion(answer("a", cost_usd=2.0))) == answer(
        "a", usage=Usage(reused=1), cost_usd=0.0, assumed_tokens=110, assumed_usd=2.0
    )


def test_engines_that_share_keep_to_the_rates_and_the_budget_together(tmp_path: Path) -> None:
    site = Site(lambda request: answer(), rpm=60.0, limits=Limits(max_calls=15))
    first = site.engine
    start = site.clock.now()
    site.ask(*(asked(str(n)) for n in range(10)))
    site.engine = first.sharing(ReplyCache(tmp_path / "other", warn=print))
    site.ask(*(asked(str(n)) for n in range(10)))
    assert site.calls == [15]
    assert site.clock.now() - start == pytest.approx(14.0, abs=0.1)
    site.ask(asked("0"))  # of its own cache
    assert site.calls == [15]
    assert first.cache is None


def test_a_cancelled_request_gives_its_place_and_its_budget_back() -> None:
    class Never(ScriptedClient):
        async def complete(self, request: Request) -> Completion:
            arrived.set()
            return await asyncio.Future()

    arrived = asyncio.Event()

    async def main() -> None:
        site = Site(lambda request: answer())
        never = Never(lambda request: "")
        site.endpoints[0].client = never
        asking = asyncio.create_task(site.engine.complete(asked()))
        await arrived.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert site.endpoints[0].in_flight == 0
        site.endpoints[0].client = site.clients[0]
        assert (await site.engine.complete(asked())).text == "{}"

    asyncio.run(main())

"""What a run may cost: calls in flight together keep to a limit, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import BudgetError, OptionError
from apbjudge.llm.base import Completion
from apbjudge.llm.budget import Budget, Measured
from apbjudge.llm.limits import Limits
from apbjudge.llm.model_spec import ModelSpec
from apbjudge.llm.model_table import Prices
from apbjudge.llm.resources import Resources, make_engine
from apbjudge.records import Usage
from tests.support.clock import VirtualClock
from tests.support.judging import RIGHT, Bench, plan_row
from tests.support.server import Answer, Behaviour, Body, ChatServer, Reset

A_TOKEN = Prices(input=1e6, output=1e6)
"""A dollar a token, so that both limits say the same."""
MOST = 50
NAMED = pytest.mark.parametrize("named", ["max_cost", "max_tokens"])


def answer(prompt: int = 9, reply: int = 1, **changes: Any) -> Completion:
    usage = Usage(prompt_tokens=prompt, completion_tokens=reply, calls=1)
    told = {"text": "x" * 4 * reply, "usage": usage, "cost_usd": A_TOKEN.cost_usd(usage)}
    return Completion(**{"finish_reason": "stop", **told, **changes})


SILENT = answer(usage=Usage(calls=1, unreported=1), cost_usd=None)


class Calls:
    """Calls of one model on one budget, begun in one moment and ended one after the other."""

    def __init__(self, prices: Prices = A_TOKEN, **limits: Any) -> None:
        self.clock = VirtualClock()
        self.budget = Budget(Limits(**limits), self.clock)
        self.model = Measured(prices)
        self.made = 0
        self.most = 0
        self._flying = 0

    async def _one(self, ending: Completion | None, lost: bool, characters: int) -> str | None:
        try:
            call = await self.budget.admit(self.model, characters, MOST)
        except BudgetError as error:
            return str(error)
        self.made += 1
        self._flying += 1
        self.most = max(self.most, self._flying)
        await asyncio.sleep(0)
        self._flying -= 1
        done = None if ending is None else self.model.add(ending, call)
        self.budget.record(call, done, lost=lost)
        return None

    def make(
        self,
        endings: list[Completion | None],
        lost: bool = False,
        characters: list[int] | None = None,
    ) -> list[str]:
        """Begins all calls at once; returns what was said of those that were not made."""
        sizes = characters or [36] * len(endings)

        async def main() -> list[str | None]:
            calls = [self._one(each, lost, size) for each, size in zip(endings, sizes, strict=True)]
            return await asyncio.wait_for(asyncio.gather(*calls), 30)

        return [said for said in asyncio.run(main()) if said is not None]


def test_without_limits_every_call_is_made_at_once() -> None:
    calls = Calls()
    assert calls.make([answer()] * 40 + [None] * 40) == []
    assert (calls.made, calls.most) == (80, 80)
    assert (calls.budget.spent.calls, calls.budget.spent.tokens) == (80, 400)


@NAMED
@given(
    limit=st.integers(0, 4000),
    sizes=st.lists(st.tuples(st.integers(1, 3000), st.integers(1, MOST)), min_size=1, max_size=40),
    at_once=st.integers(1, 40),
    rate=st.sampled_from([0.05, 0.25, 0.4, 1.5]),
)
def test_a_limit_is_passed_by_no_more_than_a_reply_beyond_the_longest_before(
    named: str, limit: int, sizes: list[tuple[int, int]], at_once: int, rate: float
) -> None:
    """Whatever the lengths, the tokens of a prompt, and however many calls are begun at once."""
    calls = Calls(**{named: limit})
    told = [answer(ceil(size * rate), reply) for size, reply in sizes]
    for start in range(0, len(told), at_once):
        part = slice(start, start + at_once)
        calls.make([*told[part]], characters=[size for size, _ in sizes[part]])
    spent = calls.budget.spent
    assert spent.cost_usd == pytest.approx(spent.tokens)
    # tokens of the first prompt are known by its length alone
    unknown = ceil(max(size for size, _ in sizes) * rate) if calls.made == 1 else 0
    assert spent.tokens <= limit + MOST - 1 + unknown


@NAMED
@given(limit=st.integers(0, 600), sizes=st.lists(st.integers(1, 800), max_size=40))
def test_answers_without_usage_count_by_the_length_of_prompt_and_reply(
    named: str, limit: int, sizes: list[int]
) -> None:
    calls = Calls(**{named: limit})
    refused = calls.make([SILENT] * len(sizes), characters=sizes)
    spent = calls.budget.spent
    assert spent.tokens == pytest.approx(spent.cost_usd)
    assert spent.tokens <= limit + 1  # the reply of the first call
    assert spent.estimated == calls.made == len(sizes) - len(refused)
    fits = [ceil(size / 4) for size in sizes if ceil(size / 4) <= limit]
    assert calls.made >= bool(fits)
    (said,) = calls.make([SILENT], characters=[4 * limit + 4])
    assert (f"{calls.made} of {calls.made} calls by estimate" in said) is (calls.made > 0)


@NAMED
def test_until_one_call_has_told_what_a_prompt_takes_they_go_one_by_one(named: str) -> None:
    calls = Calls(**{named: 1000})
    assert calls.make([None] * 6) == []
    assert (calls.made, calls.most) == (6, 1)
    calls.make([answer()])
    calls.make([answer()] * 6)
    assert calls.most == 6


def test_a_lost_call_counts_as_what_it_may_have_taken() -> None:
    calls = Calls(max_cost=200.0, max_tokens=1000)
    calls.make([None], lost=True)  # no reply is known: it may have been of any length
    assert (calls.budget.spent.cost_usd, calls.budget.spent.tokens) == (9 + MOST, 9 + MOST)
    calls.make([answer(9, 20)])
    calls.make([answer(9, 10)])
    calls.make([None], lost=True)
    assert calls.budget.spent.tokens == 9 + MOST + 29 + 19 + 29
    calls.make([None], lost=False)
    assert calls.budget.spent.tokens == calls.budget.spent.cost_usd == 9 + MOST + 29 + 19 + 29


def test_money_stops_at_the_first_call_without_a_price() -> None:
    calls = Calls(Prices(), max_cost=100.0)
    assert calls.make([answer(cost_usd=None)]) == []
    (said,) = calls.make([answer()])
    assert said == "max_cost: the price of 1 calls is not known"


def test_money_is_not_limited_where_prices_are_not_known() -> None:
    with pytest.raises(OptionError, match="--max-cost: the price of a/b is not known"):
        make_engine(ModelSpec(model="a/b"), Resources(limits=Limits(max_cost=1.0)))


def test_time_counts_from_the_first_call() -> None:
    calls = Calls(max_seconds=10.0)
    calls.clock.time += 500
    assert calls.make([answer()]) == []
    calls.clock.time += 9.5
    assert calls.make([answer()]) == []
    calls.clock.time += 0.5
    assert calls.make([answer()]) == ["max_seconds: 10 s have passed"]


# Through the whole stack, to a real server --------------------------------------------------------


@pytest.mark.parametrize("fault", [Reset(), Body(b"<html>")], ids=str)
def test_calls_that_came_to_nothing_use_a_budget_up(tmp_path: Path, fault: Behaviour) -> None:
    """Whoever answers with what is no completion may have charged for it."""
    with ChatServer(lambda seen: fault) as server:
        bench = Bench(server.address, tmp_path, limits=Limits(max_tokens=9000))
        done = bench.judge([plan_row(f"r{n}") for n in range(40)], retries=1)
        assert 1 <= len(server.requests) <= 5
    assert "calls by estimate" in done.rows[-1]["detail"]


PRICES = {"price_input": 2.0, "price_output": 10.0}


WITHOUT_USAGE: dict[str, Any] = {
    "null": None,
    "zeros": {"prompt_tokens": 0, "completion_tokens": 0},
    "below nothing": {"prompt_tokens": -900, "completion_tokens": 30},
    "absurd": {"prompt_tokens": 10**12, "completion_tokens": 30},
    "a list": [900, 30],
}


@pytest.mark.parametrize("usage", WITHOUT_USAGE.values(), ids=WITHOUT_USAGE.keys())
@pytest.mark.parametrize(
    ("limits", "transport"), [({"max_cost": 0.02}, "direct"), ({"max_tokens": 9000}, "litellm")]
)
def test_without_usable_usage_limits_hold_and_no_cost_is_made_up(
    tmp_path: Path, transport: str, usage: Any, limits: dict[str, Any]
) -> None:
    rows = [plan_row(f"r{n}") for n in range(40)]
    with ChatServer(lambda seen: Answer(RIGHT, usage=usage)) as server:
        bench = Bench(server.address, tmp_path, limits=Limits(**limits))
        done = bench.judge(rows, max_concurrency=8, transport=transport, **PRICES)
        sent = sum(len(seen.text) for seen in server.requests) / 4
        made = len(server.requests)
    tokens = sent + made * len(RIGHT) / 4
    assert 1 <= made < len(rows)
    assert tokens <= 9000
    assert 2e-6 * sent + 1e-5 * (tokens - sent) <= 0.02
    assert done.progress.cost_usd == 0.0
    assert done.progress.unpriced == done.progress.calls == made
    refused = [row["detail"] for row in done.rows if row["reason"] == "budget"]
    assert refused
    assert all(f"{made} of {made} calls by estimate" in detail for detail in refused)
    for row in done.rows:
        if row["kind"] == "verdict":
            assert (row["cost_usd"], row["usage"]["unreported"]) == (None, 1)
            assert row["usage"]["prompt_tokens"] == row["usage"]["completion_tokens"] == 0
            assert f"{made} answers stated no usage" in " ".join(bench.notes)

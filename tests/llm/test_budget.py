"""What a run may cost: calls in flight together keep to a limit, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apbjudge.errors import BudgetError, OptionError
from apbjudge.llm.base import Completion
from apbjudge.llm.budget import Budget
from apbjudge.llm.limits import Limits
from apbjudge.records import Usage
from tests.support.clock import VirtualClock


def answer(cost: float | None = 1.0, tokens: int = 10) -> Completion:
    usage = Usage(prompt_tokens=tokens, calls=1)
    return Completion(text="{}", finish_reason="stop", usage=usage, cost_usd=cost)


class Calls:
    """Calls on one budget, begun in one moment and ended one after the other."""

    def __init__(self, **limits: Any) -> None:
        self.clock = VirtualClock()
        self.budget = Budget(Limits(**limits), self.clock)
        self.made = 0
        self.most = 0
        self._flying = 0

    async def _one(self, ending: Completion | None, lost: bool) -> str | None:
        try:
            await self.budget.admit()
        except BudgetError as error:
            return str(error)
        self.made += 1
        self._flying += 1
        self.most = max(self.most, self._flying)
        await asyncio.sleep(0)
        self._flying -= 1
        self.budget.settle(ending, lost=lost)
        return None

    def make(self, endings: list[Completion | None], lost: bool = False) -> list[str]:
        """Begins all calls at once; returns what was said of those that were not made."""

        async def main() -> list[str | None]:
            calls = [self._one(ending, lost) for ending in endings]
            return await asyncio.wait_for(asyncio.gather(*calls), 30)

        return [said for said in asyncio.run(main()) if said is not None]


def test_without_limits_every_call_is_made_at_once() -> None:
    calls = Calls()
    assert calls.make([answer(None)] * 40 + [None] * 40) == []
    assert (calls.made, calls.most) == (80, 80)
    spent = calls.budget.spent
    assert (spent.calls, spent.tokens, spent.unpriced) == (80, 400, 40)


@pytest.mark.parametrize("most", [0, 1, 7])
def test_so_many_calls_are_made_and_no_more(most: int) -> None:
    calls = Calls(max_calls=most)
    refused = calls.make([answer()] * 10)
    assert calls.made == most
    assert len(refused) == 10 - most
    assert all(said.startswith(f"max_calls: {most} ") for said in refused)


@given(
    limit=st.integers(0, 60),
    prices=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    named=st.sampled_from(["max_cost", "max_tokens"]),
)
def test_the_limit_is_passed_at_most_by_as_much_as_calls_turn_out_dearer_than_any_before(
    limit: int, prices: list[int], named: str
) -> None:
    calls = Calls(**{named: limit})
    calls.make([answer(float(price), price) for price in prices])
    spent = calls.budget.spent
    assert spent.cost_usd == spent.tokens == sum(prices[: calls.made])
    if len(set(prices[: calls.made])) <= 1:
        assert spent.tokens <= limit or calls.made == 1
    assert spent.tokens <= limit + 8 * calls.most + 9


@given(limit=st.integers(0, 60), price=st.integers(1, 9), count=st.integers(1, 40))
def test_calls_that_cost_the_same_use_the_budget_up_and_never_pass_it(
    limit: int, price: int, count: int
) -> None:
    calls = Calls(max_cost=float(limit))
    for _ in range(count):
        calls.make([answer(float(price))])
    # What the first call takes is not known before it is made.
    assert calls.made == min(count, max(1, limit // price))


@pytest.mark.parametrize("named", ["max_cost", "max_tokens"])
def test_until_one_call_has_told_what_a_call_takes_they_go_one_by_one(named: str) -> None:
    calls = Calls(**{named: 1000})
    assert calls.make([None] * 6) == []
    assert (calls.made, calls.most) == (6, 1)
    calls.make([answer(1.0, 1)])
    calls.make([answer(1.0, 1)] * 6)
    assert calls.most == 6


@given(endings=st.lists(st.sampled_from(["answer", "failure", "lost"]), max_size=12))
def test_whoever_waits_for_the_first_call_gets_its_turn(endings: list[str]) -> None:
    calls = Calls(max_cost=1e9)
    made = [answer() if ending == "answer" else None for ending in endings]
    assert calls.make(made) == []
    assert calls.made == len(endings)


def test_a_waiter_that_is_cancelled_leaves_the_others_their_turn() -> None:
    async def main() -> int:
        budget = Budget(Limits(max_cost=5.0), VirtualClock())
        await budget.admit()
        waiting = [asyncio.create_task(budget.admit()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        budget.settle(answer(1.0))
        done, _ = await asyncio.wait(waiting, timeout=30)
        return sum(not task.cancelled() for task in done)

    assert asyncio.run(main()) == 2


def test_a_lost_call_counts_as_dear_as_the_dearest_before_it() -> None:
    calls = Calls(max_cost=100.0, max_tokens=1000)
    calls.make([answer(2.0, 20)])
    calls.make([answer(1.0, 10)])
    calls.make([None], lost=True)
    assert (calls.budget.spent.cost_usd, calls.budget.spent.tokens) == (5.0, 50)
    calls.make([None], lost=False)
    assert (calls.budget.spent.cost_usd, calls.budget.spent.tokens) == (5.0, 50)


def test_money_stops_at_the_first_call_without_a_price() -> None:
    calls = Calls(max_cost=100.0)
    assert calls.make([answer(None)]) == []
    (said,) = calls.make([answer(1.0)])
    assert said == "max_cost: the price of 1 calls is not known"


def test_time_counts_from_the_first_call() -> None:
    calls = Calls(max_seconds=10.0)
    calls.clock.time += 500
    assert calls.make([answer()]) == []
    calls.clock.time += 9.5
    assert calls.make([answer()]) == []
    calls.clock.time += 0.5
    assert calls.make([answer()]) == ["max_seconds: 10 s have passed"]


@pytest.mark.parametrize("named", ["max_cost", "max_calls", "max_tokens", "max_seconds"])
def test_a_limit_below_nothing_is_no_limit(named: str) -> None:
    with pytest.raises(OptionError, match=named.replace("_", "-")):
        Limits(**{named: -1})

"""What is learnt of an endpoint that refuses calls: how many it takes, or that load is no cause.

Whole runs of 780 requests in simulated time against endpoints with a limit, or a share, of their
own; what is asserted is how long they take against what the endpoint allows, and how many calls
are refused on the way.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from apbjudge.errors import JudgeError, RateLimitedError, TransportError
from apbjudge.llm.base import Completion, Request
from apbjudge.llm.budget import Budget
from apbjudge.llm.endpoints import Endpoint
from apbjudge.llm.engine import Engine
from apbjudge.llm.limits import Limits
from apbjudge.llm.model_spec import ModelSpec
from apbjudge.records import Usage
from apbjudge.rubrics import load_rubric, reply_model
from tests.support.clock import LoopClock, simulate

ROWS = 780
CONCURRENCY = 64
REPLY = reply_model(load_rubric("apb-holistic@1"))


@dataclass
class Server:
    """Takes 50 to 200 ms for everything; ``refuses`` says what it refuses.

    Attributes:
        refuses: Seconds to wait, 0 for none named; None when a call is served.
        kind: What a refusal is.
        calls: When each call arrived, which request it was and what became of it.
    """

    refuses: Callable[[Server, float], float | None]
    kind: type[TransportError] = RateLimitedError
    fast_s: float | None = None
    latency_s: tuple[float, float] = (0.05, 0.2)
    serving: int = 0
    calls: list[tuple[float, str, float | None]] = field(default_factory=list[Any])
    rng: random.Random = field(default_factory=lambda: random.Random(5))

    async def complete(self, request: Request) -> Completion:
        now = asyncio.get_running_loop().time()
        wait = self.refuses(self, now)
        self.calls.append((now, request.messages[0]["content"], wait))
        latency = self.rng.uniform(*self.latency_s)
        if wait is not None:
            await asyncio.sleep(latency if self.fast_s is None else self.fast_s)
            raise self.kind("no", retry_after_s=wait or None)
        self.serving += 1
        await asyncio.sleep(latency)
        self.serving -= 1
        usage = Usage(calls=1, prompt_tokens=1, completion_tokens=1)
        return Completion(text="{}", finish_reason="stop", usage=usage)

    async def close(self) -> None:
        pass

    @property
    def refused(self) -> float:
        """Share of the calls that were refused."""
        return sum(wait is not None for *_, wait in self.calls) / len(self.calls)


@dataclass
class Outcome:
    """What a run came to: how long it took, how many rows it lost, and the endpoint."""

    seconds: float
    lost: int
    endpoint: Endpoint


def run(server: Server, rows: int = ROWS) -> Outcome:
    """Asks for all rows, as a run does: a row holds its place until it has its answer."""

    async def main() -> Outcome:
        clock = LoopClock()
        endpoint = Endpoint(client=server, address="http://host/v1", most=CONCURRENCY)
        engine = Engine(
            endpoints=[endpoint],
            spec=ModelSpec(model="hosted_vllm/m"),
            budget=Budget(Limits(), clock),
            clock=clock,
            rng=random.Random(7),
        )
        places = asyncio.Semaphore(CONCURRENCY)
        lost: list[JudgeError] = []

        async def row(number: int) -> None:
            messages = [{"role": "user", "content": f"row {number}"}]
            async with places:
                try:
                    await engine.complete(Request(model="m", messages=messages, reply=REPLY))
                except JudgeError as error:
                    lost.append(error)

        start = clock.now()
        await asyncio.gather(*map(row, range(rows)))
        return Outcome(clock.now() - start, len(lost), endpoint)

    return simulate(main())


def at_random(share: float, wait_s: float = 0.0) -> Callable[[Server, float], float | None]:
    """Refuses a share of all calls, however few there are."""
    return lambda server, now: wait_s if server.rng.random() < share else None


def token_bucket(
    rate: float, burst: float, wait_s: float = 0.0
) -> Callable[[Server, float], float | None]:
    """Takes ``rate`` calls a second, and ``burst`` at once."""
    left, last = burst, 0.0

    def refuses(server: Server, now: float) -> float | None:
        nonlocal left, last
        left, last = min(burst, left + (now - last) * rate), now
        if left < 1:
            return wait_s
        left -= 1
        return None

    return refuses


def at_most(limit: int, wait_s: float = 0.0) -> Callable[[Server, float], float | None]:
    """Serves so many calls at once."""
    return lambda server, now: wait_s if server.serving >= limit else None


def per_minute(limit: int) -> Callable[[Server, float], float | None]:
    """Serves so many calls in each minute of the clock, and says when the next begins."""
    counts: dict[int, int] = {}

    def refuses(server: Server, now: float) -> float | None:
        minute = int(now // 60)
        counts[minute] = counts.get(minute, 0) + 1
        return None if counts[minute] <= limit else (minute + 1) * 60 - now

    return refuses


@pytest.mark.parametrize("wait_s", [0.0, 1.0])
def test_refusals_at_random_take_no_longer_than_failures_at_random(wait_s: float) -> None:
    """Before, 780 rows took 70 to 340 s in place of 20."""
    failing = run(Server(at_random(0.3), kind=TransportError)).seconds
    server = Server(at_random(0.3, wait_s))
    outcome = run(server)
    assert outcome.lost == 0
    assert outcome.seconds <= 1.5 * failing
    assert outcome.endpoint.window.refused_share == pytest.approx(0.3, abs=0.15)


LIMITS: dict[str, tuple[Server, float, float, float]] = {
    # what the endpoint allows, seconds that this takes, times these, largest share of refusals
    "50 a second": (Server(token_bucket(50, 50)), 14.6, 1.25, 0.2),
    "50 a second, wait 1 s": (Server(token_bucket(50, 50, 1.0)), 14.6, 1.5, 0.3),
    "5 a second, wait 1 s": (Server(token_bucket(5, 5, 1.0)), 155.0, 1.25, 0.15),
    "1 at once": (Server(at_most(1)), 97.5, 1.5, 0.3),
    "300 a minute": (Server(per_minute(300)), 140.0, 1.1, 0.1),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.slow
def test_a_limit_is_found_and_nearly_used_up(limit: str) -> None:
    server, floor, times, refused = LIMITS[limit]
    outcome = run(server)
    assert outcome.lost == 0
    assert outcome.seconds <= times * floor
    assert server.refused <= refused
    assert outcome.endpoint.window.refused_share == 0.0


def test_a_limit_that_is_raised_is_found_out() -> None:
    slow, quick = token_bucket(5, 5), token_bucket(200, 50)
    server = Server(lambda server, now: (slow if len(server.calls) < 200 else quick)(server, now))
    outcome = run(server)
    assert outcome.lost == 0
    assert outcome.seconds <= 45.0 + 45.0


def test_an_endpoint_that_refuses_everything_for_a_while_is_not_flooded() -> None:
    """Two minutes without service: one call every two seconds, and all rows are judged after."""
    server = Server(lambda server, now: 0.0 if now < 1120.0 else None)
    outcome = run(server, rows=200)
    assert outcome.lost == 0
    refused = sum(wait is not None for *_, wait in server.calls)
    assert refused <= 2 * CONCURRENCY + 120
    assert outcome.seconds <= 240.0

"""Posts documents to a server that the user named, in order and a few at a time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import islice
from typing import Any

import orjson

from .base import Clock, MonotonicClock
from .direct import answer_to
from .retry import with_retries

AT_ONCE = 8
TIMEOUT_S = 60.0
DEADLINE_S = 300.0
RETRIES = 3


async def posted(
    bodies: Iterable[bytes],
    url: str,
    headers: Mapping[str, str],
    *,
    clock: Clock | None = None,
) -> AsyncIterator[Any]:
    """Posts JSON documents and yields the server's answer to each, None if it is not JSON.

    A redirect is a failure: nothing goes to an address that the user did not name. Of the documents
    in flight, answers to those before a failure are yielded.

    Args:
        bodies: The documents.
        url: The address.
        headers: Headers, with the key.
        clock: Waits between attempts.

    Raises:
        JudgeError: If a document was not accepted, after the retries of ``with_retries``.
    """
    content = {"allow_redirects": False}
    own = {**headers, "Content-Type": "application/json"}
    rng = random.Random(0)  # noqa: S311 - jitter

    async def post(body: bytes) -> Any:
        async def call() -> bytes:
            async with answer_to("POST", url, own, TIMEOUT_S, data=body, **content) as answer:
                return await answer.read()

        data = await with_retries(
            call, retries=RETRIES, deadline_s=DEADLINE_S, clock=clock or MonotonicClock(), rng=rng
        )
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError:
            return None

    rest = iter(bodies)
    while together := [*islice(rest, AT_ONCE)]:
        for answer in await asyncio.gather(*map(post, together), return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            yield answer

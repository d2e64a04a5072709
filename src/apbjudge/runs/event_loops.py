"""Event loops of our own, whether or not the caller is already inside one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def beside_any_loop(work: Callable[[], T]) -> T:
    """Does something that starts event loops, also from inside a notebook's running one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


def block_on(work: Awaitable[T]) -> T:
    """Waits for something to end."""

    async def main() -> T:
        return await work

    return beside_any_loop(lambda: asyncio.run(main()))

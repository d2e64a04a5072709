"""Connections and reply caches that stay open between the runs of a process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from .cache import ReplyCache


class Pool:
    """Open connections and caches, which runs that follow each other in one event loop reuse."""

    def __init__(self) -> None:
        self._connector: Any = None
        self._caches: dict[Hashable, ReplyCache] = {}

    @contextmanager
    def shared(self) -> Generator[None]:
        """Within it, runs take what they need from here and leave it open."""
        token = _SHARED.set(self)
        try:
            yield
        finally:
            _SHARED.reset(token)

    def session(self, *, closes: bool = False, **options: Any) -> Any:
        """A session of aiohttp over the connections; ``closes``: they end with it."""
        import aiohttp

        if self._connector is None:
            self._connector = aiohttp.TCPConnector(limit=0)
        return aiohttp.ClientSession(connector=self._connector, connector_owner=closes, **options)

    def cache(
        self, key: Hashable, make: Callable[[], ReplyCache], warn: Callable[[str], None]
    ) -> ReplyCache:
        """A cache that nobody else uses until it is closed, and then stays open here.

        Args:
            key: Tells caches apart.
            make: Opens one where none of this key is free.
            warn: Receives what is wrong with it from now on.
        """
        if (cache := self._caches.pop(key, None)) is None:
            cache = make()
        else:
            cache.renew(warn)
        cache.take_back = partial(self._take_back, key)
        return cache

    def _take_back(self, key: Hashable, cache: ReplyCache) -> None:
        if self._caches.setdefault(key, cache) is not cache:
            _close(cache)

    async def close(self) -> None:
        """Closes all of it."""
        while self._caches:
            _close(self._caches.popitem()[1])
        if self._connector is not None:
            await self._connector.close()
            self._connector = None


def _close(cache: ReplyCache) -> None:
    cache.take_back = None
    cache.close()


_SHARED: ContextVar[Pool | None] = ContextVar("shared", default=None)


def current_pool() -> Pool | None:
    """The pool that runs started here share; None where each closes what it opens."""
    return _SHARED.get()

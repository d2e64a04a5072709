"""Connections and reply caches that stay open between the runs of a process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from .cache import ReplyCache


class Pool:
    """Open connections and caches, reused by consecutive runs in one event loop."""

    def __init__(self) -> None:
        self._connector: Any = None
        self._caches: dict[Hashable, ReplyCache] = {}

    @contextmanager
    def shared(self) -> Generator[None]:
        """Context in which runs use these connections and caches and leave them open."""
        token = _SHARED.set(self)
        try:
            yield
        finally:
            _SHARED.reset(token)

    def session(self, *, closes: bool = False, **options: Any) -> Any:
        """An aiohttp session over the connections; ``closes``: it closes them at its end."""
        import aiohttp

        if self._connector is None:
            self._connector = aiohttp.TCPConnector(limit=0)
        return aiohttp.ClientSession(connector=self._connector, connector_owner=closes, **options)

    def cache(
        self, key: Hashable, make: Callable[[], ReplyCache], warn: Callable[[str], None]
    ) -> ReplyCache:
        """A cache that is exclusive until it is closed, and then stays open here.

        Args:
            key: Tells caches apart.
            make: Opens one if none with this key is free.
            warn: Receives its faults from now on.
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
        """Closes everything."""
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
    """The pool of the runs in this context; None if each closes what it opens."""
    return _SHARED.get()

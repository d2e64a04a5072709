"""Replicas that come and go during a run, by a file or folder of addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..errors import AccessError, OptionError
from .base import Clock
from .endpoint_cache import EndpointCache
from .endpoints import Endpoint, Router
from .model_spec import ModelSpec
from .served import learn_served

REREAD_S = 30.0
"""Seconds between two readings of the addresses."""


@dataclass(slots=True, kw_only=True)
class ReplicaWatch:
    """Reads the addresses of a model at intervals, and updates the router.

    An unreadable or empty list changes nothing: it may be in the middle of a write. Calls in flight
    to a replica that left may end; those that fail are made elsewhere.

    Attributes:
        spec: The model, with the file or folder of its addresses.
        router: Chooses among the endpoints.
        endpoint_at: Makes an endpoint of an address.
        endpoint_cache: Properties of endpoints from earlier runs.
        lists_models: True if a new replica is asked for its model.
        clock: Waits.
        warn: Called with changes, and with addresses that can't be used.
    """

    spec: ModelSpec
    router: Router
    endpoint_at: Callable[[str | None], Endpoint]
    endpoint_cache: EndpointCache
    lists_models: bool
    clock: Clock
    warn: Callable[[str], None]
    _task: asyncio.Task[None] | None = None
    _complaints: set[str] = field(default_factory=set[str])

    def start(self) -> None:
        """Begins to watch, in the running loop; does nothing if it already does."""
        if self.spec.api_base_file is not None and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._look_on())

    def stop(self) -> None:
        """Stops watching."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
        self._task = None

    async def _look_on(self) -> None:
        while True:
            await self.clock.sleep(REREAD_S)
            try:
                addresses = await asyncio.to_thread(lambda: self.spec.addresses)
            except OptionError as error:
                self._complain(f"{error}; the replicas stay as they were")
                continue
            await self._follow(addresses)

    async def _follow(self, addresses: Sequence[str | None]) -> None:
        """Makes the router choose among the replicas at these addresses."""
        known = {endpoint.address: endpoint for endpoint in self.router.endpoints}
        new = [address for address in addresses if address not in known]
        serving = await asyncio.gather(*map(self._serves_the_same, new))
        usable = {address for address, is_usable in zip(new, serving, strict=True) if is_usable}
        stay = known.keys() & set(addresses)
        if not usable and (len(stay) == len(known) or not stay):
            return
        self.router.replace(
            [
                known[address] if address in known else self.endpoint_at(address)
                for address in addresses
                if address in known or address in usable
            ]
        )
        n, gone = len(self.router.endpoints), len(known) - len(stay)
        self.warn(
            f"note: replicas of {self.spec.model} now: {n} ({len(usable)} came, {gone} left "
            f"{self.spec.api_base_file})"
        )

    async def _serves_the_same(self, address: str | None) -> bool:
        """True if a new replica has the weights of the existing ones."""
        if self.lists_models:
            both = (self.router.endpoints[0].address, address)
            try:
                await learn_served(self.spec.model, both, self.endpoint_cache)
            except AccessError as error:
                self._complain(f"{error}; {address} is not asked")
                return False
        return True

    def _complain(self, text: str) -> None:
        if text not in self._complaints:
            self._complaints.add(text)
            self.warn(f"warning: {text}")

"""Models that endpoints serve, by their own lists: the place under which replies are cached.

A self-hosted server moves between nodes and ports with the same weights, and other weights appear
at the same address. So its replies are cached under the model that it reports, those of a provider
under its address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ..errors import AccessError, visible
from ..records.loose_json import objects_of
from .direct import get_json
from .endpoint_cache import EndpointCache
from .model_spec import KEYS

SERVED = "served"
LONGEST_WAIT_S = 5.0
_FACTS = ("id", "root", "parent", "revision", "max_model_len")


Served = dict[str | None, Any]
"""The model that each address serves, as far as it reports it."""


def place_of(addresses: Sequence[str | None], served: Served) -> str:
    """A text that distinguishes models of the same name: the served weights, else the addresses."""
    stated = {orjson.dumps(of).decode() for of in served.values()}
    return " ".join(sorted(stated or {address or "" for address in addresses}))


def served_before(model: str, addresses: Sequence[str | None], known: EndpointCache) -> Served:
    """The model that each address served when it was last asked."""
    facts = {address: known.get(model, address).get(SERVED) for address in addresses}
    return {address: of for address, of in facts.items() if isinstance(of, dict)}


async def learn_served(model: str, addresses: Sequence[str | None], known: EndpointCache) -> Served:
    """Asks each address once which model it serves; no other address is asked.

    Returns:
        The report of each; if a server does not answer, its last report.

    Raises:
        AccessError: If replicas serve different weights.
    """
    provider, _, name = model.partition("/")
    served = served_before(model, addresses, known)
    own = [address for address in addresses if address is not None and provider in KEYS]
    lists = (get_json(f"{a.rstrip('/')}/models", provider, LONGEST_WAIT_S) for a in own)
    for address, listed in zip(own, await asyncio.gather(*lists), strict=True):
        if listed is not None:
            facts = _facts(listed, name)
            known.update(model, address, {SERVED: facts})
            served |= {address: facts}
    served = {address: of for address, of in served.items() if of}
    roots = {visible(str(of.get("root"))): address for address, of in served.items()}
    if len(roots) > 1:
        models = " and ".join(f"{root} at {address}" for root, address in roots.items())
        raise AccessError(f"--api-base: expected replicas of one model, got {models}")
    return served


def _facts(listed: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """The list's facts about a model; None unless it states the weights."""
    for of in objects_of(listed.get("data")):
        if of.get("id") == name and of.get("root"):
            return {fact: of[fact] for fact in _FACTS if of.get(fact) is not None}
    return None

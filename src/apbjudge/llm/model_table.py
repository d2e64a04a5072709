"""Prices, context lengths and vision of models, from litellm's table without importing litellm."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import orjson
from pydantic import Field

from ..records import Record, Usage

FILE = "model_prices_and_context_window_backup.json"


class Prices(Record):
    """US dollars per million tokens; None if the price is unknown."""

    input: float | None = Field(default=None, description="Tokens sent.")
    output: float | None = Field(default=None, description="Tokens received.")
    cached: float | None = Field(
        default=None,
        description="Tokens sent that the endpoint had in its prefix cache; None means as input.",
    )

    @property
    def are_known(self) -> bool:
        """True if a call can be priced."""
        return self.input is not None and self.output is not None

    def cost_usd(self, usage: Usage) -> float | None:
        """Price of some usage; None if price or usage is unknown."""
        if self.input is None or self.output is None or usage.unreported:
            return None
        cached = self.input if self.cached is None else self.cached
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        parts = fresh * self.input + usage.cached_tokens * cached
        return (parts + usage.completion_tokens * self.output) / 1e6


def supports_vision(model: str) -> bool:
    """True if a model takes pictures, according to the table."""
    values = [entry.get("supports_vision") for entry in _entries(model)]
    return next((value for value in values if value is not None), False) is True


def context_tokens(model: str) -> int | None:
    """The longest prompt of a model in tokens; None if unknown."""
    for entry in _entries(model):
        tokens = entry.get("max_input_tokens") or entry.get("max_tokens")
        if isinstance(tokens, int):
            return tokens
    return None


def model_prices(model: str, *, batched: bool = False) -> Prices:
    """The prices of a model; surcharges for long prompts or hours are ignored.

    Args:
        model: litellm model name.
        batched: True if calls go through the provider's batch interface.
    """
    names = ["input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"]
    if batched:
        names = [f"{name}_batches" for name in names[:2]] + [""]
    values = model_entry(model)
    dollars = [values.get(name) for name in names]
    known = [c * 1e6 if isinstance(c, int | float) else None for c in dollars]
    return Prices(input=known[0], output=known[1], cached=known[2])


def model_entry(model: str) -> dict[str, Any]:
    """The table's entry for a model, empty if there is none.

    A model that is listed only by its bare name belongs to one provider; others that serve a model
    of that name have their own prices.
    """
    provider = model.partition("/")[0]
    full, bare = _entries(model)
    return full or (bare if bare.get("litellm_provider") == provider else {})


def _entries(model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The entries under a model's full name, and under its name without provider.

    A name that is an alias of another model, such as its latest version, has that model's entries.
    """
    table = _table()
    model = (table.get(model) or {}).get("alias_of", model)
    bare = model.partition("/")[2]
    bare = (table.get(bare) or {}).get("alias_of", bare)
    return table.get(model) or {}, table.get(bare) or {}


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    spec = find_spec("litellm")
    for folder in (spec and spec.submodule_search_locations) or ():
        try:
            table = orjson.loads((Path(folder) / FILE).read_bytes())
        except (OSError, orjson.JSONDecodeError):
            continue
        return cast("dict[str, dict[str, Any]]", table)
    return {}

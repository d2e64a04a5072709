"""litellm's table of models, read from its file: looking something up need not import litellm."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import orjson

from .prices import Prices

FILE = "model_prices_and_context_window_backup.json"


def sees(model: str) -> bool:
    """Whether the table says that a model takes pictures."""
    said = [entry.get("supports_vision") for entry in _entries(model)]
    return next((word for word in said if word is not None), False) is True


def context_tokens(model: str) -> int | None:
    """The longest prompt of a model in tokens, None when not known."""
    for entry in _entries(model):
        tokens = entry.get("max_input_tokens") or entry.get("max_tokens")
        if isinstance(tokens, int):
            return tokens
    return None


def prices(model: str) -> Prices:
    """The prices of a model; long prompts, batches and hours of the day are not told apart."""
    found = entry(model)
    names = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    dollars = [found.get(name) for name in names]
    known = [c * 1e6 if isinstance(c, int | float) else None for c in dollars]
    return Prices(input=known[0], output=known[1], cached=known[2])


def entry(model: str) -> dict[str, Any]:
    """What the table says of a model, empty if nothing.

    A model that is listed by its bare name only belongs to one provider; others that serve a
    model of that name ask their own price.
    """
    provider = model.partition("/")[0]
    full, bare = _entries(model)
    return full or (bare if bare.get("litellm_provider") == provider else {})


def _entries(model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the table says under a model's full name, and under its name without provider."""
    table = _table()
    return table.get(model) or {}, table.get(model.partition("/")[2]) or {}


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

"""Properties of endpoints, cached between runs: reply format, latency, tokens per character."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from ..errors import InputError
from ..jsonl import write_atomically
from ..records.loose_json import as_object

FILE = "endpoints.json"


class EndpointCache:
    """Properties by model and address, in a JSON file; without a usable file nothing is stored.

    Args:
        folder: Folder of the file; None stores nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / FILE if folder is not None else None

    def get(self, model: str, address: str | None) -> dict[str, Any]:
        """The properties of a model at an address; empty if there are none."""
        return as_object(self._read().get(_name(model, address))) or {}

    def update(self, model: str, address: str | None, properties: Mapping[str, Any]) -> None:
        """Adds to the properties of a model at an address."""
        everything, name = self._read(), _name(model, address)
        before = as_object(everything.get(name)) or {}
        after = before | dict(properties)
        if self._path is None or before == after:
            return
        everything[name] = after
        # A failure costs the next run a call or two.
        with suppress(OSError, InputError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, orjson.dumps(everything, option=orjson.OPT_INDENT_2))

    def clear(self) -> None:
        """Removes the file."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    def _read(self) -> dict[str, Any]:
        try:
            return (self._path and as_object(orjson.loads(self._path.read_bytes()))) or {}
        except (OSError, orjson.JSONDecodeError):
            return {}


def _name(model: str, address: str | None) -> str:
    return f"{model} {address or ''}".strip()

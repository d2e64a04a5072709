"""What has been learnt of endpoints, kept between runs: which reply format each one takes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import orjson

from ..errors import InputError
from ..jsonl import write_atomically

FILE = "endpoints.json"


class Memory:
    """Facts about endpoints, in a JSON file; without a usable file nothing is remembered.

    Args:
        folder: Where the file is; None remembers nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / FILE if folder is not None else None

    def recall(self, model: str, address: str | None) -> dict[str, Any]:
        """What is known of a model at an address; empty when nothing is."""
        facts = self._all().get(_name(model, address))
        return cast("dict[str, Any]", facts) if isinstance(facts, dict) else {}

    def note(self, model: str, address: str | None, facts: Mapping[str, Any]) -> None:
        """Adds facts to what is known of a model at an address."""
        known = self.recall(model, address)
        if self._path is None or known == known | dict(facts):
            return
        everything = self._all() | {_name(model, address): known | dict(facts)}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, orjson.dumps(everything, option=orjson.OPT_INDENT_2))
        except (OSError, InputError):
            return  # remembering saves a call or two and is not worth a failure

    def forget(self) -> None:
        """Removes the file."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    def _all(self) -> dict[str, Any]:
        try:
            found: Any = orjson.loads(self._path.read_bytes()) if self._path else None
        except (OSError, orjson.JSONDecodeError):
            return {}
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _name(model: str, address: str | None) -> str:
    return f"{model} {address or ''}".strip()

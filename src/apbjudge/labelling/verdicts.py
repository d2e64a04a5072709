"""A judge's verdicts on the items of the queue, shown only to raters who have given their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import InputError, RowError
from ..jsonl import parse_object, read_line_at, read_lines
from ..judge.store import JUDGEMENTS
from ..reports.page.items import judgement_view
from .log import Key

_NEEDED = {"item_id", "tested_model", "judge", "kind"}


class Verdicts:
    """Finds judgements in a run's file, one at a time.

    Args:
        run: A run's folder or its file of judgements.
        keys: The items that are asked for.

    Raises:
        InputError: If the file can't be read or holds no judgement of any of them.
    """

    def __init__(self, run: Path, keys: Iterable[Key]) -> None:
        self._path = run / JUDGEMENTS if run.is_dir() else run
        wanted = set(keys)
        self._offsets: dict[Key, int] = {}
        for line in read_lines(self._path):
            values = line.values
            if isinstance(values, RowError) or not values.keys() >= _NEEDED:
                continue
            key = (values["item_id"], values["tested_model"])
            if key in wanted:
                self._offsets[key] = line.offset
        if not self._offsets:
            raise InputError(f"{self._path}: expected judgements of the items to label, got none")

    def has(self, key: Key) -> bool:
        """Whether the judge has judged an item."""
        return key in self._offsets

    def of(self, key: Key) -> dict[str, Any] | None:
        """The verdict on an item as the page shows it, or None."""
        if key not in self._offsets:
            return None
        values = parse_object(read_line_at(self._path, self._offsets[key]))
        return None if isinstance(values, RowError) else judgement_view(values)

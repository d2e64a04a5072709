"""A judge's verdicts on the items of the queue; a rater sees one after completing their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError, RowError
from ..jsonl import parse_object, read_line_at, read_lines
from ..judge.store import JUDGEMENTS
from ..reports.page.items import judgement_view
from .label_log import Key

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
            key = None if isinstance(values, RowError) else _key(values)
            if key is not None and key in wanted:
                self._offsets[key] = line.offset
        if not self._offsets:
            raise InputError(f"{self._path}: expected judgements of the items to label, got none")

    def has(self, key: Key) -> bool:
        """Whether the judge has judged an item."""
        return key in self._offsets

    def of(self, key: Key) -> dict[str, Any] | None:
        """The verdict on an item as the page shows it, or None.

        Raises:
            InputError: If the file has changed since it was first read.
        """
        if key not in self._offsets:
            return None
        try:
            values = parse_object(read_line_at(self._path, self._offsets[key]))
        except OSError as error:
            raise InputError(f"{self._path}: can't be read: {error.strerror}") from None
        if isinstance(values, RowError) or _key(values) != key:
            raise InputError(f"{self._path}: the file has changed; start anew")
        return judgement_view(values)


def _key(values: Mapping[str, Any]) -> Key | None:
    """Whose judgement a row is; None when it is no judgement of an item."""
    item_id, tested_model = values.get("item_id"), values.get("tested_model")
    if not values.keys() >= _NEEDED or not isinstance(item_id, str):
        return None
    return (item_id, tested_model) if isinstance(tested_model, str) else None

"""A judge's verdicts on the items of the queue; a rater sees one after completing their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import InputError, RowError
from ..jsonl import parse_object, read_line_at
from ..records.run_folder import read_run
from ..reports.page.items import judgement_view
from .label_log import Key


class Verdicts:
    """Finds judgements in a run's file, one at a time.

    Args:
        run: A run's folder or its file of judgements.
        keys: The items that are asked for.

    Raises:
        InputError: If the file can't be read or holds no judgement of any of them.
    """

    def __init__(self, run: Path, keys: Iterable[Key]) -> None:
        folder = read_run(run)
        self._path, table, wanted = folder.path, folder.table, set(keys)
        rows = zip(table.item_id.values, table.values("tested_model"), table.position, strict=True)
        self._offsets = {
            (item_id, tested_model): int(offset)
            for item_id, tested_model, offset in rows
            if (item_id, tested_model) in wanted
        }
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
            row = parse_object(read_line_at(self._path, self._offsets[key]))
        except OSError as error:
            raise InputError(f"{self._path}: can't be read: {error.strerror}") from None
        if isinstance(row, RowError) or (row.get("item_id"), row.get("tested_model")) != key:
            raise InputError(f"{self._path}: the file has changed; start anew")
        return judgement_view(row)

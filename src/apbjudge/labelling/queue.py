"""The items to label: read once to check if they can be shown, ordered, then read one at a time.

Unlike ``judge.Source``, this computes no findings, which raters must not see and which take most of
the time of reading, and it can go back to a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ..errors import InputError, RowError
from ..jsonl import object_of, read_line_at, read_lines
from ..judge.published import only_run
from ..judge.source import ItemSource, graded_by, read_item
from ..protocols.base import Protocol
from ..records import Item, Row
from ..records.keys import KeySet, short_key
from ..reports.page.items import judgement_view
from ..rubrics import Rubric
from ..runs.rows import Cases, row_error_of
from .label_log import Key

Problem = Callable[[str], None]
"""Called with the complaint about a row that can't be used (``file:line: …``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedItem:
    """An item of the queue: its place in the file, its protocol and its rubric.

    Attributes:
        key: Item id and tested model.
        rubric: The rubric of its label.
        protocol: The item's protocol.
        offset: Byte offset of its line.
        line: 1-based number of its line.
        digest: SHA-256 of the line, and of its case if there is a file of cases.
    """

    key: Key
    rubric: Rubric
    protocol: Protocol
    offset: int
    line: int
    digest: bytes


class ItemReader:
    """Reads predictions, joined with their cases.

    Args:
        source: The predictions, in a file.

    Attributes:
        roots: Folders that pictures may lie in.

    Raises:
        InputError: If the file of cases can't be read or one of its rows is unusable.
    """

    def __init__(self, source: ItemSource) -> None:
        cases = source.cases
        self._predictions = cast("Path", source.rows)
        self._name = source.name
        self._cases = Cases(cases, origin=source.reading.origin_of(cases)) if cases else None
        self._protocol = source.protocol
        self._rubric = source.rubric
        self.roots = source.roots

    def queue(self, problem: Problem) -> list[QueuedItem]:
        """Reads all predictions and stores the position of each usable row.

        Args:
            problem: Called with the complaint about each row that can't be shown.

        Raises:
            InputError: If the file can't be read or no row is usable.
        """
        queue: list[QueuedItem] = []
        seen = KeySet()
        for line in read_lines(self._predictions):
            try:
                if isinstance(line.values, RowError):
                    raise line.values
                item, digest = self._read(line.raw, line.number)
                key = item.item_id, item.tested_model
                if not seen.add(short_key(*key)):
                    expected = "an id that occurs once per tested_model"
                    raise RowError("id", expected, f"{key[0]} again for {key[1]}")  # noqa: TRY301
                protocol, rubric = graded_by(item, self._protocol, self._rubric)
            except RowError as error:
                problem(f"{self._name}:{line.number}: {error}")
                continue
            queue.append(
                QueuedItem(
                    key=key,
                    rubric=rubric,
                    protocol=protocol,
                    offset=line.offset,
                    line=line.number,
                    digest=digest,
                )
            )
        if not queue:
            raise InputError(f"{self._name}: expected at least one row that can be shown, got none")
        return queue

    def item(self, place: QueuedItem) -> Item:
        """The item at a place.

        Raises:
            InputError: If a file has changed since it was first read.
        """
        try:
            item, digest = self._read(read_line_at(self._predictions, place.offset), place.line)
        except (OSError, RowError):
            item, digest = None, b""
        if item is None or digest != place.digest:
            raise InputError(f"{self._name}:{place.line}: the file has changed; start anew")
        return item

    def _read(self, raw: bytes, number: int) -> tuple[Item, bytes]:
        """The item of a line, and the digest of everything that it was read from."""
        digest = hashlib.sha256(raw)
        try:
            row = object_of(raw)
            if self._cases is not None:
                row = self._cases.join(row, digest)
            return read_item(Row(row, number, parsed=True), self._protocol), digest.digest()
        except Exception as error:  # noqa: BLE001 - one odd row must not cost the others
            raise row_error_of(error) from None


def shuffled(queue: Sequence[QueuedItem], *, seed: int) -> list[QueuedItem]:
    """The items in random order.

    The rank of an item depends only on the seed and its own names. So the first n are a simple
    random sample for every n, and stay the same if the file is sorted differently.
    """

    def rank(place: QueuedItem) -> bytes:
        text = "\x00".join((str(seed), *place.key)).encode(errors="surrogatepass")
        return hashlib.blake2b(text, digest_size=16).digest()

    return sorted(queue, key=rank)


def in_plan_order(queue: Sequence[QueuedItem], plan: Path, problem: Problem) -> list[QueuedItem]:
    """The items that a plan of ``plan-labels`` names, in its order.

    Raises:
        InputError: If the plan can't be read or names no row of the predictions.
    """
    planned: list[tuple[int, Key]] = []
    for line in read_lines(plan):
        values = line.values
        if isinstance(values, RowError):
            problem(f"{plan}:{line.number}: {values}")
            continue
        order = values.get("order")
        if type(order) is int and order >= 1:
            planned.append((order, (str(values.get("item_id")), str(values.get("tested_model")))))
    planned.sort(key=lambda row: row[0])
    by_key = {place.key: place for place in queue}
    chosen = [by_key.pop(key) for _, key in planned if key in by_key]
    if not chosen:
        raise InputError(
            f"{plan}: expected rows of the predictions as apbjudge plan-labels writes them, "
            "got none to be labelled"
        )
    if absent := len(planned) - len(chosen):
        problem(f"{plan}: {absent} planned rows are not in the predictions, or are there twice")
    return chosen


class JudgeVerdicts:
    """A judge's verdicts on the items of the queue; a rater sees one after completing their own.

    Args:
        run: A run's folder or its file of judgements.
        keys: The items.

    Raises:
        InputError: If the file can't be read or has no judgement of any of the items.
    """

    def __init__(self, run: Path, keys: Iterable[Key]) -> None:
        self._run, keys = only_run(run), set(keys)
        self._path, table = self._run.path, self._run.table
        judged = zip(table.item_id.values, table.values("tested_model"), strict=True)
        rows = zip(judged, table.position.tolist(), strict=True)
        self._offsets = {key: offset for key, offset in rows if key in keys}
        if not self._offsets:
            raise InputError(f"{self._path}: expected judgements of the items to label, got none")

    def __contains__(self, key: Key) -> bool:
        return key in self._offsets

    def view(self, key: Key) -> dict[str, Any]:
        """The verdict on a judged item, in the form of the page.

        Raises:
            InputError: If the file has changed since it was first read.
        """
        try:
            row = self._run.row_at(self._offsets[key])
        except OSError as error:
            raise InputError(f"{self._path}: can't be read: {error.strerror}") from None
        except RowError:
            row = {}
        if (row.get("item_id"), row.get("tested_model")) != key:
            raise InputError(f"{self._path}: the file has changed; start anew")
        return judgement_view(row)

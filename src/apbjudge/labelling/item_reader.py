"""The items to be labelled: read once to see which can be shown, ordered, then read one at a time.

Unlike ``judge.Source`` this looks for no findings, which nobody here may see and which take most
of the time of reading, and it can go back to a row.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, RowError
from ..jsonl import object_of, read_line_at, read_lines
from ..judge.source import graded_by
from ..protocols import AUTO
from ..protocols.base import Protocol
from ..records import Item, Row
from ..records.keys import KeySet, short_key
from ..rubrics import Rubric
from ..runs.rows import Cases, row_error_of
from .label_log import Key

Problem = Callable[[str], None]
"""Called with the complaint about a row that can't be used (``file:line: …``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedItem:
    """Where an item of the queue stands.

    Attributes:
        item_id: The item.
        tested_model: Whose response it is.
        rubric: What it is labelled by.
        protocol: How it is graded.
        offset: Byte offset of its line.
        line: 1-based number of its line.
        digest: SHA-256 of the line, and of its case where there is a file of them.
    """

    item_id: str
    tested_model: str
    rubric: Rubric
    protocol: Protocol
    offset: int
    line: int
    digest: bytes

    @property
    def key(self) -> Key:
        """Item id and tested model."""
        return self.item_id, self.tested_model


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A row with what it was read from."""

    item: Item
    digest: bytes


class ItemReader:
    """Reads predictions, joined with their cases.

    Args:
        predictions: A JSONL file.
        cases: A JSONL file of cases to be joined on ``id``, or None.
        protocol: A protocol's name, or ``auto``.
        rubric: The user's own rubric, or None for each protocol's default.
        data_roots: Folders that pictures are looked for in first.

    Attributes:
        name: The predictions, for messages.
        roots: Folders that pictures may lie in: ``data_roots`` and that of the cases, else that
            of the predictions.

    Raises:
        InputError: If the file of cases can't be read or one of its rows is unusable.
    """

    def __init__(
        self,
        predictions: Path,
        *,
        cases: Path | None = None,
        protocol: str = AUTO,
        rubric: Rubric | None = None,
        data_roots: Sequence[Path] = (),
    ) -> None:
        self.name = os.fsencode(predictions).decode(errors="backslashreplace")
        self._predictions = predictions
        self._cases = Cases(cases) if cases else None
        self._protocol = protocol
        self._rubric = rubric
        self.roots = (*data_roots, (cases or predictions).parent)

    def places(self, problem: Problem) -> list[QueuedItem]:
        """Reads all predictions and remembers where each usable row stands.

        Args:
            problem: Called with the complaint about each row that can't be shown.

        Raises:
            InputError: If the file can't be read or no row is usable.
        """
        places = list(self._places(problem))
        if not places:
            raise InputError(f"{self.name}: expected at least one row that can be shown, got none")
        return places

    def item(self, place: QueuedItem) -> Item:
        """The item at a place.

        Raises:
            InputError: If a file has changed since it was first read.
        """
        try:
            read = self._read(read_line_at(self._predictions, place.offset), place.line)
        except (OSError, RowError):
            read = None
        if read is None or read.digest != place.digest:
            raise InputError(f"{self.name}:{place.line}: the file has changed; start anew")
        return read.item

    def _places(self, problem: Problem) -> Iterator[QueuedItem]:
        seen = KeySet()
        for line in read_lines(self._predictions):
            try:
                if isinstance(line.values, RowError):
                    raise line.values
                read = self._read(line.raw, line.number)
                yield self._place(read, line.offset, seen)
            except RowError as error:
                problem(f"{self.name}:{line.number}: {error}")

    def _read(self, raw: bytes, number: int) -> _Read:
        digest = hashlib.sha256(raw)
        try:
            row = object_of(raw)
            if self._cases is not None:
                row = self._cases.join(row, digest)
            item = Row(row, number, parsed=True).to_item()
        except Exception as error:  # noqa: BLE001 - one odd row must not cost the others
            raise row_error_of(error) from None
        return _Read(item=item, digest=digest.digest())

    def _place(self, read: _Read, offset: int, seen: KeySet) -> QueuedItem:
        item = read.item
        if not seen.add(short_key(item.item_id, item.tested_model)):
            expected = "an id that occurs once per tested_model"
            raise RowError("id", expected, f"{item.item_id} again for {item.tested_model}")
        protocol, rubric = graded_by(item, self._protocol, self._rubric)
        return QueuedItem(
            item_id=item.item_id,
            tested_model=item.tested_model,
            rubric=rubric,
            protocol=protocol,
            offset=offset,
            line=item.line,
            digest=read.digest,
        )


def shuffled(places: Sequence[QueuedItem], *, seed: int) -> list[QueuedItem]:
    """The places in an order shuffled at random.

    Each gets a number that follows from the seed and its own names alone. So the first n are a
    simple random sample for every n, and stay the same when the file is sorted anew.
    """
    return sorted(places, key=lambda place: _lot(seed, place.key))


def _lot(seed: int, key: Key) -> bytes:
    text = "\x00".join((str(seed), *key)).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


def in_plan_order(places: Sequence[QueuedItem], plan: Path, problem: Problem) -> list[QueuedItem]:
    """The places that a plan of ``plan-labels`` names, in its order.

    Raises:
        InputError: If the plan can't be read or names no row of the predictions.
    """
    by_key = {place.key: place for place in places}
    queue: list[QueuedItem] = []
    absent = 0
    for key in _plan_keys(plan, problem):
        if key in by_key:
            queue.append(by_key.pop(key))
        else:
            absent += 1
    if not queue:
        raise InputError(
            f"{plan}: expected rows of the predictions as apbjudge plan-labels writes them, "
            "got none to be labelled"
        )
    if absent:
        problem(f"{plan}: {absent} planned rows are not in the predictions, or are there twice")
    return queue


def _plan_keys(plan: Path, problem: Problem) -> list[Key]:
    rows: list[tuple[int, Key]] = []
    for line in read_lines(plan):
        values = line.values
        if isinstance(values, RowError):
            problem(f"{plan}:{line.number}: {values}")
            continue
        order, key = values.get("order"), (values.get("item_id"), values.get("tested_model"))
        if type(order) is int and order >= 1:
            rows.append((order, (str(key[0]), str(key[1]))))
    return [key for _, key in sorted(rows, key=lambda row: row[0])]

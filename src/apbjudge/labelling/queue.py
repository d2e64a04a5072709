"""The items to be labelled, in their order: places in files, read when they are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ..errors import InputError, RowError
from ..jsonl import read_lines
from ..protocols.base import Protocol
from ..rubrics import Rubric
from .log import Key

Problem = Callable[[str], None]
"""Is given the complaint about a row that can't be used (``file:line: …``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
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


def drawn(places: Sequence[Place], *, seed: int) -> list[Place]:
    """The places in an order drawn at random.

    Each gets a number that follows from the seed and its own names alone. So the first n are a
    simple random sample for every n, and stay the same when the file is sorted anew.
    """
    return sorted(places, key=lambda place: _lot(seed, place.key))


def _lot(seed: int, key: Key) -> bytes:
    text = "\x00".join((str(seed), *key)).encode(errors="surrogatepass")
    return blake2b(text, digest_size=16).digest()


def planned(places: Sequence[Place], plan: Path, problem: Problem) -> list[Place]:
    """The places that a plan of ``plan-labels`` names, in its order.

    Raises:
        InputError: If the plan can't be read or names no row of the predictions.
    """
    by_key = {place.key: place for place in places}
    found: list[Place] = []
    absent = 0
    for key in _plan_keys(plan, problem):
        if key in by_key:
            found.append(by_key.pop(key))
        else:
            absent += 1
    if not found:
        raise InputError(
            f"{plan}: expected rows of the predictions as apbjudge plan-labels writes them, "
            "got none to be labelled"
        )
    if absent:
        problem(f"{plan}: {absent} planned rows are not in the predictions, or are there twice")
    return found


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

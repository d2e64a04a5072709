"""The order of a run: rows of one case next to each other, the first of them ahead.

Providers and servers keep what they have computed of a prompt's beginning. Rubric and case come
first in every prompt, so replies to one case share it, provided they are asked soon after each
other and not before the first has been computed.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from .rows import BadRow, FinishedRow

WINDOW_ROWS = 1024
WINDOW_BYTES = 64 * 2**20
REMEMBERED = 4096


class _Placed(Protocol):
    @property
    def case_id(self) -> str: ...
    @property
    def offset(self) -> int: ...


R = TypeVar("R", bound=_Placed)
J = TypeVar("J")


def adjacent(
    entries: Iterable[R | BadRow | FinishedRow],
    *,
    rows: int = WINDOW_ROWS,
    size: int = WINDOW_BYTES,
) -> Iterator[R | BadRow | FinishedRow]:
    """Yields rows so that those of one case follow each other, as far as a window reaches.

    Args:
        entries: The rows, in the order of the file.
        rows: Rows that are held back at most.
        size: Bytes of the file that rows are held back over at most.

    Yields:
        Every entry once. Bad rows and finished ones pass at once.
    """
    held: OrderedDict[str, list[R]] = OrderedDict()
    count = 0
    for entry in entries:
        if isinstance(entry, BadRow | FinishedRow):
            yield entry
            continue
        held.setdefault(entry.case_id, []).append(entry)
        count += 1
        while count > rows or (
            count > 1 and entry.offset - next(iter(held.values()))[0].offset > size
        ):
            _, group = held.popitem(last=False)
            count -= len(group)
            yield from group
    for group in held.values():
        yield from group


@dataclass(slots=True)
class Leaders(Generic[J]):
    """Holds followers back until the leader of their prefix has landed.

    Attributes:
        ready: Followers whose leader has landed, to be started next.
        waiting: Number of followers whose leader is in flight.
    """

    ready: deque[J] = field(default_factory=deque[J])
    waiting: int = 0
    _parked: dict[Hashable, list[J]] = field(default_factory=dict[Hashable, list[J]])
    _filled: OrderedDict[Hashable, None] = field(default_factory=OrderedDict[Hashable, None])

    def may_start(self, prefix: Hashable, job: J) -> bool:
        """True if a job may start now; if not, it waits until its leader has landed."""
        if prefix in self._filled:
            self._filled.move_to_end(prefix)
            return True
        if prefix in self._parked:
            self._parked[prefix].append(job)
            self.waiting += 1
            return False
        self._parked[prefix] = []
        return True

    def landed(self, prefix: Hashable) -> None:
        """Lets the followers of a prefix go, when it was its leader that landed."""
        followers = self._parked.pop(prefix, None)
        if followers is None:
            return
        self.waiting -= len(followers)
        self.ready.extend(followers)
        self._filled[prefix] = None
        if len(self._filled) > REMEMBERED:
            self._filled.popitem(last=False)

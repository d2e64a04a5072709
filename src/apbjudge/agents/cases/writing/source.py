"""The file of tasks, which the run of the model reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from ....errors import RowError
from ....jsonl import replacing
from ....records.keys import KeySet, short_key
from ....runs.rows import BadRow, RawRow, RowSource
from ..seeds import Seed
from .config import FIRST, Kind
from .tasks import WritingTask, task_of
from .writings import Writings


@dataclass(slots=True)
class TaskCounts:
    """Counts of tasks, and of seeds without one.

    Attributes:
        tasks: Tasks written.
        waiting: Seeds whose other tasks wait for a new query.
        not_asked: Kind and reason, such as ``private: no query``, of texts without a task.
    """

    tasks: int = 0
    waiting: int = 0
    not_asked: Counter[str] = field(default_factory=Counter[str])


def write_tasks(
    path: Path, seeds: Iterable[Seed], kinds: Sequence[Kind], writings: Writings, repairs: int
) -> TaskCounts:
    """Writes the tasks of all seeds, grouped by seed, and equal tasks once.

    Where trajectories are simulated or queries rewritten, the other tasks of a seed are made once
    it is known how.

    Args:
        path: File to write.
        seeds: The seeds.
        kinds: Kinds of texts to write.
        writings: Texts so far.
        repairs: Number of repeated requests to the model.

    Raises:
        InputError: If the file can't be written.
    """
    counts, seen = TaskCounts(), KeySet()
    with replacing(path) as file:

        def add(seed: Seed, kind: Kind) -> WritingTask | None:
            task = task_of(seed, kind)
            if isinstance(task, str):
                counts.not_asked[f"{kind}: {task}"] += 1
                return None
            if seen.add(short_key(task.digest)):
                line = orjson.dumps(task.model_dump(), option=orjson.OPT_APPEND_NEWLINE)
                file.write(line)
                counts.tasks += 1
            return task

        for seed in seeds:
            asking = seed
            for at, kind in enumerate(kinds):
                task = add(asking, kind)
                if task is None or kind not in FIRST:
                    continue
                if not writings.is_done(task, repairs):
                    counts.waiting += at + 1 < len(kinds)
                    break
                asking = writings.rewritten(asking, kind)
    return counts


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task as it was read.

    Attributes:
        task: The task.
        line: Its 1-based line.
        digest: SHA-256 of the row.
        offset: Bytes of the file read so far.
    """

    task: WritingTask
    line: int
    digest: bytes
    offset: int

    @property
    def case_id(self) -> str:
        """The seed."""
        return self.task.seed

    def rejected(self, error: RowError) -> BadRow:
        """The task as a bad row, if it proves unusable."""
        return BadRow(self.line, error, self.digest, self.offset, self.task.id)


class TaskSource(RowSource):
    """Reads tasks, one at a time; a text is looked up by its whole task."""

    @property
    def files(self) -> dict[str, Path | None]:
        """No keys that must match those of earlier sessions."""
        return {}

    def check(self) -> None:
        """Does nothing: the file is written before it is read."""

    def __iter__(self) -> Iterator[TaskRow | BadRow]:
        """Yields every task, or why it can't be used."""

        def read(row: RawRow) -> TaskRow:
            task = WritingTask.model_validate(row.values)
            return TaskRow(task, row.line, row.digest, row.offset)

        return self.read_each(read, lambda task, row: task)

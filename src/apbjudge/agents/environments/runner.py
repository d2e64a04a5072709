"""From the tasks of a benchmark to episodes: each task, of each tested model, in each trial."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ...errors import InputError, RowError
from ...runs.rows import BadRow, RowSource
from ...runs.shards import Shard
from ..prediction.source import sample_id

Row = dict[str, Any]
"""A record as JSON values."""


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode to be played.

    Attributes:
        task: Id of the task.
        at: Index of the tested model.
        tested_model: Its name.
        trial: Number of the episode among several of this task and model, from 0.
        line: Number of the task, from 1.
    """

    task: str
    at: int
    tested_model: str
    trial: int
    line: int

    @property
    def case_id(self) -> str:
        """The task."""
        return self.task

    @property
    def offset(self) -> int:
        """Nothing is known of bytes."""
        return 0

    @property
    def id(self) -> str:
        """The task's id; from the second trial on with its number, such as ``task-7#2``."""
        return sample_id(self.task, self.trial)

    def rejected(self, error: RowError) -> BadRow:
        """The episode where the benchmark has no such task."""
        digest = sha256(self.task.encode()).digest()
        return BadRow(self.line, error, digest, 0, self.id, self.tested_model)


@dataclass(slots=True)
class EpisodeSource(RowSource):
    """The tasks of a benchmark, each once for every tested model and trial.

    Attributes:
        models: Names of the tested models.
        trials: Episodes per task and model.
    """

    models: Sequence[str] = ()
    trials: int = 1

    @classmethod
    def of(
        cls, tasks: Iterable[str], models: Sequence[str], trials: int, shard: Shard | None = None
    ) -> EpisodeSource:
        """The episodes of some tasks, or of a part of them."""
        rows = [{"id": task} for task in tasks]
        return cls(rows=rows, models=models, trials=trials, shard=shard)

    def row_keys(self) -> Iterator[tuple[str, str]]:
        """Yields task and tested model of the first trials."""
        for values in self.raw_rows():
            yield from ((str(values["id"]), model) for model in self.models)

    def __iter__(self) -> Iterator[Episode]:
        """Yields every episode; raises InputError if there are no tasks."""
        line = 0
        for line, values in enumerate(self.raw_rows(), start=1):
            if self.shard is not None and not self.shard.holds(values["id"]):
                continue
            for trial in range(self.trials):
                for at, model in enumerate(self.models):
                    yield Episode(values["id"], at, model, trial, line)
        if not line:
            raise InputError("expected tasks, got none")

"""What a finished run of tested models is to its caller: counts, and rows that stand for a file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from ..jsonl import read_lines
from ..llm.failures import may_pass
from ..records import Record
from .folder import temporary_folder
from .loop import Progress

Row = dict[str, Any]


class FailureCounts(Record):
    """What failed of what one tested model was asked.

    Attributes:
        failed: Rows without a result, by reason.
        last_errors: What the one of them furthest down the input says, by reason.
    """

    failed: dict[str, int] = {}
    last_errors: dict[str, str] = {}

    @property
    def may_pass(self) -> bool:
        """Whether something failed for a reason that may have passed when it is asked again."""
        return any(may_pass(reason, self.last_errors.get(reason, "")) for reason in self.failed)


class Failures:
    """Counts of the failures of several tested models, as fields of ``FailureCounts``."""

    def __init__(self) -> None:
        self._failed: dict[str, Counter[str]] = {}
        self._last: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, name: str, row: Mapping[str, Any]) -> None:
        """Takes in a failure of the model of that name."""
        reason, last = row["reason"], (row["line"], str(row.get("detail") or ""))
        self._failed.setdefault(name, Counter())[reason] += 1
        self._last[name, reason] = max(last, self._last.get((name, reason), last))

    def of(self, name: str) -> dict[str, Any]:
        """The counts of a model; empty where nothing of it failed."""
        failed = self._failed.get(name, {})
        return {
            "failed": dict(failed),
            "last_errors": {reason: self._last[name, reason][1] for reason in failed},
        }


C = TypeVar("C", bound=FailureCounts)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ModelRun(Generic[C]):
    """Finished rows of tested models; stands for their file wherever one is taken.

    Attributes:
        file: Name of the file in the run's folder.
        folder: Where the files are; None when they were kept in memory.
        counts: By tested model; what no model could be asked, such as a line that is no JSON, is
            under the empty name.
        manifest: Versions, hashes, settings, counts.
        progress: What this session did.
        rows: The rows, when kept in memory.
    """

    file: ClassVar[str]

    folder: Path | None
    counts: Mapping[str, C]
    manifest: dict[str, Any]
    progress: Progress
    rows: tuple[Row, ...] = field(default=(), repr=False)
    _files: list[str] = field(default_factory=list[str], compare=False, repr=False)

    @property
    def failed(self) -> int:
        """Rows without a result."""
        return sum(sum(each.failed.values()) for each in self.counts.values())

    def __iter__(self) -> Iterator[Row]:
        """The rows."""
        if self.folder is None:
            return iter(self.rows)
        lines = read_lines(self.folder / self.file)
        return (line.values for line in lines if isinstance(line.values, dict))

    def __fspath__(self) -> str:
        """The file; for a run in memory a temporary one, which goes with the run."""
        if self.folder is not None:
            return os.fspath(self.folder / self.file)
        if not self._files:
            folder = temporary_folder(self, {self.file: self.rows}, self.manifest)
            self._files.append(str(folder / self.file))
        return self._files[0]

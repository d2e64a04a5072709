"""What a finished run of tested models is to its caller: counts, and rows that stand for a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ..jsonl import read_lines
from .folder import temporary_folder
from .loop import Progress

Row = dict[str, Any]


class HasFailures(Protocol):
    """Counts of one tested model."""

    @property
    def failed(self) -> Mapping[str, int]:
        """Rows without a result, by reason."""
        ...


C = TypeVar("C", bound=HasFailures)


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

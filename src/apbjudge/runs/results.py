"""A finished run of tested models: counts, and rows that are accepted as a file."""

from __future__ import annotations

import os
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from ..jsonl import read_lines
from ..llm.failures import may_pass
from ..records import Record
from .folder import temporary_folder
from .loop import Progress

Row = dict[str, Any]


class FailureCounts(Record):
    """Failures of one tested model.

    Attributes:
        failed: Rows without a result, by reason.
        last_errors: Detail of the one furthest down the input, by reason.
    """

    failed: dict[str, int] = {}
    last_errors: dict[str, str] = {}

    @classmethod
    def of(cls, rows: Iterable[Row], name: str = "tested_model") -> dict[str, Self]:
        """The counts of records, by the value of a field of theirs."""
        tallies: dict[str, Tally] = {}
        for row in rows:
            tally = tallies.setdefault(row.get(name) or "", Tally())
            if tally.take(row):
                cls.count(tally, row)
        return {name: cls(**tally.fields(cls)) for name, tally in sorted(tallies.items())}

    @staticmethod
    def count(tally: Tally, row: Row) -> None:
        """Adds a result to the sums ``n`` and ``by``."""

    @property
    def may_pass(self) -> bool:
        """True if something failed for a reason that may have passed when it is asked again."""
        return any(may_pass(reason, self.last_errors.get(reason, "")) for reason in self.failed)


class CallCounts(FailureCounts):
    """Further costs of the calls of one tested model.

    Attributes:
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received.
        cost_usd: Costs; None if the price of any result is unknown.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0


class Tally:
    """Sums over the records of one tested model, the same for any order of these.

    Attributes:
        n: Other counts, by the name of their field.
        by: Counts by some name.
    """

    def __init__(self) -> None:
        self.n: Counter[str] = Counter()
        self.by: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._failed: Counter[str] = Counter()
        self._last: dict[str, tuple[int, str]] = {}
        self._costs = array("d")
        self._is_priced = True

    def take(self, row: Mapping[str, Any]) -> bool:
        """Adds a failure, or the cost of a result; returns True for a result."""
        for name in ("calls", "prompt_tokens", "completion_tokens", "reused"):
            self.n[name] += row["usage"][name]
        if (reason := row.get("reason")) is None:
            if (cost := row["cost_usd"]) is None:
                self._is_priced = False
            elif cost:
                self._costs.append(cost)
            return True
        last = (row["line"], str(row.get("detail") or ""))
        self._failed[reason] += 1
        self._last[reason] = max(last, self._last.get(reason, last))
        return False

    def fields(self, counts: type[FailureCounts]) -> dict[str, Any]:
        """The fields of some counts."""
        last = {reason: text for reason, (_, text) in sorted(self._last.items())}
        cost_usd = fsum(self._costs) if self._is_priced else None
        own = {"failed": dict(sorted(self._failed.items())), "last_errors": last}
        by = {name: dict(sorted(counter.items())) for name, counter in self.by.items()}
        values = {**self.n, **by, **own, "cost_usd": cost_usd}
        return {name: value for name, value in values.items() if name in counts.model_fields}


C = TypeVar("C", bound=FailureCounts)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ModelRun(Generic[C]):
    """Finished rows of tested models; accepted in place of their file everywhere.

    Attributes:
        file: Name of the file in the run's folder.
        counts_type: Type of the counts.
        folder: Folder of the files; None if the rows are in memory.
        counts: By tested model; what no model could be asked, such as a line that is no JSON, is
            under the empty name.
        manifest: Versions, hashes, settings, counts.
        progress: Counts and costs of this session.
        rows: The rows, if in memory.
        failures: Failures as JSON rows, if in memory.
    """

    file: ClassVar[str]
    counts_type: ClassVar[type[FailureCounts]]

    folder: Path | None
    counts: Mapping[str, C]
    manifest: dict[str, Any]
    progress: Progress
    rows: tuple[Row, ...] = field(default=(), repr=False)
    failures: tuple[Row, ...] = field(default=(), repr=False)
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
        """The file; for a run in memory a temporary one, deleted with the run."""
        if self.folder is not None:
            return os.fspath(self.folder / self.file)
        if not self._files:
            folder = temporary_folder(self, {self.file: self.rows}, self.manifest)
            self._files.append(str(folder / self.file))
        return self._files[0]

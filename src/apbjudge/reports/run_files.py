"""The runs of a report, put together by judge: which are one judge's, and what to call each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..records.judgement_table import JudgementTable, Problems
from ..records.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class JudgeRuns:
    """The runs of one judge.

    Attributes:
        name: The judge's name in the report, which no other judge has.
        runs: The runs; no item and tested model occurs in two of them.
    """

    name: str
    runs: tuple[RunFolder, ...]

    @property
    def note(self) -> str | None:
        """What must be said beside every figure."""
        notes = dict.fromkeys(note for run in self.runs for note in run.notes)
        return " ".join(notes) or None

    @cached_property
    def tables(self) -> tuple[JudgementTable, ...]:
        """The judgements of each run, an item under a protocol once."""
        return tuple(run.table.first_rows([], by_protocol=True) for run in self.runs)

    @cached_property
    def table(self) -> JudgementTable:
        """The judgements of all runs."""
        return JudgementTable.joined(self.tables)

    @property
    def problems(self) -> Problems:
        """A line for each damaged row, and one for all rows that judge an item again."""
        problems: Problems = []
        for run in self.runs:
            problems.extend(run.problems)
            run.table.first_rows(problems, by_protocol=True)
        return problems


def by_judge(runs: Sequence[RunFolder]) -> tuple[JudgeRuns, ...]:
    """Puts the runs of one judge together and names the judges apart.

    Runs with equal settings and rubric are one judge's, unless they judge an item twice: then each
    is taken for a judge of its own.

    Args:
        runs: In the order of the report.
    """
    groups: dict[tuple[str, str], list[RunFolder]] = defaultdict(list)
    for run in runs:
        groups[run.identity].append(run)
    apart: list[list[RunFolder]] = []
    for group in groups.values():
        apart += [[run] for run in group] if _judge_twice(group) else [group]
    return tuple(_named(apart))


def _judge_twice(runs: Sequence[RunFolder]) -> bool:
    """Whether an item and tested model occurs in two of some runs."""
    keys = [np.unique(run.table.items().keys(by_model=True, by_protocol=True)) for run in runs]
    return len(np.unique(np.concatenate(keys))) < sum(map(len, keys))


def _named(groups: Sequence[list[RunFolder]]) -> Iterator[JudgeRuns]:
    """Each with a name of its own: with its rubric, else its folder, else a number."""
    names = [group[0].judge for group in groups]
    for more in (_rubric_of, _place_of):
        times = Counter(names)
        names = [
            f"{name} [{more(group)}]" if times[name] > 1 and more(group) else name
            for name, group in zip(names, groups, strict=True)
        ]
    seen: Counter[str] = Counter()
    for name, group in zip(names, groups, strict=True):
        seen[name] += 1
        number = f" ({seen[name]})" if names.count(name) > 1 else ""
        yield JudgeRuns(name=name + number, runs=tuple(group))


def _rubric_of(group: Sequence[RunFolder]) -> str:
    return group[0].identity[1].split(" ")[0]


def _place_of(group: Sequence[RunFolder]) -> str:
    return ", ".join(dict.fromkeys(run.place for run in group))

"""Finished runs by judge, and a pandas frame of their judgements with human labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calibration.matching import Labels, load_labels
from ..judge.published import read_runs
from ..records.columns import Scores, Vector, all_codes
from ..records.consensus import answers_of
from ..records.judgement_table import JudgementTable, Problems
from ..records.run_folder import RunFolder

if TYPE_CHECKING:
    from pandas import DataFrame

_GROUPS = "dataset category modality stage steps horizon finish_reason setting level".split()


@dataclass(frozen=True, kw_only=True)
class JudgeRuns:
    """The runs of one judge, under a unique name; no item occurs in two of them."""

    name: str
    runs: tuple[RunFolder, ...]

    @property
    def note(self) -> str | None:
        """Notes that apply to every metric."""
        return " ".join(dict.fromkeys(note for run in self.runs for note in run.notes)) or None

    @cached_property
    def tables(self) -> tuple[JudgementTable, ...]:
        """The judgements of each run, with each item once per protocol."""
        return tuple(run.table.first_rows([], by_protocol=True) for run in self.runs)

    @cached_property
    def table(self) -> JudgementTable:
        """The judgements of all runs."""
        return JudgementTable.joined(self.tables)

    @property
    def problems(self) -> Problems:
        """A line for each damaged row, and one line for all rows that judge an item again."""
        problems: Problems = []
        for run in self.runs:
            problems.extend(run.problems)
            run.table.first_rows(problems, by_protocol=True)
        return problems


def by_judge(runs: Sequence[RunFolder]) -> tuple[JudgeRuns, ...]:
    """Groups runs by judge, in the order of the runs, and gives each judge a unique name.

    Runs with equal settings and rubric belong to one judge, unless two of them judge the same item:
    then each run counts as a separate judge.
    """
    groups: dict[tuple[str, str], list[RunFolder]] = defaultdict(list)
    for run in runs:
        groups[run.identity].append(run)
    apart: list[list[RunFolder]] = []
    for group in groups.values():
        keys = [np.unique(run.table.items().keys(by_model=True, by_protocol=True)) for run in group]
        judge_twice = len(np.unique(np.concatenate(keys))) < sum(map(len, keys))
        apart += [[run] for run in group] if judge_twice else [group]
    return tuple(_named(apart))


def _named(groups: Sequence[list[RunFolder]]) -> Iterator[JudgeRuns]:
    """Gives each group a unique name: adds the rubric, else the folder, else a number."""
    names = [group[0].judge for group in groups]
    rubrics = [group[0].identity[1].split(" ")[0] for group in groups]
    places = [", ".join(dict.fromkeys(run.place for run in group)) for group in groups]
    for details in (rubrics, places):
        times = Counter(names)
        names = [
            f"{name} [{detail}]" if times[name] > 1 and detail else name
            for name, detail in zip(names, details, strict=True)
        ]
    seen: Counter[str] = Counter()
    for name, group in zip(names, groups, strict=True):
        seen[name] += 1
        number = f" ({seen[name]})" if names.count(name) > 1 else ""
        yield JudgeRuns(name=name + number, runs=tuple(group))


def frame(
    runs: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    labels: str | Path | None = None,
    adjudicator: str | None = None,
) -> DataFrame:
    """Reads runs into a pandas frame, one row a judgement, unscored ones included.

    Columns are those of ``judgements.jsonl`` that hold one value, the error codes ``E1`` to ``E6``,
    the grouping fields (``group_category`` and so on), ``entropy`` in bits and
    ``p_correct`` (share of the judge's replies that said correct, 0 to 1), ``overridden``, measures
    of whole trajectories (classes as ``class=value``, 1 or 0), and with labels ``human_correct``,
    ``human_grade``, ``human_E1`` to ``human_E6``. Missing values are NA or NaN. Booleans have the
    nullable type ``boolean``. Rows of one case have the ``case_id`` of its first row, also if only
    equal content shows that they belong to one case.

    Args:
        runs: Runs, their folders, or files of judgements.
        labels: Human labels, JSONL or CSV.
        adjudicator: Rater whose labels are final.

    Raises:
        InputError: If a file is unusable.
    """
    paths = [runs] if isinstance(runs, str | PathLike) else list(runs)
    judges, known = by_judge([run for path in paths for run in read_runs(Path(path))]), None
    if labels is not None:
        codes = all_codes(judge.table for judge in judges)
        known = load_labels(Path(labels), adjudicator, [], codes=codes)
    return judgement_frame(judges, known)


def judgement_frame(judges: Sequence[JudgeRuns], labels: Labels | None) -> DataFrame:
    """The frame of several judges' runs, named in the column ``judge``; see ``frame``."""
    import pandas

    table = JudgementTable.joined([judge.table for judge in judges])
    names = [judge.name for judge in judges for _ in range(len(judge.table))]
    columns = {"judge": names, **_columns(table)}
    if labels is not None:
        entry = labels.consensus.find(table.item, table.key, answers_of(table.item, table.key))
        human = labels.consensus.scores_at(np.where(table.has_id, entry, -1))
        columns |= _scores(human, "human_", "human_correct")
    return pandas.DataFrame(columns)


def _columns(table: JudgementTable) -> dict[str, Any]:
    scores = _scores(table, "", "is_correct")
    levels = table.levels[table.profile].tolist()
    kinds = np.where(table.scored, "verdict", "unscored").tolist()
    category = [number or None for number in table.category.tolist()]
    return {
        "item_id": table.item_id.values,
        "case_id": _case_ids(table),
        **{n: table.values(n) for n in ("tested_model", "protocol", "rubric", "decided_by")},
        "kind": kinds,
        "reason": [table.reasons[code] for code in table.reason.tolist()],
        "is_correct": scores.pop("is_correct"),
        "grade": scores.pop("grade"),
        "category": category,
        **{name: _plain(fact) for name, fact in table.facts.items()},
        **scores,
        **{f"group_{name}": table.values(name) for name in _GROUPS[:-1]},
        "group_level": levels,
        "entropy": table.entropy,
        "p_correct": table.p_correct,
        "overridden": table.overridden,
        **{name: table.measures[:, i] for i, name in enumerate(table.measure_names)},
    }


def _scores(scores: Scores, prefix: str, correct: str) -> dict[str, Any]:
    """Verdict, grade and codes; missing values are NA or NaN."""
    codes = {
        f"{prefix}{code}": _booleans(
            np.where(scores.known >> i & 1, (scores.flags >> i & 1).astype(np.int8), -1)
        )
        for i, code in enumerate(scores.error_codes)
    }
    return {correct: _booleans(scores.correct), f"{prefix}grade": scores.grade, **codes}


def _plain(fact: Vector) -> Any:
    """A fact as a column; values 1, 0 and -1 become nullable booleans."""
    return _booleans(fact) if fact.dtype == np.int8 else fact


def _booleans(values: Vector) -> Any:
    """A column of nullable booleans from 1, 0, and -1 for NA."""
    import pandas

    return pandas.arrays.BooleanArray(values == 1, values < 0)


def _case_ids(table: JudgementTable) -> list[str | None]:
    """The first ``case_id`` of each row's case, so that the column identifies cases."""
    names: dict[int, str] = {}
    own = zip(table.case.tolist(), table.case_id.values, table.item_id.values, strict=True)
    return [
        None if item_id is None else names.setdefault(number, case_id or item_id)
        for number, case_id, item_id in own
    ]

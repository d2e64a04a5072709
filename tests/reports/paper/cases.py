"""Judgement rows with the counts behind published tables, and a look into tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from apbjudge.calibration.results import Reliability, ReliabilityReport
from apbjudge.document.model import Line
from apbjudge.records import judgement_reader
from apbjudge.reports.paper.building import JudgeResults, TableSources, paper_tables
from apbjudge.reports.paper.table import PaperTable
from apbjudge.statistics.analyses import diversity, self_evaluation
from apbjudge.statistics.measures import calibrate
from apbjudge.statistics.ratings import Ratings

from ..rows import Row, verdict

FLAGS = ("E1", "E2", "E3", "E4", "E5", "E6")


def graded(
    prefix: str,
    n: int,
    correct: int,
    flags: Sequence[int] = (),
    grade: float | None = None,
    **of: Any,
) -> list[Row]:
    """Verdicts with these counts: the last rows are wrong, flags and grades go round among them.

    Args:
        prefix: Of the item ids.
        n: Rows.
        correct: Correct ones.
        flags: How many rows each code is true of; each wrong row needs one.
        grade: Their mean grade.
        of: Fields of every row.
    """
    wrong = n - correct
    counts = flags or (0, 0, 0, wrong, 0, 0)
    assert sum(counts) >= wrong
    assert max(counts) <= wrong
    codes = [code for code, count in zip(FLAGS, counts, strict=True) for _ in range(count)]
    units = 0 if grade is None else round((grade * n - correct) * 5)
    rows = [verdict(f"{prefix}{i}", **of) for i in range(correct)]
    for i in range(wrong):
        fifths = units // wrong + (i < units % wrong)
        own = {} if grade is None else {"grade": round(fifths / 5, 1)}
        rows.append(verdict(f"{prefix}{correct + i}", " ".join(codes[i::wrong]), **of, **own))
    return rows


def judged(
    rows: Iterable[Row], judge: str = "j", note: str | None = None, method: str = ""
) -> JudgeResults:
    """All judgements by a judge."""
    table = judgement_reader.table_of(rows).items()
    return JudgeResults(judge=judge, note=note, columns=table, method=method)


def table_of(key: str, *judges: JudgeResults | Iterable[Row], **more: Any) -> PaperTable:
    """The one table; plain rows are those of the judge j."""
    result = tuple(j if isinstance(j, JudgeResults) else judged(j) for j in judges)
    (table,) = paper_tables(TableSources(judges=result, **more), (key,))
    return table


def row_of(table: PaperTable, *heads: str, judge: str | None = None) -> Line:
    """The one row with these heads."""
    (row,) = (r for r in table.lines if r.heads == heads and judge in (None, r.group))
    return row


def printed(table: PaperTable, *heads: str, section: str | None = None) -> list[str]:
    """The figures of a row as they are shown, of one section or of all."""
    cells = row_of(table, *heads).cells.items()
    return [cell.value for (at, _), cell in cells if section in (None, at)]


def percents(table: PaperTable, *heads: str, places: int) -> list[str]:
    """The rates of a row in percent, to as many places as the paper prints."""
    cells = row_of(table, *heads).cells.values()
    result = [cell.estimate.value for cell in cells if cell.unit in ("percent", "points")]
    return [f"{round(100 * (value or 0.0), places) + 0.0:.{places}f}" for value in result]


def best_of(table: PaperTable, key: str, section: str = "", judge: str | None = None) -> list[str]:
    """Whose figures are marked in a column."""
    return [
        ", ".join(row.heads)
        for row in table.lines
        if judge in (None, row.group)
        if (cell := row.cells.get((section, key))) and cell.best
    ]


def ratings(correct: Any, grade: Any = None, flags: Any = None) -> Ratings:
    """Ratings; flags are known only where they are given."""
    n = len(correct)
    return Ratings(
        correct=np.asarray(correct, dtype=np.int8),
        grade=np.full(n, -1, np.int8) if grade is None else np.asarray(grade, dtype=np.int8),
        flags=np.zeros(n, np.uint8) if flags is None else np.asarray(flags, dtype=np.uint8),
        known=np.full(n, 0 if flags is None else 63, dtype=np.uint8),
    )


def reliability(judge: str, said: Ratings, human: Ratings, **parts: Any) -> Reliability:
    """A judge against labels, with the parts that a test is about."""
    n = len(human.correct)
    counts = dict.fromkeys(("n_rows", "n_scored", "n_labelled", "n_clusters"), n)
    empty = "design category between stand_in diversity self_evaluation"
    of: dict[str, Any] = {**dict.fromkeys(empty.split()), **counts, **parts}
    of |= {"judge": judge, "source": "judgements.jsonl", "cluster": "none", "raters": ("r",)}
    of |= {"n_unmatched": 0, "n_adjudicated": 0, "n_ties": {}}
    of |= dict.fromkeys(("groups", "corrected", "notes"), ())
    return Reliability(whole=calibrate(said, human), **of)


def report(*judges: Reliability) -> ReliabilityReport:
    """Judges side by side."""
    return ReliabilityReport(labels="labels.jsonl", judges=judges, problems=())


def plans_judged(judge: str, different: tuple[int, int], standard: tuple[int, int]) -> Reliability:
    """A judge on plans that humans found correct: how many of how many it found correct too."""
    (k1, n1), (k2, n2) = different, standard
    said = ratings(np.concatenate([np.arange(n1) < k1, np.arange(n2) < k2]))
    human = ratings(np.ones(n1 + n2))
    result = diversity(said, human, np.repeat([0, 1], [n1, n2]))
    return reliability(judge, said, human, diversity=result)


def models_judged(judge: str, counts: Mapping[str, tuple[int, int]], n: int) -> Reliability:
    """A judge on n plans of each tested model: how many humans and the judge found correct."""
    names = list(counts)
    human = ratings(np.concatenate([np.arange(n) < counts[name][0] for name in names]))
    said = ratings(np.concatenate([np.arange(n) < counts[name][1] for name in names]))
    tested = np.repeat(np.arange(len(names)), n)
    result = self_evaluation(said, human, tested, names, own=judge)
    return reliability(judge, said, human, self_evaluation=result)

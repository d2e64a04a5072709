"""Matches labels with rows of a run, and rows of one run with those of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..errors import InputError, visible
from ..records import ERROR_CODES
from ..records.columns import Scores, Vector
from ..records.consensus import ConsensusTable, answers_of, resolve
from ..records.foreign import column_of, no_column, read_rows
from ..records.judgement_reader import first_complaint
from ..records.judgement_table import JudgementTable, Problems
from ..records.label_table import read_label_table
from .judged_run import JudgedRun, on_levels


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one or several files.

    Attributes:
        path: The first file.
        consensus: The labels, combined by item and tested model.
        n_contradictions: Labels that contradict themselves, such as correct with an error flag.
        grades: The different grades that raters gave, sorted.
        keys: Columns of the item and of the tested model; None for labels of pairs.
        note: The columns with other names and their meaning; empty without any.
    """

    path: Path
    consensus: ConsensusTable
    n_contradictions: int
    grades: tuple[float, ...]
    keys: tuple[str, str | None] | None = ("item_id", "tested_model")
    note: str = ""


def load_labels(
    path: Path,
    adjudicator: str | None,
    problems: Problems,
    *,
    more: Sequence[Path] = (),
    include_unsure: bool = True,
    codes: Sequence[str] = ERROR_CODES,
    columns: Sequence[str] = (),
    raters: Sequence[str] = (),
) -> Labels:
    """Reads and resolves a file of labels.

    Args:
        path: JSONL or CSV.
        adjudicator: Rater whose labels are final.
        problems: Gets a line for each unusable row, which is left out.
        more: Further files, read as if appended to the first one.
        include_unsure: True if labels that raters marked as unsure count like any other.
        codes: The error codes that exist.
        columns: Columns with other names than ours, such as ``item=ticket``; see ``LABEL_ROLES``.
        raters: Columns of the raters, each with the verdicts of one; empty if a label has a row.

    Raises:
        InputError: If a file is unusable, none holds a label, or the adjudicator never occurs.
    """
    n_before, (stated, by_rater) = len(problems), _label_columns(path, columns, raters)
    table = read_label_table((path, *more), problems, codes, stated, by_rater)
    if not len(table):
        expected = "expected labels with an item_id, one a line, got none"
        raise InputError(f"{path}: {expected}{first_complaint(problems[n_before:])}")
    consensus = resolve(table, adjudicator=adjudicator, include_unsure=include_unsure)
    if not len(consensus) and consensus.n_unsure:
        raise InputError(f"{path}: expected labels that their raters are sure of, got none")
    if not len(consensus):
        found, _ = read_rows(path)
        raise InputError(
            f"{path}: expected labels that say is_correct, grade, errors or category, one row per "
            f"item and rater, got {len(table)} that say nothing; their fields are "
            f"{', '.join(map(visible, found))} (--label-columns and --raters name them)"
        )
    if adjudicator is not None and adjudicator not in table.raters:
        names = ", ".join(sorted(map(visible, table.raters))[:10])
        raise InputError(f"{path}: expected labels by {visible(adjudicator)}, got {names}")
    grades = np.unique(table.grade[~np.isnan(table.grade)])
    keys = stated.get("item_id", "item_id"), stated.get("tested_model", "tested_model")
    listed = [f"{column} as {name}" for name, column in stated.items()]
    listed += [f"is_correct of each of {', '.join(by_rater)}"] if by_rater else []
    note = f"Read in labels {path.name}: {', '.join(listed)}." if listed else ""
    return Labels(path, consensus, table.n_contradictions, tuple(grades.tolist()), keys, note)


_FIELDS = {"item": "item_id", "verdict": "is_correct", "score": "grade", "class": "category"}


def _label_columns(
    path: Path, stated: Sequence[str], raters: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """Columns of labels by our field, that of the item by its usual names; and those of raters."""
    if not stated and not raters:
        return {}, []
    columns, _ = read_rows(path)
    by_rater = [str(column_of(path, columns, "rater", name, "--raters")) for name in raters]
    roles = dict(entry.split("=", 1) for entry in stated)
    named = {
        role: column_of(path, columns, role, roles.get(role), "--label-columns")
        for role in {"item": "", **roles}
    }
    if (item := named.pop("item")) is None:
        raise no_column(path, columns, "item", "--label-columns item=COLUMN")
    ours = {"item_id": item} | {_FIELDS.get(r, r): str(column) for r, column in named.items()}
    if raters and (twice := ours.keys() & {"rater", "is_correct"}):
        got = ours[min(twice)]
        raise InputError(f"{path}: --raters: expected no column for {min(twice)} too, got {got!r}")
    return ours, by_rater


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows of a run that have a label.

    Attributes:
        rows: Shape (m,): positions of the rows in the run.
        human: The raters' joint scores of the rows.
        raters: The scores of each rater, by name.
        n_ties: By field, number of rows on which the raters are split.
        n_adjudicated: Number of rows on which the adjudicator decided something.
        n_unmatched: Number of labelled items without a row of the run.
    """

    rows: Vector
    human: Scores
    raters: dict[str, Scores]
    n_ties: dict[str, int]
    n_adjudicated: int
    n_unmatched: int

    def human_of_all(self, n: int) -> Scores:
        """The raters' joint scores of each row of a run with n rows."""
        place = np.full(n, -1)
        place[self.rows] = np.arange(len(self.rows))
        return self.human.scores_at(place)

    def on_levels(self, levels: tuple[float, ...]) -> Matched:
        """The same matches with each grade replaced by its level."""
        raters = {name: on_levels(scores, levels) for name, scores in self.raters.items()}
        return replace(self, human=on_levels(self.human, levels), raters=raters)

    def only(self, at: Vector) -> Matched:
        """The matches of some labelled rows."""
        raters = {name: scores.scores_at(at) for name, scores in self.raters.items()}
        return replace(self, rows=self.rows[at], human=self.human.scores_at(at), raters=raters)


def match(run: JudgedRun, labels: Labels, problems: Problems) -> Matched:
    """Finds the label of each judged row.

    A label without a tested model counts if only one tested model answered the item.

    Args:
        run: The run.
        labels: The labels.
        problems: Gets a line if labels could belong to several rows.

    Raises:
        InputError: If no label belongs to any row.
    """
    table, consensus = run.table, labels.consensus
    entry = consensus.find(table.item, table.key, answers_of(table.item, table.key))
    rows = np.flatnonzero(entry >= 0)
    of_several = np.flatnonzero((entry < 0) & consensus.has_bare(table.item))
    _, first = np.unique(table.item[of_several], return_index=True)
    ambiguous = [str(table.item_id[at]) for at in of_several[first].tolist()]
    if ambiguous:
        problems.append(
            f"{labels.path}: tested_model: expected the name of one, got none for "
            f"{len(ambiguous)} items that several tested models answered, such as "
            f"{visible(min(ambiguous))}: their labels are left out"
        )
    if not len(rows):
        raise InputError(problems[-1] if ambiguous else _no_match(run, labels))
    entries, codes = entry[rows], table.error_codes
    fields = enumerate(consensus.fields)
    ties = {name: int((consensus.ties[entries] >> i & 1).sum()) for i, name in fields}
    return Matched(
        rows=rows,
        human=consensus.scores_at(entries).with_codes(codes),
        raters={
            name: consensus.rater(name).scores_at(entries).with_codes(codes)
            for name in consensus.by_rater
        },
        n_ties={name: n for name, n in ties.items() if n},
        n_adjudicated=int(consensus.adjudicated[entries].sum()),
        n_unmatched=len(consensus) - len(np.unique(entries)) - len(ambiguous),
    )


def _no_match(run: JudgedRun, labels: Labels) -> str:
    item, model = labels.consensus.key_at(0)
    return (
        f"{labels.path}: expected labels of the items in {run.path}, such as "
        f"{run.table.name_of(0)}, got only others, such as {visible(item)} of {visible(str(model))}"
    )


# Two runs -----------------------------------------------------------------------------------------


def tested_models(table: JudgementTable, rows: Vector) -> list[str | None]:
    """The tested models of some rows, sorted; None last."""
    names = table.labels["tested_model"]
    codes: set[int] = set(table.code("tested_model", rows).tolist())
    present = [names[code] for code in codes]
    return sorted(present, key=lambda name: (name is None, name or ""))


def are_of_two_models(
    tables: tuple[JudgementTable, JudgementTable], rows: tuple[Vector, Vector]
) -> bool:
    """True if the chosen rows of each run have one tested model, and the two models differ."""
    first, second = (tested_models(table, at) for table, at in zip(tables, rows, strict=True))
    return len(first) == len(second) == 1 and first != second


def pair_rows(
    tables: tuple[JudgementTable, JudgementTable],
    rows: tuple[Vector, Vector],
    *,
    by_model: bool,
    by_protocol: bool,
) -> tuple[Vector, Vector]:
    """Pairs the rows of two runs that are about the same item.

    Args:
        tables: Both runs.
        rows: Candidate rows of each.
        by_model: True if both rows of a pair must have the same tested model.
        by_protocol: True if both rows of a pair must have the same protocol.

    Returns:
        Shape (n,) each: rows of the pairs, in the order of the first run. Items with several rows
        in a run have no pair.
    """
    singles: list[tuple[Vector, Vector]] = []
    for table, chosen in zip(tables, rows, strict=True):
        keys = table.keys(by_model=by_model, by_protocol=by_protocol)[chosen]
        of, at, times = np.unique(keys, return_index=True, return_counts=True)
        singles.append((of[times == 1], chosen[at[times == 1]]))
    (a, at), (b, on) = singles
    _, i, j = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    order = np.argsort(at[i])
    return at[i][order], on[j][order]


def is_same_model(tested_model: str, judge: str) -> bool:
    """True if two names denote the same model, ignoring the provider's prefix and the spelling."""

    def bare(name: str) -> str:
        return "".join(filter(str.isalnum, name.rsplit("/", 1)[-1].lower()))

    return bool(bare(judge)) and bare(tested_model) == bare(judge)

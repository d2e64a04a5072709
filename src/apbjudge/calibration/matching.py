"""Labels found for judgements: which row each label is about, and how the rows were drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, visible
from ..judge.columns import case_numbers
from ..records import Consensus, HumanLabel, Resolved, all_labels, resolve
from ..statistics.ratings import LEVELS, levels_of, with_levels
from .judged import Judged, Key, Problems, Said, Vector, common_scale, first_of

NO_CLUSTERS = "none"
_LEVELS_SHOWN = 12

Answers = Mapping[str, int]
"""By item, how many tested models answered it."""


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows of a run that have a label.

    Attributes:
        rows: Shape (m,): their positions in the run.
        human: What the raters say of them together.
        raters: What each rater says of them, by name.
        n_ties: Rows on which the raters are split, by field.
        n_adjudicated: Rows on which the adjudicator decided something.
        n_unmatched: Labelled items of which the run has no row.
    """

    rows: Vector
    human: Said
    raters: dict[str, Said]
    n_ties: dict[str, int]
    n_adjudicated: int
    n_unmatched: int

    def on_levels(self, levels: tuple[float, ...]) -> Matched:
        """The same with each grade replaced by its level."""
        return replace(
            self,
            human=self.human.on_levels(levels),
            raters={name: said.on_levels(levels) for name, said in self.raters.items()},
        )

    def only(self, kept: Vector) -> Matched:
        """Those of some labelled rows."""
        return replace(
            self,
            rows=self.rows[kept],
            human=self.human.take(kept),
            raters={name: said.take(kept) for name, said in self.raters.items()},
        )


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a file.

    Attributes:
        path: The file.
        resolved: The labels, by item and by rater.
        n_contradictions: Labels that contradict themselves, such as correct with an error flag.
        grades: The different grades that raters gave, sorted.
    """

    path: Path
    resolved: Resolved
    n_contradictions: int
    grades: tuple[float, ...]

    def key_of(self, key: Key, answers: Answers) -> Key | None:
        """The key of the label about a row; None where there is none.

        A label that names no tested model counts where one tested model alone answered the item.

        Args:
            key: Item and tested model of the row.
            answers: By item, how many tested models answered it.
        """
        if key in self.resolved.items:
            return key
        bare: Key = (key[0], None)
        return bare if bare in self.resolved.items and answers.get(key[0]) == 1 else None

    def of(self, key: Key, answers: Answers) -> Consensus | None:
        """What the raters say of a row together; see ``key_of``."""
        found = self.key_of(key, answers)
        return None if found is None else self.resolved.items[found]


def load_labels(
    path: Path, adjudicator: str | None, problems: Problems, *, more: Sequence[Path] = ()
) -> Labels:
    """Reads and resolves a file of labels.

    Args:
        path: JSONL or CSV.
        adjudicator: Rater whose word is final.
        problems: Gets a line for each unusable row, which is left out.
        more: Further files, read as if they followed in the first one.

    Raises:
        InputError: If a file is unusable, none holds a label, or the adjudicator never occurs.
    """
    n_before = len(problems)
    files = (path, *more)
    labels = [label for file in files for label in all_labels(file, bad=problems.append)]
    if not labels:
        wanted = "expected labels with an item_id, one a line, got none"
        raise InputError(f"{path}: {wanted}{first_of(problems[n_before:])}")
    resolved = resolve(labels, adjudicator=adjudicator)
    if not resolved.items:
        wanted = "expected labels that say is_correct, grade, errors or category"
        raise InputError(f"{path}: {wanted}, got {len(labels)} that say nothing")
    known = {label.rater for label in labels}
    if adjudicator is not None and adjudicator not in known:
        names = ", ".join(sorted(map(visible, known))[:10])
        raise InputError(f"{path}: expected labels by {visible(adjudicator)}, got {names}")
    return Labels(
        path=path,
        resolved=resolved,
        n_contradictions=sum(label.contradiction is not None for label in labels),
        grades=tuple(sorted({label.grade for label in labels if label.grade is not None})),
    )


def match(judged: Judged, labels: Labels, problems: Problems) -> Matched:
    """Finds the label of each judged row.

    A label that names no tested model counts where one tested model alone answered the item.

    Args:
        judged: The run.
        labels: The labels.
        problems: Gets a line when labels could belong to several rows.

    Raises:
        InputError: If no label belongs to any row.
    """
    items = labels.resolved.items
    answers = Counter(item for item, _ in set(judged.keys))
    found: list[Key] = []
    rows: list[int] = []
    ambiguous: set[str] = set()
    for at, (item, model) in enumerate(judged.keys):
        key = labels.key_of((item, model), answers)
        if key is not None:
            rows.append(at)
            found.append(key)
        elif (item, None) in items:
            ambiguous.add(item)
    if ambiguous:
        problems.append(
            f"{labels.path}: tested_model: expected the name of one, got none for "
            f"{len(ambiguous)} items that several tested models answered, such as "
            f"{visible(min(ambiguous))}: their labels are left out"
        )
    if not rows:
        raise InputError(problems[-1] if ambiguous else _no_match(judged, labels))
    ties = Counter(field for key in found for field in items[key].ties)
    by_rater = labels.resolved.by_rater
    human = Said.of(map(_of_consensus, (items[key] for key in found)))
    alone = len(by_rater) == 1 and not any(items[key].adjudicated for key in found)
    return Matched(
        rows=np.array(rows),
        human=human,
        raters={
            name: human if alone else Said.of(_of_label(said.get(key)) for key in found)
            for name, said in by_rater.items()
        },
        n_ties=dict(ties),
        n_adjudicated=sum(items[key].adjudicated for key in found),
        n_unmatched=len(items) - len(set(found)) - len(ambiguous),
    )


def _no_match(judged: Judged, labels: Labels) -> str:
    theirs, ours = next(iter(labels.resolved.items)), judged.keys[0]
    return (
        f"{labels.path}: expected labels of the items in {judged.path}, such as "
        f"{visible(str(ours[0]))} of {visible(str(ours[1]))}, got only others, such as "
        f"{visible(theirs[0])} of {visible(str(theirs[1]))}"
    )


def _of_consensus(said: Consensus) -> Mapping[str, Any]:
    return {
        "is_correct": said.is_correct,
        "grade": said.grade,
        "errors": said.errors,
        "category": said.category,
    }


def _of_label(said: HumanLabel | None) -> Mapping[str, Any] | None:
    if said is None:
        return None
    return {
        "is_correct": said.is_correct,
        "grade": said.grade,
        "errors": said.errors,
        "category": said.category,
    }


def cluster_ids(judged: Judged, name: str) -> Vector | None:
    """The cluster of each row.

    Args:
        judged: The run.
        name: A column, or ``none``. Rows that state nothing in it stand alone; so do all where no
            row names a case, which is the default column. Rows that name no case but themselves
            share one if they share its content.

    Raises:
        OptionError: If no row has such a column.
    """
    if name == NO_CLUSTERS or (name == "case_id" and name not in judged.fields):
        return None
    if name == "case_id":
        return case_numbers(judged.cases[:, 0], judged.cases[:, 1]).astype(np.int64)
    column = judged.column(name, "--cluster")
    known: dict[str, int] = {}
    ids = [-1 if value is None else known.setdefault(value, len(known)) for value in column]
    found = np.array(ids, dtype=np.int64)
    alone = np.flatnonzero(found < 0)
    found[alone] = len(known) + np.arange(len(alone))
    return found


def grade_levels(
    runs: Sequence[Judged], labels: Labels | None = None, human: Said | None = None
) -> tuple[float, ...]:
    """The levels of the grades of judges and raters.

    Those of the rubric, where the judges' grades are all on its scale, and what raters gave beside
    them; else of the scale that the grades show (``levels_of``). A median of raters that lies
    between two levels is a level more.

    Args:
        runs: The judges' runs.
        labels: The labels; None without.
        human: What the raters say together; None without labels.
    """
    judged = [run.said.grade for run in runs]
    rated = np.asarray(() if labels is None else labels.grades, dtype=float)
    scale = common_scale(runs)
    if scale is not None and levels_of(*judged, scale=scale) == scale:
        found = with_levels(scale, rated)
    else:
        found = levels_of(*judged, rated, scale=scale)
    medians = np.zeros(0) if human is None else human.grade[~np.isnan(human.grade)]
    return with_levels(found, np.unique(medians))


def scale_note(levels: Sequence[float], used: Iterable[float]) -> str | None:
    """What to say of the scale of grades; None where it is the benchmark's and all are on it.

    Args:
        levels: As ``grade_levels`` gives them.
        used: Grades as they were given.
    """
    given = (float(grade) for grade in used if not np.isnan(grade))
    nearest = {grade: min(levels, key=lambda level: abs(level - grade)) for grade in given}
    moved = {grade: level for grade, level in nearest.items() if abs(grade - level) > 1e-6}
    if tuple(levels) == LEVELS and not moved:
        return None
    shown = ", ".join(f"{level:.6g}" for level in levels[:_LEVELS_SHOWN])
    more = f", … {levels[-1]:.6g}" if len(levels) > _LEVELS_SHOWN else ""
    text = f"Grades are taken to be on a scale of {len(levels)} levels: {shown}{more}."
    if moved:
        grade, level = min(moved.items())
        example = f"{grade:.6g} as {level:.6g}"
        text += f" Grades within 0.01 of a level count as that level, such as {example}."
    return text


def is_same_model(tested_model: str, judge: str) -> bool:
    """Whether two names are of one model, whatever the provider before them and the spelling."""

    def bare(name: str) -> str:
        return "".join(filter(str.isalnum, name.rsplit("/", 1)[-1].lower()))

    return bool(bare(judge)) and bare(tested_model) == bare(judge)

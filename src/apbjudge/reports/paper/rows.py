"""What rows of tables are made of: judgements, their parts, and rows before the best are marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...calibration.results import ReliabilityReport
from ...judge.summary import EXTRANEOUS, VALUE_ORDER, is_base
from ...records.columns import Vector
from ...records.judgement_table import JudgementTable
from ...records.refinements import Refinements
from ...statistics.best import Contender, best_set
from ...statistics.estimates import CONFIDENCE_LEVEL, Estimate
from ...statistics.metric import RATE
from .table import ColumnId, Counts, PaperColumn, Section, Split

_MOST_DIGITS = 18  # a longer value, from damaged data, is a text like any other


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeResults:
    """All judgements of items by one judge, perhaps of several runs.

    Attributes:
        note: What must be said beside every figure.
        method: How the tested models refined their responses, such as ``Self_R+``; empty where
            they did not.
        models: The models that judge, as the run names them.
        origin: How the response of each row came about; None where nothing is known.
    """

    judge: str
    columns: JudgementTable
    note: str | None = None
    method: str = ""
    models: frozenset[str] = frozenset()
    origin: Refinements | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSources:
    """What tables are made of; ``refined`` runs are set against the run of the same judge."""

    judges: tuple[JudgeResults, ...]
    refined: tuple[JudgeResults, ...] = ()
    reliability: ReliabilityReport | None = None


@dataclass(slots=True)
class UnmarkedRow:
    """A row before the best are marked; contenders are what figures are the means of."""

    judge: str
    heads: tuple[str, ...]
    counts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    estimates: dict[ColumnId, Estimate] = field(default_factory=dict[ColumnId, Estimate])
    contenders: dict[ColumnId, Contender] = field(default_factory=dict[ColumnId, Contender])

    def add(
        self,
        section: str,
        counts: Counts,
        estimates: Mapping[str, Estimate],
        contenders: Mapping[str, Contender] | None = None,
    ) -> UnmarkedRow:
        """The same row with one section more; its figures by key."""
        self.counts[section] = counts
        self.estimates |= {(section, key): estimate for key, estimate in estimates.items()}
        self.contenders |= {(section, key): of for key, of in (contenders or {}).items()}
        return self


def best_sets(
    rows: Sequence[UnmarkedRow], columns: Iterable[PaperColumn], rivals: str | None
) -> dict[tuple[int, ColumnId], bool]:
    """Which rows are in the best set of a column and which are not; none where all are.

    A row without values neither is best nor lets others be. ``rivals`` are ``tested models`` or
    ``methods`` that share all other heads, or None.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows if rivals else ()):
        shared = row.heads[1:] if rivals == "tested models" else (row.heads[0], *row.heads[2:])
        groups.setdefault((row.judge, *shared), []).append(i)
    best: dict[tuple[int, ColumnId], bool] = {}
    for column in columns:
        for group in groups.values() if column.better else ():
            contenders = {
                i: contender
                for i in group
                if (contender := rows[i].contenders.get(column.id)) and len(contender.values)
            }
            marks = best_set(  # what is counted is 0 or 1 an item
                [*contenders.values()],
                better=column.better or "higher",
                bounds=RATE if column.unit == "count" else column.bounds,
                level=CONFIDENCE_LEVEL,
            )
            if any(marks) and not all(marks):
                best |= {
                    (i, column.id): is_best for i, is_best in zip(contenders, marks, strict=True)
                }
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionPart:
    """Judgements of one tested model, by index in all of the judge, that a section is about.

    ``form`` is ``holistic`` or ``step-wise``, None for both together; ``rivals`` are the rows of
    all tested models under this protocol.
    """

    c: JudgementTable
    rows: Vector
    protocol: str
    form: str | None
    rivals: Vector


def place_of(heads: tuple[str, ...]) -> tuple[object, ...]:
    """By tested model, then in the natural order of values."""
    model, *rest = heads
    value = "".join(rest)
    rank = VALUE_ORDER.index(value) if value in VALUE_ORDER else len(VALUE_ORDER)
    number = int(value) if value.isdecimal() and len(value) <= _MOST_DIGITS else 0
    return model.casefold(), model, rank, number, value


def counts_of(c: JudgementTable, rows: Vector) -> Counts:
    """How many rows there are, and how many of them have a verdict."""
    return Counts(rows=len(rows), scored=int(c.scored[rows].sum()))


def has_label(c: JudgementTable, field: str, label: str | None) -> Vector:
    """Marks of the profiles with this label."""
    labels = c.labels[field]
    return c.codes[field] == (labels.index(label) if label in labels else -1)


def parts_of(
    c: JudgementTable, section: Section, split: Split | None
) -> Iterator[tuple[tuple[str, ...], SectionPart]]:
    """The section's rows by the heads that they have in the table."""
    form = section.form
    if not form and section.protocol != EXTRANEOUS:  # the others have one form, which names E2
        form = "step-wise" if section.protocol in {"step-wise", "tool-broken"} else "holistic"
    profiles = has_label(c, "protocol", section.protocol)
    if section.form:
        profiles &= has_label(c, "form", section.form)
    if section.protocol == EXTRANEOUS:
        profiles &= c.levels > 0 if section.form else ~is_base(c)
    if split == "stage":
        profiles &= has_label(c, "horizon", "1")
    models = c.codes["tested_model"]
    values, names = np.zeros_like(models), dict[int, str | None]({0: ""})
    if split == "level":
        values, names = c.levels, {int(level): str(level) for level in np.unique(c.levels)}
    elif split:
        values, names = c.codes[split], dict(enumerate(c.labels[split]))
    rivals = c.where(profiles)
    keys: set[tuple[int, int]] = set(
        zip(models[profiles].tolist(), values[profiles].tolist(), strict=True)
    )
    for model, value in sorted(keys):
        name = names[value]
        if name is None:
            continue
        rows = c.where(profiles & (models == model) & (values == value))
        heads = (c.labels["tested_model"][model] or "", *([name] if split else []))
        yield (
            heads,
            SectionPart(c=c, rows=rows, protocol=section.protocol, form=form, rivals=rivals),
        )

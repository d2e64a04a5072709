"""Tables and figures of a paper from the user's folders, next to the published figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ..document.display import Shown
from ..document.model import (
    Cell,
    Document,
    Heading,
    Line,
    MetricCell,
    Notes,
    Number,
    Paragraph,
    Part,
    Table,
)
from ..document.numbers import level_text
from ..errors import InputError, OptionError, visible
from ..judge.published import is_published
from ..options import takes
from ..records.judgement_table import Problems
from ..records.run_folder import judgements_path
from ..statistics.estimates import CONFIDENCE_LEVEL, Estimate
from ..statistics.metric import Unit, values_of
from ..trajectories import TRAJECTORY_PROTOCOLS
from .config import MODELS, ComparedRuns, ReportConfig, ReproduceConfig
from .paper.definitions import DEFINITIONS
from .paper.formatting import tables_document, tables_json
from .paper.published import MISSING, Paper, PublishedPart, published
from .paper.table import PaperTable
from .plots import Figure
from .plots.specs import SPECS
from .report import Report, report
from .run_settings import TESTED, is_of_tested_models, settings_document

State = Literal["made", "needs data", "other command", "not offered"]
_NEEDS = {
    MODELS: "folders of predict, or of another command that asks tested models",
    **{definition.key: definition.needs for definition in DEFINITIONS},
    **{
        table.key: f"whole trajectories, graded with --protocol {protocol.name}"
        for protocol in TRAJECTORY_PROTOCOLS.values()
        for table in protocol.tables
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFigure:
    """Our figure and the published one.

    Attributes:
        judge: The judge; empty in a table that compares judges.
        heads: Subject of the figures: a tested model or judge, then possibly a level or a stage.
        column: Section and metric.
        ours: Our estimate, in the unit of the metric; rates are from 0 to 1.
        printed: The figure as printed in the paper; a rate is in percent.
        is_inside: True if the published figure, up to rounding, is in our interval; None without an
            interval, or if ours is a bound.
    """

    judge: str
    heads: tuple[str, ...]
    column: tuple[str, str]
    ours: Estimate
    unit: Unit
    printed: str
    is_inside: bool | None

    @property
    def published(self) -> float:
        """The published figure in the unit of the metric."""
        return float(self.printed) / _scale(self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedPart:
    """One table or figure of a paper.

    Attributes:
        state: ``made``; else: data is missing, another command makes it, or
            nothing does.
        detail: The data that it needs, the command, or why nothing makes it.
        table: Our table; None if it was not made.
        figures: Our figures, one a judge; empty if none were made.
        compared: Figures that both we and the paper have.
        missing: Models of the paper without a row of ours, and missing rows of the other models.
    """

    published: PublishedPart
    state: State
    detail: str = ""
    table: PaperTable | None = None
    figures: tuple[Figure, ...] = ()
    compared: tuple[ComparedFigure, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def printed(self) -> Mapping[str, str]:
        """The published rows as printed, by their heads."""
        rows = self.published.rows.items()
        return {", ".join(heads): " ".join(figures) for heads, figures in rows}


@dataclass(frozen=True, kw_only=True, repr=False)
class Reproduction(Shown):
    """A paper's tables and figures; ``reproduction["Table 1"]`` is one of them.

    Attributes:
        tested_models: Settings of the tested models by title, a row for each in each run.
        unjudged: Folders of predictions without judgements.
        problems: A line for each row or file that can't be used.
    """

    paper: Paper
    parts: tuple[ReproducedPart, ...]
    tested_models: Sequence[Mapping[str, str]] = ()
    unjudged: tuple[Path, ...] = ()
    problems: Sequence[str] = ()

    def __getitem__(self, place: str) -> ReproducedPart:
        """The table or figure at a place such as ``Table 1``; raises KeyError for none."""
        return {part.published.place: part for part in self.parts}[place]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Our figures, each once."""
        figures = (figure for part in self.parts for figure in part.figures)
        return tuple({figure.key: figure for figure in figures}.values())

    def to_json(self) -> dict[str, Any]:
        """As JSON values; our figures are as estimated, those of the paper as printed."""
        return {
            "paper": self.paper.title,
            "arxiv": self.paper.arxiv,
            "note": self.paper.note,
            "parts": list(map(_part_json, self.parts)),
            "tested_models": [dict(row) for row in self.tested_models],
            "unjudged": list(map(str, self.unjudged)),
        }

    def _printed(self) -> Document:
        return reproduction_document(self)


@takes(config=ReproduceConfig)
def reproduce(config: ReproduceConfig) -> Reproduction:
    """Makes the tables and figures of a paper for which folders have the data.

    Args:
        config: The settings; options take precedence.

    Raises:
        InputError: If a folder has no known kind, or can't be read.
        OptionError: If a setting is unusable.
    """
    paper = published(config.paper)
    places = [part.place for part in paper.parts]
    if unknown := [place for place in config.only if place not in places]:
        raise OptionError(f"--only: expected some of {', '.join(places)}, got {unknown[0]!r}")
    parts = [part for part in paper.parts if not config.only or part.place in config.only]
    runs = tuple(_runs_among(config.folders, paper))
    result = None
    if runs:
        own = {name: getattr(config, name) for name in ComparedRuns.model_fields}
        result = report(ReportConfig(runs=runs, **own))
    reproduced = tuple(_reproduced(part, paper, result, config.folders) for part in parts)
    has_models = any(part.table == MODELS for part in parts)
    return Reproduction(
        paper=paper,
        parts=reproduced,
        tested_models=(has_models and result and result.tested_models) or (),
        unjudged=result.asked if result and not result.judges else (),
        problems=_problems(result),
    )


def _runs_among(folders: Iterable[Path], paper: Paper) -> Iterator[Path]:
    """The folders that a report reads; the others are for other commands."""
    read = {part.file for part in paper.parts if part.file}
    for path in folders:
        if judgements_path(path).is_file() or is_of_tested_models(path) or is_published(path):
            yield path
        elif not any((path / name).is_file() for name in read):
            expected = f"expected a run's folder, or one with {' or '.join(sorted(read))}"
            raise InputError(f"{visible(str(path))}: {expected}")


def _problems(result: Report | None) -> Problems:
    return [] if result is None else list(dict.fromkeys(result.problems))


# One part ----------------------------------------------------------------------------------------


def _reproduced(
    part: PublishedPart, paper: Paper, result: Report | None, folders: Sequence[Path]
) -> ReproducedPart:
    if part.lacks:
        return ReproducedPart(published=part, state="not offered", detail=part.lacks)
    if part.command:
        having = ", ".join(str(path) for path in folders if (path / part.file).is_file())
        detail = f"{part.command} makes it of {part.file}, which {having or 'no folder'} has"
        return ReproducedPart(published=part, state="other command", detail=detail)
    tables = {table.key: table for table in result.tables} if result is not None else {}
    figures = tuple(
        figure
        for figure in (result.figures if result is not None and part.figure else ())
        if figure.key == part.figure or figure.key.startswith(f"{part.figure}-")
    )
    table = tables.get(part.table)
    has_models = part.table == MODELS and result is not None and result.asked
    if not (table or figures or has_models):
        return ReproducedPart(published=part, state="needs data", detail=needs_of(part))
    compared = tuple(_compared(part, paper, table)) if table else ()
    return ReproducedPart(
        published=part,
        state="made",
        table=table,
        figures=figures,
        compared=compared,
        missing=tuple(_missing(part, paper, table)) if table else (),
    )


def _missing(part: PublishedPart, paper: Paper, table: PaperTable) -> list[str]:
    """Models of the paper without a row of ours, and missing rows of the other models."""
    ours = {_heads(line, part, paper) for line in table.lines}
    models = {heads[0] for heads in ours}
    rows = (h for h in part.rows if h not in ours)
    return list(dict.fromkeys(", ".join(h) if h[0] in models else h[0] for h in rows))


def _heads(line: Line, part: PublishedPart, paper: Paper) -> tuple[str, ...]:
    """The heads of a row of ours, in the form of the paper's rows."""
    n_heads = max(map(len, part.rows), default=0)
    return (paper.name_of(line.heads[0]), *line.heads[1:n_heads])


def needs_of(part: PublishedPart) -> str:
    """The data that a table or figure of a report needs."""
    keys = [part.table] if part.table else _tables_of_figures().get(part.figure, [])
    needs = dict.fromkeys(_NEEDS[key] for key in keys)
    return "; or ".join(needs) + (f" ({part.options})" if part.options else "")


@cache
def _tables_of_figures() -> Mapping[str, list[str]]:
    return {spec.key: list(spec.tables) for spec in SPECS}


def _compared(part: PublishedPart, paper: Paper, table: PaperTable) -> Iterator[ComparedFigure]:
    """The figures that both our table and the paper have."""
    for line in table.lines:
        row = part.rows.get(_heads(line, part, paper), ())
        for column, printed in zip(part.columns, row, strict=False):
            cell = line.cells.get(column)
            if printed != MISSING and cell is not None:
                yield _compared_figure(part, line, column, cell, printed)


def _compared_figure(
    part: PublishedPart, line: Line, column: tuple[str, str], cell: MetricCell, printed: str
) -> ComparedFigure:
    ours, is_inside = cell.estimate, None
    low, high = ours.low, ours.high
    if low is not None and high is not None:
        if part.half_width:
            ours = replace(ours, value=(high - low) / 2, low=None, high=None)
        elif not ours.bound:
            digits = len(printed.partition(".")[2])
            scale, half = _scale(cell.unit), 0.5 / 10**digits
            is_inside = scale * low - half <= float(printed) <= scale * high + half
    return ComparedFigure(
        judge=line.group,
        heads=line.heads,
        column=column,
        ours=ours,
        unit=cell.unit,
        printed=printed,
        is_inside=is_inside,
    )


def _scale(unit: Unit) -> int:
    """Factor from our values to printed ones."""
    return 100 if unit in ("percent", "points") else 1


def _part_json(part: ReproducedPart) -> dict[str, Any]:
    of = part.published
    return {
        "place": of.place,
        "title": of.title,
        "state": part.state,
        "detail": part.detail,
        "command": of.made_by,
        "note": of.note,
        "missing": list(part.missing),
        "figures": [figure.key for figure in part.figures],
        "compared": [
            {
                "judge": each.judge,
                "heads": list(each.heads),
                "section": each.column[0],
                "column": each.column[1],
                "published": each.published,
                "printed": each.printed,
                "is_inside": each.is_inside,
            }
            | values_of(each.ours)
            for each in part.compared
        ],
        "table": tables_json([part.table])[0] if part.table else None,
    }


# As a document -----------------------------------------------------------------------------------


def reproduction_document(result: Reproduction) -> Document:
    """An overview, then each part that was made."""
    paper = result.paper
    rows = [_overview(part) for part in result.parts]
    parts: list[Part] = [
        Paragraph(f"arXiv:{paper.arxiv}"),
        Table.of(["Place", "State", "Shows"], rows, align="llf"),
    ]
    unjudged = [f"not judged yet: apbjudge grade {path}" for path in result.unjudged]
    parts.append(Notes((paper.note, *unjudged)))
    shown = set[str]()
    for part in result.parts:
        if part.state == "made":
            parts += _made(part, result, is_shown=part.published.table in shown)
            shown.add(part.published.table)
    return Document(tuple(parts), title=f"{paper.title}: tables and figures")


def _overview(part: ReproducedPart) -> list[Cell]:
    detail = part.detail
    if part.state == "made":
        inside = [each.is_inside for each in part.compared if each.is_inside is not None]
        texts = [f"{len(part.compared)} metrics, compared"] if part.published.rows else []
        texts += [f"{sum(inside)} of {len(inside)} in our interval"] if inside else []
        texts += [f"without {'; '.join(part.missing)}"] if part.compared and part.missing else []
        detail = "; ".join((*texts, *(f"figure {figure.key}" for figure in part.figures)))
    of = part.published
    note = "" if of.rows else of.note  # else it is below the figures
    text = "; ".join(filter(None, (detail, note)))
    return [of.place, part.state, f"{of.title}: {text}".rstrip(": ")]


def _made(part: ReproducedPart, result: Reproduction, *, is_shown: bool) -> Iterator[Part]:
    """Our table, unless it is shown above, and the comparison with the paper's."""
    of = part.published
    if part.table is not None and not is_shown:
        yield from tables_document([part.table], "*")
    elif of.table == MODELS:
        yield from settings_document(result.tested_models, f"{TESTED} ({of.place})")
    if part.compared:
        yield Heading(f"{of.place}: ours and the paper's", 3)
        yield _beside(part)
        level = level_text(CONFIDENCE_LEVEL)
        ours = "half the width of our interval" if of.half_width else f"[{level} interval]"
        notes = (f"Ours: {ours}; rates in percent", of.note)
        yield Notes(tuple(filter(None, notes)))


def _beside(part: ReproducedPart) -> Table:
    """A table with one row a figure: ours and the published one."""
    table, rows = part.table, list[list[Cell]]()
    several = table is not None and len(table.judges) > 1
    heads = [*(["Judge"] if several else []), *(table.heads if table else ())]
    words = {True: "yes", False: "no", None: ""}
    for each in part.compared:
        figure = ", ".join(filter(None, each.column))
        ours: Cell = MetricCell(estimate=each.ours, unit=each.unit, denominator=False)
        if part.published.half_width:
            ours = Number(each.ours.value, each.unit)
        judge = [each.judge] if several else []
        rows.append([*judge, *each.heads, figure, ours, each.printed, words[each.is_inside]])
    titles = [*heads, "Figure", "Ours", "Published", "Inside"]
    return Table.of(titles, rows, align="l" * (len(heads) + 1) + "vrl")

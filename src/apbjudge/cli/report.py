"""The report command: one order, and the format that was asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import orjson
import typer

from ..errors import InputError, OptionError, visible
from ..jsonl import is_replaceable, write_atomically
from ..reports.changes import changes_csv, changes_markdown, changes_text
from ..reports.paper.flat import tables_csv, tables_json
from ..reports.paper.formatting import tables_markdown, tables_text
from ..reports.paper.latex import tables_latex
from ..reports.plots import write_figures
from ..reports.report import CHANGES, Report, ReportOrder, open_report
from .compare import complain, names

_WRITTEN_BY_US = re.compile(
    rb'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    rb'<meta http-equiv="Content-Security-Policy"'
    rb"|[^\n]*--table [a-z-]+\)\n|## [^\n]*\(Table |## Changes\n"
    rb"|from [^\n]* to [^\n]*\n[0-9]+ items in both|% Tables made by apbjudge"
    rb'|table,number,judge,|kind,item_id,protocol,|\{\n  "apbjudge": "'
)
"""How a file begins that this command wrote, in any of its formats."""

FORMATS = ("text", "html", "md", "latex", "csv", "json")
DEFAULT_PAGE = Path("report.html")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options of the command, as given."""

    runs: list[Path]
    labels: list[Path]
    adjudicator: str | None
    table: list[str]
    format: str
    out: Path | None
    figures: Path | None
    refined: list[str]
    predictions: list[Path]
    cases: Path | None
    pictures: bool
    data_root: Path | None
    no_intervals: bool


def run_report(options: ReportOptions) -> int:
    """Writes the report and returns the exit code.

    Raises:
        UsageError: If options or input are unusable.
    """
    tables = [name for text in options.table for name in names(text)]
    _check(options, tables)
    out = options.out or (DEFAULT_PAGE if options.format == "html" else None)
    if out is not None:
        _check_replaceable(out)
    report = open_report(
        ReportOrder(
            runs=options.runs,
            labels=options.labels,
            adjudicator=options.adjudicator,
            refined=[_refined(text) for text in options.refined],
            tables=tables,
            predictions=options.predictions,
            cases=options.cases,
            pictures=options.pictures,
            data_root=options.data_root,
        )
    )
    if options.format == "html":
        _write_page(report, out or DEFAULT_PAGE)
    else:
        _show(_text(report, options), out)
    if options.figures is not None:
        _write_figures(report, options.figures)
    return complain(list(dict.fromkeys(report.problems)))


def _check(options: ReportOptions, tables: list[str]) -> None:
    """Refuses what can't be written before anything is read."""
    if options.format not in FORMATS:
        raise OptionError(f"--format: expected {', '.join(FORMATS)}, got {options.format!r}")
    if options.table and not tables:
        raise OptionError("--table: expected names of tables, got none")
    if CHANGES not in tables:
        return
    if options.format == "latex":
        raise OptionError("--table changes: expected text, md, csv, json or html, got latex")
    if options.format == "csv" and set(tables) != {CHANGES}:
        raise OptionError("--table: expected changes alone with csv, whose columns differ")


def _check_replaceable(out: Path) -> None:
    """Refuses to replace a file that is no report.

    Raises:
        OptionError: If it is none.
        InputError: If it can't be read.
    """
    if not is_replaceable(out) or not out.exists():
        return
    try:
        with out.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise InputError(f"{out}: can't be read: {error.strerror}") from None
    if head and not _WRITTEN_BY_US.match(head):
        raise OptionError(
            f"--out: {visible(str(out))} is there and no report of apbjudge; choose another name, "
            "or remove it"
        )


def _refined(text: str) -> tuple[str, Path]:
    method, mark, path = text.partition("=")
    if not mark or not method.strip() or not path.strip():
        raise OptionError(f"--refined: expected METHOD=RUN, such as Self_R+=runs/x, got {text!r}")
    return method.strip(), Path(path.strip())


def _text(report: Report, options: ReportOptions) -> str:
    tables, changes = report.tables, report.changes
    if options.format == "json":
        values = report.to_json() | orjson.loads(tables_json(tables))
        return orjson.dumps(values, option=orjson.OPT_INDENT_2).decode() + "\n"
    if options.format == "latex":
        return tables_latex(tables, intervals=not options.no_intervals)
    if options.format == "csv":
        return changes_csv(changes) if changes is not None else tables_csv(tables)
    as_text, of_changes = (
        (tables_markdown, changes_markdown)
        if options.format == "md"
        else (tables_text, changes_text)
    )
    parts = [as_text(tables)] if tables else []
    parts += [of_changes(changes)] if changes is not None else []
    return "\n".join(parts)


def _show(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
        return
    write_atomically(out, text.encode(errors="backslashreplace"))
    _tell(out, "")


def _write_page(report: Report, out: Path) -> None:
    size = report.write_page(out)
    _tell(out, f" ({size.entries} items, {size.bytes / 2**20:.1f} MiB); open it in a browser")


def _write_figures(report: Report, folder: Path) -> None:
    try:
        written = write_figures(report.figures, folder)
    except OSError as error:
        raise InputError(f"{folder}: can't be written: {error.strerror}") from None
    _tell(folder, f", {len(written)} files")


def _tell(path: Path, more: str) -> None:
    """Says what was written, beside standard output: a table or a page may be there."""
    typer.echo(f"written: {visible(str(path))}{more}", err=True)

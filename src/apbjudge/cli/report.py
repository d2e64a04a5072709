"""``apbjudge report``: tables, figures and a page from finished runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import typer
from pydantic import Field

from ..config import Config
from ..errors import InputError, OptionError, visible
from ..reports.config import CHANGES, MODELS, SETTINGS, ReportConfig
from .options import Values, command, json_text, print_problems, print_written, write_file

if TYPE_CHECKING:
    from ..reports.plots import Figure
    from ..reports.report import Report

_WRITTEN_BY_US = re.compile(
    rb'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    rb'<meta http-equiv="Content-Security-Policy"'
    rb"|[^\n]*--table [a-z-]+\)\n|## [^\n]*\(Table |## Changes\n"
    rb"|from [^\n]* to [^\n]*\n[0-9]+ items in both|% Tables made by apbjudge"
    rb"|(?:# )?(?:Judge settings of each run|Tested models)\n|Judge,Run,Model,|Tested model,Run,"
    rb"|judge,protocol,setting,tier,"
    rb'|table,number,judge,|kind,item_id,protocol,|\{\n  "apbjudge": "'
)
"""Beginnings of files that this command writes, in all its formats."""


class ReportOutput(Config):
    """File and format of the report."""

    groups: ClassVar[Mapping[str, str]] = {}

    format: Literal["text", "html", "md", "latex", "csv", "json"] = Field(
        default="text", description="Format of the report; html is a page with every item."
    )
    out: Path | None = Field(
        default=None,
        description="File to write; default: report.html for html, the screen for all others.",
    )
    leaderboard: Path | None = Field(
        default=None,
        description="File for a leaderboard, JSON where it ends in .json, else CSV: tested models "
        "by success rate, with intervals, tiers, and the figures of the judge.",
    )
    figures: Path | None = Field(
        default=None,
        description="Folder for the figures, each as SVG, PDF, PNG and CSV; with latex the text "
        "refers to the PDFs.",
    )
    no_intervals: bool = Field(default=False, description="Narrow LaTeX tables, without intervals.")


@command(ReportConfig, ReportOutput)
def report(values: Values) -> int:
    """Shows runs: the paper's tables, figures, and a page with every item.

    Exit code 0: done; 1: done, but some rows or files were unusable; 2: unusable input.
    """
    from ..reports.report import report as open_report

    output, config = ReportOutput.of(values), ReportConfig.of(values)
    if values.get("tables") and not config.tables:
        raise OptionError("--table: expected names of tables, got none")
    if CHANGES in config.tables and output.format == "latex":
        raise OptionError("--table changes: expected text, md, csv, json or html, got latex")
    for name in (CHANGES, SETTINGS, MODELS):
        if name in config.tables and output.format == "csv" and set(config.tables) != {name}:
            raise OptionError(f"--table: expected {name} alone with csv, whose columns differ")
    out = output.out or (Path("report.html") if output.format == "html" else None)
    for path in filter(None, (out, output.leaderboard)):
        _check_replaceable(path)
    result = open_report(config)
    _warn(result)
    if output.format == "html" and out is not None:
        size = result.write_page(out)
        print_written(
            out, f" ({size.entries} items, {size.bytes / 2**20:.1f} MiB); open in a browser"
        )
        if size.note:
            typer.echo(f"note: {size.note}", err=True)
    elif out is None:
        _print(_text(result, output))
    else:
        write_file(out, _text(result, output).encode(errors="backslashreplace"))
    _write_leaderboard(result, output.leaderboard)
    if output.figures is not None:
        write_all_figures(result.figures, output.figures)
    return print_problems(list(dict.fromkeys(result.problems)))


def _warn(result: Report) -> None:
    """Prints warnings on stderr, since CSV, LaTeX and figures have no place for them."""
    warnings = [run.unfinished for judge in result.judges for run in judge.runs]
    if unknown := result.unknown_names:
        warnings.append(f"--names: no run has judgements of {', '.join(unknown)}")
    for warning in filter(None, dict.fromkeys(warnings)):
        typer.echo(visible(f"warning: {warning}"), err=True)


def _print(text: str) -> None:
    typer.echo(text, nl=False)
    if not text.strip():
        typer.echo(
            "no table covers these runs: summary.json in their folders has the metrics, and "
            "--format html shows every item",
            err=True,
        )


def _check_replaceable(out: Path) -> None:
    """Refuses to replace a file that is not a report.

    Raises:
        OptionError: If it is not.
        InputError: If it can't be read.
    """
    from ..jsonl import is_replaceable

    if not is_replaceable(out) or not out.exists():
        return
    try:
        with out.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise InputError(f"{out}: can't be read: {error.strerror}") from None
    if head and not _WRITTEN_BY_US.match(head):
        raise OptionError(
            f"--out: {visible(str(out))} exists and is no report of apbjudge; choose another name, "
            "or remove it"
        )


def _text(result: Report, output: ReportOutput) -> str:
    from ..document.latex import render_latex
    from ..document.markdown import render_markdown
    from ..document.text import WIDTH, render_text
    from ..reports.changes import changes_csv, changes_markdown, changes_text
    from ..reports.paper.formatting import (
        tables_csv,
        tables_json,
        tables_latex,
        tables_markdown,
        tables_text,
    )
    from ..reports.run_settings import JUDGES, TESTED, settings_csv, settings_document

    tables, changes = result.tables, result.changes
    settings = {
        title: rows
        for title, rows in ((JUDGES, result.settings), (TESTED, result.tested_models))
        if rows
    }
    if output.format == "json":
        values = result.to_json() | {"tables": tables_json(tables)}
        return json_text(values) + "\n"
    if output.format == "latex":
        text = tables_latex(tables, intervals=not output.no_intervals)
        for title, rows in settings.items():
            label = f"tab:apb-{title.partition(' of ')[0].replace(' ', '-').lower()}"
            text += "\n" + render_latex(settings_document(rows, title), label=label)
        return text + ("" if output.figures is None else "\n" + _figures(result, output))
    if output.format == "csv":
        for name, rows in ((SETTINGS, result.settings), (MODELS, result.tested_models)):
            if name in result.config.tables and rows:
                return settings_csv(rows)
        return changes_csv(changes) if changes is not None else tables_csv(tables)
    is_md = output.format == "md"
    parts = [(tables_markdown if is_md else tables_text)(tables)] if tables else []
    for title, rows in settings.items():
        document = settings_document(rows, title)
        parts.append(render_markdown(document) if is_md else render_text(document, width=WIDTH))
    parts += [(changes_markdown if is_md else changes_text)(changes)] if changes else []
    return "\n".join(parts)


def _write_leaderboard(result: Report, path: Path | None) -> None:
    """Writes the leaderboard if a file for it is named."""
    from ..reports.paper.leaderboard import leaderboard_csv
    from ..version import VERSION

    if path is None:
        return
    if not (lines := result.leaderboard):
        raise OptionError("--leaderboard: expected runs with rates of success, got none")
    is_json = path.suffix.casefold() == ".json"
    values = {"apbjudge": VERSION, "leaderboard": lines}
    text = json_text(values) + "\n" if is_json else leaderboard_csv(lines)
    write_file(path, text.encode(errors="backslashreplace"))


def _figures(result: Report, output: ReportOutput) -> str:
    """LaTeX that includes the figures, with paths relative to the output file."""
    import os

    from ..document.latex import figures_latex

    folder = Path(os.path.relpath(output.figures or "", output.out.parent if output.out else "."))
    return figures_latex(
        ((each.key, each.title, each.note) for each in result.figures), folder.as_posix()
    )


def write_all_figures(figures: Sequence[Figure], folder: Path) -> None:
    """Writes figures into a folder and names it on stderr; raises InputError if that fails."""
    from ..reports.plots import write_figures

    try:
        written = write_figures(figures, folder)
    except OSError as error:
        raise InputError(f"{folder}: can't be written: {error.strerror}") from None
    print_written(folder, f", {len(written)} files")

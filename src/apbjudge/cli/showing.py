"""The commands for people's eyes and hands: what runs say, and what humans say of their items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import Adjudicator, Cases, DataRoot, Predictions, ProtocolOption, RubricOption


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or their judgements.jsonl.")],
    labels: Annotated[
        list[Path] | None,
        typer.Option(help="Human labels, JSONL or CSV; may be given several times."),
    ] = None,
    adjudicator: Adjudicator = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these: overall, extraneous, extraneous-average, extraneous-levels-holistic, "
            "extraneous-levels-step-wise, refinement, efficiency, judges, diversity, "
            "self-evaluation, steps, modality, horizon, stage; or changes, from the first run to "
            "the second."
        ),
    ] = None,
    format: Annotated[str, typer.Option(help="text, html, md, latex, csv or json.")] = "text",
    out: Annotated[
        Path | None, typer.Option(help="File to write; report.html for a page, else the screen.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for the figures, as SVG, PNG and CSV each.")
    ] = None,
    refined: Annotated[
        list[str] | None,
        typer.Option(help="METHOD=RUN: a run on refined responses, such as Self_R+=runs/x."),
    ] = None,
    predictions: Annotated[
        list[Path] | None,
        typer.Option(help="Where the predictions lie now, if not where they were judged."),
    ] = None,
    cases: Cases = None,
    pictures: Annotated[
        bool, typer.Option("--pictures", help="Put the cases' pictures into the page.")
    ] = False,
    data_root: DataRoot = None,
    no_intervals: Annotated[
        bool, typer.Option("--no-intervals", help="Narrow LaTeX tables, without intervals.")
    ] = False,
) -> None:
    """Shows runs: the paper's tables, figures, and a page to look at every item.

    Exit code 0: done; 1: done, but some rows or files were unusable; 2: unusable input.
    """
    from .report import ReportOptions, run_report

    options = ReportOptions(
        runs=runs,
        labels=labels or [],
        adjudicator=adjudicator,
        table=table or [],
        format=format,
        out=out,
        figures=figures,
        refined=refined or [],
        predictions=predictions or [],
        cases=cases,
        pictures=pictures,
        data_root=data_root,
        no_intervals=no_intervals,
    )
    raise typer.Exit(run_report(options))


def label(
    predictions: Predictions,
    out: Annotated[Path, typer.Option(help="JSONL file of the labels; it is gone on with.")],
    rater: Annotated[
        str | None, typer.Option(help="The only rater's name; else the page asks for it.")
    ] = None,
    order: Annotated[
        str, typer.Option(help="random, file, or a plan that plan-labels wrote.")
    ] = "random",
    n: Annotated[int | None, typer.Option("--n", help="Items to label; else all.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random order.")] = 20_260_101,
    run: Annotated[
        Path | None,
        typer.Option(help="Run whose verdict is shown, once the rater's own is saved."),
    ] = None,
    protocol: ProtocolOption = "auto",
    cases: Cases = None,
    rubric: RubricOption = None,
    data_root: DataRoot = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 for a free one.")] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser too.")
    ] = False,
) -> None:
    """Serves a local page on which humans label items, until Ctrl-C.

    Exit code 0: done; 2: unusable input or options.
    """
    from ..labelling.label import LabelOrder
    from .label import LabelOptions, run_label

    wanted = LabelOrder(
        predictions=predictions,
        out=out,
        rater=rater,
        order=order,
        n=n,
        seed=seed,
        run=run,
        protocol=protocol,
        cases=cases,
        rubric=rubric,
        data_root=data_root,
    )
    options = LabelOptions(order=wanted, port=port, open_browser=open_browser)
    raise typer.Exit(run_label(options))

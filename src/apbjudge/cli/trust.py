"""The commands that look at judges and runs: how far they can be trusted, how they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import (
    Addresses,
    Adjudicator,
    Cases,
    Cluster,
    Config,
    Format,
    Level,
    NoEvidence,
    ProtocolOption,
    RubricOption,
)


def audit(
    judges: Annotated[
        list[str],
        typer.Argument(
            help="static, or litellm models, each perhaps with its address after @; or the folder "
            "of a finished audit."
        ),
    ],
    rows: Annotated[
        Path | None,
        typer.Option(help="Predictions with their cases, JSONL; else the shipped cases are used."),
    ] = None,
    cases: Cases = None,
    protocol: ProtocolOption = "auto",
    rubric: RubricOption = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Human labels of the rows, JSONL or CSV; or the folder of another judge's run."
        ),
    ] = None,
    self: Annotated[
        list[str] | None, typer.Option("--self", help="Tested model that is the judge itself.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A hundred calls at most.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Two judges, asked the same, side by side.")
    ] = False,
    api_base: Addresses = None,
    no_evidence: NoEvidence = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the audit; the same command goes on in it.")
    ] = None,
    config: Config = None,
) -> None:
    """Puts judges through probes and writes a judge card.

    Exit code 0: done; 1: done, with more unscored judgements than allowed (max_unscored, default
    0), or a probe failed that fail_on names; 2: unusable input or options.
    """
    from .audit import AuditOptions, run_audit

    options = AuditOptions(
        judges=judges,
        addresses=api_base or [],
        no_evidence=no_evidence,
        config=config or [],
        rows=rows,
        cases=cases,
        protocol=protocol,
        rubric=rubric,
        labels=labels,
        own=self or [],
        quick=quick,
        compare=compare,
        out=out,
    )
    raise typer.Exit(run_audit(options))


def calibrate(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Judgements (a file or a run's folder), one judge each, and last the labels, "
            "JSONL or CSV."
        ),
    ],
    by: Annotated[
        str, typer.Option(help="Break down by tested_model,dataset,category,protocol,….")
    ] = "",
    cluster: Cluster = "case_id",
    unscored: Annotated[
        str, typer.Option(help="What unscored items count as: exclude, wrong or bounds.")
    ] = "exclude",
    adjudicator: Adjudicator = None,
    self: Annotated[
        str | None, typer.Option("--self", help="Tested model that is the judge itself.")
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            help="How the labelled items were chosen: random, other-population, hand-picked, or "
            "the file of plan-labels; rates are then corrected."
        ),
    ] = None,
    target: Annotated[
        Path | None, typer.Option(help="Run whose rates to correct with other-population.")
    ] = None,
    epsilon: Annotated[
        float, typer.Option(help="Allowance of the judge in the alternative annotator test.")
    ] = 0.2,
    level: Level = 0.95,
    interval: Annotated[
        str, typer.Option(help="Of coefficients: jeffreys, jackknife, bca, percentile.")
    ] = "jeffreys",
    format: Format = "text",
) -> None:
    """Prints how far judges can be trusted, against human labels.

    Exit code 0: done; 1: done, but some rows of the files were unusable; 2: unusable input.
    """
    from .calibrate import CalibrateOptions, run_calibrate

    options = CalibrateOptions(
        files=files,
        by=by,
        cluster=cluster,
        unscored=unscored,
        adjudicator=adjudicator,
        own=self,
        design=design,
        target=target,
        epsilon=epsilon,
        level=level,
        interval=interval,
        format=format,
    )
    raise typer.Exit(run_calibrate(options))


def compare(
    run_a: Annotated[Path, typer.Argument(help="Folder of a run, or its judgements.jsonl.")],
    run_b: Annotated[Path, typer.Argument(help="Another one on the same items.")],
    labels: Annotated[
        Path | None, typer.Option(help="JSONL or CSV of human labels; compares reliability too.")
    ] = None,
    adjudicator: Adjudicator = None,
    tested_model: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this tested model; given twice, the first's rows in A against "
            "the second's in B."
        ),
    ] = None,
    cluster: Cluster = "case_id",
    primary: Annotated[
        str, typer.Option(help="Figures chosen beforehand, such as CR,F1: adjusted by Holm.")
    ] = "",
    level: Level = 0.95,
    format: Format = "text",
) -> None:
    """Prints how two judges, tested models or rubrics differ on the same items.

    Exit code 0: done; 1: done, but some rows of the files were unusable; 2: unusable input.
    """
    from .compare import run_compare

    code = run_compare(
        run_a,
        run_b,
        labels=labels,
        adjudicator=adjudicator,
        tested_models=tested_model or [],
        cluster=cluster,
        primary=primary,
        level=level,
        format=format,
    )
    raise typer.Exit(code)


def plan_labels(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or its judgements.jsonl.")],
    labels: Annotated[
        Path | None, typer.Option(help="JSONL or CSV of the labels that there are.")
    ] = None,
    adjudicator: Adjudicator = None,
    n: Annotated[int, typer.Option("--n", help="Labels to be made next.")] = 100,
    half_width: Annotated[
        float, typer.Option(help="Half the width that a 95 % interval may have.")
    ] = 0.03,
    by: Annotated[
        str, typer.Option(help="Fields to draw within, such as tested_model,dataset, or none.")
    ] = "tested_model",
    anticipated: Annotated[
        float | None,
        typer.Option(help="Share of verdicts that humans won't share; else the labels', or 0.15."),
    ] = None,
    already_random: Annotated[
        bool,
        typer.Option("--already-random", help="The labels were drawn by such a plan before."),
    ] = False,
    cluster: Cluster = "case_id",
    out: Annotated[Path | None, typer.Option(help="File for the plan.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 20_260_101,
    format: Format = "text",
) -> None:
    """Says how many labels are needed and draws the rows to label next.

    Exit code 0: done; 1: done, but some rows of the files were unusable; 2: unusable input.
    """
    from ..calibration.label_plan import PlanOrder
    from .compare import names
    from .plan import run_plan

    order = PlanOrder(
        judgements=run,
        labels=labels,
        adjudicator=adjudicator,
        n=n,
        half_width=half_width,
        by=names(by),
        anticipated=anticipated,
        already_random=already_random,
        cluster=cluster,
        seed=seed,
    )
    raise typer.Exit(run_plan(order, out=out, format=format))

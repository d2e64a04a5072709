"""``apbjudge``: the commands. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

os.environ.setdefault("TYPER_USE_RICH", "0")  # plain help starts in less than half the time

import typer

from ..errors import ApbJudgeError, visible
from ..version import VERSION
from .options import (
    Addresses,
    Adjudicator,
    Blind,
    Cases,
    Cluster,
    Config,
    Format,
    Judges,
    Level,
    NoEvidence,
    NoImages,
    Predictions,
    ProtocolOption,
    RubricOption,
)
from .parts import batch_app, cache_app, rubric_app
from .settings import SettingsCommand

app = typer.Typer(
    name="apbjudge",
    help="Grades the plans of LLM agents and says why a plan fails.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(rubric_app, name="rubric")
app.add_typer(batch_app, name="batch")
app.add_typer(cache_app, name="cache")


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Grades the plans of LLM agents and says why a plan fails."""
    if version:
        typer.echo(f"apbjudge {VERSION}")
        raise typer.Exit


@app.command(cls=SettingsCommand)
def grade(
    predictions: Predictions,
    protocol: ProtocolOption = "auto",
    judge: Judges = None,
    api_base: Addresses = None,
    cases: Cases = None,
    rubric: RubricOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; the same command goes on in it.")
    ] = None,
    by: Annotated[
        str, typer.Option(help="Break down by category,modality,stage,steps,horizon,dataset.")
    ] = "",
    blind: Blind = False,
    no_evidence: NoEvidence = False,
    no_images: NoImages = False,
    config: Config = None,
) -> None:
    """Grades predictions and prints the figures.

    Exit code 0: done; 1: done, with more unscored rows than allowed (max_unscored, default 0);
    2: unusable input or options.
    """
    from .grading import GradeOptions, run_grade

    options = GradeOptions(
        predictions=predictions,
        protocol=protocol,
        judges=judge or [],
        addresses=api_base or [],
        cases=cases,
        rubric=rubric,
        out=out,
        by=by,
        blind=blind,
        no_evidence=no_evidence,
        no_images=no_images,
        config=config or [],
    )
    raise typer.Exit(run_grade(options))


@app.command()
def prompt(
    predictions: Predictions,
    id: Annotated[str, typer.Option("--id", help="Id of the item.")],
    tested_model: Annotated[
        str | None, typer.Option(help="Only this tested model's prediction.")
    ] = None,
    protocol: ProtocolOption = "auto",
    cases: Cases = None,
    rubric: RubricOption = None,
    blind: Blind = False,
    no_evidence: NoEvidence = False,
    no_images: NoImages = False,
) -> None:
    """Prints what a judge would be sent for an item."""
    from ..api import prompts_for
    from ..judge import JudgeSpec

    spec = JudgeSpec(
        model="prompt",
        blind=blind,
        evidence=not no_evidence,
        images=not no_images,
        vision="no" if no_images else "yes",
    )
    found = prompts_for(
        predictions,
        item_id=id,
        tested_model=tested_model,
        protocol=protocol,
        spec=spec,
        cases=cases,
        rubric=rubric,
    )
    for task, sent in found:
        name = visible(f"{task.item.item_id} / {task.item.tested_model}")
        typer.echo(f"===== {name}: system =====")
        typer.echo(sent.system)
        typer.echo("===== user =====")
        typer.echo(sent.case)
        for image in sent.images:
            typer.echo(f"[picture {visible(image.path)}, {len(image.url)} characters as data URL]")
        typer.echo(f"\n{sent.prediction}")


@app.command(cls=SettingsCommand)
def doctor(
    predictions: Annotated[
        Path | None, typer.Argument(help="What is to be graded, to see whether it fits.")
    ] = None,
    judge: Judges = None,
    api_base: Addresses = None,
    protocol: ProtocolOption = "auto",
    cases: Cases = None,
    rubric: RubricOption = None,
    config: Config = None,
) -> None:
    """Tries what a judge's endpoint can do: key, model, reply formats, logprobs, pictures, length.

    Exit code 0: a run would work; 2: it would not.
    """
    from .doctor import DoctorOptions, run_doctor

    options = DoctorOptions(
        predictions=predictions,
        judges=judge or [],
        addresses=api_base or [],
        protocol=protocol,
        cases=cases,
        rubric=rubric,
        config=config or [],
    )
    raise typer.Exit(run_doctor(options))


@app.command()
def cascade(
    cheap: Annotated[Path, typer.Argument(help="Folder of the cheap judge's run.")],
    strong: Annotated[Path, typer.Argument(help="Folder of the strong judge's run.")],
    labels: Annotated[
        Path | None, typer.Option(help="Human labels, JSONL or CSV, to compare with instead.")
    ] = None,
    when: Annotated[
        str, typer.Option(help="Whose entropy counts: entropy>0, entropy.max>0, entropy.E4>0.")
    ] = "entropy>0",
) -> None:
    """Prints cost against agreement for every threshold of a cascade, as CSV."""
    from ..api.ensembles import compare_runs

    typer.echo(compare_runs(cheap, strong, labels, when), nl=False)


@app.command()
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
        str, typer.Option(help="Of coefficients: jackknife, bca or percentile.")
    ] = "jackknife",
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


@app.command()
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


@app.command("plan-labels")
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
    from ..api.label_plan import PlanOrder
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


def main() -> None:
    """Entry point: no traceback ever reaches a user who gave bad input."""
    try:
        app()
    except ApbJudgeError as error:
        typer.echo(f"apbjudge: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)

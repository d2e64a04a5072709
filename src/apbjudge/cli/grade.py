"""``apbjudge grade``: rows to judgements and results."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import typer
from pydantic import Field

from ..config import STATIC
from ..errors import path_text
from ..judge.config import GradeConfig, JudgeSpec
from .gates import Gates, finish
from .options import Values, argument, command, print_document, print_files
from .stopping import Stopping, stoppable

if TYPE_CHECKING:
    from ..judge.session import Run

FILES = (
    "judgements.jsonl summary.json summary.csv manifest.json queue.jsonl curve.csv "
    "superseded.jsonl damaged.txt judges"
).split()


class GradeOptions(Gates, Stopping, GradeConfig):
    """The settings of the command, without those of the judge."""

    groups: ClassVar[Mapping[str, str]] = {
        **GradeConfig.groups,
        **Gates.groups,
        "Run": f"{GradeConfig.groups['Run']} max_unscored dry_run grace",
    }

    max_unscored: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Largest share of unscored rows with exit code 0.",
    )
    dry_run: bool = Field(
        default=False, description="Call nothing; estimate calls, tokens, cost and time."
    )


OF_RUNS = (
    "panel escalate when max_cost max_calls max_tokens max_seconds batch max_unscored dry_run "
    "fail_under gate junit ci_summary full grace allow_unfinished interval n_resamples "
    "bootstrap_seed"
).split()
"""Settings of whole runs; other commands that share ``grade``'s options accept but hide them."""


PREDICTIONS = argument(
    "predictions",
    "Predictions: JSON lines, an array, CSV, Parquet, a data set on disk (--map), or the folder of "
    "a run of predict or refine; or a log of trajectories: files, packed or not, a folder, a "
    "quoted pattern, or -.",
    is_log=True,
)


@command(PREDICTIONS, GradeOptions, JudgeSpec, omit=["allow_unfinished"])
def grade(values: Values) -> int:
    """Grades predictions, or trajectories from their logs, and prints the results.

    Exit code 0: done; 1: done, with more unscored rows than allowed (--max-unscored); 2: unusable
    input or options; 3: a gate failed (--fail-under).
    """
    from ..judge.grade import default_out
    from ..judge.grade import grade as grade_rows
    from ..judge.summary_text import ensemble_text, summary_document
    from ..records.gates import unscored_rows
    from .progress import Reporter

    rows, config = values["predictions"], GradeOptions.of(values)
    out = config.out or default_out(rows, config)
    config = config.model_copy(update={"out": out})
    if config.dry_run:
        return _dry_run(rows, config)
    reporter = Reporter(sys.stderr)
    with stoppable(values, out), reporter:
        run = grade_rows(rows, config, events=reporter.events())
    if silent := run.progress.silent:
        typer.echo(f"{silent} verdicts lack the requested token probabilities", err=True)
    if left := run.summary.totals.unscored.get("budget"):
        typer.echo(
            f"the budget ended with {left} rows left: the same command continues with them",
            err=True,
        )
    print_document(summary_document(run.summary))
    if run.ensemble is not None:
        typer.echo(f"\n{ensemble_text(run.ensemble)}", nl=False)
    print_files(out, *FILES)
    if config.fail_under:
        run = run.gated(*config.fail_under, at=config.gate)
    else:  # a CI job has no use for next steps
        _print_next_steps(run, out)
    code = unscored_code(run.unscored_fraction, config.max_unscored, "rows")
    unscored = unscored_rows(run.judgements) if config.junit is not None else ()
    return finish(code, run.summary.gates, config, summary_document(run.summary), unscored=unscored)


def _print_next_steps(run: Run, out: Path) -> None:
    """Prints the commands that usually follow."""
    from ..records.judgement_table import TRAJECTORY

    if not (groups := run.summary.groups):
        return
    folder = shlex.quote(path_text(out))
    lines = [
        "next: every row with its findings, as a page",
        f"  apbjudge report {folder} --format html --out report.html",
    ]
    if run.summary.judge == STATIC and groups[0].form != TRAJECTORY:
        lines.append("next: a model's verdicts; first estimate their cost")
        lines.append("  the same command with --judge MODEL --dry-run")
    elif groups[0].form != TRAJECTORY:
        lines.append("next: which rows to label, to see how far this judge can be trusted")
        lines.append(f"  apbjudge plan-labels {folder}")
    typer.echo("\n".join(lines))


def unscored_code(share: float, allowed: float, what: str) -> int:
    """Returns 1 if more judgements are unscored than allowed, and says so on stderr; else 0."""
    if share <= allowed:
        return 0
    message = f"{share:.2%} of the {what} are unscored; {allowed:.2%} are allowed"
    typer.echo(f"apbjudge: {message}", err=True)
    return 1


def _dry_run(rows: Path, config: GradeOptions) -> int:
    from ..judge.dry_run import forecast_text, forecasts

    for n, expected in enumerate(forecasts(rows, config)):
        missing = expected.missing_predictions
        for line in missing.lines if missing and n == 0 else ():
            typer.echo(line, err=True)
        if n == len(config.judge):
            typer.echo(f"and {expected.judge}, if every item were escalated:")
        typer.echo(forecast_text(expected), nl=False)
    return 0

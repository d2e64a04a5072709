"""``apbjudge predict``: cases to predictions of tested models."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer
from pydantic import Field

from ..agents.prediction.config import PlannerSpec, PredictConfig
from ..config import Config, Option
from ..errors import path_text, visible
from .options import Values, command, print_next
from .stopping import Stopping, stoppable

if TYPE_CHECKING:
    from ..agents.prediction.session import PredictionRun
    from ..runs.results import FailureCounts

FAILURES = "failures.jsonl"
FILES = f"predictions.jsonl {FAILURES} manifest.json superseded.jsonl damaged.txt".split()


class CasesArgument(Config):
    """What is asked."""

    cases: Annotated[Path, Option(is_argument=True)] = Field(
        description="Cases, as grade takes them without response: JSON lines, a table, a data "
        "set, or a folder of build, predict or execute."
    )


class PredictOptions(PredictConfig):
    """The settings of the command beside the models'."""

    groups: ClassVar[Mapping[str, str]] = {
        **PredictConfig.groups,
        "Run": f"{PredictConfig.groups['Run']} dry_run",
    }

    dry_run: bool = Field(
        default=False, description="Call nothing; estimate calls, tokens, cost and time."
    )


@command(CasesArgument, PlannerSpec, PredictOptions, Stopping)
def predict(values: Values) -> int:
    """Asks tested models for plans or next steps, as grade takes them.

    Exit code 0: done; 1: done, but some cases have no prediction (failures.jsonl; the same command
    tries them again); 2: unusable input or options.
    """
    from ..agents.prediction.dry_run import forecast_predictions
    from ..agents.prediction.predict import predict_in
    from ..agents.prediction.results_text import prediction_text
    from ..agents.prediction.session import default_folder, session_of
    from ..judge.dry_run import forecast_text
    from ..llm.resources import shared_resources
    from ..runs.batching import batch_api
    from .progress import Reporter

    cases = CasesArgument.of(values).cases
    config = PredictOptions.of(values)
    reporter = Reporter(sys.stderr)
    resources = shared_resources(client=None, limits=config, cache=config.cache, warn=reporter.note)
    session = session_of(cases, config, resources, reporter.events())
    out = config.out or default_folder(cases, session, "predictions")
    session = replace(session, folder=out, in_memory=False)
    if config.dry_run:
        for spec in session.specs if config.batch else ():
            batch_api(spec, resources)
        for forecast in forecast_predictions(session):
            typer.echo(f"{visible(forecast.judge)}\n{forecast_text(forecast)}", nl=False)
        return 0
    with stoppable(values, out), reporter:
        run = predict_in(session, batch=config.batch)
    typer.echo(prediction_text(run.counts), nl=False)
    typer.echo(f"\n{path_text(out)}/: {' '.join(name for name in FILES if (out / name).exists())}")
    print_grade(run)
    return failed_code(run.counts.values(), f"a prediction, see {path_text(out / FAILURES)}")


def print_grade(run: PredictionRun) -> None:
    """Prints the command that grades predictions, if there are any."""
    root = run.manifest["data_root"]
    if run.folder is not None and any(each.predicted for each in run.counts.values()):
        print_next("grade", run.folder, *(["--data-root", root] if root else []))


def failed_code(counts: Iterable[FailureCounts], lacking: str) -> int:
    """The exit code, 1 where something failed; then says what is lacking and what may help."""
    failed = [each for each in counts if each.failed]
    if not failed:
        return 0
    n = sum(sum(each.failed.values()) for each in failed)
    helps = "the same command tries them again"
    if not any(each.may_pass for each in failed):
        helps = "the same command helps once the cause is removed"
    typer.echo(f"apbjudge: {n} without {lacking}; {helps}", err=True)
    return 1

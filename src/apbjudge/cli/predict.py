"""``apbjudge predict``: cases to predictions of tested models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import typer
from pydantic import Field

from ..agents.prediction.config import PredictConfig, TestedModelSpec
from ..errors import visible
from .asking import asking_command
from .options import Values, argument, command, print_next
from .stopping import Stopping

if TYPE_CHECKING:
    from ..agents.prediction.asking import AskingSession
    from ..agents.prediction.session import PredictionRun
    from ..runs.loop import Events


class PredictOptions(PredictConfig):
    """The settings of the command, without those of the models."""

    groups: ClassVar[Mapping[str, str]] = {
        **PredictConfig.groups,
        "Run": f"{PredictConfig.groups['Run']} dry_run",
    }

    dry_run: bool = Field(
        default=False, description="Call nothing; estimate calls, tokens, cost and time."
    )


CASES = argument(
    "cases",
    "Cases, as grade takes them without response: JSON lines, a table, a data set, or a folder of "
    "build, predict or execute.",
)


@command(CASES, TestedModelSpec, PredictOptions, Stopping)
def predict(values: Values) -> int:
    """Asks tested models for plans or next steps, in the format that grade reads.

    Exit code 0: done; 1: done, but some cases have no prediction (failures.jsonl; the same command
    tries them again); 2: unusable input or options.
    """
    from ..agents.prediction.asking import resources_of
    from ..agents.prediction.predict import predict_in
    from ..agents.prediction.session import session_of

    cases, config = values["cases"], PredictOptions.of(values)

    def session(events: Events) -> AskingSession[PredictionRun]:
        return session_of(cases, config, resources_of(config, None, events), events)

    if config.dry_run:
        return _dry_run(session, config)
    return asking_command(
        values,
        session,
        carry_out=partial(predict_in, batch=config.batch),
        lacking="a prediction",
        then=print_grade,
    )


def _dry_run(
    session_of: Callable[[Events], AskingSession[PredictionRun]], config: PredictOptions
) -> int:
    from ..agents.prediction.dry_run import forecast_predictions
    from ..judge.dry_run import forecast_text
    from ..runs.batching import batch_api
    from .progress import Reporter

    session = session_of(Reporter(sys.stderr).events())
    for spec in session.specs if config.batch else ():
        batch_api(spec, session.resources)
    for forecast in forecast_predictions(session, batched=config.batch):
        typer.echo(f"{visible(forecast.judge)}\n{forecast_text(forecast)}", nl=False)
    return 0


def print_grade(run: PredictionRun) -> None:
    """Prints the command that grades predictions, if there are any."""
    root = run.manifest["data_root"]
    if run.folder is not None and any(each.predicted for each in run.counts.values()):
        print_next("grade", run.folder, *(["--data-root", root] if root else []))

"""Check-up of the models of a run, judges or tested models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...judge.config import GradeConfig, WaitConfig
from ...judge.doctor import Checkup, ModelsToCheck, check_model, judges_of
from ...judge.source import Rows
from ...llm import Client
from ...llm.resources import Resources, cache_folder
from ...options import takes
from ...runs.loop import QUIET
from .config import PredictConfig, TestedModelSpec
from .dry_run import forecast_predictions
from .session import session_of


@takes(graded=GradeConfig, tested=PredictConfig, waiting=WaitConfig)
def doctor(  # noqa: D417
    predictions: Rows | None = None, *, options: Mapping[str, Any], client: Client | None = None
) -> list[Checkup]:
    """Asks every endpoint of judges, or of tested models, what it can do.

    At most seven tiny calls each; their results are cached for later runs and estimates. An
    endpoint that does not answer within ``wait`` seconds is asked anyway, and does not work.

    Args:
        predictions: Predictions to grade, or cases for a tested model, for the longest prompt.
        client: Answers in place of the network, which is then not used at all.

    Raises:
        OptionError: If a setting or a model's access is unusable.
        InputError: If the rows as a whole are unusable.
    """
    models = models_of(predictions, options, client)
    models.all_answer(WaitConfig.of(options).wait, QUIET.note)
    return [models.check(spec) for spec in models.specs]


def models_of(
    rows: Rows | None, options: Mapping[str, Any], client: Client | None = None
) -> ModelsToCheck:
    """The tested models that options name with ``model``, else their judges."""
    if not options.get("model"):
        return judges_of(rows, options, client)
    config, folder = PredictConfig.of(options), cache_folder(wanted=None, client=client)

    def check(spec: TestedModelSpec) -> Checkup:
        plan = None
        if rows is not None:
            alone = config.model_copy(update={"model": (spec,)})
            with TemporaryDirectory() as scratch:
                session = session_of(rows, alone, Resources(cache=folder), QUIET)
                (plan,) = forecast_predictions(replace(session, folder=Path(scratch)))
        return check_model(spec, plan, folder=folder, client=client)

    return ModelsToCheck(config.model, check, client)

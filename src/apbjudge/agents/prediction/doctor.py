"""Check-up of the models of a run, judges or tested models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...config import STATIC
from ...judge.config import GradeConfig
from ...judge.doctor import Checkup, check_model, check_up, wait_for
from ...judge.source import Rows
from ...llm import Client
from ...llm.resources import Resources, cache_folder, check_access
from ...options import takes
from ...protocols import AUTO, get_protocol
from ...runs.loop import QUIET
from .config import PredictConfig, WaitConfig
from .dry_run import forecast_predictions
from .session import session_of


@takes(graded=GradeConfig, tested=PredictConfig, waiting=WaitConfig)
def doctor(  # noqa: D417
    predictions: Rows | None = None, *, options: Mapping[str, Any], client: Client | None = None
) -> list[Checkup]:
    """Asks every endpoint of judges, or of tested models, what it can do.

    At most seven tiny calls each; what they tell is cached for later runs and estimates. One that
    does not answer within ``wait`` seconds is asked all the same, and does not work.

    Args:
        predictions: What is to be graded, or cases for a tested model, for the longest prompt.
        client: Answers in place of the network, which is then not used at all.

    Raises:
        OptionError: If a setting or a model's access is unusable.
        InputError: If the rows as a whole are unusable.
    """
    if client is None:
        wait_for_all(options)
    return [*check_ups(predictions, options, client)]


def wait_for_all(
    options: Mapping[str, Any], note: Callable[[str], None] = lambda message: None
) -> bool:
    """Waits as long as ``wait`` says until all models answer; false if one does not in time."""
    wait_s = WaitConfig.of(options).wait
    if wait_s is None:
        return True
    specs = PredictConfig.of(options).model if options.get("model") else _graded(options).judge
    check_access(specs)
    return all(wait_for(spec, wait_s, note) for spec in specs if spec.model != STATIC)


def _graded(options: Mapping[str, Any]) -> GradeConfig:
    return GradeConfig.of(options, escalate=None)


def check_ups(
    rows: Rows | None, options: Mapping[str, Any], client: Client | None = None
) -> Iterator[Checkup]:
    """Yields the check-up of each model; see ``doctor``."""
    if not options.get("model"):
        config = _graded(options)
        if config.protocol != AUTO:
            get_protocol(config.protocol)
        if client is None:
            check_access(config.judge)
        for spec in config.judge:
            yield check_up(spec, rows, config, client=client)
        return
    config, folder = PredictConfig.of(options), cache_folder(wanted=None, client=client)
    if client is None:
        check_access(config.model)
    for spec in config.model:
        plan = None
        if rows is not None:
            alone = config.model_copy(update={"model": (spec,)})
            with TemporaryDirectory() as scratch:
                session = session_of(rows, alone, Resources(cache=folder), QUIET)
                (plan,) = forecast_predictions(replace(session, folder=Path(scratch)))
        yield check_model(spec, plan, folder=folder, client=client)

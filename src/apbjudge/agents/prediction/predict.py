"""The Python API: one call from cases to predictions."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from ...llm import Client
from ...llm.resources import shared_resources
from ...options import takes
from ...runs.loop import QUIET, Events
from .batching import predict_batched
from .config import PredictConfig
from .session import (
    PredictionRun,
    PredictionSession,
    carry_out,
    planner_of,
    predict_worker,
    session_of,
)
from .source import Cases


@takes(config=PredictConfig)
def predict(
    cases: Cases | PathLike[str],
    config: PredictConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> PredictionRun:
    """Asks tested models for predictions on cases.

    Without ``out`` everything stays in memory. What could not be asked is a failure, and the same
    call with the same folder tries it again; whatever a model answered is a prediction, also a
    refusal, a reply that was cut off and one without any text.

    Args:
        cases: A JSONL file, what ``build`` returns, or cases as dicts: rows as ``grade`` takes
            them, without response.
        config: The settings; options count more.
        client: Answers requests in place of the network; its replies are cached only if ``cache``
            is set.
        events: Called back while the run goes on.

    Raises:
        OptionError: If a setting, a prompt set or a model's access is unusable, or ``out`` holds
            another run.
        InputError: If the file of cases as a whole is unusable.
    """
    resources = shared_resources(client=client, limits=config, cache=config.cache, warn=events.note)
    with (
        TemporaryDirectory(prefix="apbjudge-") if config.out is None else nullcontext(config.out)
    ) as folder:
        session = session_of(cases, config, resources, events)
        return predict_in(replace(session, folder=Path(folder)), batch=config.batch)


def predict_in(session: PredictionSession, *, batch: bool) -> PredictionRun:
    """Carries out a session, through the provider's batch interface if asked to."""
    if batch:
        return predict_batched(session)
    planners = [planner_of(spec, session.resources, session.events) for spec in session.specs]
    return carry_out(session, predict_worker(session, planners), [p.client for p in planners])

"""Predictions through batches of requests: a provider's batch interface, or files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import OptionError
from ..llm.batch_requests import BatchWriter
from ..llm.resources import Resources, can_see
from ..runs.batching import BatchedRun, Export, run_batched, write_requests
from ..runs.loop import QUIET, Progress
from .config import PlannerSpec, PredictConfig
from .session import PredictionRun, Session, carry_out, claim, predict_worker, session_of
from .source import Cases
from .worker import Planner


def predict_batched(session: Session, *, poll_s: float = 30.0) -> PredictionRun:
    """Carries out a session through the provider's batch interface; see ``runs.batching``."""
    spec = _only_model(session, "--batch")
    session.source.keep_rows()  # each round reads them

    def again(client: BatchWriter) -> tuple[PredictionRun, Progress]:
        run = _carry_out(session, spec, client)
        return run, run.progress

    batched = BatchedRun(
        option="--model",
        spec=spec,
        resources=session.resources,
        folder=session.folder,
        events=session.events,
        claim=lambda: claim(session),
        carry_out=again,
    )
    run, progress = run_batched(batched, poll_s=poll_s)
    return replace(run, progress=progress)


def export_predictions(
    cases: Cases, out: Path, config: PredictConfig | None = None, **settings: Any
) -> Export:
    """Writes a batch file of every request that the reply cache has no reply to.

    Export, have the file answered, import; the same ``predict`` then has every reply in its cache.
    The model must have the settings and the address that it will get from ``predict``; see
    ``judge.batching.export_requests``.
    """
    config = config or PredictConfig(**settings)
    with TemporaryDirectory(prefix="apbjudge-") as scratch:
        session = session_of(cases, config, Resources(), QUIET)
        session = replace(session, folder=Path(scratch), in_memory=True, waits=False)
        spec = _only_model(session, "batch export")

        def run(client: BatchWriter) -> Progress:
            return _carry_out(session, spec, client).progress

        return write_requests(out, spec, run, cache=config.cache, overwrite=config.overwrite)


def _only_model(session: Session, what: str) -> PlannerSpec:
    spec, *others = session.specs
    if others:
        raise OptionError(f"{what}: expected one --model, got {len(session.specs)}")
    return spec


def _carry_out(session: Session, spec: PlannerSpec, client: BatchWriter) -> PredictionRun:
    worker = predict_worker(session, [Planner(spec, client, can_see(spec), session.events.note)])
    return carry_out(session, worker, [client])

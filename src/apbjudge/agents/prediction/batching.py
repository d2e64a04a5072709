"""Predictions through batches of requests: a provider's batch interface, or files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...errors import OptionError
from ...judge.batching import export as judge_export
from ...judge.batching import out_of
from ...judge.config import GradeConfig
from ...judge.source import Rows
from ...llm.batch_requests import BatchWriter
from ...llm.resources import Resources, can_see
from ...options import takes
from ...runs.batching import BatchedRun, Export, run_batched, write_requests
from ...runs.loop import QUIET, Progress
from ...runs.session import carry_out
from .asking import AskingSession
from .config import PredictConfig, TestedModelSpec
from .session import PredictionRun, session_of
from .source import Cases
from .worker import AskedModel


def predict_batched(
    session: AskingSession[PredictionRun], *, poll_s: float = 30.0
) -> PredictionRun:
    """Carries out a session through the provider's batch interface; see ``runs.batching``."""
    spec = _only_model(session, "--batch")
    session.source.keep_rows()  # each round reads them

    ask = _asking(session)

    def again(client: BatchWriter) -> tuple[PredictionRun, Progress]:
        run = ask(client)
        return run, run.progress

    batched = BatchedRun(
        option="--model",
        spec=spec,
        resources=session.resources,
        folder=session.folder,
        events=session.events,
        claim=session.claim,
        carry_out=again,
    )
    run, progress = run_batched(batched, poll_s=poll_s)
    return replace(run, progress=progress)


@takes(graded=GradeConfig, tested=PredictConfig)
def batch_export(rows: Rows, *, options: Mapping[str, Any]) -> Export:  # noqa: D417
    """Writes a batch file of every request that the reply cache has no reply to.

    Export, have the file answered, import; the same ``grade``, or ``predict`` where ``model`` is
    set, then has every reply in its cache. The model must have the settings and the address that
    it will get there.

    Args:
        rows: Predictions for a judge, or cases for a tested model.

    Raises:
        OptionError: If a setting is unusable, or there is no ``out``, the file for the requests.
        InputError: If the rows as a whole are unusable.
    """
    return export(rows, options)


def export(rows: Rows, options: Mapping[str, Any]) -> Export:
    """Writes the requests of options; see ``batch_export``."""
    if not options.get("model"):
        return judge_export(rows, options)
    return export_predictions(rows, out_of(options), PredictConfig.of(options, out=None))


def export_predictions(cases: Cases, out: Path, config: PredictConfig) -> Export:
    """Writes a batch file of every request that the reply cache has no reply to.

    Export, have the file answered, import; the same ``predict`` then has every reply in its cache.
    The model must have the settings and the address that it will get from ``predict``; see
    ``judge.batching.export_requests``.
    """
    with TemporaryDirectory(prefix="apbjudge-") as scratch:
        session = session_of(cases, config, Resources(), QUIET)
        session = replace(session, folder=Path(scratch), in_memory=True, waits=False)
        spec = _only_model(session, "batch export")
        ask = _asking(session)

        def run(client: BatchWriter) -> Progress:
            return ask(client).progress

        return write_requests(out, spec, run, cache=config.cache, overwrite=config.overwrite)


def _only_model(session: AskingSession[PredictionRun], what: str) -> TestedModelSpec:
    spec, *others = session.specs
    if others:
        raise OptionError(f"{what}: expected one --model, got {len(session.specs)}")
    return spec


def _asking(session: AskingSession[PredictionRun]) -> Callable[[BatchWriter], PredictionRun]:
    """Carries a session out with a client; a name that the endpoint reports is noted once."""
    served = Counter[str]()

    def ask(client: BatchWriter) -> PredictionRun:
        def asked_model(spec: TestedModelSpec) -> AskedModel:
            return AskedModel(spec, client, can_see(spec), session.events.note, served=served)

        return carry_out([replace(session, asked_model=asked_model)])[0]

    return ask

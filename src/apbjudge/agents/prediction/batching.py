"""Predictions through batches of requests: a provider's batch interface, or files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import OptionError
from ...judge.batching import export as judge_export
from ...judge.batching import out_of
from ...judge.config import GradeConfig
from ...judge.source import Rows
from ...llm.resources import Resources
from ...options import takes
from ...runs.batch_files import Export, write_requests
from ...runs.batching import run_batched
from ...runs.loop import QUIET
from .asking import AskingSession
from .config import PredictConfig, TestedModelSpec
from .session import PredictionRun, session_of


def predict_batched(session: AskingSession[PredictionRun]) -> PredictionRun:
    """Carries out a session through the provider's batch interface; see ``runs.batching``."""
    return run_batched(session, _only_model(session, "--batch"), "--model")


@takes(graded=GradeConfig, tested=PredictConfig)
def batch_export(rows: Rows, *, options: Mapping[str, Any]) -> Export:  # noqa: D417
    """Writes a batch file of every request without a reply in the cache.

    Export, have the file answered, import; the same ``grade``, or ``predict`` if ``model`` is set,
    then has every reply in its cache. The model must have the same settings and address then.

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
    config, out = PredictConfig.of(options, out=None), out_of(options)
    session = session_of(rows, config, Resources(), QUIET)
    spec = _only_model(session, "batch export")
    return write_requests(out, session, spec, cache=config.cache, overwrite=config.overwrite)


def _only_model(session: AskingSession[PredictionRun], what: str) -> TestedModelSpec:
    spec, *others = session.specs
    if others:
        raise OptionError(f"{what}: expected one --model, got {len(session.specs)}")
    return spec

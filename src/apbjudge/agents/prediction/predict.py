"""The Python API: one call from cases to predictions."""

from __future__ import annotations

from os import PathLike

from ...llm import Client
from ...options import takes
from ...runs.loop import QUIET, Events
from .asking import AskingSession, carry_out_alone, resources_of
from .batching import predict_batched
from .config import PredictConfig
from .session import PredictionRun, session_of
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

    Without ``out`` everything stays in memory. A case without an answer is a failure, which the
    same call with the same folder tries again; every answer is a prediction, even a refusal, a
    reply that was cut off or a reply without any text.

    Args:
        cases: A JSONL file, the result of ``build``, or cases as dicts: rows as for ``grade``,
            without a response.
        config: The settings; options take precedence.
        client: Answers requests in place of the network; its replies are cached only if ``cache``
            is set.
        events: Callbacks during the run.

    Raises:
        OptionError: If a setting, a prompt set or a model's access is unusable, or ``out`` holds
            another run.
        InputError: If the file of cases as a whole is unusable.
    """
    resources = resources_of(config, client, events)
    return predict_in(session_of(cases, config, resources, events), batch=config.batch)


def predict_in(session: AskingSession[PredictionRun], *, batch: bool) -> PredictionRun:
    """Carries out a session, through the provider's batch interface if asked to."""
    if session.source.reading.text:
        session.events.note(f"{session.source.name}: {session.source.reading.text}")
    return carry_out_alone(session, predict_batched if batch else None)

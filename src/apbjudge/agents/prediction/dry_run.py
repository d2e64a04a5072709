"""The dry run: estimates of calls, tokens, cost and time of predictions. Nothing is asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...errors import RowError
from ...judge.dry_run import Forecast, forecast_of, open_known_cache
from ...llm.base import ScriptedClient, cache_key
from ...llm.resources import can_see, known_place
from ...protocols.images import characters
from ...reports.run_settings import sampling_words
from ...runs.rows import BadRow
from .asking import AskingSession
from .config import TestedModelSpec
from .source import CaseSource
from .worker import AskedModel, PredictWorker


def forecast_predictions(session: AskingSession[Any], *, batched: bool = False) -> list[Forecast]:
    """Estimates the cost of a session by tested model; makes no call and writes nothing.

    Rows that can't be read are counted for every model.

    Args:
        session: The session.
        batched: True if the calls go through the provider's batch interface.

    Raises:
        OtherRunError: If the folder holds another run, unless it is to be replaced.
        OptionError: If it holds files that belong to no run.
        InputError: If a file can't be read.
    """
    source = session.source
    is_finished = session.finished_before()
    client = ScriptedClient(lambda request: "")  # prompts are only rendered here
    asked_models = [AskedModel(spec, client, can_see(spec)) for spec in session.specs]
    worker = session.worker(asked_models)
    if not (isinstance(worker, PredictWorker) and isinstance(source, CaseSource)):
        raise TypeError(f"session: expected one of predictions, got one of {session.run.__name__}")
    counts: list[Counter[str]] = [Counter() for _ in asked_models]
    places = [known_place(spec, session.resources.cache) for spec in session.specs]
    with open_known_cache(session.resources) as cache:
        for entry in source:
            if isinstance(entry, BadRow):
                for count in counts:
                    count.update(rows=1, bad_rows=1)
                continue
            count, asked_model = counts[entry.at], asked_models[entry.at]
            count["rows"] += 1
            try:
                fields = worker.job(entry).fields
            except RowError:
                count["bad_rows"] += 1
                continue
            prompt = entry.case.prompt(worker.prompts)
            messages = prompt.messages()
            length = characters(messages)
            count["longest"] = max(count["longest"], length)
            if is_finished(fields):
                count["finished"] += 1
                continue
            request = asked_model.request(messages, entry.sample, entry.case_id)
            key = cache_key(request.key(places[entry.at]), "text")
            if cache is not None and cache.get(key) is not None:
                count["reused"] += 1
                continue
            count.update(calls=1, pictures=len(prompt.images), characters=length)
    notes = tuple(filter(None, (source.reading.text, *source.gaps.lines())))
    return [
        forecast_of(
            asked_model.spec,
            count,
            session.resources.cache,
            batched=batched,
            settings=_in_words(asked_model.spec),
            notes=notes,
        )
        for asked_model, count in zip(asked_models, counts, strict=True)
    ]


def _in_words(spec: TestedModelSpec) -> str:
    """The sent settings, such as ``temperature 0, seed none sent``."""
    words = sampling_words(spec.model_dump())
    return ", ".join(f"{name.lower()} {text}" for name, text in words.items())

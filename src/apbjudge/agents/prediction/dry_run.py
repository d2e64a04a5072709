"""The dry run: what predictions would take in calls, tokens, money and time. Nothing is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ...errors import OtherRunError, RowError
from ...judge.dry_run import Forecast, known_rates, seconds_of
from ...llm.base import ScriptedClient, cache_key
from ...llm.cache import DATABASE, ReplyCache
from ...llm.resources import REPLIES, Resources, can_see, known_place, prices_of
from ...protocols.images import characters
from ...records import Usage
from ...runs.folder import finished_in
from ...runs.rows import BadRow
from .config import PlannerSpec
from .session import PredictionSession
from .source import CaseSource
from .worker import PREDICTION_RECORDS, Planner, PredictWorker


def forecast_predictions(session: PredictionSession) -> list[Forecast]:
    """Estimates what a session takes, by tested model; no call is made and nothing is written.

    Rows that can't be read are counted for every model.

    Raises:
        OtherRunError: If the folder holds another run, unless it is to be replaced.
        OptionError: If it holds files that are no run's.
        InputError: If a file can't be read.
    """
    source = session.source
    if not isinstance(source, CaseSource):
        raise TypeError(f"source: expected cases, got {type(source).__name__}")
    try:
        is_finished = finished_in(session.folder, PREDICTION_RECORDS, session.identity, source)
    except OtherRunError:
        if not session.overwrite:
            raise
        is_finished = None
    nobody = ScriptedClient(lambda request: "")  # prompts are only rendered here
    planners = [Planner(spec, nobody, can_see(spec)) for spec in session.specs]
    worker = PredictWorker(planners, session.prompts, full=False)
    counts: list[Counter[str]] = [Counter() for _ in planners]
    places = [known_place(spec, session.resources.cache) for spec in session.specs]
    with open_known_cache(session.resources) as cache:
        for entry in source:
            if isinstance(entry, BadRow):
                for count in counts:
                    count.update(rows=1, bad_rows=1)
                continue
            count, planner = counts[entry.at], planners[entry.at]
            count["rows"] += 1
            try:
                fields = worker.job(entry).fields
            except RowError:
                count["bad_rows"] += 1
                continue
            prompt = entry.case.prompt(session.prompts)
            messages = prompt.messages()
            length = characters(messages)
            count["longest"] = max(count["longest"], length)
            if is_finished is not None and is_finished(fields):
                count["finished"] += 1
                continue
            request = planner.request(messages, entry.sample, entry.case_id)
            key = cache_key(request.key(places[entry.at]), "text")
            if cache is not None and cache.get(key) is not None:
                count["reused"] += 1
                continue
            count.update(calls=1, pictures=len(prompt.images), characters=length)
    notes = {"notes": tuple(filter(None, (source.reading.text, *source.gaps.lines())))}
    return [
        forecast_of(planner.spec, count, session.resources.cache).model_copy(update=notes)
        for planner, count in zip(planners, counts, strict=True)
    ]


@contextmanager
def open_known_cache(resources: Resources) -> Generator[ReplyCache | None]:
    """The reply cache where there is one already; none is created."""
    folder = resources.cache
    has_cache = folder is not None and (folder / REPLIES / DATABASE).exists()
    cache = resources.open_cache() if has_cache else None
    with closing(cache) if cache else nullcontext():
        yield cache


def forecast_of(spec: PlannerSpec, count: Counter[str], cache: Path | None) -> Forecast:
    """What calls take, of their counts.

    Args:
        spec: The model.
        count: Fields of ``Forecast``, ``characters`` of all prompts and of the ``longest``.
        cache: Folder where earlier runs left what they measured; None without.
    """
    characters, longest = count["characters"], count["longest"]
    counts: dict[str, Any] = {n: v for n, v in count.items() if n in Forecast.model_fields}
    rates, calls = known_rates(spec, cache), count["calls"]
    prompt_tokens = round(characters * rates.tokens_per_character)
    reply_tokens = round(calls * rates.reply_tokens)
    usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=reply_tokens)
    return Forecast(
        judge=spec.model,
        most_calls=calls,
        prompt_tokens=prompt_tokens,
        reply_tokens=reply_tokens,
        cost_usd=prices_of(spec).cost_usd(usage) if calls else 0.0,
        seconds=seconds_of(spec, calls, prompt_tokens + reply_tokens, rates.latency_s),
        longest_prompt_tokens=round(longest * rates.tokens_per_character),
        max_reply_tokens=spec.max_reply_tokens,
        rates=rates,
        **counts,
    )

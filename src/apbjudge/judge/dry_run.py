"""The dry run: calls, tokens, cost and time of a run, estimated without any call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from statistics import fmean
from typing import Any

from ..config import STATIC
from ..errors import OptionError, RowError
from ..llm.base import cache_key
from ..llm.cache import ReplyCache
from ..llm.endpoint_cache import EndpointCache
from ..llm.endpoint_checks import context_check
from ..llm.model_spec import ModelSpec
from ..llm.model_table import context_tokens as table_context
from ..llm.resources import (
    Resources,
    cache_folder,
    has_replies,
    known_format,
    known_place,
    prices_of,
)
from ..protocols.images import characters
from ..records import Record, Usage
from ..records.checks import Check, checks_text
from ..records.run_folder import MissingPredictions, predictions_of
from ..runs.batching import batch_api
from ..runs.session import folder_of
from .config import GradeConfig, JudgeSpec
from .ensembles import judge_folder
from .grade import check_settings, with_cases
from .llm_judge import make_judge
from .session import RunConfig
from .source import JudgeTask, Rows, source_of
from .static import StaticJudge
from .summary import unseen_lines
from .trajectory_source import is_log, trajectories_of
from .worker import record_fields

TOKENS_PER_CHARACTER = 0.25
TOKENS_PER_REPLY = 400.0


class Rates(Record):
    """The rates by which tokens and time are estimated.

    Attributes:
        tokens_per_character: Tokens of a prompt by its length.
        reply_tokens: Tokens of a reply.
        latency_s: Seconds of a call, None when no run has measured it.
        context_tokens: The longest prompt, or prompt with reply; None when not known.
        is_total: True if the reply has to fit into the context too.
        measured: Those of the first three that come from earlier runs.
    """

    tokens_per_character: float = TOKENS_PER_CHARACTER
    reply_tokens: float = TOKENS_PER_REPLY
    latency_s: float | None = None
    context_tokens: int | None = None
    is_total: bool = False
    measured: tuple[str, ...] = ()


class Forecast(Record):
    """The calls, tokens, money and time of a run if every reply is usable and no call fails.

    Attributes:
        judge: The model.
        settings: Settings sent with each request, in words; empty where others print them.
        bad_rows: Rows that can't be used.
        missing: Cases without a prediction that count as not correct, without a call.
        missing_predictions: The cases without a prediction, whether they count or not; None where
            nothing says which cases there are.
        finished: Rows with a record in the run's folder.
        notes: Empty fields, unread fields, and files that the judge is not shown.
        pictures: Pictures that would be sent; their tokens are not known and not counted.
        reused: First replies that are in the reply cache.
        most_calls: Calls if every reply had to be asked for again as often as ``max_reasks``
            allows; repeats of calls that fail come on top.
        cost_usd: Price of the tokens, as if no prefix cache helped; None when prices are not known.
        batched: True if the calls go through the provider's batch interface, at its prices.
        seconds: Duration, None if unknown; only the minimum by ``rpm`` and ``tpm``
            when no latency is known.
        longest_prompt_tokens: The longest prompt of a row that is not finished.
    """

    judge: str
    settings: str = ""
    rows: int = 0
    bad_rows: int = 0
    missing: int = 0
    missing_predictions: MissingPredictions | None = None
    finished: int = 0
    notes: tuple[str, ...] = ()
    pictures: int = 0
    reused: int = 0
    calls: int = 0
    most_calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost_usd: float | None = 0.0
    batched: bool = False
    seconds: float | None = 0.0
    longest_prompt_tokens: int = 0
    max_reply_tokens: int = 0
    rates: Rates = Rates()

    @property
    def fits(self) -> bool | None:
        """True if the longest prompt fits the context; None when the context is not known."""
        rates = self.rates
        if rates.context_tokens is None:
            return None
        reply = self.max_reply_tokens if rates.is_total else 0
        return self.longest_prompt_tokens + reply <= rates.context_tokens


def forecast(rows: Rows, config: GradeConfig | None = None, **settings: Any) -> Forecast:
    """Estimates the run of one judge; makes no call and writes nothing.

    The fields of ``GradeConfig`` may be given one by one. ``out`` may hold finished judgements.
    """
    config = config or GradeConfig(**settings)
    with folder_of(config.out) as folder:
        run = RunConfig(
            folder=folder,
            source=source_of(rows, config),
            spec=config.judge[0],
            resources=Resources(
                cache=cache_folder(wanted=config.cache, client=None), cache_kind=config.cache_kind
            ),
            overwrite=config.overwrite,
        )
        return forecast_runs([run], batched=config.batch)


def forecasts(rows: Path, config: GradeConfig) -> Iterator[Forecast]:
    """Estimates each judge of a run, and last the strong one of a cascade.

    Raises:
        OptionError: If settings don't go together, or the rows are a log.
    """
    rows = predictions_of(rows)
    config = with_cases(rows, config)
    if trajectories_of(rows, config) is not None or is_log(rows, config):
        raise OptionError(
            "--dry-run: expected predictions, got a log (apbjudge convert --to cases)"
        )
    check_settings(config)
    if config.batch:
        batch_api(config.judge[0], Resources(limits=config))
    judges = [*config.judge, *([config.escalate] if config.escalate else [])]
    for spec in judges:
        folder = config.out
        if folder is not None and len(judges) > 1:
            folder = judge_folder(folder, spec)
        yield forecast(rows, config.model_copy(update={"judge": (spec,), "out": folder}))


def forecast_runs(
    runs: Sequence[RunConfig], *, is_input: bool = True, batched: bool = False
) -> Forecast:
    """Estimates several runs at one endpoint together.

    Model, prices and limits are those of the first.

    Args:
        runs: The runs.
        is_input: True if the rows are those of the files that the runs' folders must be of.
        batched: True if the calls go through the provider's batch interface.
    """
    spec, cache = runs[0].spec, runs[0].resources.cache
    # refuses others before any work
    finished = [run.finished_before(compares_input=is_input) for run in runs]
    count, unseen = Counter[str](), Counter[str]()
    for run, is_finished in zip(runs, finished, strict=True):
        unseen += _count(count, run, is_finished)
    source = runs[0].tasks
    gaps = filter(None, (source.reading.text, *source.gaps.lines())) if is_input else ()
    notes = (*gaps, *unseen_lines(unseen))
    more = {"missing_predictions": source.missing, "notes": notes}
    return forecast_of(spec, count, cache, batched=batched, **more)


def forecast_of(
    spec: ModelSpec, count: Counter[str], cache: Path | None, *, batched: bool = False, **more: Any
) -> Forecast:
    """Estimates tokens, cost and time of calls from their counts.

    Args:
        spec: The model.
        count: Fields of ``Forecast``, ``characters`` of all prompts and of the ``longest``.
        cache: Folder with measurements of earlier runs; None without one.
        batched: True if the calls go through the provider's batch interface.
        **more: Further fields of the forecast.
    """
    more |= {name: n for name, n in count.items() if name in Forecast.model_fields}
    if spec.model == STATIC:
        return Forecast(judge=STATIC, **more)
    calls, rates = count["calls"], known_rates(spec, cache)
    prompt_tokens = round(count["characters"] * rates.tokens_per_character)
    reply_tokens = round(calls * rates.reply_tokens)
    usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=reply_tokens)
    reasks = spec.max_reasks if isinstance(spec, JudgeSpec) else 0
    return Forecast(
        judge=spec.model,
        most_calls=calls + (calls + count["reused"]) * reasks,
        prompt_tokens=prompt_tokens,
        reply_tokens=reply_tokens,
        cost_usd=prices_of(spec, batched=batched).cost_usd(usage) if calls else 0.0,
        batched=batched,
        seconds=seconds_of(spec, calls, prompt_tokens + reply_tokens, rates.latency_s),
        longest_prompt_tokens=round(count["longest"] * rates.tokens_per_character),
        max_reply_tokens=spec.max_reply_tokens,
        rates=rates,
        **more,
    )


@contextmanager
def open_known_cache(resources: Resources) -> Generator[ReplyCache | None]:
    """The reply cache if it exists; none is created."""
    folder = resources.cache
    has_cache = folder is not None and has_replies(folder, resources.cache_kind)
    cache = resources.open_cache() if has_cache else None
    with closing(cache) if cache else nullcontext():
        yield cache


def seconds_of(spec: ModelSpec, calls: int, tokens: int, latency_s: float | None) -> float | None:
    """The longest of the times by latency, calls per minute and tokens per minute."""
    if not calls:
        return 0.0
    each = spec.concurrency_per_endpoint
    at_once = each * len(spec.addresses) if each else spec.max_concurrency
    rounds = max(1.0, calls / at_once)
    demands = [
        rounds * latency_s if latency_s is not None else None,
        60 * calls / spec.rpm if spec.rpm else None,
        60 * tokens / spec.tpm if spec.tpm else None,
    ]
    return max((seconds for seconds in demands if seconds is not None), default=None)


def known_rates(spec: ModelSpec, folder: Path | None) -> Rates:
    """The rates that earlier runs and check-ups measured of the endpoints, from the caches.

    Rates of several replicas are averaged, and the shortest context counts.
    """
    endpoints = EndpointCache(folder)
    facts = [endpoints.get(spec.model, address) for address in spec.addresses]

    def known(name: str) -> list[float]:
        values = [fact.get(name) for fact in facts]
        return [float(v) for v in values if isinstance(v, int | float) and v > 0]

    names = ("tokens_per_character", "reply_tokens", "latency_s")
    measured = {name: fmean(values) for name in names if (values := known(name))}
    served = int(min(known("context_tokens"), default=0))
    return Rates(
        **measured,
        context_tokens=served or table_context(spec.model),
        is_total=bool(served),
        measured=tuple(measured),
    )


def _count(
    count: Counter[str], run: RunConfig, is_finished: Callable[[Mapping[str, Any]], bool]
) -> Counter[str]:
    """Reads the rows once and adds them; memory stays at one row.

    Returns:
        The rows by what of their files the judge is not shown, see ``unseen_of``.
    """
    spec, folder = run.spec, run.resources.cache
    static = StaticJudge()
    model = None if spec.is_static else make_judge(spec, run.source.roots, Resources())
    place, form = known_place(spec, folder), known_format(spec, spec.addresses[0], folder)
    with open_known_cache(run.resources) as cache:
        for entry in run.tasks:
            count["rows"] += 1
            if isinstance(entry, JudgeTask) and entry.missing:
                count["missing"] += 1
                continue
            try:
                if not isinstance(entry, JudgeTask):
                    raise entry.error
                if model and entry.is_silent:
                    model.job_of(entry)
                    continue
                prompt = model.prompt(entry) if model else None
            except RowError:
                count["bad_rows"] += 1
                continue
            if model is None or prompt is None:
                count["finished"] += is_finished(record_fields(entry, static.fingerprint(entry)))
            elif is_finished(record_fields(entry, model.fingerprint(entry, prompt))):
                count["finished"] += 1
            else:
                requests = model.requests(entry, prompt) if cache else []
                keys = [cache_key(each.key(place), each.format_at(form)) for each in requests]
                reused = sum(cache.get(key) is not None for key in keys) if cache else 0
                calls = spec.samples - reused
                length = characters(prompt.messages())
                count["calls"] += calls
                count["reused"] += reused
                count["pictures"] += calls * len(prompt.files.images)
                count["characters"] += calls * length
                count["longest"] = max(count["longest"], length)
    return model.unseen if model else Counter()


# Text ---------------------------------------------------------------------------------------------


def forecast_text(forecast: Forecast) -> str:
    """A forecast as aligned lines, each with its line end."""
    return checks_text(_checks(forecast))


def _checks(forecast: Forecast) -> Iterator[Check]:
    """The needs of a run, each as a check; unclear if it is unknown or needs a look."""
    f = forecast
    n_open = f.rows - f.bad_rows - f.finished - f.missing
    rows = f"{f.rows:,}: {n_open:,} to do, {f.finished:,} finished, {f.bad_rows:,} bad"
    if f.missing:
        rows += f", {f.missing:,} without a prediction"
    yield _check("rows", rows, is_clear=not f.bad_rows)
    if f.settings:
        yield _check("settings", f.settings)
    if f.judge == STATIC:
        yield _check("calls", "none: the static judge asks no model")
    else:
        calls = f"{f.calls:,}, and {f.reused:,} replies from the cache"
        if f.most_calls != f.calls:
            calls += f"; at most {f.most_calls:,} if replies have to be asked for again"
        yield _check("calls", calls)
        tokens = f"about {f.prompt_tokens:,} sent and {f.reply_tokens:,} received"
        if f.pictures:
            tokens += f", without those of {f.pictures:,} pictures"
        yield _check("tokens", tokens, is_clear=not f.pictures)
        cost = f"about {f.cost_usd or 0:.4f} USD" if f.calls else "nothing"
        if f.cost_usd is None:
            cost = "unknown: set price_input and price_output"
        yield _check("cost", cost, is_clear=f.cost_usd is not None)
        yield _check("time", _time_text(f), is_clear=f.batched or f.seconds is not None)
        yield with_longest(f.rates.context_tokens, f)
        yield _check("based on", _rates_text(f.rates))
    for note in f.notes:
        yield _check("input", note, is_clear=False)


def _check(name: str, detail: str, *, is_clear: bool = True) -> Check:
    return Check(name=name, outcome="passed" if is_clear else "unclear", detail=detail)


def with_longest(context_tokens: int | None, forecast: Forecast) -> Check:
    """The check of a context with the longest prompt, and a remark if it does not fit."""
    text = f"longest prompt about {forecast.longest_prompt_tokens:,}"
    if forecast.rates.is_total:
        text += f", reply up to {forecast.max_reply_tokens:,}"
    if forecast.fits is not None:
        text += f": {'fits' if forecast.fits else 'DOES NOT FIT'}"
    return context_check(context_tokens, text, fits=forecast.fits)


def _time_text(forecast: Forecast) -> str:
    seconds = forecast.seconds
    if forecast.batched and forecast.calls:
        return "about a day at most for each round of batches"
    if seconds is None:
        return "unknown: no run has measured this endpoint"
    if not forecast.calls:
        return "none"
    bound = "about" if forecast.rates.latency_s is not None else "at least"
    if seconds < 60:
        return f"{bound} {seconds:.1f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{bound} {hours} h {minutes:02} min" if hours else f"{bound} {minutes} min"


def _rates_text(rates: Rates) -> str:
    texts = {
        "tokens_per_character": f"{rates.tokens_per_character:.3g} tokens a character",
        "reply_tokens": f"{rates.reply_tokens:.4g} tokens a reply",
    }
    if rates.latency_s is not None:
        texts["latency_s"] = f"{rates.latency_s:.3g} s a call"
    return ", ".join(
        text if name in rates.measured else f"{text} (assumed)" for name, text in texts.items()
    )

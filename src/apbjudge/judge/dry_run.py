"""The dry run: what a run would take in calls, tokens, money and time. Nothing is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import OtherRunError, RowError
from ..llm.base import Request, cache_key
from ..llm.cache import DATABASE, ReplyCache
from ..llm.endpoint_cache import EndpointCache
from ..llm.endpoint_checks import context_text
from ..llm.engine import place_of
from ..llm.model_table import context_tokens as table_context
from ..llm.resources import REPLIES, Resources, cache_folder, known_format, prices_of
from ..protocols import AUTO
from ..protocols.prompts import Prompt
from ..records import Record, Usage
from ..rubrics import reply_model
from ..runs.folder import finished_in
from ..runs.rows import parse_shard
from . import STATIC, JudgeSpec, Source, StaticJudge, Task
from .resources import make_judge
from .session import Rows, run_identity, source_of
from .worker import JUDGEMENT_RECORDS

TOKENS_PER_CHARACTER = 0.25
TOKENS_PER_REPLY = 400.0


class Rates(Record):
    """The rates by which tokens and time are estimated.

    Attributes:
        tokens_per_character: Tokens of a prompt by its length.
        reply_tokens: Tokens of a reply.
        latency_s: Seconds of a call, None when no run has measured it.
        context_tokens: The longest prompt, or prompt with reply; None when not known.
        is_total: Whether the reply has to fit into the context too.
        measured: Which of the first three come from earlier runs.
    """

    tokens_per_character: float = TOKENS_PER_CHARACTER
    reply_tokens: float = TOKENS_PER_REPLY
    latency_s: float | None = None
    context_tokens: int | None = None
    is_total: bool = False
    measured: tuple[str, ...] = ()


class Forecast(Record):
    """What a run takes if every reply is usable and no call fails.

    Attributes:
        judge: The judge's model.
        rows: Rows of the input.
        bad_rows: Rows that can't be judged.
        finished: Rows whose judgement is already in the run's folder.
        pictures: Pictures that would be sent; their tokens are not known and not counted.
        reused: First replies that are in the reply cache.
        calls: Calls to be made.
        most_calls: Calls if every reply had to be asked for again as often as ``max_reasks``
            allows; repeats of calls that fail come on top.
        prompt_tokens: Tokens sent.
        reply_tokens: Tokens received.
        cost_usd: Their price, as if no prefix cache helped; None when prices are not known.
        seconds: How long it takes, None when not known; only what ``rpm`` and ``tpm`` demand
            when no latency is known.
        longest_prompt_tokens: The longest prompt of a row that is not finished.
        longest_prompt_characters: Likewise.
        max_reply_tokens: Limit of a reply.
        rates: The rates behind these estimates.
    """

    judge: str
    rows: int = 0
    bad_rows: int = 0
    finished: int = 0
    pictures: int = 0
    reused: int = 0
    calls: int = 0
    most_calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float | None = 0.0
    longest_prompt_tokens: int = 0
    longest_prompt_characters: int = 0
    max_reply_tokens: int = 0
    rates: Rates = Rates()

    @property
    def fits(self) -> bool | None:
        """Whether the longest prompt does; None when the context is not known."""
        rates = self.rates
        if rates.context_tokens is None:
            return None
        reply = self.max_reply_tokens if rates.is_total else 0
        return self.longest_prompt_tokens + reply <= rates.context_tokens


def forecast(
    rows: Rows,
    *,
    protocol: str = AUTO,
    judge: str | JudgeSpec,
    cases: str | Path | None = None,
    rubric: str | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    data_root: str | Path | None = None,
    cache: bool | Path | None = None,
    shard: str | None = None,
) -> Forecast:
    """Estimates what a run takes; no call is made and nothing is written.

    The options are those of ``grade``; the folder ``out`` may hold finished judgements.

    Raises:
        OptionError: If an option or the rubric is unusable, or ``out`` holds another run.
        InputError: If an input file as a whole is unusable.
    """
    spec = judge if isinstance(judge, JudgeSpec) else JudgeSpec(model=judge)
    part = parse_shard(shard) if shard is not None else None
    source = source_of(
        rows, protocol=protocol, rubric=rubric, cases=cases, data_root=data_root, shard=part
    )
    folder = cache_folder(wanted=cache, client=None)
    identity = run_identity(spec, protocol, source.rubric, part)
    return forecast_parts([Part(source, spec, out, identity, folder, overwrite=overwrite)])


@dataclass(frozen=True, slots=True)
class Part:
    """A run to be estimated, perhaps together with others.

    Attributes:
        source: The rows.
        spec: Who judges.
        out: The run's folder, which may hold finished judgements.
        identity: What must be equal for two sessions to be the same run.
        cache: Folder of the caches that replies may be in, or None.
        overwrite: Whether another run in ``out`` would be deleted.
        is_input: Whether the rows are those of a file that ``out`` must be of.
    """

    source: Source
    spec: JudgeSpec
    out: Path | None
    identity: dict[str, Any]
    cache: Path | None
    overwrite: bool = False
    is_input: bool = True


def forecast_parts(parts: Sequence[Part]) -> Forecast:
    """Estimates what several runs at one endpoint take together.

    Args:
        parts: The runs, at least one; model, prices and limits are those of the first.

    Raises:
        OptionError: If a folder holds another run.
        InputError: If an input file as a whole is unusable.
    """
    spec, cache = parts[0].spec, parts[0].cache
    finished = [_finished(part) for part in parts]  # refuses other runs before any work
    count = _Count()
    for part, is_finished in zip(parts, finished, strict=True):
        (_count_static if spec.is_static else _count)(count, part, is_finished)
    totals = {name: value for name, value in asdict(count).items() if name != "characters"}
    if spec.is_static:
        return Forecast(judge=STATIC, **totals)
    rates = known_rates(spec, cache)
    prompt_tokens = round(count.characters * rates.tokens_per_character)
    reply_tokens = round(count.calls * rates.reply_tokens)
    usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=reply_tokens)
    return Forecast(
        judge=spec.model,
        most_calls=count.calls + (count.calls + count.reused) * spec.max_reasks,
        prompt_tokens=prompt_tokens,
        reply_tokens=reply_tokens,
        cost_usd=prices_of(spec).cost_usd(usage) if count.calls else 0.0,
        seconds=_seconds(spec, count.calls, prompt_tokens + reply_tokens, rates.latency_s),
        longest_prompt_tokens=round(count.longest_prompt_characters * rates.tokens_per_character),
        max_reply_tokens=spec.max_reply_tokens,
        rates=rates,
        **totals,
    )


def _seconds(spec: JudgeSpec, calls: int, tokens: int, latency_s: float | None) -> float | None:
    """The longest of what latency, calls per minute and tokens per minute demand."""
    if not calls:
        return 0.0
    rounds = max(1.0, calls / spec.max_concurrency)
    demands = [
        rounds * latency_s if latency_s is not None else None,
        60 * calls / spec.rpm if spec.rpm else None,
        60 * tokens / spec.tpm if spec.tpm else None,
    ]
    return max((seconds for seconds in demands if seconds is not None), default=None)


def known_rates(spec: JudgeSpec, folder: Path | None) -> Rates:
    """The rates that earlier runs and check-ups measured of the endpoints.

    Args:
        spec: The judge; of several replicas rates are means, and the shortest context counts.
        folder: Folder of the caches, None for none.
    """
    endpoints = EndpointCache(folder)
    facts = [endpoints.get(spec.model, address) for address in spec.addresses]

    def known(name: str) -> list[float]:
        values = [fact.get(name) for fact in facts]
        return [float(v) for v in values if isinstance(v, int | float) and v > 0]

    measured = {
        name: sum(values) / len(values)
        for name in ("tokens_per_character", "reply_tokens", "latency_s")
        if (values := known(name))
    }
    served = int(min(known("context_tokens"), default=0))
    return Rates(
        **measured,
        context_tokens=served or table_context(spec.model),
        is_total=bool(served),
        measured=tuple(measured),
    )


@dataclass(slots=True)
class _Count:
    rows: int = 0
    bad_rows: int = 0
    finished: int = 0
    pictures: int = 0
    reused: int = 0
    calls: int = 0
    characters: int = 0
    longest_prompt_characters: int = 0

    def add(self, prompt: Prompt, *, calls: int, reused: int) -> None:
        """Counts an item that is to be judged."""
        joint = 0 if prompt.images else 2  # between case and prediction, where they are one text
        characters = len(prompt.system) + len(prompt.case) + joint + len(prompt.prediction)
        self.calls += calls
        self.reused += reused
        self.characters += calls * characters
        self.longest_prompt_characters = max(self.longest_prompt_characters, characters)
        self.pictures += calls * len(prompt.images)


_IsFinished = Callable[[Task, str], bool]
"""Whether the judgement of an item with a fingerprint is there."""


def _count_static(count: _Count, part: Part, is_finished: _IsFinished) -> None:
    judge = StaticJudge()
    for entry in part.source:
        count.rows += 1
        if isinstance(entry, Task):
            count.finished += is_finished(entry, judge.fingerprint(entry))
        else:
            count.bad_rows += 1


def _count(count: _Count, part: Part, is_finished: _IsFinished) -> None:
    """Reads the rows once and adds them; memory stays at one row."""
    spec, judge = part.spec, make_judge(part.spec, part.source.roots, Resources())
    place, database = place_of(spec.addresses), (part.cache or Path()) / REPLIES
    has_cache = part.cache is not None and (database / DATABASE).exists()  # none is created here
    cache = ReplyCache(database, warn=lambda _: None) if has_cache else None
    form = known_format(spec, spec.addresses[0], part.cache)
    with closing(cache) if cache else nullcontext():
        for entry in part.source:
            count.rows += 1
            try:
                prompt = judge.prompt(entry) if isinstance(entry, Task) else None
            except RowError:
                prompt = None
            if not isinstance(entry, Task) or prompt is None:
                count.bad_rows += 1
            elif is_finished(entry, judge.fingerprint(entry, prompt)):
                count.finished += 1
            else:
                keys = (
                    cache_key(request.key(place), request.format_at(form))
                    for request in _requests(spec, entry, prompt)
                )
                reused = sum(cache.get(key) is not None for key in keys) if cache else 0
                count.add(prompt, calls=spec.samples - reused, reused=reused)


def _finished(part: Part) -> _IsFinished:
    """The judgements in a run's folder that a further session would keep; only read."""
    if part.out is None:
        return lambda task, fingerprint: False
    try:
        source = part.source if part.is_input else None
        has_record = finished_in(part.out, JUDGEMENT_RECORDS, part.identity, source)
    except OtherRunError:
        if not part.overwrite:
            raise
        return lambda task, fingerprint: False

    def is_finished(task: Task, fingerprint: str) -> bool:
        item = task.item
        row = {"item_id": item.item_id, "tested_model": item.tested_model}
        return has_record(row | {"fingerprint": fingerprint})

    return is_finished


def _requests(spec: JudgeSpec, task: Task, prompt: Prompt) -> Iterator[Request]:
    """The first request of each sample, with all that its key is made of."""
    messages = prompt.messages()
    for sample in range(spec.samples):
        yield Request(
            model=spec.model,
            messages=messages,
            reply=reply_model(task.rubric),
            max_tokens=spec.max_reply_tokens,
            settings=spec.sampling(sample),
            logprobs=spec.logprobs,
            sample=sample,
        )


def forecast_text(forecast: Forecast) -> str:
    """A forecast as aligned lines, each with its line end."""
    f = forecast
    left = f.rows - f.bad_rows - f.finished
    lines = {"rows": f"{f.rows:,}: {left:,} to judge, {f.finished:,} finished, {f.bad_rows:,} bad"}
    if f.judge == STATIC:
        lines["calls"] = "none: the static judge asks no model"
    else:
        calls = f"{f.calls:,}, and {f.reused:,} replies from the cache"
        if f.most_calls != f.calls:
            calls += f"; at most {f.most_calls:,} if replies have to be asked for again"
        tokens = f"about {f.prompt_tokens:,} sent and {f.reply_tokens:,} received"
        if f.pictures:
            tokens += f", without those of {f.pictures:,} pictures"
        lines |= {
            "calls": calls,
            "tokens": tokens,
            "cost": _cost_text(f),
            "time": _time_text(f),
            "context": f"{context_text(f.rates.context_tokens)}; {longest_text(f)}",
            "based on": _rates_text(f.rates),
        }
    return "".join(f"{name:<10}{text}\n" for name, text in lines.items())


def _cost_text(forecast: Forecast) -> str:
    if forecast.cost_usd is None:
        return "unknown: set price_input and price_output"
    return f"about {forecast.cost_usd:.4f} USD" if forecast.calls else "nothing"


def _time_text(forecast: Forecast) -> str:
    seconds = forecast.seconds
    if seconds is None:
        return "unknown: no run has measured this endpoint"
    if not forecast.calls:
        return "none"
    bound, minutes = (
        "about" if forecast.rates.latency_s is not None else "at least",
        round(seconds / 60),
    )
    if seconds < 60:
        return f"{bound} {seconds:.1f} s"
    hours = f"{minutes // 60} h {minutes % 60:02} min"
    return f"{bound} {hours if minutes >= 60 else f'{minutes} min'}"


def longest_text(forecast: Forecast) -> str:
    """How long the longest prompt is, and whether it fits the context."""
    text = f"longest prompt about {forecast.longest_prompt_tokens:,}"
    if forecast.rates.is_total:
        text += f", reply up to {forecast.max_reply_tokens:,}"
    if forecast.fits is None:
        return text
    return f"{text}: {'fits' if forecast.fits else 'DOES NOT FIT'}"


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

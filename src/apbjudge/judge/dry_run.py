"""What a run will take, before anything is asked: calls, tokens, money and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import OtherRunError, RowError
from ..llm.base import Request
from ..llm.cache import DATABASE, ReplyCache
from ..llm.engine import place_of
from ..llm.memory import Memory
from ..llm.prices import Prices
from ..llm.probes import ContextFound
from ..llm.table import context_tokens as table_context
from ..protocols import AUTO
from ..protocols.prompts import Prompt
from ..records import Record, Usage
from ..rubrics import reply_model
from ..runs.folder import finished_in
from ..runs.rows import parse_shard
from . import STATIC, JudgeSpec, Source, StaticJudge, Task
from .llm_judge import LLMJudge
from .resources import REPLIES, Resources, cache_folder, make_judge, prices_of
from .session import Rows, run_identity, source_of
from .source import Entry
from .worker import JUDGEMENT_RECORDS

TOKENS_PER_CHARACTER = 0.25
TOKENS_PER_REPLY = 400.0


class Rates(Record):
    """What an endpoint's tokens and time are reckoned by.

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
    """What a run will take if every reply is usable and no call fails.

    Attributes:
        judge: The judge's model.
        rows: Rows of the input.
        bad_rows: Rows that can't be judged.
        finished: Rows whose judgement in the run's folder would be kept.
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
        rates: What all this is reckoned by.
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
    """Reckons what a run will take; no call is made and nothing is written.

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
    """A run of which, perhaps with others, is reckoned what it takes.

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
    """Reckons what several runs at one endpoint will take together.

    Args:
        parts: The runs, at least one; model, prices and limits are those of the first.

    Raises:
        OptionError: If a folder holds another run.
        InputError: If an input file as a whole is unusable.
    """
    spec, cache = parts[0].spec, parts[0].cache
    done = list(map(_done, parts))
    if spec.is_static:
        return _static(parts, done)
    prices = prices_of(spec)
    count = _Count()
    for part, finished in zip(parts, done, strict=True):
        _count(count, part.source, part.spec, finished, part.cache)
    return _reckoned(spec, count, known_rates(spec, cache), prices)


def _reckoned(spec: JudgeSpec, count: _Count, rates: Rates, prices: Prices) -> Forecast:
    prompt_tokens = round(count.characters * rates.tokens_per_character)
    reply_tokens = round(count.calls * rates.reply_tokens)
    usage = Usage(prompt_tokens=prompt_tokens, completion_tokens=reply_tokens)
    return Forecast(
        judge=spec.model,
        most_calls=count.calls + (count.calls + count.reused) * spec.max_reasks,
        prompt_tokens=prompt_tokens,
        reply_tokens=reply_tokens,
        cost_usd=prices.cost_usd(usage) if count.calls else 0.0,
        seconds=_seconds(spec, count.calls, prompt_tokens + reply_tokens, rates.latency_s),
        longest_prompt_tokens=round(count.longest_prompt_characters * rates.tokens_per_character),
        max_reply_tokens=spec.max_reply_tokens,
        rates=rates,
        **{k: v for k, v in asdict(count).items() if k != "characters"},
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
    """What earlier runs and check-ups, remembered in a folder, have learnt of the endpoints."""
    memory = Memory(folder)
    facts = [memory.recall(spec.model, address) for address in spec.api_base or (None,)]

    def known(name: str) -> list[float]:
        values = [fact.get(name) for fact in facts]
        return [float(v) for v in values if isinstance(v, int | float) and v > 0]

    resources = {
        name: sum(found) / len(found)
        for name in ("tokens_per_character", "reply_tokens", "latency_s")
        if (found := known(name))
    }
    served = int(min(known("context_tokens"), default=0))
    return Rates(
        **resources,
        context_tokens=served or table_context(spec.model),
        is_total=bool(served),
        measured=tuple(resources),
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


def _count(
    count: _Count, source: Source, spec: JudgeSpec, done: _IsDone, folder: Path | None
) -> None:
    """Goes through the rows once and adds them; memory stays at one row."""
    judge = make_judge(spec, source.roots, Resources())  # renders and hashes; it is never asked
    cache, place = _opened(folder), place_of(spec.api_base or (None,))
    with closing(cache) if cache else nullcontext():
        for entry in source:
            count.rows += 1
            prompt = _prompt(judge, entry)
            if not isinstance(entry, Task) or prompt is None:
                count.bad_rows += 1
            elif done(entry, judge.fingerprint(entry, prompt)):
                count.finished += 1
            else:
                keys = (request.key(place) for request in _requests(spec, entry, prompt))
                reused = sum(cache.get(key) is not None for key in keys) if cache else 0
                count.add(prompt, calls=spec.samples - reused, reused=reused)


def _prompt(judge: LLMJudge, entry: Entry) -> Prompt | None:
    """What would be sent for a row, None where it can't be judged."""
    try:
        return judge.prompt(entry) if isinstance(entry, Task) else None
    except RowError:
        return None


def _static(parts: Sequence[Part], done: Sequence[_IsDone]) -> Forecast:
    judge = StaticJudge()
    rows = bad_rows = finished = 0
    for part, is_done in zip(parts, done, strict=True):
        for entry in part.source:
            rows += 1
            if isinstance(entry, Task):
                finished += is_done(entry, judge.fingerprint(entry))
            else:
                bad_rows += 1
    return Forecast(judge=judge.name, rows=rows, bad_rows=bad_rows, finished=finished)


_IsDone = Callable[[Task, str], bool]
"""Whether the judgement of an item with a fingerprint is there."""


def _done(part: Part) -> _IsDone:
    """The judgements of a run's folder that a further session would keep; only read."""
    if part.out is None:
        return lambda task, fingerprint: False
    source = part.source if part.is_input else None
    try:
        is_finished = finished_in(part.out, JUDGEMENT_RECORDS, part.identity, source)
    except OtherRunError:
        if not part.overwrite:
            raise
        return lambda task, fingerprint: False

    def is_done(task: Task, fingerprint: str) -> bool:
        item = task.item
        answer = {"item_id": item.item_id, "tested_model": item.tested_model}
        return is_finished(answer | {"fingerprint": fingerprint})

    return is_done


def _opened(folder: Path | None) -> ReplyCache | None:
    """The reply cache, when there is one; a new one is not made."""
    if folder is None or not (folder / REPLIES / DATABASE).exists():
        return None
    return ReplyCache(folder / REPLIES, warn=lambda _: None)


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


def forecast_text(found: Forecast) -> str:
    """A forecast as aligned lines, each with its line end."""
    lines = {"rows": _rows_text(found)}
    if found.judge == STATIC:
        lines["calls"] = "none: the static judge asks no model"
    else:
        context = ContextFound(tokens=found.rates.context_tokens)
        lines |= {
            "calls": _calls_text(found),
            "tokens": f"about {found.prompt_tokens:,} sent and {found.reply_tokens:,} received"
            + (f", without those of {found.pictures:,} pictures" if found.pictures else ""),
            "cost": _cost_text(found),
            "time": _time_text(found),
            "context": f"{context.text}; {longest_text(found)}",
            "reckoned": _rates_text(found.rates),
        }
    return "".join(f"{name:<10}{text}\n" for name, text in lines.items())


def _rows_text(found: Forecast) -> str:
    left = found.rows - found.bad_rows - found.finished
    return f"{found.rows:,}: {left:,} to judge, {found.finished:,} finished, {found.bad_rows:,} bad"


def _calls_text(found: Forecast) -> str:
    text = f"{found.calls:,}, and {found.reused:,} replies from the cache"
    if found.most_calls == found.calls:
        return text
    return f"{text}; at most {found.most_calls:,} if replies have to be asked for again"


def _cost_text(found: Forecast) -> str:
    if found.cost_usd is None:
        return "not known: give price_input and price_output"
    return f"about {found.cost_usd:.4f} USD" if found.calls else "nothing"


def _time_text(found: Forecast) -> str:
    if found.seconds is None:
        return "not known: no run has measured this endpoint"
    if not found.calls:
        return "no time"
    bound = "about" if found.rates.latency_s is not None else "at least"
    return f"{bound} {_duration(found.seconds)}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def longest_text(found: Forecast) -> str:
    """How long the longest prompt is, and whether it fits the context."""
    text = f"longest prompt about {found.longest_prompt_tokens:,}"
    if found.rates.is_total:
        text += f", reply up to {found.max_reply_tokens:,}"
    if found.fits is None:
        return text
    return f"{text}: {'fits' if found.fits else 'DOES NOT FIT'}"


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

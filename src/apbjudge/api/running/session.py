"""One session of one judge in one folder: from rows to judgements, figures and a manifest."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from ...errors import AccessError, InputError, OptionError
from ...jsonl import write_atomically
from ...judge import UPPER_BOUND, Events, JudgeSpec, Progress, Source, StaticJudge, Store
from ...judge import run as run_judge
from ...judge.llm_judge import LLMJudge
from ...judge.static import STATIC_VERSION
from ...judge.store import JUDGEMENTS
from ...protocols import AUTO, get_protocol
from ...protocols.prompts import template_digest
from ...records import Unscored, Verdict, read_judgement
from ...reports import Summary, summarize
from ...rubrics import Rubric, load_rubric
from ...version import VERSION
from .engines import Means, make_judge, transport_of
from .loops import block_on

Rows = str | Path | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run.

    Attributes:
        folder: Where its files are; None when it was kept in memory.
        summary: The figures.
        manifest: Versions, hashes, settings, counts.
        progress: What this session did.
        rows: The judgements as JSON rows, when kept in memory.
        text: What several judges differ in, fit for a terminal; empty for one judge.
    """

    folder: Path | None
    summary: Summary
    manifest: dict[str, Any]
    progress: Progress
    rows: tuple[dict[str, Any], ...] = ()
    text: str = ""

    @property
    def judgements(self) -> Iterator[Verdict | Unscored]:
        """Every judgement, in the order of finishing."""
        if self.folder is None:
            yield from map(read_judgement, self.rows)
            return
        with (self.folder / JUDGEMENTS).open("rb") as file:
            yield from (read_judgement(orjson.loads(line)) for line in file)

    @property
    def unscored_fraction(self) -> float:
        """Share of rows without a verdict, 0 to 1."""
        totals = self.summary.totals
        return sum(totals.unscored.values()) / totals.rows if totals.rows else 0.0


def own_rubric(ref: str | None, protocol: str) -> Rubric | None:
    """The user's own rubric, None for each protocol's default.

    Raises:
        OptionError: If it can't be read or can't serve the protocol.
    """
    rubric = load_rubric(ref) if ref else None
    if protocol != AUTO:
        chosen = get_protocol(protocol)
        if rubric is not None:
            chosen.check_rubric(rubric)
    return rubric


def run_identity(spec: JudgeSpec, protocol: str, rubric: Rubric | None) -> dict[str, Any]:
    """What must be equal for two sessions to be the same run."""
    return {
        "protocol": protocol,
        "judge": spec.scoring,
        "judge_version": STATIC_VERSION if spec.is_static else None,
        "rubric": [rubric.ref, rubric.digest] if rubric else None,
        "templates": None if spec.is_static else template_digest("judge@1"),
    }


def default_folder(
    predictions: Path, cases: Path | None, identity: Mapping[str, Any], slug: str
) -> Path:
    """The folder a run gets when none is named: the same command finds it again."""
    given = (path for path in (predictions, cases) if path is not None)
    paths = [os.fsencode(path.resolve()).hex() for path in given]
    digest = sha256(orjson.dumps([identity, paths], option=orjson.OPT_SORT_KEYS)).hexdigest()
    return Path("runs") / f"{predictions.stem}-{identity['protocol']}-{slug}-{digest[:6]}"


@dataclass(frozen=True, slots=True)
class Order:
    """A run as ordered.

    Attributes:
        source: What to judge.
        spec: Who judges.
        identity: What must be equal for two sessions to be the same run.
        by: Fields to break results down by.
        events: Who watches.
        means: What is at hand.
        settings: The settings as the manifest shows them; None for those of ``spec``.
        name: The judge's name in the summary; None for the model's.
    """

    source: Source
    spec: JudgeSpec
    identity: dict[str, Any]
    by: Sequence[str]
    events: Events
    means: Means
    settings: dict[str, Any] | None = None
    name: str | None = None

    @property
    def note(self) -> str | None:
        """What readers of the figures must know."""
        return UPPER_BOUND if self.spec.is_static and self.name is None else None


Work = Callable[[Order, Store], Awaitable[Progress]]
"""Fills a run's store with judgements."""


async def judge_all(order: Order, store: Store) -> Progress:
    """Judges every row of the source that the store has no judgement of.

    Raises:
        OptionError: If the endpoint refuses every call.
    """
    source, spec, events = order.source, order.spec, order.events
    if spec.is_static:
        return await run_judge(source, StaticJudge(), store, concurrency=1, events=events)
    return await judge_with_model(make_judge(spec, source.root, order.means), order, store)


async def judge_with_model(judge: LLMJudge, order: Order, store: Store) -> Progress:
    """Lets a model judge the rows of an order, and closes it.

    Raises:
        OptionError: If the endpoint refuses every call.
    """
    spec = order.spec
    try:
        return await run_judge(
            order.source, judge, store, concurrency=spec.max_concurrency, events=order.events
        )
    except AccessError as error:
        raise OptionError(f"--judge {spec.model}: {error}") from None
    finally:
        await judge.close()


def run_in(folder: Path, order: Order, *, keep: bool, work: Work = judge_all) -> Run:
    """Carries out what is ordered.

    Args:
        folder: The run's folder.
        order: What is ordered.
        keep: Whether figures are written too; if not, rows are kept in memory.
        work: What fills the store.

    Raises:
        OptionError: If the folder holds another run, or the endpoint refuses every call.
        InputError: If the input can't be read or the folder not be written.
    """
    source, spec = order.source, order.spec
    if isinstance(source.predictions, Path):
        with _open(source.predictions):
            pass
    partial = source.only is not None
    every = 128 if spec.is_static else 1
    manifest = _manifest(order)
    store = Store(folder, order.identity, flush_every=every, partial=partial)
    try:
        store.write_manifest(manifest | {"state": "running"})
        try:
            progress = block_on(work(order, store))
        except BaseException:
            store.write_manifest(manifest | {"state": "interrupted"})
            raise
        name = order.name or spec.model
        summary = summarize(store.current(), judge=name, note=order.note, by=order.by)
        manifest |= _counts(summary, source) | {"state": "done"}
        store.write_manifest(manifest)
        rows = () if keep else tuple(store.current())
        if keep:
            data = orjson.dumps(summary.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
            write_atomically(folder / "summary.json", data)
            write_atomically(folder / "summary.csv", summary.to_csv().encode())
    finally:
        store.close()
    return Run(folder if keep else None, summary, manifest, progress, rows)


def _open(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


def _manifest(order: Order) -> dict[str, Any]:
    source, spec = order.source, order.spec
    cases = os.fsencode(source.cases).decode(errors="backslashreplace") if source.cases else None
    own = {"model": "static"} if spec.is_static else spec.model_dump(mode="json")
    return {
        "apbjudge": VERSION,
        "python": sys.version.split()[0],
        "libraries": _versions(spec),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": source.name,
        "cases": cases,
        "identity": order.identity,
        "grades": list(source.rubric.scale.grades) if source.rubric else None,
        "settings": order.settings or own,
        "transport": _transport(order),
        "note": order.note,
    }


def _transport(order: Order) -> str | None:
    """How calls are made; None where the run makes none of its own."""
    if order.spec.is_static or order.name is not None:
        return None
    return "client" if order.means.client is not None else transport_of(order.spec)


def _versions(spec: JudgeSpec) -> dict[str, str]:
    names = ["pydantic", "orjson", "numpy"]
    names += [] if spec.is_static else ["aiohttp", "diskcache", "instructor", "litellm"]
    return {name: _installed(name) for name in names}


@cache
def _installed(library: str) -> str:
    """A library's version, looked up once a process: all of its description is parsed for it."""
    return version(library)


def _counts(summary: Summary, source: Source) -> dict[str, Any]:
    totals = summary.totals
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "input_sha256": source.digest.hexdigest(),
        "rows": totals.rows,
        "scored": summary.scored,
        "unscored": totals.unscored,
        "inconsistent": totals.inconsistent,
        "overridden": totals.overridden,
        "calls": totals.calls,
        "lost_calls": totals.lost,
        "reused_replies": totals.reused,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "cached_tokens": totals.cached_tokens,
        "cost_usd": totals.cost_usd,
    }

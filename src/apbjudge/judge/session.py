"""One session of one judge in one folder: from rows to judgements, figures and a manifest."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from ..errors import AccessError, InputError, OptionError
from ..jsonl import write_atomically
from ..llm.resources import Resources, transport_of
from ..protocols import AUTO, get_protocol
from ..protocols.prompts import template_digest
from ..records import Unscored, Verdict, read_judgement
from ..records.run_folder import MANIFEST, read_judgements
from ..rubrics import Rubric, load_rubric
from ..runs.loops import block_on
from ..version import VERSION
from . import UPPER_BOUND, Events, JudgeSpec, Progress, Source, StaticJudge, Store
from . import run as run_judge
from .llm_judge import LLMJudge
from .resources import make_judge, make_judges
from .run import Lane, run_interleaved
from .static import STATIC_VERSION
from .summary import Summary, summarize

Rows = str | Path | Iterable[Mapping[str, Any]]


def source_of(
    rows: Rows,
    *,
    protocol: str,
    rubric: str | None,
    cases: str | Path | None,
    data_root: str | Path | None,
) -> Source:
    """The input of a call, from what the caller gave.

    Raises:
        OptionError: If the rubric or the folder is unusable.
    """
    return Source(
        predictions=Path(rows) if isinstance(rows, str) else rows,
        protocol=protocol,
        rubric=own_rubric(rubric, protocol),
        cases=Path(cases) if cases is not None else None,
        data_roots=data_roots(data_root),
    )


def data_roots(data_root: str | Path | None) -> tuple[Path, ...]:
    """The folder that the user named for pictures, if any.

    Raises:
        OptionError: If it is none.
    """
    if data_root is None:
        return ()
    if not Path(data_root).is_dir():
        raise OptionError(f"--data-root: expected a folder, got {str(data_root)!r}")
    return (Path(data_root),)


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
        yield from read_judgements(self.folder)

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
class RunConfig:
    """A run as ordered.

    Attributes:
        source: What to judge.
        spec: Who judges.
        identity: What must be equal for two sessions to be the same run.
        by: Fields to break results down by.
        events: Who watches.
        resources: What is at hand.
        settings: The settings as the manifest shows them; None for those of ``spec``.
        name: The judge's name in the summary; None for the model's.
        overwrite: Whether another run in the folder is deleted instead of refused.
    """

    source: Source
    spec: JudgeSpec
    identity: dict[str, Any]
    by: Sequence[str]
    events: Events
    resources: Resources
    settings: dict[str, Any] | None = None
    name: str | None = None
    overwrite: bool = False

    @property
    def note(self) -> str | None:
        """What readers of the figures must know."""
        return UPPER_BOUND if self.spec.is_static and self.name is None else None


Work = Callable[[RunConfig, Store], Awaitable[Progress]]
"""Fills a run's store with judgements."""


async def judge_all(config: RunConfig, store: Store) -> Progress:
    """Judges every row of the source that the store has no judgement of.

    Raises:
        OptionError: If the endpoint refuses every call.
    """
    source, spec, events = config.source, config.spec, config.events
    if spec.is_static:
        return await run_judge(source, StaticJudge(), store, concurrency=1, events=events)
    return await judge_with_model(make_judge(spec, source.roots, config.resources), config, store)


async def judge_with_model(judge: LLMJudge, config: RunConfig, store: Store) -> Progress:
    """Lets a model judge the rows of an config, and closes it.

    Raises:
        OptionError: If the endpoint refuses every call.
    """
    spec = config.spec
    try:
        return await run_judge(
            config.source, judge, store, concurrency=spec.max_concurrency, events=config.events
        )
    except AccessError as error:
        raise OptionError(f"--judge {spec.model}: {error}") from None
    finally:
        await judge.close()


async def judge_interleaved(
    configs: Sequence[RunConfig], turns: Sequence[int], stores: Sequence[Store]
) -> Progress:
    """Judges the rows of several runs of one judge, its settings apart, as one stream.

    The runs share endpoints, limits and pace, and keep their replies each where their
    ``resources`` say.

    Args:
        configs: The runs; the first one's settings hold for the endpoint.
        turns: For each row of the stream, the index of the run whose next row it is.
        stores: Where the judgements go, one for each run.

    Raises:
        OptionError: If the endpoint refuses every call.
    """
    first = configs[0]
    spec, events = first.spec, first.events
    if spec.is_static:
        lanes = [Lane(o.source, StaticJudge(), s) for o, s in zip(configs, stores, strict=True)]
        return await run_interleaved(lanes, turns, concurrency=1, events=events)
    judges = make_judges([(c.spec, c.resources) for c in configs], first.source.roots)
    lanes = [Lane(o.source, j, s) for o, j, s in zip(configs, judges, stores, strict=True)]
    try:
        return await run_interleaved(lanes, turns, concurrency=spec.max_concurrency, events=events)
    except AccessError as error:
        raise OptionError(f"--judge {spec.model}: {error}") from None
    finally:
        for judge in judges:
            await judge.close()


def run_in(folder: Path, config: RunConfig, *, keep: bool, work: Work = judge_all) -> Run:
    """Carries out what is ordered.

    Args:
        folder: The run's folder.
        config: The run.
        keep: Whether figures are written too; if not, rows are kept in memory.
        work: What fills the store.

    Raises:
        OptionError: If the folder holds another run, or the endpoint refuses every call.
        InputError: If the input can't be read or the folder not be written.
    """
    (run,) = run_together({folder: config}, keep=keep, work=lambda stores: work(config, stores[0]))
    return run


def run_together(
    configs: Mapping[Path, RunConfig],
    *,
    keep: bool,
    work: Callable[[Sequence[Store]], Awaitable[Progress]],
) -> list[Run]:
    """Carries out several runs at once.

    Args:
        configs: What is ordered, by the run's folder.
        keep: See ``run_in``.
        work: What fills the stores, one for each run in their order.

    Returns:
        The runs in their order; the progress of each is that of all.

    Raises:
        OptionError: See ``run_in``.
        InputError: See ``run_in``.
    """
    with ExitStack() as stack:
        opened: list[tuple[RunConfig, Store, dict[str, Any]]] = []
        for folder, config in configs.items():
            if isinstance(config.source.predictions, Path):
                with _open(config.source.predictions):
                    pass
            store = _open_store(folder, config)
            stack.callback(store.close)
            opened.append((config, store, _manifest(config, store)))
        _write_state(opened, "running")
        try:
            progress = block_on(work([store for _, store, _ in opened]))
        except BaseException:
            _write_state(opened, "interrupted")
            raise
        return [_finished(*run, progress, keep=keep) for run in opened]


def _write_state(opened: Iterable[tuple[RunConfig, Store, dict[str, Any]]], state: str) -> None:
    for _, store, manifest in opened:
        store.write_manifest(manifest | {"state": state})


def _finished(
    config: RunConfig, store: Store, manifest: dict[str, Any], progress: Progress, *, keep: bool
) -> Run:
    """The figures of a run whose rows are all judged."""
    name = config.name or config.spec.model
    summary = summarize(store.current(), judge=name, note=config.note, by=config.by)
    manifest |= _counts(summary, config.source) | {"state": "done"}
    store.write_manifest(manifest)
    if keep:
        data = orjson.dumps(summary.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
        write_atomically(store.folder / "summary.json", data)
        write_atomically(store.folder / "summary.csv", summary.to_csv().encode())
    rows = () if keep else tuple(store.current())
    return Run(store.folder if keep else None, summary, manifest, progress, rows)


def claim(folder: Path, config: RunConfig) -> None:
    """Refuses a folder that holds another run, and marks a new one as this run's.

    For runs that work below the folder before there is anything to be written into it.

    Raises:
        OptionError: If the folder holds another run.
        InputError: If the input can't be read or the folder not be written.
    """
    store = _open_store(folder, config)
    try:
        if not (folder / MANIFEST).exists():
            store.write_manifest(_manifest(config, store) | {"state": "running"})
    finally:
        store.close()


def _open_store(folder: Path, config: RunConfig) -> Store:
    return Store(
        folder,
        config.identity,
        flush_every=128 if config.spec.is_static else 1,
        partial=config.source.only is not None,
        source=config.source,
        overwrite=config.overwrite,
        note=config.events.note,
    )


def _open(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


def _manifest(config: RunConfig, store: Store) -> dict[str, Any]:
    source, spec = config.source, config.spec
    cases = os.fsencode(source.cases).decode(errors="backslashreplace") if source.cases else None
    root = source.data_roots[0] if source.data_roots else None
    own = {"model": "static"} if spec.is_static else spec.model_dump(mode="json")
    return {
        "apbjudge": VERSION,
        "python": sys.version.split()[0],
        "libraries": _versions(spec),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": source.name,
        "cases": cases,
        "data_root": os.fsencode(root).decode(errors="backslashreplace") if root else None,
        "inputs": {name: mark and mark.to_json() for name, mark in store.inputs.items()},
        "identity": config.identity,
        "grades": list(source.rubric.scale.grades) if source.rubric else None,
        "settings": config.settings or own,
        "transport": _transport(config),
        "note": config.note,
    }


def _transport(config: RunConfig) -> str | None:
    """How calls are made; None where the run makes none of its own."""
    if config.spec.is_static or config.name is not None:
        return None
    return "client" if config.resources.client is not None else transport_of(config.spec)


def _versions(spec: JudgeSpec) -> dict[str, str]:
    names = ["pydantic", "orjson", "numpy"]
    names += [] if spec.is_static else ["aiohttp", "instructor", "litellm"]
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

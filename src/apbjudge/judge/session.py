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
from typing import TYPE_CHECKING, Any

import orjson

from ..errors import AccessError, InputError, OptionError
from ..jsonl import write_atomically
from ..llm.resources import Resources, transport_of
from ..protocols import AUTO, get_protocol
from ..protocols.prompts import template_digest
from ..records import read_judgement
from ..records.run_folder import MANIFEST, read_judgements
from ..rubrics import Rubric, load_rubric
from ..runs.event_loops import block_on
from ..runs.folder import RecordLog, manifest_states
from ..runs.loop import Events, Lane, Progress, run_lanes
from ..runs.resume import inputs_json
from ..runs.rows import Shard
from ..version import VERSION
from . import JudgeSpec, Source
from .llm_judge import LLMJudge
from .resources import make_judges
from .static import STATIC_VERSION, UPPER_BOUND, StaticJudge
from .summary import Summary, summarize
from .worker import JUDGEMENT_RECORDS, Judgement, JudgeWorker

if TYPE_CHECKING:
    from .cascade import CascadeCurve
    from .panel import Disagreement

Rows = str | Path | Iterable[Mapping[str, Any]]


def source_of(
    rows: Rows,
    *,
    protocol: str,
    rubric: str | None,
    cases: str | Path | None,
    data_root: str | Path | None,
    shard: Shard | None = None,
) -> Source:
    """The input of a call, from its arguments.

    Raises:
        OptionError: If the rubric or the folder is unusable.
    """
    return Source(
        rows=Path(rows) if isinstance(rows, str) else rows,
        protocol=protocol,
        rubric=own_rubric(rubric, protocol),
        cases=Path(cases) if cases is not None else None,
        data_roots=data_roots(data_root),
        shard=shard,
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
        ensemble: How often the judges of a panel differ, or what a cascade costs at every
            threshold; None for one judge.
    """

    folder: Path | None
    summary: Summary
    manifest: dict[str, Any]
    progress: Progress
    rows: tuple[dict[str, Any], ...] = ()
    ensemble: Disagreement | CascadeCurve | None = None

    @property
    def judgements(self) -> Iterator[Judgement]:
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


def run_identity(
    spec: JudgeSpec, protocol: str, rubric: Rubric | None, shard: Shard | None = None
) -> dict[str, Any]:
    """What must be equal for two sessions to be the same run."""
    part = {"shard": str(shard)} if shard is not None else {}
    return part | {
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
    files = (path for path in (predictions, cases) if path is not None)
    paths = [os.fsencode(path.resolve()).hex() for path in files]
    digest = sha256(orjson.dumps([identity, paths], option=orjson.OPT_SORT_KEYS)).hexdigest()
    return Path("runs") / f"{predictions.stem}-{identity['protocol']}-{slug}-{digest[:6]}"


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The configuration of a run.

    Attributes:
        source: What to judge.
        spec: The judge.
        identity: What must be equal for two sessions to be the same run.
        by: Fields to break results down by.
        events: Receivers of what the run reports.
        resources: Client, limits, caches and clock of the session.
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


Log = RecordLog[Judgement]


async def ask_judge(
    configs: Sequence[RunConfig], logs: Sequence[Log], turns: Sequence[int] | None = None
) -> Progress:
    """Judges every row that has no judgement yet, of one run or of several as one stream.

    Several runs are of one judge, its settings apart: they share endpoints, limits and pace, and
    keep their replies each where their ``resources`` say.

    Args:
        configs: The runs; the first one's settings hold for the endpoint.
        logs: Where the judgements go, one for each run.
        turns: For each row of the stream, the index of the run whose next row it is; None for a
            single run.

    Raises:
        OptionError: If the endpoint refuses every call.
    """
    first = configs[0]
    judges = (
        [StaticJudge() for _ in configs]
        if first.spec.is_static
        else make_judges([(c.spec, c.resources) for c in configs], first.source.roots)
    )
    return await run_judges(judges, configs, logs, turns)


async def run_judges(
    judges: Sequence[StaticJudge | LLMJudge],
    configs: Sequence[RunConfig],
    logs: Sequence[Log],
    turns: Sequence[int] | None = None,
) -> Progress:
    """Lets judges judge the rows of their runs, and closes them; see ``ask_judge``."""
    first = configs[0]
    lanes = [
        Lane(config.source, JudgeWorker(judge), log)
        for config, judge, log in zip(configs, judges, logs, strict=True)
    ]
    models = [judge for judge in judges if isinstance(judge, LLMJudge)]
    concurrency = first.spec.max_concurrency
    try:
        progress = await run_lanes(lanes, turns=turns, concurrency=concurrency, events=first.events)
    except AccessError as error:
        raise OptionError(f"--judge {first.spec.model}: {error}") from None
    finally:
        for judge in models:
            await judge.close()
    progress.withheld = sum(judge.withheld for judge in models)
    progress.silent = sum(judge.silent for judge in models)
    return progress


Work = Callable[[Sequence[Log]], Awaitable[Progress]]
"""Fills the logs of runs with judgements."""


def run_in(folder: Path, config: RunConfig, *, keep: bool, work: Work | None = None) -> Run:
    """Carries out a run; see ``run_together``."""
    (run,) = run_together({folder: config}, keep=keep, work=work)
    return run


def run_together(
    configs: Mapping[Path, RunConfig], *, keep: bool, work: Work | None = None
) -> list[Run]:
    """Carries out one run, or several at once.

    Args:
        configs: The runs by their folders.
        keep: Whether figures are written too; if not, rows are kept in memory.
        work: Fills the logs, one for each run in their order; None asks the judge of a single run.

    Returns:
        The runs in their order; the progress of each is that of all.

    Raises:
        OptionError: If a folder holds another run, or the endpoint refuses every call.
        InputError: If the input can't be read or a folder not be written.
    """
    with ExitStack() as stack:
        opened: list[tuple[RunConfig, Log, dict[str, Any]]] = []
        for folder, config in configs.items():
            if isinstance(config.source.rows, Path):
                with _open(config.source.rows):
                    pass
            log = _open_log(folder, config)
            stack.callback(log.close)
            opened.append((config, log, _manifest(config, log)))
        with manifest_states([(log, manifest) for _, log, manifest in opened]):
            logs = [log for _, log, _ in opened]
            of_all = list(configs.values())
            progress = block_on(work(logs) if work else ask_judge(of_all, logs))
        return [_finished(*run, progress, keep=keep) for run in opened]


def _finished(
    config: RunConfig, log: Log, manifest: dict[str, Any], progress: Progress, *, keep: bool
) -> Run:
    """The figures of a run whose rows are all judged."""
    name = config.name or config.spec.model
    summary = summarize(log.current(), judge=name, note=config.note, by=config.by)
    manifest |= counts_of(summary, config.source.digest.hexdigest()) | {"state": "done"}
    log.write_manifest(manifest)
    if keep:
        write_summary(log.folder, summary)
    rows = () if keep else tuple(log.current())
    return Run(log.folder if keep else None, summary, manifest, progress, rows)


def write_summary(folder: Path, summary: Summary) -> None:
    """Writes the figures of a run."""
    data = orjson.dumps(summary.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
    write_atomically(folder / "summary.json", data)
    write_atomically(folder / "summary.csv", summary.to_csv().encode())


def claim(folder: Path, config: RunConfig) -> None:
    """Refuses a folder that holds another run, and marks a new one as this run's.

    For runs that work below the folder before there is anything to be written into it.

    Raises:
        OptionError: If the folder holds another run.
        InputError: If the input can't be read or the folder not be written.
    """
    log = _open_log(folder, config)
    try:
        if not (folder / MANIFEST).exists():
            log.write_manifest(_manifest(config, log) | {"state": "running"})
    finally:
        log.close()


def _open_log(folder: Path, config: RunConfig) -> Log:
    return RecordLog(
        folder,
        JUDGEMENT_RECORDS,
        config.identity,
        flush_every=128 if config.spec.is_static else 1,
        is_partial=config.source.only is not None,
        is_derived="several" in config.identity,
        source=config.source,
        overwrite=config.overwrite,
        note=config.events.note,
    )


def _open(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


def _manifest(config: RunConfig, log: Log) -> dict[str, Any]:
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
        "inputs": inputs_json(log.inputs),
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


def counts_of(summary: Summary, input_sha256: str) -> dict[str, Any]:
    """What the manifest of a finished run says of its judgements."""
    totals = summary.totals
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "input_sha256": input_sha256,
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

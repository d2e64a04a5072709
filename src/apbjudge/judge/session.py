"""One session of one judge in one folder: from rows to judgements, figures and a manifest."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ..config import STATIC
from ..document.display import Shown
from ..document.model import Document
from ..errors import AccessError, GateError, OptionError, path_text
from ..jsonl import write_atomically
from ..llm.model_names import may_be_one_model
from ..llm.resources import Resources, transport_of
from ..llm.scripted import NOTE, SCRIPTED
from ..protocols import AUTO, get_protocol
from ..protocols.prompts import template_digest
from ..records import read_judgement
from ..records.files import name_of
from ..records.judgements import NO_OUTCOME
from ..records.run_folder import JUDGEMENTS, MANIFEST, read_judgements
from ..rubrics import Rubric
from ..runs.event_loops import block_on
from ..runs.folder import RecordLog, environment, manifest_states, temporary_folder
from ..runs.loop import QUIET, Events, Lane, Progress, run_lanes
from ..runs.resume import inputs_json
from ..statistics.gates import At
from ..statistics.sample import BY_FORMULA, IntervalSettings
from .config import JudgeSpec
from .function import FunctionJudge
from .llm_judge import LLMJudge, make_judges
from .source import ItemSource, JudgedSource
from .static import STATIC_VERSION, UPPER_BOUND, StaticJudge
from .summary import Summary, summarize
from .worker import JUDGEMENT_RECORDS, Judge, Judgement

_GROUPS_SHOWN = 2

if TYPE_CHECKING:
    from .cascade import CascadeCurve
    from .panel import Disagreement


@dataclass(frozen=True, slots=True)
class Judgements:
    """The judgements of a run in the order of finishing, read anew whenever they are asked for."""

    run: Run

    def __iter__(self) -> Iterator[Judgement]:
        if self.run.folder is None:
            return map(read_judgement, self.run.rows)
        return read_judgements(self.run.folder)

    def __len__(self) -> int:
        return self.run.summary.totals.rows


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Run(Shown):
    """A finished run; stands for its folder wherever a path to a run is taken.

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
    _files: list[str] = field(default_factory=list[str], compare=False)

    def __fspath__(self) -> str:
        """The folder; for a run in memory a temporary one, which goes with the run."""
        if self.folder is not None:
            return os.fspath(self.folder)
        if not self._files:
            folder = temporary_folder(self, {JUDGEMENTS: self.rows}, self.manifest)
            self._files.append(str(folder))
        return self._files[0]

    def __str__(self) -> str:
        """Judge and counts, the first figure of up to two groups, and where the files are."""
        totals, groups = self.summary.totals, [g for g in self.summary.groups if not g.by]
        lines = [f"Run of {self.summary.judge}: {self.summary.scored} of {totals.rows} rows scored"]
        for group in groups[:_GROUPS_SHOWN]:
            name, estimate = next(iter(group.figures.items()))
            lines.append(f"  {group.protocol}, {group.tested_model}: {name} {estimate}")
        if more := len(groups[_GROUPS_SHOWN:]):
            lines.append(f"  … {more} more, see .summary")
        if self.summary.totals.unscored:
            lines.append(f"  unscored: {self.summary.totals.why_unscored}")
        return "\n".join([*lines, f"  {self.folder or 'in memory'}"])

    @property
    def judgements(self) -> Judgements:
        """Every judgement, in the order of finishing; can be read again and again."""
        return Judgements(self)

    @property
    def unscored_fraction(self) -> float:
        """Share of the rows without a verdict, 0 to 1.

        Cases without a prediction are none, and neither are runs of a log that states no outcome.
        """
        totals = self.summary.totals
        left = totals.missing + (0 if self.summary.scored else totals.unscored.get(NO_OUTCOME, 0))
        n_rows = totals.rows - left
        return (sum(totals.unscored.values()) - left) / n_rows if n_rows else 0.0

    def check(self, *conditions: str, at: At = "point") -> None:
        """Does nothing if every tested model meets every condition, as a test asserts it.

        Args:
            *conditions: Such as ``CR >= 0.8`` or ``alder-large: E6 <= 0.05``.
            at: ``low`` checks the end of the interval that is harder to pass, not the value.

        Raises:
            GateError: If one is not met; an AssertionError, with a line for each that is not.
            OptionError: If a condition can't be read, or no group has its measure.
        """
        results = self.summary.gate(*conditions, at=at)
        if failed := [result.text for result in results if not result.passed]:
            head = f"{len(failed)} of {len(results)} gates failed, judge {self.summary.judge}"
            raise GateError("\n  ".join((head, *failed)))

    def gated(self, *conditions: str, at: At = "point") -> Run:
        """The run with the outcomes of gates in its summary, and in its ``summary.json``."""
        summary = replace(self.summary, gates=self.summary.gate(*conditions, at=at))
        if self.folder is not None:
            write_summary(self.folder, summary)
        return replace(self, summary=summary)

    def _printed(self) -> Document:
        from .summary_text import summary_document

        return summary_document(self.summary)


def run_identity(spec: JudgeSpec, source: JudgedSource) -> dict[str, Any]:
    """What must be equal for two sessions to be the same run."""
    rubric = source.rubric
    part = {"shard": str(source.shard)} if source.shard is not None else {}
    return {
        **part,
        **source.identity,
        "protocol": source.protocol,
        "judge": spec.scoring,
        "judge_version": STATIC_VERSION if spec.is_static else None,
        "rubric": [rubric.ref, rubric.digest] if rubric else None,
        "templates": None if spec.is_static else template_digest(_template_of(source)),
    }


def _template_of(source: JudgedSource) -> str:
    """The folder of templates of the protocol that is named; with ``auto`` all have the same."""
    if not isinstance(source, ItemSource) or source.protocol == AUTO:
        return "judge@1"
    return (source.own_protocol or get_protocol(source.protocol)).template


def default_folder(
    predictions: Path, cases: Path | None, identity: Mapping[str, Any], slug: str
) -> Path:
    """The folder a run gets when none is named: the same command finds it again."""
    files = (path for path in (predictions, cases) if path is not None)
    paths = [os.fsencode(path.resolve()).hex() for path in files]
    digest = sha256(orjson.dumps([identity, paths], option=orjson.OPT_SORT_KEYS)).hexdigest()
    return Path("runs") / f"{name_of(predictions)}-{identity['protocol']}-{slug}-{digest[:6]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """The configuration of a run.

    Attributes:
        in_memory: Whether the rows are returned and no figures are written.
        overwrite: Whether another run in the folder is deleted instead of refused.
        more_identity: What must be equal for two sessions to be the same run, beside judge, rubric,
            protocol and shard, or in their place.
        settings: The settings as the manifest shows them; None for those of ``spec``.
        name: The judge's name in the summary; None for the model's.
        intervals: How intervals of the summary are made; they are no part of a run's identity.
    """

    folder: Path
    source: JudgedSource
    spec: JudgeSpec
    resources: Resources = field(default_factory=Resources)
    events: Events = QUIET
    by: Sequence[str] = ()
    in_memory: bool = False
    overwrite: bool = False
    more_identity: Mapping[str, Any] = field(default_factory=dict[str, Any])
    settings: dict[str, Any] | None = None
    name: str | None = None
    intervals: IntervalSettings = BY_FORMULA

    @property
    def identity(self) -> dict[str, Any]:
        """What must be equal for two sessions to be the same run."""
        return {**run_identity(self.spec, self.source), **self.more_identity}

    @property
    def tasks(self) -> ItemSource:
        """The rows as tasks of a judge of plans and steps."""
        if not isinstance(self.source, ItemSource):
            raise TypeError(f"source: expected plans or steps, got {type(self.source).__name__}")
        return self.source

    @property
    def note(self) -> str | None:
        """What readers of the figures must know."""
        notes = {STATIC: UPPER_BOUND, SCRIPTED: f"{NOTE}."}
        return notes.get(self.spec.model) if self.name is None else None


Log = RecordLog[Judgement]
Work = Callable[[Sequence[Log]], Awaitable[Progress]]
"""Fills the logs of runs with judgements."""


async def ask_judge(
    configs: Sequence[RunConfig], logs: Sequence[Log], turns: Sequence[int] | None = None
) -> Progress:
    """Judges every row that has no judgement yet, of one run or of several as one stream.

    Several runs are of one judge, its settings apart: they share endpoints, limits and pace, and
    keep their replies each where their ``resources`` say. ``turns`` has, for each row of the
    stream, the index of the run whose next row it is.
    """
    first = configs[0]
    if first.spec.is_static:
        return await run_judges([StaticJudge() for _ in configs], configs, logs, turns)
    judges = make_judges([(c.spec, c.resources) for c in configs], first.source.roots)
    return await run_judges(judges, configs, logs, turns)


async def run_judges(
    judges: Sequence[Judge],
    configs: Sequence[RunConfig],
    logs: Sequence[Log],
    turns: Sequence[int] | None = None,
) -> Progress:
    """Lets judges judge the rows of their runs, and closes them; see ``ask_judge``.

    Without ``turns`` several judges take turns on the same rows.
    """
    first = configs[0]
    lanes = [
        Lane(config.tasks, judge, log)
        for config, judge, log in zip(configs, judges, logs, strict=True)
    ]
    models = [judge for judge in judges if isinstance(judge, LLMJudge)]
    concurrency = max(config.spec.max_concurrency for config in configs)
    try:
        progress = await run_lanes(lanes, turns=turns, concurrency=concurrency, events=first.events)
    except AccessError as error:
        names = ", ".join(dict.fromkeys(config.spec.model for config in configs))
        raise OptionError(f"--judge {names}: {error}") from None
    finally:
        for judge in models:
            await judge.close()
    progress.unseen = sum((judge.unseen for judge in models), Counter[str]())
    progress.silent = sum(judge.silent for judge in models)
    return progress


def run_in(config: RunConfig, work: Work | None = None) -> Run:
    """Carries out a run; see ``run_together``."""
    return run_together([config], work)[0]


def run_function(config: RunConfig, judge: FunctionJudge) -> Run:
    """Carries out a run whose judge is a function."""
    named = replace(
        config,
        name=judge.name,
        spec=config.spec.model_copy(update={"model": judge.name}),
        more_identity={"judge": judge.identity, "judge_version": None, "templates": None},
        settings={"model": judge.name, **judge.identity},
    )

    async def work(logs: Sequence[Log]) -> Progress:
        return await run_judges([judge], [named], logs)

    return run_in(named, work)


def run_together(configs: Sequence[RunConfig], work: Work | None = None) -> list[Run]:
    """Carries out one run, or several at once; the progress of each is that of all.

    ``work`` fills their logs; None asks the judge of a single run.
    """
    with ExitStack() as stack:
        opened: list[tuple[Log, dict[str, Any]]] = []
        for config in configs:
            log = stack.enter_context(_open_log(config))
            opened.append((log, _manifest(config, log)))
        with manifest_states(opened):
            logs = [log for log, _ in opened]
            progress = block_on(work(logs) if work else ask_judge(configs, logs))
            return [
                _finished(config, log, manifest, progress)
                for config, (log, manifest) in zip(configs, opened, strict=True)
            ]


def _finished(config: RunConfig, log: Log, manifest: dict[str, Any], progress: Progress) -> Run:
    """The figures of a run whose rows are all judged."""
    name = config.name or config.spec.model
    weights = None if config.source.rubric is None else config.source.rubric.weights
    summary = summarize(
        log.current(),
        judge=name,
        note=config.note,
        by=config.by,
        weights=weights,
        intervals=config.intervals,
    )
    summary = replace(summary, missing=config.source.missing, codes=manifest["codes"])
    manifest |= counts_of(summary, config.source.digest.hexdigest()) | {"state": "done"}
    manifest |= config.source.described
    if n_own := _own_rows(config):
        manifest["rows_of_own_cases"] = n_own
        config.events.note(
            f"warning: {config.spec.model} judges {n_own} rows of cases that it wrote in part"
        )
    log.write_manifest(manifest)
    if config.in_memory:
        return Run(None, summary, manifest, progress, tuple(log.current()))
    write_summary(log.folder, summary)
    return Run(log.folder, summary, manifest, progress)


def _own_rows(config: RunConfig) -> int:
    """Rows of cases of which the judge wrote a part; of several judges each counts its own."""
    if "several" in config.more_identity:
        return 0
    judge, writers = config.spec.model, config.source.writers
    return sum(n for writer, n in writers.items() if may_be_one_model(judge, writer))


def write_summary(folder: Path, summary: Summary) -> None:
    """Writes the figures of a run."""
    data = orjson.dumps(summary.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
    write_atomically(folder / "summary.json", data)
    write_atomically(folder / "summary.csv", summary.to_csv().encode())


def claim(config: RunConfig) -> None:
    """Refuses a folder that holds another run, and marks a new one as this run's.

    For runs that work below the folder before there is anything to be written into it.
    """
    with _open_log(config) as log:
        if not (config.folder / MANIFEST).exists():
            log.write_manifest(_manifest(config, log) | {"state": "running"})


def _open_log(config: RunConfig) -> Log:
    config.source.check()
    return RecordLog(
        config.folder,
        JUDGEMENT_RECORDS,
        config.identity,
        flush_every=128 if config.spec.is_static else 1,
        is_partial=config.source.only is not None,
        is_derived="several" in config.more_identity,
        source=config.source,
        overwrite=config.overwrite,
        note=config.events.note,
    )


def _manifest(config: RunConfig, log: Log) -> dict[str, Any]:
    source, spec = config.source, config.spec
    root = source.data_roots[0] if source.data_roots else None
    own = {"model": "static"} if spec.is_static else spec.model_dump(mode="json")
    libraries, transport = ["pydantic", "orjson", "numpy"], None
    if not spec.is_static:
        libraries += ["aiohttp", "litellm", *(["instructor"] if spec.max_reasks else [])]
        if config.name is None:  # else the run makes no calls of its own
            transport = "client" if config.resources.client is not None else transport_of(spec)
    return {
        **environment(libraries),
        "input": source.input,
        "cases": _shown(source.cases and source.reading.copied(source.cases, "cases")),
        "data_root": _shown(root),
        "inputs": inputs_json(log.inputs),
        **source.described,
        "identity": config.identity,
        **described_rubric(source.rubric),
        "settings": config.settings or own,
        "transport": transport,
        "note": config.note,
    }


def described_rubric(rubric: Rubric | None) -> dict[str, Any]:
    """What the manifest says of a user's own rubric."""
    return {
        "grades": list(rubric.scale.grades) if rubric else None,
        "codes": {c.code: c.name for c in rubric.criteria} if rubric else None,
        "weights": rubric.weights or None if rubric else None,
    }


def _shown(path: Path | None) -> str | None:
    return path_text(path) if path else None


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
        "lenient_replies": totals.lenient_replies,
        "unreported_calls": totals.unreported,
        "prompt_tokens": totals.prompt_tokens,
        "completion_tokens": totals.completion_tokens,
        "cached_tokens": totals.cached_tokens,
        "cost_usd": totals.cost_usd,
    }

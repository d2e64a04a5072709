"""One session of one judge in one folder: from rows to judgements, figures and a manifest."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from pydantic import VERSION as PYDANTIC

from ..config import STATIC
from ..document.display import Shown
from ..document.model import Document
from ..errors import GateError, path_text
from ..jsonl import write_atomically
from ..llm.model_names import may_be_one_model
from ..llm.resources import can_see, transport_of
from ..llm.scripted import NOTE, SCRIPTED
from ..protocols import AUTO, PROTOCOLS, get_protocol
from ..protocols.prompts import template_digest
from ..records import read_judgement
from ..records.judgements import NO_OUTCOME
from ..records.run_folder import JUDGEMENTS, read_judgements
from ..rubrics import Rubric
from ..runs.folder import RecordLog, temporary_folder
from ..runs.loop import LoopRun, Progress, Worker, run_loop
from ..runs.resume import RecordKind
from ..runs.session import Session, Work, carry_out
from ..statistics.gates import At
from ..statistics.sample import BY_FORMULA, IntervalSettings
from ..version import VERSION
from .config import JudgeSpec
from .llm_judge import LLMJudge, make_judges
from .source import ItemSource, JudgedSource
from .static import STATIC_VERSION, UPPER_BOUND, StaticJudge
from .summary import Summary, summarize
from .worker import JUDGEMENT_RECORDS, Judgement, NamedJudge

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
    """A finished run; accepted in place of its folder everywhere.

    Attributes:
        folder: Folder of its files; None if it is in memory.
        summary: The figures.
        manifest: Versions, hashes, settings, counts.
        progress: Counts and costs of this session.
        rows: The judgements as JSON rows, if in memory.
        ensemble: Disagreement of the judges of a panel, or the cost of a cascade at every
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
        """The folder; for a run in memory a temporary one, deleted with the run."""
        if self.folder is not None:
            return os.fspath(self.folder)
        if not self._files:
            folder = temporary_folder(self, {JUDGEMENTS: self.rows}, self.manifest)
            self._files.append(str(folder))
        return self._files[0]

    def __str__(self) -> str:
        """Judge and counts, the first figure of up to two groups, and the folder."""
        totals, groups = self.summary.totals, [g for g in self.summary.groups if not g.by]
        lines = [f"Run of {self.summary.judge}: {self.summary.scored} of {totals.rows} rows scored"]
        for group in groups[:_GROUPS_SHOWN]:
            name, estimate = next(iter(group.metrics.items()))
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
    """The values that must be equal for two sessions to be the same run."""
    rubric = source.rubric
    return {
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


@dataclass(frozen=True, kw_only=True)
class RunConfig(Session[Judgement, Run]):
    """A run of one judge, before it begins.

    Attributes:
        spec: The judge's settings.
        judge: Name and identity of the run, if it is not a judge with only these settings.
        more_identity: Other settings that must be equal for two sessions to be the same run.
        intervals: Settings of the summary's intervals, which are not part of a run's identity.
    """

    source: JudgedSource
    spec: JudgeSpec
    judge: NamedJudge | None = None
    by: Sequence[str] = ()
    more_identity: Mapping[str, Any] = field(default_factory=dict[str, Any])
    intervals: IntervalSettings = BY_FORMULA

    @property
    def records(self) -> RecordKind[Judgement]:
        """Judgements."""
        return JUDGEMENT_RECORDS

    @property
    def name(self) -> str:
        """The judge's name."""
        return self.spec.model if self.judge is None else self.judge.name

    @property
    def identity(self) -> dict[str, Any]:
        """The values that must be equal for two sessions to be the same run."""
        own: Mapping[str, Any] = {} if self.judge is None else self.judge.identity
        return {**run_identity(self.spec, self.source), **self.more_identity, **own}

    @property
    def is_derived(self) -> bool:
        """True if the judgements are computed from those of other runs."""
        return self.judge is not None and self.judge.is_derived

    @property
    def tasks(self) -> ItemSource:
        """The rows as tasks of a judge of plans and steps."""
        if not isinstance(self.source, ItemSource):
            raise TypeError(f"source: expected plans or steps, got {type(self.source).__name__}")
        return self.source

    @property
    def note(self) -> str | None:
        """A remark for readers of the figures."""
        notes = {STATIC: UPPER_BOUND, SCRIPTED: f"{NOTE}."}
        return notes.get(self.spec.model) if self.judge is None else None

    @property
    def log_options(self) -> dict[str, Any]:
        """Judgements that cost nothing are written many at once."""
        return {
            "flush_every": 128 if self.spec.is_static else 1,
            "is_partial": self.source.only is not None,
            "is_derived": self.is_derived,
            "settings": self._settings(),
        }

    def _settings(self) -> str:
        """Digest of all that a judgement depends on besides a row without files.

        Empty where it depends on more: on code of others, on values that are no lines of a file.
        """
        source = self.source
        if (
            self.spec.is_static
            or self.judge is not None
            or not isinstance(source, ItemSource)
            or source.own_protocol is not None
            or source.protocol not in (AUTO, *PROTOCOLS)
            or not isinstance(source.rows, Path)
        ):
            return ""
        own = [VERSION, PYDANTIC, self.identity, self.spec.model_dump(mode="json")]
        return sha256(orjson.dumps(own, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]

    @property
    def libraries(self) -> list[str]:
        """The libraries that have a part in the judgements."""
        own = [] if self.spec.is_static else ["aiohttp", "litellm"]
        return ["pydantic", "orjson", "numpy", *own, *(["instructor"] if own else [])]

    def described(self) -> dict[str, Any]:
        """Rows, rubric and settings."""
        source, spec = self.source, self.spec
        own = {"model": STATIC} if spec.is_static else spec.model_dump(mode="json")
        transport = None
        if not spec.is_static and self.judge is None:  # else the run makes no calls of its own
            transport = "client" if self.resources.client is not None else transport_of(spec)
        cases = source.cases and source.reading.copied(source.cases, "cases")
        return {
            "cases": path_text(cases) if cases else None,
            "data_root": path_text(source.data_roots[0]) if source.data_roots else None,
            **source.described,
            **described_rubric(source.rubric),
            "settings": own if self.judge is None else self.judge.settings,
            "transport": transport,
            "note": self.note,
        }

    async def ask(self, logs: Sequence[Log]) -> Progress:
        """Judges every row that has no judgement yet."""
        if self.writer is None:
            return await run_judges(judges_of([self]), [self], logs)
        sees = can_see(self.spec)
        judge = LLMJudge(self.spec, self.writer, roots=self.source.roots, sees=sees)
        return await run_judges([judge], [self], logs)

    def finished(self, log: Log, manifest: dict[str, Any], progress: Progress) -> Run:
        """The figures of a run whose rows are all judged."""
        source = self.source
        summary = summarize(
            log.current(),
            judge=self.name,
            note=self.note,
            by=self.by,
            weights=None if source.rubric is None else source.rubric.weights,
            intervals=self.intervals,
        )
        summary = replace(summary, missing=source.missing, codes=manifest["codes"])
        manifest |= counts_of(summary) | source.described
        own = (n for writer, n in source.writers.items() if may_be_one_model(self.name, writer))
        if not self.is_derived and (n_own := sum(own)):
            manifest["rows_of_own_cases"] = n_own
            self.events.note(
                f"warning: {self.name} judges {n_own} rows of cases that it wrote in part"
            )
        if self.in_memory:
            return Run(None, summary, manifest, progress, tuple(log.current()))
        write_summary(self.folder, summary)
        return Run(self.folder, summary, manifest, progress)


Log = RecordLog[Judgement]


def judges_of(configs: Sequence[RunConfig]) -> Sequence[StaticJudge | LLMJudge]:
    """The judge of each of some runs, of one judge but for settings.

    They share endpoints, limits and pace, and keep replies each where their ``resources`` say.
    """
    first = configs[0]
    if first.spec.is_static:
        return [StaticJudge() for _ in configs]
    return make_judges([(c.spec, c.resources) for c in configs], first.source.roots)


async def run_judges(
    judges: Sequence[Worker[Any, Judgement]],
    configs: Sequence[RunConfig],
    logs: Sequence[Log],
    turns: Sequence[int] | None = None,
) -> Progress:
    """Judges every row that has no judgement yet, and closes the judges.

    Args:
        judges: The judges.
        configs: Their runs.
        logs: The judgements of these.
        turns: For each row of all runs, the index of the run whose next row it is; without it
            several judges take turns on the same rows.
    """
    loop_runs: list[LoopRun[Any, Judgement]] = [
        LoopRun(config.source, judge, log)
        for config, judge, log in zip(configs, judges, logs, strict=True)
    ]
    models = [judge for judge in judges if isinstance(judge, LLMJudge)]
    unasked = configs[0].spec.max_concurrency
    events = configs[0].events
    progress = await run_loop(
        loop_runs,
        models,
        turns=turns,
        concurrency=lambda: max((judge.concurrency for judge in models), default=unasked),
        events=events,
    )
    progress.unseen = sum((judge.unseen for judge in models), Counter[str]())
    progress.silent = sum(judge.silent for judge in models)
    return progress


def run_in(config: RunConfig, work: Work[Judgement] | None = None) -> Run:
    """Carries out a run; see ``runs.session.carry_out``."""
    return carry_out([config], work)[0]


def write_summary(folder: Path, summary: Summary) -> None:
    """Writes the figures of a run."""
    data = orjson.dumps(summary.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
    write_atomically(folder / "summary.json", data)
    write_atomically(folder / "summary.csv", summary.to_csv().encode())


def described_rubric(rubric: Rubric | None) -> dict[str, Any]:
    """Grades, codes and weights of a user's own rubric for the manifest."""
    return {
        "grades": list(rubric.scale.grades) if rubric else None,
        "codes": {c.code: c.name for c in rubric.criteria} if rubric else None,
        "weights": rubric.weights or None if rubric else None,
    }


def counts_of(summary: Summary) -> dict[str, Any]:
    """Counts of a finished run's judgements for the manifest."""
    totals = summary.totals
    return {
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

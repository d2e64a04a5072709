"""From seeds to texts: tasks, a run of the model over them, and its counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ....errors import OptionError
from ....llm.resources import Resources
from ....records.run_folder import MANIFEST
from ....runs.event_loops import block_on
from ....runs.folder import RecordLog, discard, environment, manifest_states
from ....runs.loop import QUIET, Events, Lane, Progress
from ....runs.results import CallCounts, Tally
from ...prediction.config import PlannerSpec
from ...prediction.prompt_sets import PromptSet
from ...prediction.session import ask_models, described, planner_of
from ...prediction.worker import CALLS
from ..seeds import Seed
from .config import Kind, WriteConfig
from .prompts import write_prompts
from .records import TASKS, WRITING_RECORDS, Row
from .source import TaskCounts, TaskSource, write_tasks
from .worker import WritingWorker
from .writings import Writings

Seeds = Callable[[], Iterable[Seed]]
"""Reads the seeds anew at each call: queries are written before what depends on them."""


class TextCounts(CallCounts):
    """What became of the tasks of one kind.

    Attributes:
        accepted: Texts that code accepts, those below included.
        repaired: Accepted after complaints.
        partial: Accepted in part, such as some of the tools.
        rejected: Texts that code did not accept at last, by the first complaint.
        calls: Calls made.
    """

    accepted: int = 0
    repaired: int = 0
    partial: int = 0
    rejected: dict[str, int] = {}
    calls: int = 0


@dataclass(frozen=True, slots=True)
class WritingRun:
    """What a model wrote for seeds.

    Attributes:
        folder: Where tasks, texts and failures are.
        counts: By kind; what is of none, such as a damaged task, is under the empty name.
        not_asked: How many seeds there is no task for, by kind and reason.
        waiting: Seeds whose query was not answered, so that nothing else was asked for them.
        manifest: Versions, hashes, settings, counts.
        progress: What this session did.
    """

    folder: Path
    counts: Mapping[str, TextCounts]
    not_asked: Mapping[str, int]
    waiting: int
    manifest: dict[str, Any]
    progress: Progress

    @property
    def failed(self) -> int:
        """Tasks without an answer, which the same call tries again."""
        return sum(sum(each.failed.values()) for each in self.counts.values())

    def writings(self) -> Writings:
        """The texts, to be put into seeds."""
        return Writings(self.folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    folder: Path
    spec: PlannerSpec
    prompts: PromptSet
    repairs: int
    resources: Resources
    events: Events
    overwrite: bool

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "command": "build: texts by a model",
            "models": {self.spec.model: self.spec.asked},
            "prompts": [self.prompts.name, self.prompts.digest],
        }

    def open(self) -> RecordLog[Row]:
        # inputs are not compared: a text is looked up by all that it was written for
        return RecordLog(
            self.folder,
            WRITING_RECORDS,
            self.identity,
            overwrite=self.overwrite,
            note=self.events.note,
        )

    def manifest(self, more: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **environment(["pydantic", "orjson", "aiohttp", "litellm", "instructor", "jinja2"]),
            "identity": self.identity,
            "repairs": self.repairs,
            "prompts": {"name": self.prompts.name, "sha256": self.prompts.digest},
            "models": {self.spec.model: described(self.spec, self.resources, self.events)},
            **more,
        }


def write_texts(
    seeds: Seeds,
    config: WriteConfig,
    folder: Path,
    *,
    kinds: Sequence[Kind],
    resources: Resources,
    events: Events = QUIET,
    overwrite: bool = False,
) -> WritingRun:
    """Has a model write for seeds what code can't; see ``WriteConfig.kinds``.

    The same call continues a run that was stopped or killed, and pays for no answer twice. Replies
    are kept in the folder where there is no cache. A text that is not accepted is kept with all
    attempts, and is not asked for again unless more repairs are allowed; what was never answered is
    in ``failures.jsonl`` and tried again.

    Args:
        seeds: Reads the seeds; called once or twice.
        config: The model, and how it is asked.
        folder: Where tasks and texts go, such as ``OUT/writing``.
        kinds: What is to be written.
        resources: Client, limits and cache.
        events: Called back while the run goes on.
        overwrite: Whether a run of other settings in the folder is deleted instead of refused.

    Raises:
        OptionError: If there is no model, a setting is unusable, no call can succeed, or the folder
            holds another run.
        InputError: If a file can't be read or written.
    """
    if config.model is None:
        raise OptionError("--model: expected a model, got nothing")
    cache = resources.cache or folder / CALLS
    session = _Session(
        folder=folder,
        spec=config.model,
        prompts=write_prompts(config.write_prompts),
        repairs=config.repairs,
        resources=replace(resources, cache=cache, is_durable=True),
        events=events,
        overwrite=overwrite,
    )
    with session.open() as log:  # before anything is written there
        if not (folder / MANIFEST).exists():
            log.write_manifest(session.manifest({}) | {"state": "running"})
    run, asked = None, TaskCounts()
    while True:
        writings = Writings(folder)
        tasks = write_tasks(folder / TASKS, seeds(), kinds, writings, config.repairs)
        if run is not None and tasks == asked:  # no query more was answered
            return run
        more = _carry_out(session, kinds, tasks, writings)
        run, asked = more if run is None else _joined(run, more), tasks
        if not tasks.waiting:
            if not run.counts:  # nothing was asked, so nothing shall be in another run's way
                discard(folder, {TASKS, WRITING_RECORDS.file})
            return run


def _joined(run: WritingRun, more: WritingRun) -> WritingRun:
    """A session in which further tasks became known: what it did is what both did."""
    progress = more.progress
    progress.add_costs(run.progress)
    progress.done += run.progress.done
    progress.skipped = run.progress.skipped
    return more


def _carry_out(
    session: _Session, kinds: Sequence[Kind], tasks: TaskCounts, writings: Writings
) -> WritingRun:
    """A session over the tasks that are there."""
    source = TaskSource(rows=session.folder / TASKS)
    stated = {
        "kinds": list(kinds),
        "not_asked": dict(sorted(tasks.not_asked.items())),
        "waiting": tasks.waiting,
    }
    with session.open() as log:
        manifest = session.manifest(stated)
        progress = Progress()
        with manifest_states([(log, manifest)]):
            if tasks.tasks:
                planner = planner_of(session.spec, session.resources, session.events)
                worker = WritingWorker(planner, session.prompts, session.repairs, writings)
                lane: Lane[Any, Row] = Lane(source, worker, log)
                clients, most = [planner.client], session.spec.max_concurrency
                progress = block_on(
                    ask_models(lane, clients, concurrency=most, events=session.events)
                )
            counts = counts_of(log.current())
            manifest |= {
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "counts": {name: each.model_dump() for name, each in counts.items()},
                "state": "done",
            }
            log.write_manifest(manifest)
    return WritingRun(session.folder, counts, tasks.not_asked, tasks.waiting, manifest, progress)


def counts_of(rows: Iterator[Row]) -> dict[str, TextCounts]:
    """What became of the tasks of each kind, in the order of their first record."""
    tallies: dict[str, Tally] = {}
    rejected: dict[str, Counter[str]] = {}
    for row in rows:
        tally = tallies.setdefault(kind := row.get("kind") or "", Tally())
        for name in ("calls", "prompt_tokens", "completion_tokens"):
            tally.n[name] += row["usage"][name]
        if not tally.take(row):
            continue
        if row["rejected"]:
            rejected.setdefault(kind, Counter())[row["rejected"]] += 1
            continue
        tally.n["accepted"] += 1
        tally.n["repaired"] += len(row["attempts"]) > 1
        tally.n["partial"] += bool(row["complaints"])
    return {
        kind: TextCounts(**tally.fields, rejected=dict(rejected.get(kind, {})))
        for kind, tally in tallies.items()
    }


# Dry run ------------------------------------------------------------------------------------------

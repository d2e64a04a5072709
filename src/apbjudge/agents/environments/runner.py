"""Runs of tested models in worlds: one folder, one record an episode, resumed where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from ...errors import RowError
from ...llm.resources import Resources
from ...runs.event_loops import block_on
from ...runs.folder import RecordLog, environment, manifest_states
from ...runs.loop import QUIET, Events, Lane, Progress, Worker
from ...runs.resume import RecordKind, inputs_json
from ...runs.rows import BadRow, RawRow, RowSource
from ..prediction.config import PlannerSpec
from ..prediction.session import ask_models, described, planner_of
from ..prediction.worker import CALLS, Planner

Row = dict[str, Any]
"""A record as JSON values."""
UNASKED = 16
"""Episodes at once where no model is asked."""


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode to be played.

    Attributes:
        task: Id of the task.
        at: Index of the tested model.
        tested_model: Its name.
        trial: Number of the episode among several of this task and model, from 0.
        line: Number of the task, from 1.
    """

    task: str
    at: int
    tested_model: str
    trial: int
    line: int

    @property
    def case_id(self) -> str:
        """The task."""
        return self.task

    @property
    def offset(self) -> int:
        """Nothing is known of bytes."""
        return 0

    @property
    def id(self) -> str:
        """The task's id; from the second trial on with its number, such as ``task-7#2``."""
        return self.task if self.trial == 0 else f"{self.task}#{self.trial + 1}"

    def rejected(self, error: RowError) -> BadRow:
        """The episode where the world has no such task."""
        digest = sha256(self.task.encode()).digest()
        return BadRow(self.line, error, digest, 0, self.id, self.tested_model)


@dataclass(frozen=True, slots=True)
class _Task:
    case_id: str
    line: int


@dataclass(slots=True)
class EpisodeSource(RowSource):
    """The tasks of a world, each once for every tested model and trial.

    Attributes:
        models: Names of the tested models.
        trials: Episodes per task and model.
    """

    models: Sequence[str] = ()
    trials: int = 1

    def row_keys(self) -> Iterator[tuple[str, str]]:
        """Yields task and tested model of the first trials."""
        for values in self.raw_rows():
            yield from ((str(values["id"]), model) for model in self.models)

    def __iter__(self) -> Iterator[Episode | BadRow]:
        """Yields every episode."""

        def read(row: RawRow) -> _Task:
            return _Task(str(row.values["id"]), row.line)

        for task in self.read_each(read, lambda task, _: task):
            if isinstance(task, BadRow):
                yield task
                continue
            for trial in range(self.trials):
                for at, model in enumerate(self.models):
                    yield Episode(task.case_id, at, model, trial, task.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSession:
    """One session in one folder, before it begins.

    Attributes:
        folder: Of the run.
        kind: The records.
        name: Where the tasks come from, for the manifest.
        tasks: Ids of the tasks.
        source: The rows, where they are not the episodes of ``tasks``.
        specs: The tested models.
        helpers: Further models that the worker asks.
        models: Names of the tested models in records, where they are not those that are asked.
        trials: Episodes per task and model.
        identity: What must be equal for two sessions to be the same run.
        described: What else the manifest says.
        worker: Makes the worker of the tested models and, behind them, the further ones.
        take: Makes further figures of the records, when all are there.
    """

    folder: Path
    kind: RecordKind[Row]
    name: str
    tasks: Sequence[str]
    specs: Sequence[PlannerSpec]
    resources: Resources
    identity: Mapping[str, Any]
    worker: Callable[[Sequence[Planner]], Worker[Any, Row]]
    source: RowSource | None = None
    helpers: Sequence[PlannerSpec] = ()
    models: Sequence[str] = ()
    trials: int = 1
    described: Mapping[str, Any] = field(default_factory=dict[str, Any])
    take: Callable[[RecordLog[Row]], Mapping[str, Any]] = lambda log: {}
    events: Events = QUIET
    overwrite: bool = False


def carry_out(
    session: EpisodeSession, take: Callable[[RecordLog[Row]], Mapping[str, Any]]
) -> tuple[dict[str, Any], Progress]:
    """Carries out a session; an interrupted one is continued by the next.

    Replies are kept as they come, in the run's folder where there is no cache: an episode that was
    interrupted is played again from its beginning with the replies that it had, and pays for new
    ones alone.

    Args:
        session: The session.
        take: Makes of the records what the manifest says of them, such as counts.

    Returns:
        The manifest, and what this session did.
    """
    events, specs, all_ = session.events, session.specs, [*session.specs, *session.helpers]
    cache = session.resources.cache or session.folder / CALLS
    resources = replace(session.resources, cache=cache, is_durable=True)
    source: Any = session.source or EpisodeSource(
        rows=[{"id": task} for task in session.tasks],
        models=session.models or [spec.model for spec in specs],
        trials=session.trials,
    )
    log = RecordLog(
        session.folder,
        session.kind,
        session.identity,
        source=source,
        overwrite=session.overwrite,
        note=events.note,
    )
    with log:
        manifest: dict[str, Any] = {
            **environment(["pydantic", "orjson", "aiohttp", "litellm"]),
            "input": session.name,
            "inputs": inputs_json(log.inputs),
            "identity": session.identity,
            "trials": session.trials,
            **session.described,
            "models": {spec.model: described(spec, resources, events) for spec in specs},
            "helpers": {spec.model: described(spec, resources, events) for spec in session.helpers},
        }
        planners = [planner_of(spec, resources, events) for spec in all_]
        lane = Lane(source, session.worker(planners), log)
        with manifest_states([(log, manifest)]):
            progress = block_on(
                ask_models(
                    lane,
                    [planner.client for planner in planners],
                    concurrency=sum(spec.max_concurrency for spec in all_) or UNASKED,
                    events=events,
                )
            )
            manifest |= {**session.take(log), **take(log)}
            manifest |= {
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "state": "done",
            }
            log.write_manifest(manifest)
        return manifest, progress


def default_folder(name: str, specs: Sequence[PlannerSpec], identity: Mapping[str, Any]) -> Path:
    """The folder a run gets when none is named: the same command finds it again."""
    digest = sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)).hexdigest()
    slug = specs[0].slug if len(specs) == 1 else f"{len(specs)}-models"
    return Path("runs") / f"{name}-{slug}-{digest[:6]}"

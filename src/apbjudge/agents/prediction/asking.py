"""The session of commands that ask tested models: predict, refine, simulate, branch and build."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from ...llm import Client
from ...llm.engine import concurrency_of
from ...llm.limits import RunsConfig
from ...llm.litellm_client import dropped_settings
from ...llm.resources import Resources, can_see, make_engine, shared_resources, transport_of
from ...remote import place_of
from ...runs.folder import RecordLog
from ...runs.loop import Events, LoopRun, Progress, Worker, run_loop
from ...runs.results import ModelRun
from ...runs.resume import RecordKind
from ...runs.rows import RowSource
from ...runs.session import Session, carry_out, default_folder, folder_of
from ...runs.shards import in_identity
from .config import TestedModelSpec
from .source import Cases
from .worker import CALLS, AskedModel, Row

R = TypeVar("R", bound=ModelRun[Any])

UNASKED = 16
"""Number of concurrent rows if no model is asked."""


@dataclass(frozen=True, kw_only=True)
class AskingSession(Session[Row, R], Generic[R]):
    """A session that asks tested models, before it begins.

    Attributes:
        run: The class of the result, which defines the counts.
        kind: The records.
        known_by: Settings that all sessions of a run share.
        specs: The tested models.
        helpers: Further models to ask, by the options that name them.
        worker: Makes the worker from the tested models, followed by the further models.
        about: Further entries of the manifest.
        counted_by: The field of records that groups the counts.
        rows_of: Returns the rows of the run's file that a record holds.
        take: Makes further files of the records once all exist.
        keeps_replies: True if replies are stored on arrival, in the run's folder without a cache:
            an interrupted row of several calls then pays for none of them again.
        served: Number of reports of each name of a model, in all rounds of batches.
    """

    run: type[R]
    kind: RecordKind[Row]
    known_by: Mapping[str, Any]
    specs: Sequence[TestedModelSpec]
    worker: Callable[[Sequence[AskedModel]], Worker[Any, Row]]
    helpers: Mapping[str, TestedModelSpec] = field(default_factory=dict[str, TestedModelSpec])
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    counted_by: str = "tested_model"
    rows_of: Callable[[Row], Iterable[Row]] = lambda row: (row,)
    take: Callable[[RecordLog[Row]], object] = lambda log: None
    keeps_replies: bool = True
    served: Counter[str] = field(default_factory=Counter[str])

    @property
    def records(self) -> RecordKind[Row]:
        """The records of the rows."""
        return self.kind

    @property
    def identity(self) -> Mapping[str, Any]:
        """Settings that must be equal in all sessions of a run."""
        return self.known_by

    def described(self) -> dict[str, Any]:
        """The fields of the manifest about the models and about the feature."""
        models = {"models": self.specs, "helpers": self.helpers.values()}
        return {
            name: {spec.model: described(spec, self.resources, self.events) for spec in specs}
            for name, specs in models.items()
        } | dict(self.about)

    async def ask(self, logs: Sequence[RecordLog[Row]]) -> Progress:
        """Asks the models about every row that has no record."""
        asked = [*(("--model", spec) for spec in self.specs), *self.helpers.items()]
        asked_models = [self._asked_model(spec, option) for option, spec in asked]
        return await run_loop(
            [LoopRun(self.source, self.worker(asked_models), logs[0])],
            [asked_model.client for asked_model in asked_models],
            concurrency=lambda: (
                sum(concurrency_of(of.client, of.spec) for of in asked_models) or UNASKED
            ),
            events=self.events,
        )

    def _asked_model(self, spec: TestedModelSpec, option: str) -> AskedModel:
        note, resources = self.events.note, self.resources
        if self.writer is not None:
            return AskedModel(spec, self.writer, can_see(spec), note, option, self.served)
        if self.keeps_replies:
            cache = resources.cache or self.folder / CALLS
            resources = replace(resources, cache=cache, is_durable=True)
        sees = can_see(spec, known=resources.client is None)
        return AskedModel(spec, make_engine(spec, resources), sees, note, option)

    def finished(self, log: RecordLog[Row], manifest: dict[str, Any], progress: Progress) -> R:
        """The counts, and the rows if they stay in memory."""
        gaps = self.source.gaps
        for line in gaps.lines():
            self.events.note(f"{self.source.name}: {line}")
        self.take(log)
        counts = self.run.counts_type.of(log.current(), self.counted_by)
        manifest |= {"input_gaps": gaps.to_json()} if gaps.to_json() else {}
        manifest["counts"] = {name: each.model_dump() for name, each in counts.items()}
        if not self.in_memory:
            return self.run(self.folder, counts, manifest, progress)
        records = list(log.current())
        rows = (of for row in records if row.get("reason") is None for of in self.rows_of(row))
        failures = tuple(row for row in records if row.get("reason") is not None)
        return self.run(None, counts, manifest, progress, tuple(rows), failures)


def resources_of(config: RunsConfig, client: Client | None, events: Events) -> Resources:
    """Resources for asking the models of a configuration."""
    return shared_resources(client=client, limits=config, cache=config.cache, warn=events.note)


def carry_out_alone(
    session: AskingSession[R], carry_out_in: Callable[[AskingSession[R]], R] | None = None
) -> R:
    """Carries out a session in its folder, or in memory.

    Args:
        session: The session.
        carry_out_in: Carries it out in another way than by direct calls.
    """
    with folder_of(None if session.in_memory else session.folder) as folder:
        placed = replace(session, folder=folder)
        return carry_out_in(placed) if carry_out_in is not None else carry_out([placed])[0]


def folder_named(
    rows: Cases,
    source: RowSource,
    specs: Sequence[TestedModelSpec],
    identity: Mapping[str, Any],
    what: str = "",
) -> Path:
    """The default folder of a run on a file of rows."""
    path = Path(rows) if isinstance(rows, str | os.PathLike) else Path("row")
    slug = specs[0].slug if len(specs) == 1 else f"{len(specs)}-models"
    name = f"{what}-{slug}" if what else slug
    known_by = {**in_identity(source.shard), **identity}
    return default_folder(path.stem, name, known_by, place_of(path))


def described(spec: TestedModelSpec, resources: Resources, events: Events) -> dict[str, Any]:
    """The settings of a model for a manifest; warns of settings that its provider does not take."""
    transport = "client" if resources.client is not None else transport_of(spec)
    dropped = dropped_settings(spec) if transport == "litellm" else ()
    if dropped is None:
        events.note(
            f"warning: {spec.model}: litellm does not say what it would send, so settings that the "
            "provider does not take stay unknown"
        )
    if dropped:
        events.note(
            f"warning: {spec.model} is not sent {', '.join(dropped)}: its provider does not take "
            "that"
        )
    return {
        "settings": spec.model_dump(mode="json"),
        "transport": transport,
        "dropped": None if dropped is None else list(dropped),
    }

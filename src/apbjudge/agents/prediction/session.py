"""From cases to predictions: one run in one folder, resumable, and its counts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import orjson

from ...document.display import Shown
from ...errors import AccessError, OptionError
from ...llm.litellm_client import dropped_settings
from ...llm.resources import Resources, can_see, make_engine, transport_of
from ...records.own_columns import OF_CASES
from ...records.own_rows import own_rows
from ...records.run_folder import MANIFEST, PREDICTIONS, cases_in
from ...runs.batching import PendingRowsError
from ...runs.event_loops import block_on
from ...runs.folder import RecordLog, environment, manifest_states
from ...runs.loop import QUIET, Events, Lane, Progress, Worker, run_lanes
from ...runs.results import CallCounts, ModelRun, Tally
from ...runs.resume import inputs_json
from ...trajectories.convert import read_tool_list
from .config import CasesConfig, PlannerSpec, PredictConfig
from .prompts import CasePromptMaker
from .source import Cases, CaseSource, DraftSource, data_roots
from .worker import PREDICTION_RECORDS, REFUSED, Planner, PredictWorker, Row

Log = RecordLog[Row]


class PredictionCounts(CallCounts):
    """What became of what one tested model was asked.

    Attributes:
        predicted: Predictions, those below included.
        unreadable: Predictions in which no plan, steps or rejection can be read, empty ones
            included.
        truncated: Predictions cut off at the limit of tokens.
        refused: Predictions in which the model or a filter of its provider declined to answer.
        empty: Predictions without any text.
        only_thinking: Those of them whose model's thinking came, and no reply.
        unchanged: Refined predictions that say what their draft says.
        reused: Replies taken from the reply cache, whose tokens and costs are not counted.
        served_models: How often each name was reported by the endpoint.
    """

    predicted: int = 0
    unreadable: int = 0
    truncated: int = 0
    refused: int = 0
    empty: int = 0
    only_thinking: int = 0
    unchanged: int = 0
    reused: int = 0
    served_models: dict[str, int] = {}


@dataclass(frozen=True, slots=True, repr=False)
class PredictionRun(Shown, ModelRun[PredictionCounts]):
    """Finished predictions; stands for their file wherever one is taken. See ``ModelRun``.

    Attributes:
        failures: Failures as JSON rows, when kept in memory.
    """

    file = PREDICTIONS

    failures: tuple[Row, ...] = field(default=(), repr=False)

    def _printed(self) -> str:
        from .results_text import prediction_text

        return prediction_text(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionSession:
    """One session in one folder, before it begins.

    Attributes:
        source: Cases, or drafts.
        specs: The tested models.
        critic: Another model that is asked; None without.
        prompts: What they are sent.
        identity: What must be equal for two sessions to be the same run.
        described: What else the manifest says.
        full: Whether predictions are written with all fields of their cases.
        in_memory: Whether the rows are returned instead of kept.
        waits: Whether figures are made only when no row waits for a batch.
    """

    folder: Path
    source: CaseSource | DraftSource
    specs: Sequence[PlannerSpec]
    prompts: CasePromptMaker
    resources: Resources
    identity: Mapping[str, Any]
    critic: PlannerSpec | None = None
    described: Mapping[str, Any] = field(default_factory=dict[str, Any])
    full: bool = False
    events: Events = QUIET
    in_memory: bool = False
    overwrite: bool = False
    waits: bool = True


def planner_of(spec: PlannerSpec, resources: Resources, events: Events) -> Planner:
    """A model with what answers for it.

    Raises:
        OptionError: If the transport can't serve, or money is limited and prices are not known.
    """
    sees = can_see(spec, known=resources.client is None)
    return Planner(spec, make_engine(spec, resources), sees, events.note)


def predict_worker(session: PredictionSession, planners: Sequence[Planner]) -> PredictWorker:
    """What makes the predictions of a session."""
    return PredictWorker(planners, session.prompts, full=session.full)


def session_of(
    cases: Cases, config: PredictConfig, resources: Resources, events: Events
) -> PredictionSession:
    """The session of a configuration; without ``out`` in the current folder."""
    specs = config.planners
    if len({(spec.max_image_bytes, spec.max_text_bytes) for spec in specs}) > 1:
        raise OptionError(
            "--max-image-bytes, --max-text-bytes: expected the same for all tested models"
        )
    source = case_source(cases, config, config.out, note=events.note)
    source.models, source.samples = [spec.model for spec in specs], config.samples
    maker = CasePromptMaker.of(config.prompts, source.roots, specs[0])
    full = config.full or config.tools is not None  # what judges the answers knows the tools too
    return PredictionSession(
        folder=config.out or Path(),
        source=source,
        specs=specs,
        prompts=maker,
        resources=resources,
        identity={
            "command": "predict",
            "models": {spec.model: spec.asked for spec in specs},
            "prompts": [maker.prompts.name, maker.prompts.digest],
            "full": full,
            **source.reading.identity,
        },
        described={"samples": config.samples},
        full=full,
        events=events,
        in_memory=config.out is None,
        overwrite=config.overwrite,
    )


def case_source(
    cases: Cases,
    config: CasesConfig,
    out: Path | None = None,
    *,
    note: Callable[[str], object],
) -> CaseSource:
    """Cases of a file or in memory, perhaps of a run with a folder.

    Args:
        cases: The cases.
        config: How they are read.
        out: The run's folder, if there is one.
        note: Called with what is no tool in the file of tools.

    Raises:
        InputError: If the columns can't be read.
        OptionError: If the folder for files is none.
    """
    rows = cases_in(Path(cases)) if isinstance(cases, str | os.PathLike) else cases
    rows, reading = own_rows(rows, config.columns, OF_CASES, split=config.data_split)
    return CaseSource(
        rows=rows,
        reading=reading.of_run(out),
        tools=() if config.tools is None else read_tool_list(config.tools, note),
        data_roots=data_roots(config.data_root),
    )


def default_folder(rows: Path, session: PredictionSession, what: str) -> Path:
    """The folder a run gets when none is named: the same command finds it again."""
    path = os.fsencode(rows.resolve()).hex()
    digest = sha256(orjson.dumps([session.identity, path], option=orjson.OPT_SORT_KEYS)).hexdigest()
    specs = session.specs
    slug = specs[0].slug if len(specs) == 1 else f"{len(specs)}-models"
    return Path("runs") / f"{rows.stem}-{what}-{slug}-{digest[:6]}"


def open_log(session: PredictionSession) -> Log:
    """The records of a session, with those of earlier ones."""
    session.source.check()
    return RecordLog(
        session.folder,
        PREDICTION_RECORDS,
        session.identity,
        source=session.source,
        overwrite=session.overwrite,
        note=session.events.note,
    )


def claim(session: PredictionSession) -> None:
    """Refuses a folder that holds another run, and marks a new one as this run's."""
    with open_log(session) as log:
        if not (session.folder / MANIFEST).exists():
            log.write_manifest(_manifest(session, log) | {"state": "running"})


class Closable(Protocol):
    """What holds connections."""

    async def close(self) -> None:
        """Releases them."""
        ...


def carry_out(
    session: PredictionSession, worker: Worker[Any, Row], clients: Sequence[Closable]
) -> PredictionRun:
    """Carries out a session, and closes the clients that its worker asks."""
    with open_log(session) as log:
        manifest = _manifest(session, log)
        with manifest_states([(log, manifest)]):
            if session.source.reading.text:
                session.events.note(f"{session.source.name}: {session.source.reading.text}")
            progress = block_on(_ask(session, worker, clients, log))
            if progress.pending and session.waits:
                raise PendingRowsError(progress)
            counts, gaps = counts_of(log.current()), session.source.gaps
            for line in gaps.lines():
                session.events.note(f"{session.source.name}: {line}")
            manifest |= {
                **({"input_gaps": gaps.to_json()} if gaps.to_json() else {}),
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                "input_sha256": session.source.digest.hexdigest(),
                "counts": {name: each.model_dump() for name, each in counts.items()},
                "state": "done",
            }
            log.write_manifest(manifest)
        if not session.in_memory:
            return PredictionRun(session.folder, counts, manifest, progress)
        rows = list(log.current())
        kept = tuple(row for row in rows if row.get("reason") is None)
        failed = tuple(row for row in rows if row.get("reason") is not None)
        return PredictionRun(None, counts, manifest, progress, kept, failures=failed)


async def _ask(
    session: PredictionSession, worker: Worker[Any, Row], clients: Sequence[Closable], log: Log
) -> Progress:
    lane: Lane[Any, Row] = Lane(session.source, worker, log)
    asked = [*session.specs, *([session.critic] if session.critic is not None else [])]
    concurrency = sum(spec.max_concurrency for spec in asked)
    return await ask_models(lane, clients, concurrency=concurrency, events=session.events)


async def ask_models(
    lane: Lane[Any, Row], clients: Sequence[Closable], *, concurrency: int, events: Events
) -> Progress:
    """Carries out a run whose worker asks models, and closes their clients.

    Raises:
        OptionError: If no call can succeed.
    """
    try:
        return await run_lanes([lane], concurrency=concurrency, events=events)
    except AccessError as error:
        raise OptionError(str(error)) from None
    finally:
        for client in clients:
            await client.close()


def _manifest(session: PredictionSession, log: Log) -> dict[str, Any]:
    source, prompts = session.source, session.prompts.prompts
    critic, resources, events = session.critic, session.resources, session.events
    return {
        **environment(["pydantic", "orjson", "aiohttp", "litellm", "jinja2"]),
        "input": source.input,
        "inputs": inputs_json(log.inputs),
        "data_root": str(source.data_roots[0]) if source.data_roots else None,
        "identity": session.identity,
        **session.described,
        "prompts": {
            "name": prompts.name,
            "sha256": prompts.digest,
            "shows_condition": prompts.shows_condition,
        },
        "models": {spec.model: described(spec, resources, events) for spec in session.specs},
        "critic": None if critic is None else {critic.model: described(critic, resources, events)},
    }


def described(spec: PlannerSpec, resources: Resources, events: Events) -> dict[str, Any]:
    """How a model is asked; warns of settings that its provider does not take."""
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


def counts_of(rows: Iterator[Row]) -> dict[str, PredictionCounts]:
    """What became of the tasks of each tested model, by its name."""
    tallies: dict[str, Tally] = {}
    served: dict[str, Counter[str]] = {}
    for row in rows:
        tally = tallies.setdefault(name := row["tested_model"] or "", Tally())
        if not tally.take(row):
            continue
        count = tally.n
        count["predicted"] += 1
        count["unreadable"] += row.get("is_readable") is False
        count["truncated"] += row.get("finish_reason") == "length"
        count["refused"] += row.get("finish_reason") in REFUSED or bool(row.get("refusal"))
        count["unchanged"] += row.get("is_unchanged") is True
        count["empty"] += not row["model_response"].strip()
        count["only_thinking"] += "reasoning_content" in row
        count["prompt_tokens"] += row["usage"]["prompt_tokens"]
        count["completion_tokens"] += row["usage"]["completion_tokens"]
        count["reused"] += row["usage"]["reused"]
        if row.get("served_model"):
            served.setdefault(name, Counter())[row["served_model"]] += 1
    return {
        name: PredictionCounts(**tally.fields, served_models=dict(served.get(name, {})))
        for name, tally in sorted(tallies.items())
    }

"""Tested models in a world: one run in one folder, resumable, also in the middle of an episode."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import OptionError
from ..jsonl import read_lines
from ..llm import Client
from ..llm.resources import Resources, shared_resources
from ..prediction.session import ask_models, described, planner_of
from ..prediction.worker import CALLS
from ..records import Record
from ..records.trajectories import trajectory_of
from ..runs.event_loops import block_on
from ..runs.folder import RecordLog, environment, manifest_states, temporary_folder
from ..runs.loop import QUIET, Events, Lane, Progress
from ..runs.resume import inputs_json
from .base import World
from .config import SimulateConfig
from .episodes import (
    TRAJECTORIES,
    TRAJECTORY_RECORDS,
    EpisodeSource,
    EpisodeWorker,
    Row,
    digest_of,
)
from .worlds import open_world


class EpisodeCounts(Record):
    """What became of the episodes of one tested model.

    Attributes:
        played: Episodes that ended.
        successes: Those of them that the world calls a success; None where it says of none.
        endings: How they ended, by the world's word.
        failed: Episodes without an end, by reason.
        turns: Replies in all.
        prompt_tokens: Tokens sent.
        completion_tokens: Tokens received.
        cost_usd: Known costs; None where a price is not known.
    """

    played: int = 0
    successes: int | None = None
    endings: dict[str, int] = {}
    failed: dict[str, int] = {}
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Simulation:
    """Finished episodes; stands for their file wherever a log is taken.

    Attributes:
        folder: Where the files are; None when they were kept in memory.
        counts: By tested model.
        manifest: Versions, hashes, settings, counts.
        progress: What this session did.
        rows: Trajectories as JSON rows, when kept in memory.
    """

    folder: Path | None
    counts: Mapping[str, EpisodeCounts]
    manifest: dict[str, Any]
    progress: Progress
    rows: tuple[Row, ...] = field(default=(), repr=False)
    _files: list[str] = field(default_factory=list[str], compare=False, repr=False)

    @property
    def failed(self) -> int:
        """Episodes without an end."""
        return sum(sum(each.failed.values()) for each in self.counts.values())

    def __iter__(self) -> Iterator[Row]:
        """The trajectories as JSON rows."""
        if self.folder is None:
            return iter(self.rows)
        lines = read_lines(self.folder / TRAJECTORIES)
        return (line.values for line in lines if isinstance(line.values, dict))

    def __fspath__(self) -> str:
        """The file of trajectories; for a run in memory a temporary one."""
        if self.folder is not None:
            return os.fspath(self.folder / TRAJECTORIES)
        if not self._files:
            folder = temporary_folder(self, {TRAJECTORIES: self.rows}, self.manifest)
            self._files.append(str(folder / TRAJECTORIES))
        return self._files[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSession:
    """One session in one folder, before it begins.

    Attributes:
        identity: What must be equal for two sessions to be the same run.
    """

    folder: Path
    world: World
    path: str
    config: SimulateConfig
    resources: Resources
    identity: Mapping[str, Any]
    events: Events = QUIET
    in_memory: bool = False


def simulate(
    world: str | Path | World,
    config: SimulateConfig | None = None,
    *,
    client: Client | None = None,
    events: Events = QUIET,
    **settings: Any,
) -> Simulation:
    """Lets tested models act in a world.

    Without ``out`` everything stays in memory. The same call with the same folder goes on where it
    was interrupted, in the middle of an episode too: replies that came are not paid for again.

    Args:
        world: A file or folder that holds one, or a world.
        config: The settings; else they are given one by one.
        client: Answers requests in place of the network.
        events: Called back while the run goes on.
        **settings: The fields of ``SimulateConfig``, in place of ``config``.

    Raises:
        OptionError: If a setting or a model's access is unusable, or ``out`` holds another run.
        InputError: If the files of the world are missing or contradict each other.
    """
    config = config or SimulateConfig(**settings)
    with (
        TemporaryDirectory(prefix="apbjudge-") if config.out is None else nullcontext(config.out)
    ) as folder:
        is_kept = config.out is not None
        session = session_of(
            world, config, Path(folder), client=client, events=events, in_memory=not is_kept
        )
        return simulate_in(session)


def session_of(
    world: str | Path | World,
    config: SimulateConfig,
    folder: Path | None,
    *,
    client: Client | None = None,
    events: Events = QUIET,
    in_memory: bool,
) -> SimulationSession:
    """The session of a configuration; a folder of None is named after world and models."""
    path = os.fspath(world) if isinstance(world, str | Path) else ""
    if isinstance(world, str | Path):
        world = open_world(Path(world), config.world, _options(config.options))
    if unknown := sorted(set(config.tasks) - set(world.tasks)):
        raise OptionError(f"--tasks: expected tasks of the world, got {unknown[0]!r}")
    identity = {
        "command": "simulate",
        "world": [world.name, world.setting, world.digest],
        "models": {spec.model: spec.asked for spec in config.planners},
        "limits": [config.max_turns, config.max_episode_tokens, config.max_episode_cost],
    }
    if folder is None:
        slug = config.model[0].slug if len(config.model) == 1 else f"{len(config.model)}-models"
        folder = Path("runs") / f"{Path(path).name}-{slug}-{digest_of(identity)[:6]}"
    resources = shared_resources(client=client, limits=config, cache=config.cache, warn=events.note)
    return SimulationSession(
        folder=folder,
        world=world,
        path=path,
        config=config,
        resources=resources,
        identity=identity,
        events=events,
        in_memory=in_memory,
    )


def _options(texts: Sequence[str]) -> dict[str, str]:
    """Settings of a world by name.

    Raises:
        OptionError: If one has no name, or a name comes twice.
    """
    options: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name or not sign or name in options:
            raise OptionError(f"--with: expected NAME=VALUE, each name once, got {text!r}")
        options[name] = value
    return options


def simulate_in(session: SimulationSession) -> Simulation:
    """Carries out a session."""
    config, events, world = session.config, session.events, session.world
    # without a cache, replies are kept in the run's folder: an episode goes on where it was killed
    cache = session.resources.cache or session.folder / CALLS
    resources = replace(session.resources, cache=cache, is_durable=True)
    chosen = set(config.tasks)
    tasks = [{"id": task} for task in world.tasks if not chosen or task in chosen]
    source = EpisodeSource(
        rows=tasks, models=[spec.model for spec in config.planners], trials=config.trials
    )
    log = RecordLog(
        session.folder,
        TRAJECTORY_RECORDS,
        session.identity,
        source=source,
        overwrite=config.overwrite,
        note=events.note,
    )
    with closing(log):
        manifest: dict[str, Any] = {
            **environment(["pydantic", "orjson", "aiohttp", "litellm"]),
            "input": session.path,
            "inputs": inputs_json(log.inputs),
            "identity": session.identity,
            "trials": config.trials,
            "options": list(config.options),
            "models": {spec.model: described(spec, resources, events) for spec in config.planners},
        }
        planners = [planner_of(spec, resources, events) for spec in config.planners]
        worker = EpisodeWorker(world, planners, config)
        with manifest_states([(log, manifest)]):
            progress = block_on(
                ask_models(
                    Lane(source, worker, log),
                    [planner.client for planner in planners],
                    concurrency=sum(spec.max_concurrency for spec in config.planners),
                    events=events,
                )
            )
        counts = _counts(log.current())
        manifest |= {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "counts": {name: each.model_dump() for name, each in counts.items()},
            "state": "done",
        }
        log.write_manifest(manifest)
        if not session.in_memory:
            return Simulation(session.folder, counts, manifest, progress)
        rows = tuple(row for row in log.current() if row.get("reason") is None)
        return Simulation(None, counts, manifest, progress, rows)


def _counts(rows: Iterator[Row]) -> dict[str, EpisodeCounts]:
    """What became of the episodes of each tested model, in the order of their first record."""
    sums: dict[str, Counter[str]] = {}
    endings: dict[str, Counter[str]] = {}
    failed: dict[str, Counter[str]] = {}
    costs: dict[str, float | None] = {}
    for row in rows:
        name = row["tested_model"] or ""
        count = sums.setdefault(name, Counter())
        if row.get("reason") is not None:
            failed.setdefault(name, Counter())[row["reason"]] += 1
            continue
        count["played"] += 1
        count["turns"] += row["turns"]
        success = trajectory_of(row).outcome
        if success is not None and success.is_success is not None:
            count["successes"] += success.is_success
        endings.setdefault(name, Counter())[row.get("termination", "")] += 1
        count["prompt_tokens"] += row["usage"]["prompt_tokens"]
        count["completion_tokens"] += row["usage"]["completion_tokens"]
        cost, so_far = row["cost_usd"], costs.get(name, 0.0)
        costs[name] = None if cost is None or so_far is None else so_far + cost
    return {
        name: EpisodeCounts(
            **count,
            endings=dict(endings.get(name, {})),
            failed=dict(failed.get(name, {})),
            cost_usd=costs.get(name, 0.0),
        )
        for name, count in sums.items()
    }

"""Tested models in a world: one run in one folder, resumable, also in the middle of an episode."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...document.display import Shown
from ...errors import PluginError, guarded, shorten
from ...llm import Client
from ...llm.resources import shared_resources
from ...options import takes
from ...records.trajectories import trajectory_of
from ...runs.folder import RecordLog
from ...runs.loop import QUIET, Events
from ...runs.results import CallCounts, ModelRun, Tally
from .base import World, task_ids
from .config import SimulateConfig
from .episodes import TRAJECTORIES, TRAJECTORY_RECORDS, EpisodeWorker
from .runner import EpisodeSession, Row, carry_out, default_folder
from .worlds import open_world


class EpisodeCounts(CallCounts):
    """What became of the episodes of one tested model.

    Attributes:
        played: Episodes that ended.
        successes: Those of them that the world calls a success; None where it says of none.
        endings: How they ended, by the world's word.
        turns: Replies in all.
    """

    played: int = 0
    successes: int | None = None
    endings: dict[str, int] = {}
    turns: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Simulation(Shown, ModelRun[EpisodeCounts]):
    """Finished episodes; stands for their file wherever a log is taken. See ``ModelRun``."""

    file = TRAJECTORIES

    def _printed(self) -> str:
        from .results_text import simulation_text

        return simulation_text(self.counts)


@takes(config=SimulateConfig)
def simulate(
    world: str | Path | World,
    config: SimulateConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> Simulation:
    """Lets tested models act in a world.

    Without ``out`` everything stays in memory. The same call with the same folder goes on where it
    was interrupted, in the middle of an episode too: replies that came are not paid for again.

    Args:
        world: A file or folder that holds one, or a world.
        config: The settings; options count more.
        client: Answers requests in place of the network.
        events: Called back while the run goes on.

    Raises:
        OptionError: If a setting or a model's access is unusable, or ``out`` holds another run.
        InputError: If the files of the world are missing or contradict each other, or its tasks
            have no ids of their own.
        PluginError: If the code of the world fails before the first episode. What fails in an
            episode is that episode's failure (``infrastructure``).
    """
    session = simulation_session(world, config, client=client, events=events)
    if config.out is not None:
        return simulate_in(session)
    with TemporaryDirectory(prefix="apbjudge-") as folder:
        return simulate_in(replace(session, folder=Path(folder)), in_memory=True)


def simulation_session(
    world: str | Path | World,
    config: SimulateConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> EpisodeSession:
    """The session of a configuration; without ``out`` its folder is named after all of it."""
    path = None
    if isinstance(world, str | Path):
        path, world = os.fspath(world), open_world(Path(world), config.kind, config.named_options)
    place, specs, plugin = world, config.planners, f"environment {type(world).__name__}"
    *texts, ids = guarded(plugin, attrgetter("name", "setting", "digest", "tasks"))(place)
    kinds = str, str, str, Iterable
    if isinstance(ids, str) or not all(map(isinstance, (*texts, ids), kinds)):
        expected = "name, setting and digest as text, and a list of tasks"
        raise PluginError(f"{plugin}: expected {expected}, got {shorten([*texts, ids])}")
    tasks = task_ids(texts[0], ids)
    path = path or texts[0]
    identity = {
        "command": "simulate",
        "world": texts,
        "models": {spec.model: spec.asked for spec in specs},
        "limits": config.changed(("max_turns", "max_episode_tokens", "max_episode_cost")),
    }
    return EpisodeSession(
        folder=config.out or default_folder(Path(path).stem, specs, identity),
        kind=TRAJECTORY_RECORDS,
        name=path,
        tasks=config.taken(tasks),
        specs=specs,
        resources=shared_resources(
            client=client, limits=config, cache=config.cache, warn=events.note
        ),
        identity=identity,
        worker=lambda planners: EpisodeWorker(place, planners, config),
        trials=config.trials,
        described={"options": list(config.options)},
        events=events,
        overwrite=config.overwrite,
    )


def simulate_in(session: EpisodeSession, *, in_memory: bool = False) -> Simulation:
    """Carries out a session."""
    rows: list[Row] = []

    def take(log: RecordLog[Row]) -> Mapping[str, Any]:
        if in_memory:
            rows.extend(row for row in log.current() if row.get("reason") is None)
        counts = _counts(log.current())
        return {"counts": {name: each.model_dump() for name, each in counts.items()}}

    manifest, progress = carry_out(session, take)
    counts = {name: EpisodeCounts(**each) for name, each in manifest["counts"].items()}
    folder = None if in_memory else session.folder
    return Simulation(folder, counts, manifest, progress, tuple(rows))


def _counts(rows: Iterator[Row]) -> dict[str, EpisodeCounts]:
    """What became of the episodes of each tested model, in the order of their first record."""
    tallies: dict[str, Tally] = {}
    endings: dict[str, Counter[str]] = {}
    for row in rows:
        tally = tallies.setdefault(name := row["tested_model"] or "", Tally())
        if not tally.take(row):
            continue
        count = tally.n
        count["played"] += 1
        count["turns"] += row["turns"]
        success = trajectory_of(row).outcome
        if success is not None and success.is_success is not None:
            count["successes"] += success.is_success
        endings.setdefault(name, Counter())[row.get("termination", "")] += 1
        count["prompt_tokens"] += row["usage"]["prompt_tokens"]
        count["completion_tokens"] += row["usage"]["completion_tokens"]
    return {
        name: EpisodeCounts(**tally.fields, endings=dict(endings.get(name, {})))
        for name, tally in tallies.items()
    }

"""Tested models in an environment: one run in one folder, resumable within an episode too."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from ...document.display import Shown
from ...errors import PluginError, guarded, shorten
from ...llm import Client
from ...options import takes
from ...records.trajectories import trajectory_of
from ...runs.loop import QUIET, Events
from ...runs.results import CallCounts, ModelRun, Tally
from ...runs.shards import part_of
from ..prediction.asking import AskingSession, carry_out_alone, folder_named, resources_of
from .base import Benchmark, task_ids
from .benchmarks import open_benchmark
from .config import SimulateConfig
from .episodes import TRAJECTORIES, TRAJECTORY_RECORDS, EpisodeWorker
from .runner import EpisodeSource, Row


class EpisodeCounts(CallCounts):
    """Counts of the episodes of one tested model.

    Attributes:
        played: Episodes that ended.
        successes: Those of them that the environment calls a success; None if it says of none.
        endings: Numbers of endings, by the environment's word.
        turns: Replies in all.
    """

    played: int = 0
    successes: int | None = None
    endings: dict[str, int] = {}
    turns: int = 0

    @staticmethod
    def count(tally: Tally, row: Row) -> None:
        """Counts an episode that ended."""
        tally.n["played"] += 1
        tally.n["turns"] += row["turns"]
        tally.by["endings"][row.get("termination", "")] += 1
        success = trajectory_of(row).outcome
        if success is not None and success.is_success is not None:
            tally.n["successes"] += success.is_success


@dataclass(frozen=True, slots=True, repr=False)
class Simulation(Shown, ModelRun[EpisodeCounts]):
    """Finished episodes; accepted wherever a log is. See ``ModelRun``."""

    file = TRAJECTORIES
    counts_type = EpisodeCounts

    def _printed(self) -> str:
        from .results_text import simulation_text

        return simulation_text(self.counts)


@takes(config=SimulateConfig)
def simulate(
    benchmark: str | Path | Benchmark,
    config: SimulateConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> Simulation:
    """Lets tested models act in an environment.

    Without ``out`` everything stays in memory. The same call with the same folder resumes where it
    was interrupted, in the middle of an episode too: replies that came are not paid for again.

    Args:
        benchmark: A benchmark, or a file or folder with one.
        config: The settings; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks during the run.

    Raises:
        OptionError: If a setting or a model's access is unusable, or ``out`` holds another run.
        InputError: If the files of the benchmark are missing or contradict each other, or its tasks
            have no ids of their own.
        PluginError: If the code of the benchmark fails before the first episode. What fails in an
            episode is that episode's failure (``infrastructure``).
    """
    session = simulation_session(benchmark, config, client=client, events=events)
    return carry_out_alone(session)


def simulation_session(
    benchmark: str | Path | Benchmark,
    config: SimulateConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> AskingSession[Simulation]:
    """The session of a configuration; without ``out`` its folder is named after all of it."""
    path = None
    if isinstance(benchmark, str | Path):
        path = os.fspath(benchmark)
        benchmark = open_benchmark(Path(path), config.kind, config.named_options)
    place, specs, plugin = benchmark, config.specs, f"environment {type(benchmark).__name__}"
    *texts, ids = guarded(plugin, attrgetter("name", "setting", "digest", "tasks"))(place)
    kinds = str, str, str, Iterable
    if isinstance(ids, str) or not all(map(isinstance, (*texts, ids), kinds)):
        expected = "name, setting and digest as text, and a list of tasks"
        raise PluginError(f"{plugin}: expected {expected}, got {shorten([*texts, ids])}")
    tasks = task_ids(texts[0], ids)
    path = path or texts[0]
    about: dict[str, Any] = {
        "input": path,
        "trials": config.trials,
        "options": list(config.options),
    }
    if files := getattr(place, "prompt_files", None):
        about["prompt_files"] = dict(files)
    identity = {
        "command": "simulate",
        "benchmark": texts,
        "models": {spec.model: spec.asked for spec in specs},
        "limits": config.limits,
    }
    models = [spec.model for spec in specs]
    source = EpisodeSource.of(config.taken(tasks), models, config.trials, part_of(config))
    return AskingSession(
        folder=config.out or folder_named(path, source, specs, identity),
        run=Simulation,
        kind=TRAJECTORY_RECORDS,
        source=source,
        specs=specs,
        resources=resources_of(config, client, events),
        known_by=identity,
        worker=lambda asked_models: EpisodeWorker(place, asked_models, config),
        about=about,
        events=events,
        in_memory=config.out is None,
        overwrite=config.overwrite,
    )

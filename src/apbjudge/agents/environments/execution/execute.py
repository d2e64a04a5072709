"""Tasks carried out: drafts and reviews where a mode needs plans, then an episode a trial."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from ....document.display import Shown
from ....errors import InputError, OptionError
from ....jsonl import write_atomically, write_rows
from ....llm import Client
from ....llm.resources import Resources
from ....options import takes
from ....records.run_folder import CASES
from ....records.trajectories import trajectory_of
from ....runs.folder import RecordLog, temporary_folder
from ....runs.loop import QUIET, Events
from ....runs.results import FailureCounts
from ....runs.session import carry_out, default_folder, folder_of
from ....runs.shards import part_of
from ...prediction.asking import AskingSession, carry_out_alone, resources_of
from ...prediction.config import PredictConfig, RefineConfig, TestedModelSpec
from ...prediction.predict import predict_in
from ...prediction.prompts import CasePromptMaker
from ...prediction.refine import refine_session
from ...prediction.session import PredictionRun, session_of
from ...prediction.worker import asking_records
from ..benchmarks import open_hosted
from ..episodes import TRAJECTORIES
from ..runner import EpisodeSource, Row
from ..simulate import Simulation
from .benchmark import HostedBenchmark
from .config import PLANNED, UNASKED, ExecuteConfig, Mode
from .executions import EXECUTED, RATER, EndedEpisode
from .planned import Plans
from .step_states import StepRun, carry_out_steps
from .workers import NOT_EXECUTABLE, ActingWorker, ModeTasks, UnaskedWorker

DRAFTS, REFINED, BOUND_DRAFTS = "drafts", "refined", "bound-drafts"
BOUND_PROMPTS = "bound@1"

EXECUTION_RECORDS = asking_records(
    "episode",
    TRAJECTORIES,
    ids=("id", "tested_model"),
    check=trajectory_of,
    figures=(EXECUTED,),
)


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class ExecutionRun(Shown):
    """Tasks that were carried out.

    Attributes:
        folder: Folder of the files; None if they stayed in memory.
        benchmark: Name of the benchmark, and its package with version.
        drafts: The plans that were drafted, by name of their folder; empty without.
        modes: The episodes of each mode.
        executed: Outcome of each episode, as rows of ``executed.jsonl``.
        steps: Results of step-wise predictions; None in other modes.
    """

    folder: Path | None
    benchmark: tuple[str, str]
    drafts: Mapping[str, PredictionRun]
    modes: Mapping[str, Simulation]
    executed: tuple[Row, ...] = field(repr=False)
    steps: StepRun | None = None
    _files: list[str] = field(default_factory=list[str], compare=False)

    def __fspath__(self) -> str:
        """The folder; for a run in memory a temporary one, which goes with the run."""
        if self.folder is not None:
            return os.fspath(self.folder)
        if not self._files:
            files = {f"{mode}/{run.file}": run.rows for mode, run in self.modes.items()}
            folder = temporary_folder(self, {EXECUTED: self.executed, **files}, {})
            self._files.append(str(folder))
        return self._files[0]

    @property
    def logs(self) -> list[Simulation]:
        """The trajectories of each mode, as ``grade`` takes them."""
        return [*self.modes.values()]

    @property
    def counts(self) -> list[FailureCounts]:
        """Counts of plans and episodes, of all modes and tested models."""
        runs = [*self.drafts.values(), *self.modes.values(), self.steps]
        return [each for run in runs if run is not None for each in run.counts.values()]

    @property
    def failed(self) -> int:
        """Plans and episodes that have no end."""
        return sum(sum(each.failed.values()) for each in self.counts)

    def _printed(self) -> str:
        from ..results_text import execution_text

        return execution_text(self)


@takes(config=ExecuteConfig)
def execute(
    benchmark: str,
    config: ExecuteConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> ExecutionRun:
    """Lets tested models carry out the tasks of a benchmark, with or without a plan.

    Each episode's tools work in a process of their own with bounded time and memory, held by
    bubblewrap where that can be used: without keys, network and files to write to. The same call
    with the same folder continues where it was interrupted, in the middle of an episode too.

    Args:
        benchmark: Its name, such as ``tau2-telecom``.
        config: The settings; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks during the run.

    Raises:
        OptionError: If a setting, the benchmark or a model's access is unusable, its package is not
            installed, or ``out`` holds another run.
        InputError: If the benchmark or the file of plans can't be read.
    """
    resources = resources_of(config, client, events)
    with (
        open_hosted(benchmark, config.named_options, config, events.note) as opened,
        folder_of(config.out) as folder,
    ):
        return execute_in(opened, config, folder, resources, events, in_memory=config.out is None)


def execution_folder(benchmark: str, config: ExecuteConfig) -> Path:
    """The folder a run gets when none is named: the same command finds it again."""
    left_out = {"mode", "first", "out", "overwrite", "work", "upload_every", "cache", "sandbox"}
    content = [config.model_dump(mode="json", exclude=left_out)]
    names = [spec.slug for spec in config.model] or list(config.mode)
    slug = names[0] if len(names) == 1 else f"{len(names)}-models"
    return default_folder(Path(benchmark).stem, slug, benchmark, content)


def execute_in(
    benchmark: HostedBenchmark,
    config: ExecuteConfig,
    folder: Path,
    resources: Resources,
    events: Events,
    *,
    in_memory: bool = False,
) -> ExecutionRun:
    """Carries out the tasks of an open benchmark in a folder; see ``execute``."""
    tasks = _tasks(benchmark, config)
    where = None if in_memory else folder
    if config.plans is not None and config.mode == ("steps",):
        steps = carry_out_steps(
            benchmark,
            config.plans,
            config,
            folder=folder / "steps",
            resources=resources,
            events=events,
            in_memory=in_memory,
        )
        return ExecutionRun(where, (benchmark.name, benchmark.version), {}, {}, steps.labels, steps)
    _write_cases(benchmark, tasks, folder)
    stage = _Stage(benchmark, config, folder, resources, events, tasks)
    drafts: dict[str, PredictionRun] = {}
    modes: dict[str, Simulation] = {}
    executed: list[Row] = []
    for mode in config.mode:
        plans = None
        if mode in PLANNED:
            plans = Plans(config.plans or stage.plans(mode, drafts), events.bad_row)
            if config.plans is not None and not plans.models:
                raise InputError(f"{config.plans}: expected predictions, got none")
        session = stage.session(mode, plans, executed)
        modes[mode] = carry_out([replace(session, in_memory=in_memory)])[0]
    return ExecutionRun(where, (benchmark.name, benchmark.version), drafts, modes, tuple(executed))


def _tasks(benchmark: HostedBenchmark, config: ExecuteConfig) -> list[str]:
    """The tasks to take; raises OptionError if they don't fit the modes."""
    tasks = config.taken(list(benchmark.tasks))
    acting = [mode for mode in config.mode if mode not in UNASKED]
    users = {benchmark.tasks[task].user for task in tasks}
    if acting and "model" in users and config.user_model is None:
        raise OptionError(
            "--user-model: expected a model that plays the user, got none (--with user=… names "
            "ways without one, where the benchmark has them)"
        )
    if planned := [mode for mode in config.mode if mode in PLANNED]:
        if "scripted" in users:
            raise OptionError(
                f"--mode {planned[0]}: expected tasks that are known from the start (--with "
                "turns=joined), got requests that come one by one"
            )
        if any(not benchmark.case(task).query for task in tasks):
            raise OptionError(
                f"--mode {planned[0]}: expected tasks with a query to plan for, got some without"
            )
    return tasks


def _write_cases(benchmark: HostedBenchmark, tasks: Sequence[str], folder: Path) -> None:
    """Writes the tasks as plan cases, unless they stand there."""
    data = b"".join(orjson.dumps(row) + b"\n" for row in map(benchmark.row, tasks))
    path = folder / CASES
    if not path.is_file() or path.read_bytes() != data:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)


@dataclass(frozen=True, slots=True)
class _Stage:
    """Resources that the parts of one run share."""

    benchmark: HostedBenchmark
    config: ExecuteConfig
    folder: Path
    resources: Resources
    events: Events
    tasks: Sequence[str]

    def plans(self, mode: Mode, drafts: dict[str, PredictionRun]) -> Path:
        """Folder of the plans that a mode carries out, drafted now where that is not yet done."""
        name = BOUND_DRAFTS if mode == "bound" else DRAFTS
        if name not in drafts:
            prompts = BOUND_PROMPTS if mode == "bound" else self.config.prompts
            drafts[name] = self._draft(name, prompts)
        if mode == "refine" and REFINED not in drafts:
            drafts[REFINED] = self._refine()
        return self.folder / (REFINED if mode == "refine" else name)

    def _draft(self, name: str, prompts: str) -> PredictionRun:
        config = PredictConfig(
            model=self.config.model,
            samples=self.config.trials,
            prompts=prompts,
            shard=self.config.shard,
            out=self.folder / name,
            overwrite=self.config.overwrite,
        )
        session = session_of(str(self.folder / CASES), config, self.resources, self.events)
        return predict_in(session, batch=False)

    def _refine(self) -> PredictionRun:
        config = RefineConfig(
            mode=self.config.review,
            guide=self.config.guide,
            critic=self.config.critic,
            model=self.config.specs,
            cases=self.folder / CASES,
            out=self.folder / REFINED,
            overwrite=self.config.overwrite,
        )
        session = refine_session(self.folder / DRAFTS, config, self.resources, self.events)
        return carry_out_alone(session)

    def session(
        self, mode: Mode, plans: Plans | None, executed: list[Row]
    ) -> AskingSession[Simulation]:
        """The episodes of a mode; ``executed`` gets a row for each that came to an end."""
        config, benchmark = self.config, self.benchmark
        specs = () if mode in UNASKED else config.specs
        user = config.user_model if specs else None
        models, who = _models(mode, specs, plans, has_plans=config.plans is not None)
        spec = specs[0] if specs else TestedModelSpec(model="none")
        maker = CasePromptMaker.of(config.prompts, (self.folder,), spec)
        tasks = ModeTasks(benchmark, mode, maker, plans)
        helpers = {} if user is None else {"--user-model": user}

        def take(log: RecordLog[Row]) -> None:
            executed.extend(write_executed(log, mode, benchmark.name))

        def worker(asked_models: Sequence[Any]) -> ActingWorker | UnaskedWorker:
            if not specs:
                return UnaskedWorker(tasks)
            tested = [asked_models[at] for at in who]
            return ActingWorker(tasks, tested, asked_models[-1] if helpers else None, config)

        return AskingSession(
            run=Simulation,
            folder=self.folder / mode,
            kind=EXECUTION_RECORDS,
            source=EpisodeSource.of(self.tasks, models, config.trials, part_of(config)),
            specs=specs,
            helpers=helpers,
            resources=self.resources,
            known_by={
                "command": "execute",
                "mode": mode,
                "benchmark": benchmark.identity,
                "models": {spec.model: spec.asked for spec in specs},
                "user": None if user is None else user.asked,
                "plans": None if config.plans is None else os.fspath(config.plans),
                "limits": config.limits,
            },
            worker=worker,
            about={
                "input": benchmark.name,
                "trials": config.trials,
                **benchmark.described,
                "review": config.review,
            },
            events=self.events,
            overwrite=config.overwrite,
            take=take,
        )


def _models(
    mode: Mode, specs: Sequence[TestedModelSpec], plans: Plans | None, *, has_plans: bool
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names of the tested models, and for each the index of the model that acts for it.

    Plans of others are carried out by the model of their name, or by the only one that is named.
    """
    if plans is None or not has_plans:
        names = tuple(spec.model for spec in specs) or (mode,)
        if not specs and plans is not None:
            names = plans.models
        return names, tuple(range(len(specs)))
    names, known = plans.models, [spec.model for spec in specs]
    if not specs:
        return names, ()
    if len(specs) > 1 and (missing := [name for name in names if name not in known]):
        raise OptionError(f"--model: expected {missing[0]}, whose plans are carried out, or one")
    return names, tuple(known.index(name) if name in known else 0 for name in names)


def write_executed(log: RecordLog[Row], mode: Mode, benchmark: str) -> list[Row]:
    """Writes the outcomes of a mode's episodes next to these, and returns them."""
    rows = list(_executed(log.current(), mode, benchmark))
    write_rows(log.folder / EXECUTED, rows)
    return rows


def _executed(rows: Iterator[Row], mode: Mode, benchmark: str) -> Iterator[Row]:
    """The outcome of each episode, as labels of the plans that were carried out."""
    times: dict[tuple[str, str], int] = {}
    ended = [
        row
        for row in rows
        if row.get("reason") is None and row.get("termination") != NOT_EXECUTABLE
    ]
    for row in sorted(ended, key=lambda row: (row["line"], row["trial"], row["tested_model"])):
        run = trajectory_of(row)
        if run.outcome is None or run.outcome.is_success is None:
            continue
        name = run.extra.get("plan", run.trajectory_id)
        times[name, run.tested_model] = n = times.get((name, run.tested_model), 0) + 1
        episode = EndedEpisode(
            item_id=name,
            case_id=run.case_id,
            tested_model=run.tested_model,
            mode=mode,
            environment=benchmark,
            trial=run.trial or 0,
            is_correct=run.outcome.is_success,
            reward=run.outcome.reward or 0.0,
            null_reward=run.extra.get("null_reward"),
            termination=run.termination,
            plan_sha256=run.extra.get("plan_sha256", ""),
        )
        yield episode.label(RATER if n == 1 else f"{RATER}#{n}")

"""Branching of all cases of a file: one run in one folder, one record a case, resumable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ....document.display import Shown
from ....errors import OptionError, RowError, visible
from ....jsonl import replacing
from ....llm import Client
from ....llm.base import Clock, Completion, Request
from ....memory import Rows, path_of
from ....options import takes
from ....records import Usage
from ....records.loose_json import as_list
from ....records.trajectories import Trajectory, trajectory_row
from ....runs.folder import RecordLog
from ....runs.loop import QUIET, Events, Job
from ....runs.results import CallCounts, ModelRun, Tally
from ....runs.shards import part_of
from ....trajectories.comparison import ModelComparison, TextPair
from ....trajectories.slate import load_cases
from ...prediction.asking import AskingSession, carry_out_alone, folder_named, resources_of
from ...prediction.config import sampling
from ...prediction.worker import Account, AskedModel, AskingWorker, asking_records, attempted
from ..plans import PlanBenchmark
from ..runner import Episode, EpisodeSource, Row
from ..slate.tasks import SlateTasks
from .config import BranchConfig, BranchRunConfig
from .memory import TRAJECTORIES, Memory
from .model_policy import AskedCounts, ModelPolicy, ModelVerifier
from .prompts import PROMPTS
from .search import BranchResult, branch_case

BRANCHED = "branched.jsonl"


_OF_AGENT = ("samples", "labels", "max_candidates", "scope", "sweep")
"""Settings that identify a run, in addition to those of the search."""


def _check(row: Row) -> None:
    if as_list(row.get("runs")) is None:
        raise RowError("runs", "a list of trajectories", row.get("runs"))


BRANCH_RECORDS = asking_records(
    "case", BRANCHED, ids=("id", "tested_model"), check=_check, figures=(TRAJECTORIES,)
)


class BranchCounts(CallCounts):
    """Counts of the cases of one tested model.

    Attributes:
        cases: Cases run, each trial counted separately.
        first_successes: First passes that are right by the reference.
        successes: Results that are right by the reference.
        branches: Runs after the first pass: branches, or further whole runs.
        runs: All runs.
        votes: Runs that agree with the result, for methods whose runs vote.
        accepted_wrong: Results that the verifier accepted though they are wrong.
        calls: Calls of the tested model and of the verifier.
        requests: See ``AskedCounts``; of the tested model alone, as the next three.
        samples: See ``AskedCounts``.
        forward_passes: See ``AskedCounts``.
        forward_tokens: See ``AskedCounts``.
        corrections: Right results with a wrong first pass, by the class of their ``Correction``;
            ``other`` for no class.
        overlaps: Corrections of several classes, such as ``direct+cascade``.
        scopes: The same results by scope: the cases whose recorded outputs could answer.
        later_changed: Sum of ``Correction.later_changed`` over these results.
        latency_ms: Sum of the durations of all measured calls, in milliseconds.
        elapsed_ms: Sum of the durations of all cases, in milliseconds.
        memory: Sums of the measures of ``SlateEvaluator`` inside and outside of a memory, and the
            numbers of cases with calls there, such as ``cases inside memory``.
    """

    cases: int = 0
    first_successes: int = 0
    successes: int = 0
    branches: int = 0
    runs: int = 0
    votes: int = 0
    accepted_wrong: int = 0
    calls: int = 0
    requests: int = 0
    samples: int = 0
    forward_passes: int = 0
    forward_tokens: int = 0
    corrections: dict[str, int] = {}
    overlaps: dict[str, int] = {}
    scopes: dict[str, int] = {}
    later_changed: int = 0
    latency_ms: int = 0
    elapsed_ms: int = 0
    memory: dict[str, int] = {}

    @staticmethod
    def count(tally: Tally, row: Row) -> None:
        """Counts a case that was run."""
        tally.n["cases"] += 1
        tally.n["first_successes"] += row["first_success"]
        tally.n["successes"] += row["success"]
        tally.n["branches"] += row["branches"]
        tally.n["runs"] += 1 + row["branches"]
        tally.n["votes"] += row.get("votes", 0)
        if (corrected := row.get("correction")) is not None:
            kinds = corrected["kinds"] or ["other"]
            tally.by["corrections"][kinds[0]] += 1
            tally.by["scopes"][corrected["scope"]] += 1
            tally.n["later_changed"] += corrected["later_changed"]
            if len(kinds) > 1:
                tally.by["overlaps"]["+".join(kinds)] += 1
        memory: Mapping[str, int] = row.get("memory") or {}
        for name, n in memory.items():
            tally.by["memory"][name] += n
            if name.startswith("right "):
                tally.by["memory"][name.replace("right", "cases")] += 1
        for name in asdict(AskedCounts()):
            tally.n[name] += row.get(name, 0)
        for name in ("latency", "elapsed"):
            tally.n[f"{name}_ms"] += round(1000 * (row.get(f"{name}_s") or 0))
        tally.n["accepted_wrong"] += row["accepted"] is True and not row["success"]


@dataclass(frozen=True, slots=True, repr=False)
class Branching(Shown, ModelRun[BranchCounts]):
    """Finished cases; usable wherever a log of runs is.

    The rows of a case are its first pass and, for methods with branches, its result. See
    ``ModelRun``.
    """

    file = TRAJECTORIES
    counts_type = BranchCounts

    def _printed(self) -> str:
        from ..results_text import branching_text

        return branching_text(self.counts)


class _Metered(NamedTuple):
    """A client for a tested model that counts the usage of a case; each trial has new samples.

    Attributes:
        asked_model: The model.
        account: Usage of the case.
        trial: Number of the trial, from 0.
        samples: Number of samples of a choice, or of runs of a case: the offset between the sample
            numbers of two trials.
    """

    asked_model: AskedModel
    account: Account
    trial: int
    samples: int

    async def complete(self, request: Request) -> Completion:
        """The model's answer."""
        shift = self.trial * max(1, self.samples)
        settings = dict(request.settings)
        if isinstance(seed := settings.get("seed"), int):
            settings["seed"] = seed + shift
        request = replace(request, sample=request.sample + shift, settings=settings)
        completion = await self.asked_model.ask(request)
        self.account.add(completion)
        return completion

    async def close(self) -> None:
        """Does nothing: the run closes the model."""


class BranchWorker(AskingWorker):
    """Runs a case."""

    def __init__(
        self,
        benchmark: PlanBenchmark,
        asked_models: Sequence[AskedModel],
        config: BranchRunConfig,
        memory: Memory,
        clock: Clock,
    ) -> None:
        self._benchmark, self._memory = benchmark, memory
        self._config, self._clock = config, clock
        n = len(config.model)
        self._asked_models = asked_models[:n]
        helpers = dict(zip(config.helpers, asked_models[n:], strict=True))
        self._verifier, comparing = helpers.get("--judge"), helpers.get("--same-text")
        self._comparison = None
        if comparing is not None:
            self._comparison = ModelComparison(comparing.ask, comparing.spec, benchmark.judged)

    def job(self, row: Episode) -> Job[Row]:
        """The job of a case; raises RowError if it can't be run."""
        asked_model = self._asked_models[row.at]
        self._benchmark.environment().reset(row.task)
        case, more = self._benchmark.content(row.task)
        if self._memory.is_shown:
            more += self._memory.digest
        fields = {
            "id": row.id,
            "tested_model": row.tested_model,
            "line": row.line,
            "fingerprint": asked_model.fingerprint([case], row.trial, more),
        }
        account = Account()
        return Job(
            fields,
            lambda: attempted(fields, account, self._run(row, fields, asked_model, account)),
        )

    async def _run(
        self, row: Episode, fields: Row, asked_model: AskedModel, account: Account
    ) -> Row:
        config, environment = self._config, self._benchmark.environment()
        samples = max(config.samples, config.most_runs)
        client = _Metered(asked_model, account, row.trial, samples)
        policy = ModelPolicy(
            client,
            asked_model.spec,
            m=config.samples,
            kind=config.labels,
            max_candidates=config.max_candidates,
        )
        judge = None
        if self._verifier is not None:
            asked = _Metered(self._verifier, account, row.trial, 1)
            judge = ModelVerifier(asked, self._verifier.spec, environment)
        comparison = self._comparison

        async def compare(pair: TextPair) -> Usage:
            reply = None if comparison is None else await comparison(pair)
            if reply is None:
                return Usage()
            account.add(reply)
            return reply.usage

        start = self._clock.now()
        result = await branch_case(
            *(row.task, policy, environment, config),
            judge=judge,
            compare=compare,
            recall=self._memory.nearest if self._memory.is_shown else None,
        )
        elapsed_s = round(self._clock.now() - start, 3)
        correction = result.correction
        corrected = correction and {**correction.to_json(), "scope": config.scope}
        marks = self._memory.marks(row.task)
        runs = list(self._rows(result, row, elapsed_s, marks))
        return {
            **fields,
            "case_id": row.task,
            "trial": row.trial,
            "first_success": result.is_first_success,
            "success": result.is_success,
            "branches": len(result.branches),
            "accepted": result.runs[-1].accepted,
            "correction": corrected,
            **({"memory": self._memory.counts(runs[-1])} if marks else {}),
            **result.method.record(result.runs),
            **account.to_json(),
            **asdict(policy.asked),
            "elapsed_s": elapsed_s,
            "runs": list(map(trajectory_row, runs)),
        }

    def _rows(
        self, result: BranchResult, row: Episode, elapsed_s: float, marks: Mapping[str, Any]
    ) -> Iterator[Trajectory]:
        """The rows of a case; the last one, the result, states the seconds of all its runs."""
        *first, last = result.rows(row.tested_model, trial=row.trial)
        for run in (*first, replace(last, usage={**last.usage, "seconds": elapsed_s})):
            yield replace(
                run,
                trajectory_id=row.id,
                setting=self._setting(run.setting),
                extra={**run.extra, **marks},
            )

    def _setting(self, of_method: str) -> str:
        """The setting of a row: the method's, with a memory and the value of a sweep."""
        with_memory = "-memory" * self._memory.is_shown
        return " ".join(filter(None, (of_method + with_memory, self._config.sweep)))


@takes(config=BranchRunConfig)
def branch(
    cases: str | PathLike[str] | Rows,
    config: BranchRunConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> Branching:
    """Lets tested models execute given plans, and branches where they are uncertain.

    Section 5 of arXiv:2604.12126; see ``search``. Without ``out`` everything stays in memory.

    Args:
        cases: A JSONL file of SLATE cases, or cases as dicts.
        config: The settings; options take precedence.
        client: Answers requests in place of the network.
        events: Callbacks during the run.

    Raises:
        OptionError: If a setting or a model's access is unusable, or ``out`` holds another run.
        InputError: If the cases are unusable.
    """
    session = branch_session(path_of(cases, "cases"), config, client=client, events=events)
    return carry_out_alone(session)


def branch_session(
    path: Path,
    config: BranchRunConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> AskingSession[Branching]:
    """The session of a configuration; without ``out``, its folder is named after the settings.

    Raises:
        OptionError: If a setting has several values, see ``BranchRunConfig.swept``.
    """
    config, *others = config.swept
    if others:
        raise OptionError(f"--sweep: expected one value a run, got {len(others) + 1}: see swept")
    resources = resources_of(config, client, events)
    models = config.model
    if config.method in ("self-consistency-plan", "reflexion"):
        models = sampling(models, f"--method {config.method}")
    cases, compares_texts = load_cases(path), config.same_text is not None
    benchmark = SlateTasks(cases, config, compares_texts=compares_texts)
    memory = Memory.read(config, cases.by_id)
    tasks = _tasks_outside(memory, benchmark.tasks[: config.first], events)
    identity = {
        "command": "branch",
        "models": {spec.model: spec.asked for spec in models},
        "judge": None if config.judge is None else config.judge.asked,
        **({} if config.same_text is None else {"same_text": config.same_text.asked}),
        "prompts": PROMPTS,
        "search": config.changed((*BranchConfig.model_fields, *_OF_AGENT)),
        **({"memory": memory.digest} if memory.units else {}),
    }

    def worker(asked_models: Sequence[AskedModel]) -> BranchWorker:
        return BranchWorker(benchmark, asked_models, config, memory, resources.clock)

    names = [spec.model for spec in models]
    source = EpisodeSource.of(tasks, names, config.trials, part_of(config))
    return AskingSession(
        folder=config.out or folder_named(path, source, models, identity),
        run=Branching,
        kind=BRANCH_RECORDS,
        source=source,
        specs=models,
        helpers=config.helpers,
        resources=resources,
        known_by=identity,
        worker=worker,
        about={
            "input": str(path),
            "trials": config.trials,
            "benchmark": [benchmark.name, benchmark.setting, benchmark.digest],
            **({} if config.memory is None else {"memory": memory.to_json()}),
        },
        rows_of=lambda record: record["runs"],
        take=write_runs,
        events=events,
        in_memory=config.out is None,
        overwrite=config.overwrite,
    )


def _tasks_outside(memory: Memory, tasks: Sequence[str], events: Events) -> list[str]:
    """The tasks without a run in the memory; prints notes on the others and on similar ones."""
    outside = [task for task in tasks if task not in memory.queries]
    if not outside:
        raise OptionError(f"--memory: expected a run of other cases, got one of all {len(tasks)}")
    if len(outside) < len(tasks):
        n = len(tasks) - len(outside)
        events.note(f"{n} of {len(tasks)} cases are in the memory: left out")
    if memory.queries and not memory.units:
        n = len(memory.queries)
        events.note(f"warning: nothing is remembered of the {n} cases of the memory")
    if near := [task for task in outside if task in memory.near_duplicates]:
        events.note(
            f"warning: {len(near)} of {len(outside)} cases nearly repeat the request of one in the "
            f"memory, such as {visible(near[0])}"
        )
    return outside


def write_runs(log: RecordLog[Row]) -> None:
    """Writes the runs of all cases as a log."""
    with replacing(log.folder / TRAJECTORIES) as file:
        for record in log.current():
            for run in record.get("runs", ()):
                file.write(orjson.dumps(run, option=orjson.OPT_APPEND_NEWLINE))

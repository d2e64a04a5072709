"""Branching of all cases of a file: one run in one folder, one record a case, resumable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson

from ....document.display import Shown
from ....errors import AccessError, JudgeError, PendingError, RowError
from ....jsonl import replacing
from ....llm import Client
from ....llm.base import Completion, Request
from ....llm.resources import shared_resources
from ....memory import Rows, path_of
from ....options import takes
from ....records import Usage
from ....records.loose_json import as_list
from ....records.trajectories import trajectory_row
from ....runs.folder import RecordLog
from ....runs.loop import QUIET, Events, Job
from ....runs.results import CallCounts, ModelRun, Tally
from ....runs.rows import BadRow
from ....trajectories.slate import SlateCases, load_cases
from ...prediction.worker import Account, Planner, asking_records, failure, unusable
from ..plans import PlanLine
from ..runner import Episode, EpisodeSession, Row, carry_out, default_folder
from ..slate import RecordedOutputs, SlateEnvironment
from .config import BranchRunConfig
from .model_policy import PROMPTS, ModelPolicy, ModelVerifier
from .search import BranchResult, branch_case

TRAJECTORIES = "trajectories.jsonl"
BRANCHED = "branched.jsonl"


def _check(row: Row) -> None:
    if as_list(row.get("runs")) is None:
        raise RowError("runs", "a list of trajectories", row.get("runs"))


BRANCH_RECORDS = asking_records(
    "case", BRANCHED, ids=("id", "tested_model"), check=_check, figures=(TRAJECTORIES,)
)


class BranchCounts(CallCounts):
    """What became of the cases of one tested model.

    Attributes:
        cases: Cases run, each trial for itself.
        first_successes: First passes that are right by the reference.
        successes: Results that are.
        branches: Branches run.
        accepted_wrong: Results that the verifier accepted though they are wrong.
        calls: Calls of the tested model and of the verifier.
    """

    cases: int = 0
    first_successes: int = 0
    successes: int = 0
    branches: int = 0
    accepted_wrong: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Branching(Shown, ModelRun[BranchCounts]):
    """Finished cases; stands for the file of their runs wherever a log is taken.

    The rows of a case are its first pass and, where branches were allowed, its result. See
    ``ModelRun``.
    """

    file = TRAJECTORIES

    def _printed(self) -> str:
        from ..results_text import branching_text

        return branching_text(self.counts)


class _Metered(NamedTuple):
    """A tested model as a client that keeps account of one case, and samples anew in each trial.

    Attributes:
        planner: The model.
        account: Of the case.
        trial: Number of the trial, from 0.
        samples: Samples of a choice, by which the numbers of samples of two trials differ.
    """

    planner: Planner
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
        completion = await self.planner.ask(request)
        self.account.add(completion.usage, completion.cost_usd, completion.latency_s)
        return completion

    async def close(self) -> None:
        """Nothing: the run closes the model."""


class BranchWorker:
    """Runs a case."""

    waits = True

    def __init__(
        self,
        cases: SlateCases,
        planners: Sequence[Planner],
        config: BranchRunConfig,
        verifier: Planner | None,
    ) -> None:
        self._cases, self._planners = cases, planners
        self._config, self._verifier = config, verifier
        self._recorded = RecordedOutputs(cases.by_id.values(), scope=config.scope)
        self._plans = {
            name: tuple(PlanLine(step.step, step.description) for step in case.plan)
            for name, case in cases.by_id.items()
        }

    def job(self, row: Episode) -> Job[Row]:
        """The job of a case; raises RowError where it can't be run."""
        planner = self._planners[row.at]
        SlateEnvironment(self._recorded).reset(row.task)
        case = self._cases.by_id[row.task].model_dump(mode="json")
        # what other cases have recorded may answer as well
        library = self._cases.digest if self._config.scope == "library" else ""
        fields = {
            "id": row.id,
            "tested_model": row.tested_model,
            "line": row.line,
            "fingerprint": planner.fingerprint([case], row.trial, library),
        }
        return Job(fields, lambda: self._run(row, fields, planner))

    def reject(self, row: BadRow, detail: str) -> Row:
        """The failure of a case that can't be run."""
        return unusable(row, detail)

    async def _run(self, row: Episode, fields: Row, planner: Planner) -> Row:
        config, account = self._config, Account()
        client = _Metered(planner, account, row.trial, config.samples)
        policy = ModelPolicy(
            client,
            planner.spec,
            m=config.samples,
            kind=config.labels,
            max_candidates=config.max_candidates,
        )
        judge = None
        if self._verifier is not None:
            asked = _Metered(self._verifier, account, row.trial, 1)
            judge = ModelVerifier(asked, self._verifier.spec, self._plans)
        environment = SlateEnvironment(self._recorded)
        try:
            result = await branch_case(row.task, policy, environment, config, judge=judge)
        except (AccessError, PendingError):
            raise
        except JudgeError as error:
            usage = account.usage + Usage(calls=error.calls, lost=error.lost)
            return failure(fields, error.reason, str(error), usage)
        return {
            **fields,
            "case_id": row.task,
            "trial": row.trial,
            **_outcome(result),
            **account.to_json(),
            "runs": [
                trajectory_row(replace(run, trajectory_id=row.id))
                for run in result.rows(row.tested_model, trial=row.trial)
            ],
        }


def _outcome(result: BranchResult) -> dict[str, Any]:
    last = result.branches[-1].accepted if result.branches else result.first_accepted
    return {
        "first_success": result.is_first_success,
        "success": result.is_success,
        "branches": len(result.branches),
        "accepted": last,
    }


@takes(config=BranchRunConfig)
def branch(
    cases: str | PathLike[str] | Rows,
    config: BranchRunConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> Branching:
    """Lets tested models carry out given plans, and branches where they doubt.

    Section 5 of arXiv:2604.12126; see ``search``. Without ``out`` everything stays in memory.

    Args:
        cases: A JSONL file of SLATE cases, or cases as dicts.
        config: The settings; options count more.
        client: Answers requests in place of the network.
        events: Called back while the run goes on.

    Raises:
        OptionError: If a setting or a model's access is unusable, or ``out`` holds another run.
        InputError: If the cases are unusable.
    """
    session = branch_session(path_of(cases, "cases"), config, client=client, events=events)
    if config.out is not None:
        return branch_in(session)
    with TemporaryDirectory(prefix="apbjudge-") as folder:
        return branch_in(replace(session, folder=Path(folder)), in_memory=True)


def branch_session(
    path: Path,
    config: BranchRunConfig,
    *,
    client: Client | None = None,
    events: Events = QUIET,
) -> EpisodeSession:
    """The session of a configuration; without ``out`` its folder is named after all of it."""
    cases = load_cases(path)
    own = ("method", "verifier", "order", "max_branches", "max_branches_per_step")
    more = ("max_trajectories", "branch_seed", "samples", "labels", "max_candidates", "scope")
    identity = {
        "command": "branch",
        "models": {spec.model: spec.asked for spec in config.model},
        "judge": None if config.judge is None else config.judge.asked,
        "prompts": PROMPTS,
        "search": config.changed((*own, *more)),
    }
    resources = shared_resources(client=client, limits=config, cache=config.cache, warn=events.note)
    return EpisodeSession(
        folder=config.out or default_folder(path.stem, config.model, identity),
        kind=BRANCH_RECORDS,
        name=str(path),
        tasks=list(cases.by_id)[: config.first],
        specs=config.model,
        helpers=() if config.judge is None else (config.judge,),
        resources=resources,
        identity=identity,
        worker=lambda planners: BranchWorker(
            cases,
            planners[: len(config.model)],
            config,
            planners[-1] if config.judge is not None else None,
        ),
        trials=config.trials,
        described={"cases_sha256": cases.digest},
        events=events,
        overwrite=config.overwrite,
    )


def branch_in(session: EpisodeSession, *, in_memory: bool = False) -> Branching:
    """Carries out a session, and writes the runs of all cases as a log."""
    rows: list[Row] = []

    def take(log: RecordLog[Row]) -> Mapping[str, Any]:
        with replacing(session.folder / TRAJECTORIES) as file:
            for record in log.current():
                for run in record.get("runs", ()):
                    file.write(orjson.dumps(run, option=orjson.OPT_APPEND_NEWLINE))
                    if in_memory:
                        rows.append(run)
        counts = _counts(log.current())
        return {"counts": {name: each.model_dump() for name, each in counts.items()}}

    manifest, progress = carry_out(session, take)
    counts = {name: BranchCounts(**each) for name, each in manifest["counts"].items()}
    folder = None if in_memory else session.folder
    return Branching(folder, counts, manifest, progress, tuple(rows))


def _counts(rows: Iterator[Row]) -> dict[str, BranchCounts]:
    """What became of the cases of each tested model, in the order of their first record."""
    tallies: dict[str, Tally] = {}
    for row in rows:
        tally = tallies.setdefault(row["tested_model"] or "", Tally())
        if not tally.take(row):
            continue
        count = tally.n
        count["cases"] += 1
        count["first_successes"] += row["first_success"]
        count["successes"] += row["success"]
        count["branches"] += row["branches"]
        count["accepted_wrong"] += row["accepted"] is True and not row["success"]
        for name in ("calls", "prompt_tokens", "completion_tokens"):
            count[name] += row["usage"][name]
    return {name: BranchCounts(**tally.fields) for name, tally in tallies.items()}

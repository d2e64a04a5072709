"""Episodes as work of the run loop: task, tested model and trial in, a trajectory out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import orjson

from ..errors import AccessError, JudgeError, PendingError, RowError
from ..llm.base import Completion
from ..llm.resources import REPLIES
from ..prediction.worker import CALLS, Account, Planner, failure, unusable
from ..records import Usage
from ..records.run_folder import mapping
from ..records.trajectories import Outcome, Trajectory, trajectory_of, trajectory_row
from ..runs.loop import Job
from ..runs.resume import BAD_INPUT, RecordKind
from ..runs.rows import BadRow, RawRow, RowSource
from .base import Dialogue, World
from .config import SimulateConfig

TRAJECTORIES = "trajectories.jsonl"
FAILURES = "failures.jsonl"
TURNS, TOKENS, COST = "exceeded_turns", "exceeded_tokens", "exceeded_cost"
"""Why a runner ends an episode that the world would let go on."""

Row = dict[str, Any]
"""A trajectory or a failure, as JSON values."""


def _checked(values: Mapping[str, Any] | RowError) -> Row:
    """A line of a file of trajectories or failures, if it is one that a run wrote."""
    if isinstance(values, RowError):
        raise values
    row = dict(values)
    for name in ("id", "fingerprint"):
        if not isinstance(row.get(name), str):
            raise RowError(name, "a string", row.get(name))
    if type(row.get("line")) is not int:
        raise RowError("line", "a whole number", row.get("line"))
    counts = mapping(row.get("usage"))
    if any(type(counts.get(name)) is not int for name in Usage.model_fields):
        raise RowError("usage", "counts of calls and tokens", row.get("usage"))
    if row.get("reason") is None:
        trajectory_of(row)
    return row | {"cost_usd": row.get("cost_usd")}


TRAJECTORY_RECORDS: RecordKind[Row] = RecordKind(
    name="trajectory",
    file=TRAJECTORIES,
    to_json=lambda row: row,
    check=_checked,
    place=("line",),
    retried=("transport", "timeout", "budget", "truncated", "unparsable", "error", BAD_INPUT),
    failures=FAILURES,
    figures=(FAILURES,),
    folders={
        f"{CALLS}/{REPLIES}": re.compile(r"replies\.db(-wal|-shm|-journal)?"),
        CALLS: re.compile(r"endpoints\.json"),
    },
)


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


@dataclass(frozen=True, slots=True)
class _Task:
    case_id: str
    line: int


class EpisodeWorker:
    """Plays an episode to its end.

    A dialogue is pure and replies are kept as they come, so an episode that was interrupted is
    played again from its beginning with the replies that it had, and pays for new ones only.
    """

    waits = True

    def __init__(self, world: World, planners: Sequence[Planner], config: SimulateConfig) -> None:
        self._world = world
        self._planners = planners
        self._config = config

    def job(self, row: Episode) -> Job[Row]:
        """The job of an episode; raises RowError where there is no such task."""
        planner = self._planners[row.at]
        dialogue = self._world.dialogue(row.task)
        opening = [*dialogue.messages, *dialogue.tools]
        fields = {
            "id": row.id,
            "tested_model": row.tested_model,
            "line": row.line,
            "fingerprint": planner.fingerprint(opening, row.trial, self._world.digest),
        }
        return Job(fields, lambda: self._play(row, fields, dialogue))

    def reject(self, row: BadRow, detail: str) -> Row:
        """The failure of a task that can't be played."""
        return unusable(row, detail)

    async def _play(self, row: Episode, fields: Row, dialogue: Dialogue) -> Row:
        planner, account = self._planners[row.at], Account()
        stopped, turns = "", 0
        try:
            while not dialogue.ended and not stopped:
                dialogue.answer(await self._reply(planner, row, dialogue, account))
                turns += 1
                stopped = self._stop(turns, account)
        except (AccessError, PendingError):
            raise
        except JudgeError as error:
            usage = account.usage + Usage(calls=error.calls, lost=error.lost)
            return failure(fields, error.reason, str(error), usage)
        run = dialogue.trajectory()
        run = replace(
            run,
            trajectory_id=row.id,
            tested_model=row.tested_model,
            trial=row.trial,
            setting=run.setting or self._world.setting,
            termination=dialogue.ended or stopped,
            outcome=run.outcome if dialogue.ended else _unfinished(run),
        )
        return {
            **trajectory_row(run),
            **fields,
            **account.to_json(),
            "cost_usd": account.cost_usd,
            "turns": turns,
        }

    async def _reply(
        self, planner: Planner, row: Episode, dialogue: Dialogue, account: Account
    ) -> Completion:
        messages = [dict(message) for message in dialogue.messages]
        request = planner.request(messages, row.trial, row.id)
        if tools := tuple(dict(tool) for tool in dialogue.tools):
            request = replace(request, tools=tools)
        completion = await planner.ask(request)
        account.add(completion.usage, completion.cost_usd, completion.latency_s)
        return completion

    def _stop(self, turns: int, account: Account) -> str:
        """Why the episode goes no further, by the limits of the run; empty where it may."""
        config = self._config
        tokens = account.usage.prompt_tokens + account.usage.completion_tokens
        if config.max_turns is not None and turns >= config.max_turns:
            return TURNS
        if config.max_episode_tokens is not None and tokens >= config.max_episode_tokens:
            return TOKENS
        cost, most = account.cost_usd, config.max_episode_cost
        return COST if most is not None and cost is not None and cost >= most else ""


def _unfinished(run: Trajectory) -> Outcome:
    """An episode that a limit ended is no success, whatever state it left."""
    return Outcome(reward=run.outcome.reward if run.outcome else None, success=False)


def digest_of(*parts: object) -> str:
    """SHA-256 of JSON values."""
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()

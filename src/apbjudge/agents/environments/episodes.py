"""Episodes as work of the run loop: task, tested model and trial in, a trajectory out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from threading import Thread
from traceback import walk_stack
from typing import Any, TypeVar
from weakref import finalize

import orjson

from ...errors import (
    AccessError,
    JudgeError,
    PendingError,
    PluginError,
    RowError,
    UsageError,
    code_place,
    fault_text,
)
from ...llm.base import Completion, Request
from ...llm.budget import tokens_of
from ...records import Usage
from ...records.trajectories import Outcome, Trajectory, trajectory_of, trajectory_row
from ...runs.loop import Job
from ..prediction.worker import Account, AskedModel, AskingWorker, asking_records, failure
from .base import Benchmark, Dialogue, Score, returned
from .config import EpisodesConfig
from .runner import Episode, Row

T = TypeVar("T")

TRAJECTORIES = "trajectories.jsonl"
INFRASTRUCTURE = "infrastructure"
"""Reason of an episode whose environment broke, so that it has no end."""
PATIENCE = 6
"""Longer timeouts than a call's: to begin a task, and to score it."""
TURNS, TOKENS, COST = "exceeded_turns", "exceeded_tokens", "exceeded_cost"
"""Limits by which a run ends an episode that the environment would let go on."""

TRAJECTORY_RECORDS = asking_records(
    "episode", TRAJECTORIES, ids=("id", "tested_model"), check=trajectory_of
)


_Step = tuple[AskedModel, Request] | Row | None
"""A request of an episode: model and messages; its record at the end; None before the score."""


class EpisodeThread:
    """The thread in which an environment works for one episode, and which contains its faults.

    One that hangs is left behind: neither other episodes nor the end of the process wait for it.

    Args:
        benchmark: Its name.
        module: Name of the package or module that its code is in.
        seconds: Limit of a piece of work; None if it has its own limit.
    """

    def __init__(self, benchmark: str, module: str, seconds: float | None = None) -> None:
        self._name, self._module, self._seconds = f"environment {benchmark}", module, seconds
        self._queue: _Queue = SimpleQueue()
        self._thread = Thread(target=_work_off, args=(self._queue,), daemon=True)
        self._thread.start()
        finalize(self, self._queue.put, None)

    async def do(
        self, work: Callable[[], T], *, times: int = 1, passed: tuple[type[Exception], ...] = ()
    ) -> T:
        """The result of a piece of work.

        Args:
            work: Calls the code of the environment.
            times: Factor by which the limit is extended.
            passed: Exceptions that are not faults of the code.

        Raises:
            PluginError: If it raised anything else, or did not end in time.
        """

        def guarded() -> T:
            try:
                return work()
            except BaseException as error:
                if isinstance(error, passed) and not isinstance(error, PluginError):
                    raise
                if isinstance(error.__cause__, StopIteration):  # which no generator passes on
                    error = error.__cause__
                is_placed = isinstance(error, PluginError)
                text = str(error) if is_placed else fault_text(error, self._module)
                raise PluginError(f"{self._name}: {text}") from error

        result: Future[T] = Future()
        self._queue.put((result, partial(copy_context().run, guarded)))
        seconds = None if self._seconds is None else times * self._seconds
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(result)
        except TimeoutError:
            frame = sys._current_frames().get(self._thread.ident or 0)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
            place = code_place(reversed([*walk_stack(frame)]), self._module) if frame else ""
            text = f"{self._name}: did not end within {seconds:g} s (--call-seconds){place}"
            raise PluginError(text) from None


async def contained(benchmark: str, fields: Row, work: Callable[[], Row]) -> Row:
    """The record of work in a sandbox; a failure if the benchmark is at fault."""
    try:
        return await EpisodeThread(benchmark, "apbjudge").do(work)
    except PluginError as error:
        return failure(fields, INFRASTRUCTURE, str(error))


_Queue = SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]


def _work_off(queue: _Queue) -> None:
    while (task := queue.get()) is not None:
        result, work = task
        if result.set_running_or_notify_cancel():
            try:
                result.set_result(work())
            except Exception as error:  # noqa: BLE001
                result.set_exception(error)
        del task, result, work  # which hold the thread's owner, whose end is the thread's


class EpisodeWorker(AskingWorker):
    """Plays an episode to its end.

    A dialogue is pure and replies are kept as they come, so an episode that was interrupted is
    played again from its beginning with the replies that it had, and pays for new ones only.
    """

    def __init__(
        self, benchmark: Benchmark, asked_models: Sequence[AskedModel], config: EpisodesConfig
    ) -> None:
        self._benchmark = benchmark
        self._asked_models = asked_models
        self._config = config
        self._module = getattr(benchmark, "module", type(benchmark).__module__).partition(".")[0]
        self._seconds: float | None = config.call_seconds

    async def job(self, row: Episode) -> Job[Row]:
        """The job of an episode; raises RowError if there is no such task."""
        thread = EpisodeThread(self._benchmark.name, self._module, self._seconds)
        asked_model, account = self._asked_models[row.at], Account()
        fields = {"id": row.id, "tested_model": row.tested_model, "line": row.line}
        steps, opening = self._steps(row, account), list[Any]()
        step: _Step
        try:
            begin = partial(steps.send, None)
            step = await thread.do(begin, times=PATIENCE, passed=(RowError, UsageError))
        except PluginError as error:
            step = failure(fields, INFRASTRUCTURE, str(error))
        if isinstance(step, tuple):
            opening = [*step[1].messages, *step[1].tools]
        fields["fingerprint"] = asked_model.fingerprint(opening, row.trial, self._benchmark.digest)
        return Job(fields, lambda: self._play(fields, thread, steps, step, account))

    def _dialogue(self, row: Episode) -> Dialogue:
        return self._benchmark.dialogue(row.task)

    def _asked(self, row: Episode, dialogue: Dialogue) -> AskedModel:
        """The model that speaks next."""
        del dialogue
        return self._asked_models[row.at]

    def _sample(self, row: Episode, asked_model: AskedModel) -> int:
        """Number of an episode's replies: equal requests of one number have one reply."""
        del asked_model
        return row.trial

    def _steps(self, row: Episode, account: Account) -> Generator[_Step, Any, None]:
        """Runs the environment: yields requests, each answered by a reply; then the record.

        Before it scores the state it yields None.
        """
        dialogue = self._dialogue(row)
        stopped, turns = "", 0
        try:
            while not dialogue.ended and not stopped:
                asked = self._asked(row, dialogue)
                messages = [dict(message) for message in dialogue.messages]
                request = asked.request(messages, self._sample(row, asked), row.id)
                request = replace(request, tools=tuple(dict(tool) for tool in dialogue.tools))
                orjson.dumps([messages, request.tools])  # else the fault is found in our code
                dialogue.answer((yield asked, request))
                turns += 1
                stopped = self._stop(turns, account)
            yield None
            run, ended = returned(Trajectory, dialogue.trajectory), dialogue.ended
            run = replace(
                run,
                setting=run.setting or self._benchmark.setting,
                termination=ended or stopped,
                outcome=run.outcome if ended else _unfinished(run),
            )
            record = episode_row(run, row, {}, account, turns)
        finally:
            if (close := getattr(dialogue, "close", None)) is not None:
                close()
        yield record

    async def _play(
        self,
        fields: Row,
        thread: EpisodeThread,
        steps: Generator[_Step, Any, None],
        step: _Step,
        account: Account,
    ) -> Row:
        try:
            while not isinstance(step, dict):
                reply = None if step is None else await self._reply(*step, account)
                times = PATIENCE if reply is None else max(1, len(reply.tool_calls))
                step = await thread.do(partial(steps.send, reply), times=times)
        except (AccessError, PendingError):
            raise
        except JudgeError as error:
            usage = account.usage + Usage(calls=error.calls, lost=error.lost)
            return failure(fields, error.reason, str(error), usage)
        except PluginError as error:
            return failure(fields, INFRASTRUCTURE, str(error), account.usage)
        return {**step, **fields}

    async def _reply(
        self, asked_model: AskedModel, request: Request, account: Account
    ) -> Completion:
        completion = await asked_model.ask(request)
        account.add(completion)
        account.limited_tokens += tokens_of(completion.usage) + completion.assumed_tokens
        account.limited_usd += (completion.cost_usd or 0.0) + completion.assumed_usd
        return completion

    def _stop(self, turns: int, account: Account) -> str:
        """The limit of the run that ends the episode; empty if it may go on.

        Replies from the cache count as when they came: an episode that is resumed, or played
        before, ends where it would have ended. Replies without usage count by estimate.
        """
        config = self._config
        most_tokens, most_usd = config.max_episode_tokens, config.max_episode_cost
        if config.max_turns is not None and turns >= config.max_turns:
            return TURNS
        if most_tokens is not None and account.limited_tokens >= most_tokens:
            return TOKENS
        return COST if most_usd is not None and account.limited_usd >= most_usd else ""


def episode_row(
    run: Trajectory, row: Episode, fields: Row, account: Account, turns: int = 0
) -> Row:
    """The record of an episode that came to an end.

    Raises:
        RowError: If it could not be read again, or its reward is none from 0 to 1.
    """
    run = replace(run, trajectory_id=row.id, tested_model=row.tested_model, trial=row.trial)
    if run.outcome is not None and run.outcome.reward is not None:
        Score(run.outcome.reward)
    trajectory_of(trajectory := trajectory_row(run))
    costs = {**account.to_json(), "cost_usd": account.cost_usd}
    return {**trajectory, **fields, **costs, "turns": turns}


def _unfinished(run: Trajectory) -> Outcome:
    """An episode that a limit ended is not a success, whatever state it left."""
    return Outcome(reward=run.outcome.reward if run.outcome else None, success=False)

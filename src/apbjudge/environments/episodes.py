"""Episodes as work of the run loop: task, tested model and trial in, a trajectory out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ..errors import AccessError, JudgeError, PendingError
from ..llm.base import Completion
from ..llm.budget import tokens_of
from ..prediction.worker import Account, Planner, asking_records, failure, unusable
from ..records import Usage
from ..records.trajectories import Outcome, Trajectory, trajectory_of, trajectory_row
from ..runs.loop import Job
from ..runs.rows import BadRow
from .base import Dialogue, World
from .config import EpisodesConfig
from .runner import Episode, Row

T = TypeVar("T")

TRAJECTORIES = "trajectories.jsonl"
TURNS, TOKENS, COST = "exceeded_turns", "exceeded_tokens", "exceeded_cost"
"""Why a runner ends an episode that the world would let go on."""

TRAJECTORY_RECORDS = asking_records(
    "trajectory", TRAJECTORIES, ids=("id", "tested_model"), check=trajectory_of
)


class EpisodeWorker:
    """Plays an episode to its end.

    A dialogue is pure and replies are kept as they come, so an episode that was interrupted is
    played again from its beginning with the replies that it had, and pays for new ones only.
    """

    waits = True

    def __init__(self, world: World, planners: Sequence[Planner], config: EpisodesConfig) -> None:
        self._world = world
        self._planners = planners
        self._config = config

    def job(self, row: Episode) -> Job[Row]:
        """The job of an episode; raises RowError where there is no such task."""
        planner = self._planners[row.at]
        dialogue = self._dialogue(row)
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

    def _dialogue(self, row: Episode) -> Dialogue:
        return self._world.dialogue(row.task)

    def _sample(self, row: Episode, planner: Planner) -> int:
        """Number of an episode's replies: equal requests of one number have one reply."""
        del planner
        return row.trial

    async def _do(self, work: Callable[[], T]) -> T:
        """What the world does: at once, or elsewhere where that takes its time."""
        return work()

    async def _play(self, row: Episode, fields: Row, dialogue: Dialogue) -> Row:
        planner, account = self._planners[row.at], Account()
        stopped, turns = "", 0
        try:
            while not dialogue.ended and not stopped:
                reply = await self._reply(planner, row, dialogue, account)
                await self._do(partial(dialogue.answer, reply))
                turns += 1
                stopped = self._stop(turns, account)
        except (AccessError, PendingError):
            raise
        except JudgeError as error:
            usage = account.usage + Usage(calls=error.calls, lost=error.lost)
            return failure(fields, error.reason, str(error), usage)
        run = await self._do(dialogue.trajectory)
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
        request = planner.request(messages, self._sample(row, planner), row.id)
        if tools := tuple(dict(tool) for tool in dialogue.tools):
            request = replace(request, tools=tools)
        completion = await planner.ask(request)
        account.add(completion.usage, completion.cost_usd, completion.latency_s)
        account.limited_tokens += tokens_of(completion.usage) + completion.assumed_tokens
        account.limited_usd += (completion.cost_usd or 0.0) + completion.assumed_usd
        return completion

    def _stop(self, turns: int, account: Account) -> str:
        """Why the episode goes no further, by the limits of the run; empty where it may.

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


def _unfinished(run: Trajectory) -> Outcome:
    """An episode that a limit ended is no success, whatever state it left."""
    return Outcome(reward=run.outcome.reward if run.outcome else None, success=False)

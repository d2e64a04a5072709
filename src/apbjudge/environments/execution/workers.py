"""Episodes of suites as work of the run loop: by a model that acts, or without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TypeVar

import orjson

from ...llm.base import Completion
from ...prediction.prompts import PromptMaker
from ...prediction.worker import Account, Planner, failure, unusable
from ...records import Usage
from ...records.trajectories import ToolCall, ToolResult, TrajectoryStep, trajectory_row
from ...runs.loop import Job
from ...runs.rows import BadRow
from ..base import Dialogue
from ..episodes import EpisodeWorker
from ..runner import Episode, Row
from .bound import UnboundError, bound_plan, resolved
from .config import PLANNED, ExecuteConfig, Mode
from .dialogue import StepDialogue, prompts_digest
from .host import HostedEnvironment, StoppedError, WorldError
from .planned import Plan, Plans
from .scoring import AGENT_STOPPED, PROCESS_ENDED, finished
from .suites import Suite

T = TypeVar("T")
NOT_EXECUTABLE = "not_executable"
"""How an episode ends whose plan code can't run, or whose solution the suite does not have."""


class SuiteWorld:
    """A suite in one mode; see ``environments.base.World``.

    Args:
        suite: The tasks.
        mode: How they are carried out.
        maker: Makes the step-wise prompts.
        plans: What is carried out; None in modes without plans.
    """

    def __init__(self, suite: Suite, mode: Mode, maker: PromptMaker, plans: Plans | None) -> None:
        self.suite, self.setting = suite, mode
        self.name = suite.name
        self.tasks = suite.tasks
        prompts = [maker.prompts.name, maker.prompts.digest, prompts_digest()]
        content = orjson.dumps([suite.digest, mode, prompts])
        self.digest = sha256(content).hexdigest()
        self._maker = maker
        self._plans = plans

    def plan(self, task: str, model: str, trial: int) -> Plan | None:
        """The plan of a trial; RowError where there is none though the mode needs one."""
        if self.setting not in PLANNED or self._plans is None:
            return None
        return self._plans.of(task, model, trial)

    def dialogue(self, task: str, plan: Plan | None = None) -> StepDialogue:
        """A new episode of a task."""
        return StepDialogue(self.suite, task, self._maker, plan)


class ActingWorker(EpisodeWorker):
    """A tested model acts, and a model may play the user; tools work in threads.

    Args:
        world: The suite in its mode.
        planners: The acting model of each tested model.
        user: Plays the user; None where no task has one.
        config: The limits.
    """

    def __init__(
        self,
        world: SuiteWorld,
        planners: Sequence[Planner],
        user: Planner | None,
        config: ExecuteConfig,
    ) -> None:
        super().__init__(world, planners, config)
        self._suite_world = world
        self._user = user

    def _dialogue(self, row: Episode) -> Dialogue:
        plan = self._suite_world.plan(row.task, row.tested_model, row.trial)
        return self._suite_world.dialogue(row.task, plan)

    def _sample(self, row: Episode, planner: Planner) -> int:
        # Tasks can begin with equal prompts: where replies are drawn, each task draws its own.
        if planner.spec.temperature == 0:
            return row.trial
        return row.trial * len(self._suite_world.tasks) + row.line - 1

    async def _play(self, row: Episode, fields: Row, dialogue: Dialogue) -> Row:
        try:
            return _unbroken(await super()._play(row, fields, dialogue), fields)
        finally:
            if isinstance(dialogue, StepDialogue):
                dialogue.close()

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)

    async def _reply(
        self, planner: Planner, row: Episode, dialogue: Dialogue, account: Account
    ) -> Completion:
        speaks = isinstance(dialogue, StepDialogue) and dialogue.speaker == "user"
        asked = self._user if speaks and self._user is not None else planner
        return await super()._reply(asked, row, dialogue, account)


class UnaskedWorker:
    """Code alone acts: a bound plan, the suite's own solution, or nothing."""

    waits = True

    def __init__(self, world: SuiteWorld) -> None:
        self._world = world

    def job(self, row: Episode) -> Job[Row]:
        """The job of an episode; raises RowError where it has no plan."""
        plan = self._world.plan(row.task, row.tested_model, row.trial)
        content = [self._world.digest, row.task, row.trial, None if plan is None else plan.text]
        fields = {
            "id": row.id,
            "tested_model": row.tested_model,
            "line": row.line,
            "fingerprint": sha256(orjson.dumps(content)).hexdigest()[:32],
        }
        return Job(fields, lambda: asyncio.to_thread(self._play, row, fields, plan))

    def reject(self, row: BadRow, detail: str) -> Row:
        """The failure of a task that can't be played."""
        return unusable(row, detail)

    def _play(self, row: Episode, fields: Row, plan: Plan | None) -> Row:
        suite = self._world.suite
        environment = suite.environment()
        environment.reset(row.task)
        steps: list[TrajectoryStep] = []
        ended, broken = AGENT_STOPPED, ""
        try:
            self._carry_out(environment, row.task, plan, steps)
        except UnboundError as error:
            ended = NOT_EXECUTABLE
            steps.append(TrajectoryStep("environment", text=str(error)))
        except (StoppedError, WorldError) as error:
            broken = str(error) or PROCESS_ENDED
        run = finished(
            suite,
            row.task,
            environment,
            steps,
            ended=ended,
            broken=broken,
            plan=plan,
        )
        run = replace(
            run,
            trajectory_id=row.id,
            tested_model=row.tested_model,
            trial=row.trial,
            setting=self._world.setting,
            outcome=None if ended == NOT_EXECUTABLE else run.outcome,
        )
        account = Account()
        record = {
            **trajectory_row(run),
            **fields,
            **account.to_json(),
            "cost_usd": account.cost_usd,
            "turns": 0,
        }
        return _unbroken(record, fields)

    def _carry_out(
        self,
        environment: HostedEnvironment,
        task: str,
        plan: Plan | None,
        steps: list[TrajectoryStep],
    ) -> None:
        """Adds a step for each that was carried out, also where a later one breaks."""
        if plan is not None:
            results: list[str] = []
            for call in bound_plan(plan.text):
                try:
                    arguments = resolved(call.arguments, results)
                except UnboundError as error:
                    seen = ToolResult(f"Error: {error}", is_error=True)
                    step = _step(call.name, dict(call.arguments), seen, len(results))
                else:
                    seen = environment.call(call.name, arguments)
                    step = _step(call.name, arguments, seen, len(results))
                results.append(str(seen.content))
                steps.append(step)
        elif self._world.setting == "gold":
            number, reference = 0, self._world.suite.reference(task)
            if not reference:
                raise UnboundError("the suite has no solution of this task")
            for turn in reference:
                for call in turn:
                    seen = environment.call(call["name"], call["arguments"], by=call["by"])
                    source = "user" if call["by"] == "user" else "agent"
                    step = _step(call["name"], call["arguments"], seen, number)
                    steps.append(replace(step, source=source))
                    number += 1
                text = self._world.suite.to_communicate(task)
                environment.say(text)
                steps.append(TrajectoryStep("agent", text=text))


def _unbroken(record: Row, fields: Row) -> Row:
    """The record of an episode; a failure, which is tried again, where the suite itself broke."""
    if not (broken := record.get("infrastructure_error")):
        return record
    return failure(fields, "infrastructure", broken, Usage(**record["usage"]))


def _step(name: str, arguments: dict[str, object], seen: ToolResult, n: int) -> TrajectoryStep:
    call_id = f"call_{n}"
    observation = replace(seen, call_id=call_id, name=name)
    return TrajectoryStep(
        "agent", "call", calls=(ToolCall(name, arguments, call_id),), observations=(observation,)
    )

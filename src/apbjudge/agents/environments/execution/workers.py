"""Episodes of suites as work of the run loop: by a model that acts, or without one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256

import orjson

from ....errors import PluginError, shorten
from ....records.trajectories import ToolCall, ToolResult, TrajectoryStep
from ....runs.loop import Job
from ....runs.rows import BadRow
from ...prediction.prompts import CasePromptMaker
from ...prediction.worker import Account, Planner, unusable
from ..base import Dialogue
from ..episodes import EpisodeWorker, contained, episode_row
from ..runner import Episode, Row
from .bound import UnboundError, bound_plan, resolved
from .config import PLANNED, ExecuteConfig, Mode
from .dialogue import StepDialogue, prompts_digest
from .host import HostedEnvironment
from .planned import Plan, Plans
from .scoring import AGENT_STOPPED, finished
from .suites import Suite

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

    def __init__(
        self, suite: Suite, mode: Mode, maker: CasePromptMaker, plans: Plans | None
    ) -> None:
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
        self._seconds = None  # the suite's process bounds its calls

    def _dialogue(self, row: Episode) -> Dialogue:
        plan = self._suite_world.plan(row.task, row.tested_model, row.trial)
        return self._suite_world.dialogue(row.task, plan)

    def _sample(self, row: Episode, planner: Planner) -> int:
        # Tasks can begin with equal prompts: where replies are drawn, each task draws its own.
        if planner.spec.temperature == 0:
            return row.trial
        return row.trial * len(self._suite_world.tasks) + row.line - 1

    def _asked(self, row: Episode, dialogue: Dialogue) -> Planner:
        speaks = isinstance(dialogue, StepDialogue) and dialogue.speaker == "user"
        return self._user if speaks and self._user is not None else super()._asked(row, dialogue)


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
        return Job(
            fields,
            lambda: contained(self._world.name, fields, lambda: self._play(row, fields, plan)),
        )

    def reject(self, row: BadRow, detail: str) -> Row:
        """The failure of a task that can't be played."""
        return unusable(row, detail)

    def _play(self, row: Episode, fields: Row, plan: Plan | None) -> Row:
        suite, steps = self._world.suite, list[TrajectoryStep]()
        ended = AGENT_STOPPED
        with closing(suite.environment()) as environment:
            environment.reset(row.task)
            try:
                broken = self._carry_out(environment, row.task, plan, steps)
            except UnboundError as error:
                ended, broken = NOT_EXECUTABLE, ""
                steps.append(TrajectoryStep("environment", text=str(error)))
            run = finished(suite, row.task, environment, steps, ended=ended, plan=plan)
        run = replace(
            run,
            setting=self._world.setting,
            outcome=None if ended == NOT_EXECUTABLE else run.outcome,
        )
        if broken and run.outcome is not None and not run.outcome.is_success:
            raise PluginError(f"its own solution fails at {broken}")
        return episode_row(run, row, fields, Account())

    def _carry_out(
        self,
        environment: HostedEnvironment,
        task: str,
        plan: Plan | None,
        steps: list[TrajectoryStep],
    ) -> str:
        """Adds a step for each that was carried out.

        Returns:
            The first call of the suite's own solution that is an error; empty without.
        """
        broken = ""
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
                    if seen.is_error and not broken:
                        answer = shorten(str(seen.content), 200)
                        broken = f"call {number}, {call['name']}: {answer}{environment.raised}"
                text = self._world.suite.to_communicate(task)
                environment.say(text)
                steps.append(TrajectoryStep("agent", text=text))
        return broken


def _step(name: str, arguments: dict[str, object], seen: ToolResult, n: int) -> TrajectoryStep:
    call_id = f"call_{n}"
    observation = replace(seen, call_id=call_id, name=name)
    return TrajectoryStep(
        "agent", "call", calls=(ToolCall(name, arguments, call_id),), observations=(observation,)
    )

"""Episodes in a sandbox as work of the run loop: by a model that acts, or without one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from hashlib import sha256

import orjson

from ....errors import PluginError, shorten
from ....records.trajectories import ToolCall
from ....runs.loop import Job
from ...prediction.prompts import CasePromptMaker
from ...prediction.worker import Account, AskedModel, AskingWorker
from ..base import Dialogue
from ..episodes import EpisodeWorker, contained, episode_row
from ..runner import Episode, Row
from .benchmark import HostedBenchmark
from .bound import UnboundError, bound_plan, resolved
from .config import PLANNED, ExecuteConfig, Mode
from .dialogue import AGENT_STOPPED, HostedChat, StepDialogue, prompts_digest
from .planned import Plan, Plans

NOT_EXECUTABLE = "not_executable"
"""The ending of an episode whose plan can't be run, or for which the benchmark has no solution."""


class ModeTasks:
    """The tasks of a benchmark in one mode; see ``environments.base.Benchmark``.

    Args:
        benchmark: The tasks.
        mode: Mode of execution.
        maker: Makes the step-wise prompts.
        plans: Plans to carry out; None in modes without plans.
    """

    def __init__(
        self, benchmark: HostedBenchmark, mode: Mode, maker: CasePromptMaker, plans: Plans | None
    ) -> None:
        self.benchmark, self.setting = benchmark, mode
        self.name, self.tasks = benchmark.name, tuple(benchmark.tasks)
        prompts = [maker.prompts.name, maker.prompts.digest, prompts_digest()]
        content = orjson.dumps([benchmark.digest, mode, prompts])
        self.digest = sha256(content).hexdigest()
        self._maker, self._plans = maker, plans

    def plan(self, row: Episode) -> Plan | None:
        """The plan of a trial; RowError if there is none though the mode needs one."""
        if self.setting not in PLANNED or self._plans is None:
            return None
        return self._plans.plan_of(row.task, row.tested_model, row.trial)

    def dialogue(self, task: str, plan: Plan | None = None) -> StepDialogue:
        """A new episode of a task."""
        return StepDialogue(self.benchmark, task, self._maker, plan)


class ActingWorker(EpisodeWorker):
    """A tested model acts, and a model may play the user; tools work in threads.

    Args:
        tasks: The tasks in their mode.
        asked_models: The acting model of each tested model.
        user: Plays the user; None if no task has one.
        config: The limits.
    """

    def __init__(
        self,
        tasks: ModeTasks,
        asked_models: Sequence[AskedModel],
        user: AskedModel | None,
        config: ExecuteConfig,
    ) -> None:
        super().__init__(tasks, asked_models, config)
        self._tasks, self._user = tasks, user
        self._seconds = None  # the benchmark's process bounds its calls

    def _dialogue(self, row: Episode) -> Dialogue:
        return self._tasks.dialogue(row.task, self._tasks.plan(row))

    def _sample(self, row: Episode, asked_model: AskedModel) -> int:
        # Tasks can begin with equal prompts: where replies are drawn, each task draws its own.
        if asked_model.spec.temperature == 0:
            return row.trial
        return row.trial * len(self._tasks.tasks) + row.line - 1

    def _asked(self, row: Episode, dialogue: Dialogue) -> AskedModel:
        speaks = isinstance(dialogue, StepDialogue) and dialogue.speaker == "user"
        return self._user if speaks and self._user is not None else super()._asked(row, dialogue)


class UnaskedWorker(AskingWorker):
    """No model acts: a bound plan, the benchmark's own solution, or nothing is carried out."""

    def __init__(self, tasks: ModeTasks) -> None:
        self._tasks = tasks

    def job(self, row: Episode) -> Job[Row]:
        """The job of an episode; raises RowError if it has no plan."""
        plan = self._tasks.plan(row)
        content = [self._tasks.digest, row.task, row.trial, None if plan is None else plan.text]
        fields = {
            "id": row.id,
            "tested_model": row.tested_model,
            "line": row.line,
            "fingerprint": sha256(orjson.dumps(content)).hexdigest()[:32],
        }
        name = self._tasks.name
        return Job(fields, lambda: contained(name, fields, lambda: self._play(row, fields, plan)))

    def _play(self, row: Episode, fields: Row, plan: Plan | None) -> Row:
        broken, ended = "", AGENT_STOPPED
        with closing(HostedChat(self._tasks.benchmark, row.task, plan)) as chat:
            try:
                if plan is not None:
                    _follow(chat, plan)
                elif self._tasks.setting == "gold":
                    broken = self._solve(chat, row.task)
            except UnboundError as error:
                ended = NOT_EXECUTABLE
                chat.say(str(error), source="environment")
            run = replace(chat.run(ended=ended), setting=self._tasks.setting)
        if ended == NOT_EXECUTABLE:
            run = replace(run, outcome=None)
        elif broken and run.outcome is not None and not run.outcome.is_success:
            raise PluginError(f"its own solution fails at {broken}")
        return episode_row(run, row, fields, Account())

    def _solve(self, chat: HostedChat, name: str) -> str:
        """Carries out the benchmark's own solution; its first call that is an error, or nothing."""
        task, broken, number = self._tasks.benchmark.tasks[name], "", 0
        if not task.reference:
            raise UnboundError("the benchmark has no solution of this task")
        for turn in task.reference:
            for call in turn:
                made = ToolCall(call.name, call.arguments, f"call_{number}")
                (seen,) = chat.carry_out([made], call.by)
                number += 1
                if seen.is_error and not broken:
                    answer = shorten(str(seen.content), 200)
                    broken = f"call {number}, {call.name}: {answer}{chat.environment.raised}"
            chat.environment.say(task.message)
            chat.say(task.message)
        return broken


def _follow(chat: HostedChat, plan: Plan) -> None:
    """Carries out a bound plan; UnboundError if that is none."""
    results: list[str] = []
    for number, call in enumerate(bound_plan(plan.text)):
        arguments, fault = dict(call.arguments), ""
        try:
            arguments = resolved(call.arguments, results)
        except UnboundError as error:
            fault = str(error)
        made = ToolCall(call.name, arguments, f"call_{number}", parse_error=fault)
        (seen,) = chat.carry_out([made])
        results.append(str(seen.content))

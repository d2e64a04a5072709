"""SLATE's simulator as an environment: the task is a plan, and recorded outputs answer calls.

The simulator (section 3 of arXiv:2604.12126) answers a call with the output recorded for it, else
with the tool's default. The paper does not specify how calls are matched; see ``RecordedOutputs``
for our layers. References in arguments are resolved from the agent's own earlier outputs, never
from the reference's, so that a wrong output affects all calls that depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from ....errors import RowError
from ....records.trajectories import (
    LogPlace,
    Outcome,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from ....trajectories.slate import SlateCase
from ....trajectories.slate.evaluator import is_wrong_output, wrong_outputs
from ..base import Score
from ..plans import FinalOutput, FinalOutputs, PlanAction, PlanLine, Situation, wording
from .recorded import RecordedOutputs, interfaces, tool_named


@dataclass(frozen=True, slots=True)
class _EpisodeState:
    """Progress of a run.

    Attributes:
        position: Number of finished substeps.
        steps: The steps, as far as the agent may know them.
        origins: Sources of the steps' outputs, hidden from the agent: a recorded output shows that
            the call was right.
        outputs: Outputs by substep; the agent gets copies only.
    """

    position: int = 0
    steps: tuple[TrajectoryStep, ...] = ()
    origins: tuple[Mapping[str, str], ...] = ()
    outputs: tuple[tuple[str, Any], ...] = ()


class SlateEnvironment:
    """An environment of recorded outputs; see ``PlanEnvironment``.

    A task is a case. A call changes only the position in the plan and the stored outputs: equal
    actions in equal states return equal observations.

    Args:
        recorded: The cases with their outputs; environments may share it.
    """

    def __init__(self, recorded: RecordedOutputs) -> None:
        self._recorded = recorded
        self._case: SlateCase | None = None
        self._tools: tuple[Mapping[str, Any], ...] = ()
        self._state = _EpisodeState()

    @property
    def case(self) -> SlateCase:
        """The case that is being run.

        Raises:
            ValueError: Before ``reset``.
        """
        if self._case is None:
            raise ValueError("SlateEnvironment: expected reset(task) first")
        return self._case

    @property
    def plan(self) -> tuple[PlanLine, ...]:
        """See ``PlanEnvironment``."""
        return tuple(PlanLine(step.step, step.description) for step in self.case.plan)

    def reset(self, task: str) -> None:
        """Begins a case; raises RowError if there is none, or its plan calls no tool."""
        case = self._recorded.cases.get(task)
        if case is None:
            raise RowError("case_id", "a case of the file of cases", task)
        if not case.calls:
            raise RowError("case_id", "a case whose plan calls a tool", task)
        self._case, self._state = case, _EpisodeState()
        self._tools = tuple(interfaces(case.tools))

    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """The tools of the case."""
        return self._tools

    def situation(self) -> Situation | None:
        """See ``PlanEnvironment``."""
        case, position = self.case, self._state.position
        if position == len(case.substeps):
            return None
        return Situation(
            task=case.case_id,
            query=case.query,
            plan=self.plan,
            substep=case.substeps[position].step,
            history=self._state.steps,
            tools=self._tools,
        )

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Calls a tool for the current substep."""
        if self._state.position == len(self.case.substeps):
            return ToolResult("the plan is at its end", name=name, is_error=True)
        self.act(PlanAction(ToolCall(name, dict(arguments))))
        return self._state.steps[-1].observations[0]

    def act(self, action: PlanAction) -> None:
        """See ``PlanEnvironment``.

        Raises:
            ValueError: At the end of the plan.
        """
        case, state = self.case, self._state
        if state.position == len(case.substeps):
            raise ValueError("act: expected a substep to act for, got the end of the plan")
        substep = case.substeps[state.position].step
        outputs, call, origin = state.outputs, action.call, dict[str, str]()
        step = TrajectoryStep(
            source="agent",
            kind="message" if action.is_readable else "invalid",
            text=action.text,
            extra={"substep": substep, "wording": wording(self.plan, substep)},
        )
        if call is not None and action.is_readable:
            earlier = dict(outputs)
            has_none = call.arguments is None and not call.parse_error
            arguments = dict[str, Any]() if has_none else call.arguments
            lookup = self._recorded.look_up(case, substep, call.name, arguments, earlier)
            is_error = lookup.tag == "error"
            if not is_error:
                outputs = (*outputs, (substep, lookup.output))
            content = deepcopy(lookup.output)
            observation = ToolResult(content, call.call_id, call.name, is_error)
            step = replace(step, kind="call", calls=(call,), observations=(observation,))
            origin = {"output": lookup.tag, "layer": lookup.layer, "source": lookup.source}
        self._state = _EpisodeState(
            state.position + 1,
            (*state.steps, step),
            (*state.origins, {name: value for name, value in origin.items() if value}),
            outputs,
        )

    def score(self) -> Score:
        """Success is that all final outputs are the recorded ones."""
        wrong = wrong_outputs(self.case, dict(self._state.outputs))
        return Score(0.0 if wrong else 1.0, {"wrong outputs": wrong})

    def final_outputs(self) -> FinalOutputs | None:
        """See ``PlanEnvironment``; ``SlateCase.final`` states which calls are final."""
        state, case = self._state, self.case
        outputs, finals = dict(state.outputs), list[FinalOutput]()
        for step, origin in zip(state.steps, state.origins, strict=True):
            if (substep := step.extra["substep"]) in case.final:
                if substep not in outputs:
                    return None
                schema = tool_named(case, step.calls[0].name).results_schema
                is_default = origin["output"] == "default"
                finals.append(FinalOutput(outputs[substep], schema, is_default))
        return tuple(finals) if len(finals) == len(case.final) else None

    def snapshot(self) -> _EpisodeState:
        """The progress of the run, which is immutable."""
        return self._state

    def restore(self, snapshot: _EpisodeState) -> None:
        """Goes back to a state of the same case."""
        self._state = snapshot

    def trajectory(self) -> Trajectory:
        """The run so far, as a row that ``grade --protocol slate`` takes."""
        case, state = self.case, self._state
        outputs, steps = dict(state.outputs), list[TrajectoryStep]()
        for step, origin, substep in zip(state.steps, state.origins, case.substeps, strict=False):
            wrong = is_output_wrong = _is_wrong(step, substep.tool)
            if substep.tool is not None:
                is_output_wrong = is_wrong_output(case, outputs, substep.step)
            marks = {"wrong": wrong, "wrong_output": is_output_wrong}
            steps.append(replace(step, extra={**step.extra, **origin, **marks}))
        reward = self.score().reward
        return Trajectory(
            trajectory_id=case.case_id,
            case_id=case.case_id,
            tested_model="",
            query=case.query,
            steps=tuple(steps),
            termination="" if state.position < len(case.substeps) else "plan_completed",
            outcome=Outcome(reward=reward, success=reward == 1.0),
            place=LogPlace("trajectories"),
        )


def _is_wrong(step: TrajectoryStep, expected: str | None) -> bool:
    """True if the step is invalid, or its tool (or no tool) differs from the reference's."""
    called = step.calls[0].name if step.calls else None
    return step.kind == "invalid" or called != expected

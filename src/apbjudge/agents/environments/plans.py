"""Environments whose episode is a given plan: for each substep the agent calls one tool or none."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ...records.trajectories import ToolCall, Trajectory, TrajectoryStep
from ...trajectories.comparison import TextPair
from ...trajectories.slate.equality import is_equivalent
from .base import Benchmark, Environment


class PlanLine(NamedTuple):
    """A step of the plan as the agent sees it: never the tool or the arguments that are right."""

    step: str
    description: str


class PastStep(NamedTuple):
    """A substep of another case, and the action for it.

    Attributes:
        query: The user's request in it.
        wording: The plan's words for the substep.
        step: The action, with its result.
    """

    query: str
    wording: str
    step: TrajectoryStep

    @property
    def tool(self) -> str | None:
        """Name of the tool; None for doing without."""
        return self.step.calls[0].name if self.step.calls else None

    @property
    def outputs(self) -> list[Any]:
        """Results of the call."""
        return [each.content for each in self.step.observations]


PastSteps = tuple[PastStep, ...]
"""One substep of another case, or all of them in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The agent's knowledge when it decides on a substep.

    Attributes:
        task: Id of the task, which tells nothing.
        query: The user's request.
        plan: All steps, those that group others too.
        substep: The substep to decide on, such as ``1.1``.
        history: Steps for the substeps before it, in order.
        tools: Definitions of the tools that there are.
        is_open_loop: True if nothing is executed before the last decision, so that the history
            stays empty.
        reflections: The agent's own, on earlier attempts that failed, oldest first.
        memory: Steps for similar cases, the most similar first.
    """

    task: str
    query: str
    plan: tuple[PlanLine, ...]
    substep: str
    history: tuple[TrajectoryStep, ...]
    tools: tuple[Mapping[str, Any], ...]
    is_open_loop: bool = False
    reflections: tuple[str, ...] = ()
    memory: tuple[PastSteps, ...] = ()

    @property
    def description(self) -> str:
        """The plan's text for the substep."""
        return next((line.description for line in self.plan if line.step == self.substep), "")

    @property
    def wording(self) -> str:
        """The plan's words for the substep, after those of the step that groups it."""
        return wording(self.plan, self.substep)


def wording(plan: Sequence[PlanLine], substep: str) -> str:
    """The plan's words for a substep, after those of the step that groups it."""
    places = (substep.partition(".")[0], substep)
    return " ".join(line.description for line in plan if line.step in places and line.description)


@dataclass(frozen=True, slots=True)
class PlanAction:
    """An agent's action for a substep.

    Attributes:
        call: The call; None for doing without a tool.
        text: The reply in which it said so.
        is_readable: True if that could be read; an unreadable reply is not an action.
    """

    call: ToolCall | None = None
    text: str = ""
    is_readable: bool = True

    @property
    def tool(self) -> str | None:
        """Name of the tool; None for doing without."""
        return None if self.call is None else self.call.name


class FinalOutput(NamedTuple):
    """Output of a call whose output no other call of the plan needs.

    Attributes:
        value: JSON.
        schema: JSON Schema of the tool's result.
        is_default: True if it is the tool's default, which is equal to no recorded output.
    """

    value: Any
    schema: Mapping[str, Any]
    is_default: bool = False

    def is_same(self, other: FinalOutput) -> bool:
        """Returns True if both are equal up to how they are written."""
        both_default = self.is_default == other.is_default
        return both_default and is_equivalent(self.value, other.value, self.schema)


FinalOutputs = tuple[FinalOutput, ...]
"""The outputs of a run that a user would see, in the plan's order."""


class PlanEnvironment(Environment, Protocol):
    """Asks for one action per substep; ``call`` is for the current substep too."""

    @property
    def plan(self) -> tuple[PlanLine, ...]:
        """The plan of the task."""
        ...

    def situation(self) -> Situation | None:
        """The next decision; None at the end of the plan."""
        ...

    def act(self, action: PlanAction) -> None:
        """Carries out the action for the substep at hand, and continues to the next.

        Raises:
            UncomparedTexts: If texts have to be compared first; nothing was done then.
        """
        ...

    def snapshot(self) -> Any:
        """The state, for ``restore``; what happens later does not change it."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Goes back to a state."""
        ...

    def final_outputs(self) -> FinalOutputs | None:
        """The final outputs of the run, whether right or wrong; None if one is missing."""
        ...

    def trajectory(self) -> Trajectory:
        """The run so far with its outcome; see ``Dialogue.trajectory``.

        Each step has ``extra.substep``, the plan's ``extra.wording`` for it and, by the reference,
        ``extra.wrong``: whether the tool, or doing without, differs from it; and
        ``extra.wrong_output``: whether the output does.
        """
        ...


class PlanBenchmark(Benchmark, Protocol):
    """A benchmark whose tasks are given plans, as ``branch`` takes it."""

    @property
    def judged(self) -> MutableMapping[TextPair, bool]:
        """Answers to the pairs of ``UncomparedTexts``, which all environments share."""
        ...

    def environment(self) -> PlanEnvironment:
        """A new environment, for one episode at a time."""
        ...

    def content(self, task: str) -> tuple[Any, str]:
        """The task as JSON values; hash of all else that may move its episodes, if anything."""
        ...

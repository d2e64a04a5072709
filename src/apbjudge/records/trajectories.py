"""A whole trajectory of an agent, from any log.

Readers make these, and they are not validated again, so they are plain dataclasses. Our own file
format has one trajectory a line, as ``trajectory_row`` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import StringConstraints, TypeAdapter, ValidationError

from .base import row_error
from .messages.model import ToolCall, ToolResult

FORMAT = "apbjudge-trajectory@1"
"""The ``format`` of a row in our own format."""

StepSource = Literal["system", "user", "agent", "environment"]
StepKind = Literal["message", "call", "retrieve", "answer", "invalid"]
Provenance = Literal["trusted", "untrusted", "none"]

Id = Annotated[str, StringConstraints(pattern=r"\S")]


@dataclass(frozen=True, slots=True)
class RetrievedTool:
    """A tool that a retrieval returned, by its typed interface.

    Attributes:
        name: Its name.
        inputs: Datatypes that it takes.
        output: Datatype that it returns.
        tool_type: Its kind, as the environment names it.
        description: Its description, as the agent reads it.
    """

    name: str
    inputs: tuple[str, ...] = ()
    output: str = ""
    tool_type: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The environment's record of a search for tools (PlanBench-XL, arXiv:2606.22388).

    Attributes:
        by_inputs: True if the request names inputs.
        by_output: True if it names an output.
        inputs: Datatypes that the request's inputs were matched with.
        outputs: Datatypes that its output was matched with.
        tools: The returned tools, perhaps none; None if the request failed.
    """

    by_inputs: bool = False
    by_output: bool = False
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    tools: tuple[RetrievedTool, ...] | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """The environment's record of a tool call (PlanBench-XL).

    Attributes:
        was_executed: True if the call passed all checks.
        rejection: Reason why it did not: ``untrusted_input_rejected``, ``missing_required_input``,
            or another code of the environment; empty if it was executed or not even parsed.
        success: Success as the tool itself reports it; None if it was not executed.
        output_datatype: Datatype that the tool declares.
        output_value: The returned value; None without one.
        provenance: ``trusted`` (of a baseline tool), ``untrusted`` (noisy or blocked) or ``none``.
        tool_type: As the environment names it, such as ``blocker_misleading``.
    """

    was_executed: bool = False
    rejection: str = ""
    success: bool | None = None
    output_datatype: str = ""
    output_value: Any = None
    provenance: Provenance = "none"
    tool_type: str = ""


@dataclass(frozen=True, slots=True)
class TrajectoryStep:
    """One message of the trajectory with its calls and their answers.

    Attributes:
        source: The speaker's role.
        kind: ``message`` without and ``call`` with calls; ``retrieve`` searches for tools,
            ``answer`` ends the trajectory with an answer, ``invalid`` is an action that can't be
            read.
        text: The message as shown; empty without.
        thought: Reasoning that the log keeps apart from it.
        calls: Calls in order; those of a user if the source is ``user``.
        observations: Answers to them in the order of the log, and answers to no call.
        retrieval: The environment's record of a search; None if the log has none.
        execution: The environment's record of the call; None if it has none.
        extra: Fields of the log that have no place here.
        sources: Positions, from 0, of the messages, lines or spans of the log that it was made of.
        speaker: Name of the speaker, if the log distinguishes several agents or people; empty
            without.
        span_id: Id of its span, observation or run in a trace; empty without.
    """

    source: StepSource
    kind: StepKind = "message"
    text: str = ""
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    observations: tuple[ToolResult, ...] = ()
    retrieval: Retrieval | None = None
    execution: Execution | None = None
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    sources: tuple[int, ...] = ()
    speaker: str = ""
    span_id: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of the trajectory, as its environment or a second file states it; never guessed.

    Attributes:
        reward: As stated; None if only success is.
        success: As stated; else true if a reward from 0 to 1 is 1 (|reward - 1| < 1e-6).
    """

    reward: float | None = None
    success: bool | None = None

    @property
    def is_success(self) -> bool | None:
        """True if the trajectory succeeded; None if unknown, as of a reward off 0 to 1."""
        if self.success is not None or self.reward is None or abs(self.reward - 0.5) > 0.5 + 1e-6:
            return self.success
        return abs(self.reward - 1) < 1e-6


@dataclass(frozen=True, slots=True)
class LogPlace:
    """The place of a trajectory.

    Attributes:
        format: Name of the log's format.
        version: Its version; empty if the log states none.
        file: The file.
        line: 1-based line, or the number of an entry of a JSON list; 0 without.
    """

    format: str
    version: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """A trajectory of a tested model on a case.

    Attributes:
        trajectory_id: Unique together with ``tested_model``.
        case_id: The task; trials and settings of one task share it.
        tested_model: The agent or its model; empty if the log names none.
        trial: Number of the repetition, as the log counts; None without.
        setting: Condition under which the environment ran, such as ``block``; empty without.
        query: The user's first request.
        system_prompt: Instructions of the agent; empty without.
        tools: Definitions of the tools offered, as in the log; None if it does not state them.
        steps: In order, the system prompt left out.
        final_answer: Text that ended the trajectory; None without.
        termination: Why it ended, in the log's own word; empty without.
        infrastructure_error: A failure that was not the tested model's; empty otherwise.
        outcome: None if the log states none.
        scores: Scores that the log states besides the outcome, by name: numbers, truth values, or
            the words of a scale.
        task: Facts of the task that the log states outside of messages, unchanged, such as
            instructions of a simulated user or expected calls. The agent has not seen them, and no
            judge is shown them.
        usage: Counts of tokens and costs, by the names of the log.
        place: Where it was read.
        remarks: Counts of occurrences that a reader has to know; see ``REMARKS``.
        extra: Fields of the log that have no place here.
    """

    trajectory_id: Id
    case_id: Id
    tested_model: str
    trial: int | None = None
    setting: str = ""
    query: str = ""
    system_prompt: str = ""
    tools: tuple[Any, ...] | None = None
    steps: tuple[TrajectoryStep, ...]
    final_answer: str | None = None
    termination: str = ""
    infrastructure_error: str = ""
    outcome: Outcome | None = None
    scores: dict[str, bool | float | str] = field(default_factory=dict[str, bool | float | str])
    task: dict[str, Any] = field(default_factory=dict[str, Any])
    usage: dict[str, float] = field(default_factory=dict[str, float])
    place: LogPlace
    remarks: dict[str, int] = field(default_factory=dict[str, int])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


REMARKS: Mapping[str, str] = {
    "parallel calls": "messages that make several calls: kept as one step",
    "calls without results": "calls that nothing answers: kept",
    "results without calls": "answers to no call in it: kept as steps of the environment",
    "user-side calls": "calls that the user makes: kept, and not counted as the agent's",
    "unreadable arguments": "arguments that are no JSON object: kept as text",
    "sub-agents": "trajectories of sub-agents: named, their steps are not read",
    "attachments": "pictures, audio and files: named, not carried over",
    "copied context": "steps repeated from an earlier trajectory: left out",
    "unknown steps": "entries of a kind that is not known: kept in extra, not read",
    "outcomes of no trajectory": "rows of the file of outcomes that fit none in the log: unused",
    "unread content": "texts and values that are not carried over: kept in extra, or left out",
    "unread calls": "calls of the log that the trajectory lacks",
    "unread results": "results of the log that the trajectory lacks",
    "rewritten context": "history that the agent summarised or cut: left out",
    "abandoned branches": "answers that were asked for anew: left out",
    "other candidates": "further answers to one request: left out",
    "duplicate carriers": "copies of what stands in another place of the log: left out",
    "cut content": "text that the log itself cut or left out",
    "missing scores": "scores without a value, such as NaN of what is unscored: read as missing",
}
"""Remarks of readers, each with the fate of the content."""

LOSSES = ("unread content", "unread calls", "unread results")
"""Remarks that are reported in detail for the whole log."""


# Rows ---------------------------------------------------------------------------------------------


@cache
def _adapter() -> TypeAdapter[Trajectory]:
    return TypeAdapter(Trajectory)


def trajectory_row(trajectory: Trajectory, *, with_defaults: bool = False) -> dict[str, Any]:
    """The trajectory as a row of our own format, without default values unless they are wanted.

    Raises:
        ValueError: If a value is nested too deeply to be written.
    """
    adapter = _adapter()
    row = adapter.dump_python(
        trajectory, mode="json", exclude_defaults=not with_defaults, warnings="error"
    )
    return {"format": FORMAT, **row}


def trajectory_of(row: Mapping[str, Any]) -> Trajectory:
    """Reads a row of our own format.

    Args:
        row: As ``trajectory_row`` makes it; further fields are ignored.

    Raises:
        RowError: If a field is missing or of the wrong kind.
    """
    try:
        return _adapter().validate_python(row)
    except ValidationError as error:
        raise row_error(error) from None

"""Episodes as chats: a tested model's replies, the calls in them carried out, and the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import orjson

from ...errors import RowError, shorten
from ...llm.base import Completion, NativeCall
from ...records.loose_json import as_object
from ...records.trajectories import (
    LogPlace,
    Outcome,
    StepKind,
    StepSource,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from .base import Environment, Score, returned

ANSWERED = "answered"
MOST_RESULT_CHARS = 20_000
"""Characters of an observation that are shown."""
TOO_MANY_TURNS = "exceeded_max_steps"
TOO_MANY_ERRORS = "exceeded_max_call_errors"


class Chat:
    """An episode in an environment, with any speakers: its steps, and the run that they are.

    Args:
        environment: Environment that carries out calls; the task is begun here.
        task: Id of the task.
    """

    def __init__(self, environment: Environment, task: str) -> None:
        environment.reset(task)
        self._environment, self._task = environment, task
        self._steps: list[TrajectoryStep] = []
        self._ended = ""

    @property
    def ended(self) -> str:
        """Reason for its end; empty while it continues."""
        return self._ended

    def carry_out(
        self, calls: Sequence[ToolCall], source: StepSource = "agent", **fields: Any
    ) -> tuple[ToolResult, ...]:
        """Carries out the calls of a reply and adds the step that they are.

        Args:
            calls: Those that can't be read (``parse_error``) are errors.
            source: Source of the calls: ``agent`` or ``user``.
            fields: Further fields of the step.
        """
        results = tuple(
            replace(self._result(call, source), call_id=call.call_id, name=call.name)
            for call in calls
        )
        kind: StepKind = "invalid" if all(call.parse_error for call in calls) else "call"
        step = TrajectoryStep(source, kind, calls=tuple(calls), observations=results, **fields)
        self._steps.append(step)
        return results

    def _result(self, call: ToolCall, source: str) -> ToolResult:
        if call.parse_error:
            return ToolResult(f"Error: {call.parse_error}", is_error=True)
        return self._call(call.name, call.arguments, source)

    def _call(self, name: str, arguments: Mapping[str, Any], source: str) -> ToolResult:
        del source  # most environments have no tools of the user's
        return returned(ToolResult, self._environment.call, name, arguments)

    def scored(self, extra: Mapping[str, Any], **fields: Any) -> Trajectory:
        """The run so far with the score of the environment, and further fields."""
        score = returned(Score, self._environment.score)
        details = {"score": dict(score.details)} if score.details or extra else {}
        return Trajectory(
            trajectory_id=self._task,
            case_id=self._task,
            tested_model="",
            steps=tuple(self._steps),
            termination=self._ended,
            outcome=Outcome(reward=float(score.reward)),
            extra={**details, **extra},
            **fields,
        )


class ToolDialogue(Chat):
    """An episode over native tool calls; a reply without calls is the answer and ends it.

    Args:
        environment: The environment; the task is begun here.
        task: Id of the task.
        opening: Messages before the model's first reply.
        benchmark: Name of the benchmark, for the trajectory.
        max_turns: Replies at most.
        max_errors: Replies in a row whose calls all can't be read that end the episode.
        failing: Names of tools that are offered and fail whenever they are called; the environment
            is not asked.
        blocked: Names of tools that are not offered.

    Raises:
        RowError: If one of these is not a tool of the task.
    """

    def __init__(
        self,
        environment: Environment,
        task: str,
        opening: Sequence[Mapping[str, Any]],
        *,
        benchmark: str,
        max_turns: int = 100,
        max_errors: int = 3,
        failing: Sequence[str] = (),
        blocked: Sequence[str] = (),
    ) -> None:
        super().__init__(environment, task)
        self._benchmark = benchmark
        self._messages: list[dict[str, Any]] = [dict(message) for message in opening]
        self._turns = self._errors = 0
        self._limits = max_turns, max_errors
        self._failing, self._blocked = frozenset(failing), frozenset[str]()
        known = [_name(tool) for tool in self._tools()]
        for name in (*failing, *blocked):
            if name not in known:
                raise RowError("failing, blocked", f"tools of the task ({', '.join(known)})", name)
        self._blocked = frozenset(blocked)
        self._offered = tuple(self._tools())

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """All messages so far."""
        return self._messages

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The tools of the environment, in the form of the OpenAI protocol."""
        return [
            tool if tool.get("type") == "function" else {"type": "function", "function": tool}
            for tool in self._tools()
        ]

    def _tools(self) -> Sequence[Mapping[str, Any]]:
        tools = returned(cast("type[Sequence[Any]]", Sequence), self._environment.tools)
        return [tool for tool in tools if _name(tool) not in self._blocked]

    def answer(self, reply: Completion) -> None:
        """Carries out the calls of a reply, or takes it as the answer."""
        max_turns, max_errors = self._limits
        self._turns += 1
        if not reply.tool_calls:
            text = reply.text or reply.refusal or ""
            self._messages.append({"role": "assistant", "content": text})
            self._steps.append(TrajectoryStep(source="agent", kind="answer", text=text))
            self._ended = ANSWERED
            return
        calls = read_calls(reply.tool_calls, self._turns)
        results = self.carry_out(calls, text=reply.text)
        self._messages += messages_of(reply, calls, results, MOST_RESULT_CHARS)
        self._errors = self._errors + 1 if all(call.parse_error for call in calls) else 0
        if self._errors >= max_errors:
            self._ended = TOO_MANY_ERRORS
        elif self._turns >= max_turns:
            self._ended = TOO_MANY_TURNS

    def _call(self, name: str, arguments: Mapping[str, Any], source: str) -> ToolResult:
        if name in self._blocked:
            return ToolResult(f"Error: there is no tool {name}", is_error=True)
        if name in self._failing:
            return ToolResult(f"Error: {name} is not available", is_error=True)
        return super()._call(name, arguments, source)

    def trajectory(self) -> Trajectory:
        """The run so far, with the score of the environment."""
        first = next((each for each in self._messages if each["role"] == "user"), None)
        system = next((each for each in self._messages if each["role"] == "system"), None)
        return self.scored(
            {},
            query=str(first["content"]) if first else "",
            system_prompt=str(system["content"]) if system else "",
            tools=self._offered,
            final_answer=self._steps[-1].text if self._ended == ANSWERED else None,
            place=LogPlace(format=self._benchmark),
        )


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("function", tool)["name"])


def read_calls(calls: Sequence[NativeCall], turn: int) -> list[ToolCall]:
    """Native calls of a reply with their arguments read; ``turn`` makes ids for those without."""
    read: list[ToolCall] = []
    for number, call in enumerate(calls):
        call_id = call.id or f"call_{turn}_{number}"
        try:
            arguments = orjson.loads(call.arguments or "{}")
            fault = f"the arguments are no JSON object but {shorten(arguments)}"
        except orjson.JSONDecodeError as error:
            arguments, fault = None, f"the arguments are no JSON: {error}"
        if (known := as_object(arguments)) is None:
            read.append(ToolCall(call.name, call.arguments, call_id, parse_error=fault))
        else:
            read.append(ToolCall(call.name, known, call_id))
    return read


def messages_of(
    reply: Completion, calls: Sequence[ToolCall], results: Sequence[ToolResult], most: int
) -> list[dict[str, Any]]:
    """A reply with native calls and its results as messages; of each result ``most`` characters.

    Providers refuse a call whose arguments are no JSON.
    """
    native_calls = [
        {
            "id": call.call_id,
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": "{}" if call.parse_error else orjson.dumps(call.arguments).decode(),
            },
        }
        for call in calls
    ]
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": reply.text or None, "tool_calls": native_calls}
    ]
    for result in results:
        content = result.content
        text = content if isinstance(content, str) else orjson.dumps(content).decode()
        if len(text) > most:
            text = f"{text[:most]}… ({len(text) - most} more characters)"
        messages.append({"role": "tool", "tool_call_id": result.call_id, "content": text})
    return messages

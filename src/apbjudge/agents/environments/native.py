"""Episodes in which the tested model calls tools natively, in whatever environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from ...errors import RowError, shorten
from ...llm.base import Completion
from ...llm.base import ToolCall as ModelCall
from ...records.loose_json import as_object
from ...records.trajectories import (
    LogPlace,
    Outcome,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from .base import Environment, Score, returned

ANSWERED = "answered"
TOO_MANY_TURNS = "exceeded_max_steps"
TOO_MANY_ERRORS = "exceeded_max_call_errors"


class ToolDialogue:
    """An episode over native tool calls; a reply without calls is the answer and ends it.

    Args:
        environment: The world; the task is begun here.
        task: Id of the task.
        opening: Messages before the model's first reply.
        world: Name of the world, for the trajectory.
        max_turns: Replies at most.
        max_errors: Replies in a row whose calls all can't be read that end the episode.
        max_result_chars: Characters of an observation that are shown at most.
        failing: Names of tools that are offered and fail whenever they are called; the environment
            is not asked.
        blocked: Names of tools that are not offered.

    Raises:
        RowError: If one of these is no tool of the task.
    """

    def __init__(
        self,
        environment: Environment,
        task: str,
        opening: Sequence[Mapping[str, Any]],
        *,
        world: str,
        max_turns: int = 100,
        max_errors: int = 3,
        max_result_chars: int = 20_000,
        failing: Sequence[str] = (),
        blocked: Sequence[str] = (),
    ) -> None:
        environment.reset(task)
        self._environment = environment
        self._task, self._world = task, world
        self._messages: list[dict[str, Any]] = [dict(message) for message in opening]
        self._steps: list[TrajectoryStep] = []
        self._ended = ""
        self._turns = self._errors = 0
        self._limits = max_turns, max_errors, max_result_chars
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
        every = returned(cast("type[Sequence[Any]]", Sequence), self._environment.tools)
        return [tool for tool in every if _name(tool) not in self._blocked]

    @property
    def ended(self) -> str:
        """Why it ended."""
        return self._ended

    def answer(self, reply: Completion) -> None:
        """Carries out the calls of a reply, or takes it as the answer."""
        max_turns, max_errors, _ = self._limits
        self._turns += 1
        if not reply.tool_calls:
            text = reply.text or reply.refusal or ""
            self._messages.append({"role": "assistant", "content": text})
            self._steps.append(TrajectoryStep(source="agent", kind="answer", text=text))
            self._ended = ANSWERED
            return
        ids = [call.id or f"call_{self._turns}_{n}" for n, call in enumerate(reply.tool_calls)]
        made = [self._carry_out(*each) for each in zip(reply.tool_calls, ids, strict=True)]
        calls, observations = [call for call, _ in made], [seen for _, seen in made]
        self._messages.append(_said(reply, calls))
        for seen in observations:
            self._messages.append(
                {"role": "tool", "tool_call_id": seen.call_id, "content": self._shown(seen)}
            )
        all_bad = all(call.parse_error for call in calls)
        self._steps.append(
            TrajectoryStep(
                source="agent",
                kind="invalid" if all_bad else "call",
                text=reply.text,
                calls=tuple(calls),
                observations=tuple(observations),
            )
        )
        self._errors = self._errors + 1 if all_bad else 0
        if self._errors >= max_errors:
            self._ended = TOO_MANY_ERRORS
        elif self._turns >= max_turns:
            self._ended = TOO_MANY_TURNS

    def _carry_out(self, call: ModelCall, call_id: str) -> tuple[ToolCall, ToolResult]:
        try:
            arguments = orjson.loads(call.arguments or "{}")
        except orjson.JSONDecodeError as error:
            arguments = None
            fault = f"the arguments are no JSON: {error}"
        else:
            fault = f"the arguments are no JSON object but {shorten(arguments)}"
        if (known := as_object(arguments)) is None:
            told = ToolResult(f"Error: {fault}", call_id=call_id, name=call.name, is_error=True)
            return ToolCall(call.name, call.arguments, call_id, parse_error=fault), told
        if call.name in self._blocked:
            seen = ToolResult(f"Error: there is no tool {call.name}", is_error=True)
        elif call.name in self._failing:
            seen = ToolResult(f"Error: {call.name} is not available", is_error=True)
        else:
            seen = returned(ToolResult, self._environment.call, call.name, known)
        observation = ToolResult(
            seen.content, call_id=call_id, name=call.name, is_error=seen.is_error
        )
        return ToolCall(call.name, known, call_id), observation

    def _shown(self, observation: ToolResult) -> str:
        content, most = observation.content, self._limits[2]
        text = content if isinstance(content, str) else orjson.dumps(content).decode()
        return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"

    def trajectory(self) -> Trajectory:
        """The run so far, with the score of the environment."""
        score = returned(Score, self._environment.score)
        first = next((each for each in self._messages if each["role"] == "user"), None)
        system = next((each for each in self._messages if each["role"] == "system"), None)
        last = self._steps[-1] if self._ended == ANSWERED else None
        return Trajectory(
            trajectory_id=self._task,
            case_id=self._task,
            tested_model="",
            query=str(first["content"]) if first else "",
            system_prompt=str(system["content"]) if system else "",
            tools=self._offered,
            steps=tuple(self._steps),
            final_answer=last.text if last else None,
            termination=self._ended,
            outcome=Outcome(reward=float(score.reward)),
            place=LogPlace(format=self._world),
            extra={"score": dict(score.details)} if score.details else {},
        )


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("function", tool)["name"])


def _said(reply: Completion, calls: Sequence[ToolCall]) -> dict[str, Any]:
    """The reply as a message; providers refuse one whose arguments are no JSON."""
    made = [
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
    return {"role": "assistant", "content": reply.text or None, "tool_calls": made}

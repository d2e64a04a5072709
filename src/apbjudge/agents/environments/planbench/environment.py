"""The episode as tools with calls, for agents and runners that don't speak the text protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ....errors import RowError
from ....records.trajectories import ToolResult, Trajectory
from ..base import Score
from .episode import FOLLOWED, Episode, PlanBenchRules

RETRIEVE, ANSWER = "retrieve_tools", "final_answer"


def _function(name: str, description: str, properties: Mapping[str, Any], *required: str) -> Any:
    schema = {"type": "object", "properties": {**properties}, "required": [*required]}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


_PHRASES = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "maxItems": 2,
    "description": "For by_inputs and by_io_info: what the tool takes, one or two short phrases.",
}
_META_TOOLS = {"type": "string", "enum": ["by_output_info", "by_inputs", "by_io_info"]}
_ALWAYS = (
    _function(
        RETRIEVE,
        "Searches for tools by what they return, what they take, or both.",
        {
            "meta_tool": _META_TOOLS,
            "input_information": _PHRASES,
            "output_information": {
                "type": "string",
                "description": "For by_output_info and by_io_info: what it returns, a phrase.",
            },
        },
        "meta_tool",
    ),
    _function(
        ANSWER, "States the answer and ends the task.", {"answer": {"type": "string"}}, "answer"
    ),
)


class PlanBenchEnvironment:
    """The world as ``environments.base.Environment``; the same checks and ends as in the dialogue.

    Searching and answering are tools, and each tool that a search returns is one from then on.
    """

    def __init__(self, rules: PlanBenchRules) -> None:
        self._rules = rules
        self._current: Episode | None = None

    def reset(self, task: str) -> None:
        """Begins the episode of a query; raises RowError where there is none."""
        self._current = Episode(self._rules, task)

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The search, the answer, and the tools found so far."""
        found = (self._rules.world.definitions[name] for name in self._episode.discovered)
        return (*_ALWAYS, *found)

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Carries out a call; each is a turn, and after the end each is an error."""
        episode = self._episode
        if episode.ended:
            return ToolResult(f"the task has ended: {episode.ended}", name=name, is_error=True)
        made = {"name": name, "arguments": {**arguments}}
        reply = orjson.dumps(made, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        if name == RETRIEVE:
            episode.retrieve(arguments, reply)
        elif name == ANSWER:
            episode.answer(str(arguments.get("answer", "")), reply)
        else:
            episode.call(made, reply)
        return self._observation(name)

    def score(self) -> Score:
        """1 after a right answer, else 0; with why the episode ended."""
        ended = self._episode.ended
        details = {"ended": ended, "turns": len(self._episode.turns)}
        return Score(float(ended == FOLLOWED), details)

    def snapshot(self) -> Episode:
        """The state."""
        return self._episode.copied()

    def restore(self, snapshot: Episode) -> None:
        """Goes back to a state."""
        self._current = snapshot.copied()

    def trajectory(self) -> Trajectory:
        """The run so far."""
        return self._episode.trajectory()

    @property
    def _episode(self) -> Episode:
        if self._current is None:
            raise RowError("task", "reset before anything else", None)
        return self._current

    def _observation(self, name: str) -> ToolResult:
        """What the last turn brought; a search's tools with their definitions."""
        turn = self._episode.turns[-1]
        found, done = turn.step.retrieval, turn.step.execution
        if found is not None and found.tools is not None:
            tools = [self._rules.world.definitions[tool.name] for tool in found.tools]
            return ToolResult({"tools": tools, "note": turn.notice}, name=name, is_error=False)
        if done is not None and done.was_executed:
            content = {"output_value": done.output_value, "note": turn.notice}
            return ToolResult(content, name=name, is_error=not done.success)
        is_error = turn.step.kind != "answer" or bool(turn.notice)
        return ToolResult(turn.notice or self._episode.ended, name=name, is_error=is_error)

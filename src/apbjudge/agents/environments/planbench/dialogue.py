"""The episode as a chat: each reply is text with one action between tags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from ....llm.base import Completion
from ....records.trajectories import Trajectory
from .environment import PlanBenchEnvironment, PlanBenchRules, Turn
from .prompts import AgentPrompts

_TAGS = {
    action: re.compile(rf"<(/?){action}>", re.IGNORECASE)
    for action in ("retrieve_tools", "tool_call", "final_answer")
}


def read_action(reply: str) -> tuple[str, str] | None:
    """The only action of a reply and the text between its tags; None for none or several."""
    actions: list[tuple[str, str]] = []
    for action, tag in _TAGS.items():
        start: int | None = None
        for match in tag.finditer(reply):
            if not match[1] and start is None:
                start = match.end()
            elif match[1] and start is not None:
                actions.append((action, reply[start : match.start()].strip()))
                start = None
    return actions[0] if len(actions) == 1 else None


def read_object(text: str) -> Mapping[str, Any] | None:
    """The JSON object that a text is; None for any other text."""
    try:
        content: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return cast("dict[str, Any]", content) if isinstance(content, dict) else None


class PlanBenchDialogue:
    """An episode of a query in the view of a tested model; see ``environments.base.Dialogue``.

    Raises:
        RowError: If there is no such query.
    """

    def __init__(self, rules: PlanBenchRules, query_id: str) -> None:
        self.environment = PlanBenchEnvironment(rules)
        self.environment.reset(query_id)

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """All messages so far; they are rendered at each access and not stored."""
        episode = self.environment
        messages = [
            {"role": "system", "content": episode.rules.prompts.system},
            {"role": "user", "content": episode.query.query_text},
        ]
        for turn in episode.turns:
            messages.append({"role": "assistant", "content": turn.step.text})
            if text := _answer(episode.rules.prompts, turn):
                messages.append({"role": "user", "content": text})
        return messages

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Always empty: calls are text."""
        return ()

    @property
    def ended(self) -> str:
        """Reason for the end, as the benchmark names it; ``normal`` for a right answer."""
        return self.environment.ended

    def answer(self, reply: Completion) -> None:
        """Carries out the action of a reply; does nothing after the end."""
        if self.environment.ended:
            return
        text = reply.text.encode(errors="replace").decode()  # UTF-8 can't encode lone surrogates
        action = read_action(text)
        match action:
            case None:
                self.environment.misread(text)
            case "retrieve_tools", content:
                self.environment.search(read_object(content), text)
            case "tool_call", content:
                self.environment.use_tool(read_object(content), text)
            case _, content:
                self.environment.conclude(content, text)

    def trajectory(self) -> Trajectory:
        """The run so far."""
        return self.environment.trajectory()


def _answer(prompts: AgentPrompts, turn: Turn) -> str:
    """The environment's message in answer to a turn; empty if there is none."""
    step = turn.step
    if step.retrieval is not None and step.retrieval.tools is not None:
        return prompts.listed(step, turn.notice)
    if step.execution is not None and step.execution.was_executed:
        action = read_action(step.text)
        request = read_object(action[1]) if action else None
        return prompts.returned(step, request or {}, turn.notice)
    return prompts.noted(turn.notice)

"""An episode by the step-wise prompt: each step is asked for anew, carried out, and shown.

The tested model sees the case, the messages so far, and how to go on: the prompt of the protocol
step-wise with one step. So every step that is executed is a prediction that can be graded too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

from ....llm.base import Completion
from ....protocols.prompts import compiled
from ....records.predictions import Call
from ....records.responses import read_response
from ....records.tools import build_toolset
from ....records.trajectories import (
    LogPlace,
    StepSource,
    ToolCall,
    ToolResult,
    Trajectory,
    TrajectoryStep,
)
from ...prediction.prompts import CasePromptMaker
from ...prediction.worker import response_of
from ..dialogue import Chat, messages_of, read_calls
from .benchmark import HostedBenchmark
from .host import LONGEST_LINE
from .planned import Plan

PROMPTS = "prompts@1"
MOST_CALLS = 32
"""Calls of one step that are carried out."""
STOP_WORDS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""Marks by which a simulated user ends a conversation (τ²-bench, arXiv:2506.07982)."""
AGENT_STOPPED, USER_STOPPED = "agent_stop", "user_stop"


class HostedChat(Chat):
    """An episode of a task in a sandbox; close it.

    Args:
        benchmark: Benchmark of the task.
        task: Its id.
        plan: The plan that is carried out; None without.
    """

    def __init__(self, benchmark: HostedBenchmark, task: str, plan: Plan | None = None) -> None:
        self.environment = benchmark.environment()
        super().__init__(self.environment, task)
        self._benchmark, self._plan = benchmark, plan

    def _call(self, name: str, arguments: Mapping[str, Any], source: str) -> ToolResult:
        return self.environment.call(name, arguments, by=source)

    def say(self, text: str, source: StepSource = "agent", **more: Any) -> None:
        """Adds a step in which somebody only speaks."""
        self._steps.append(TrajectoryStep(source, text=text, **more))

    def close(self) -> None:
        """Ends the process of the episode."""
        self.environment.close()

    def run(self, *, ended: str, system_prompt: str | None = None) -> Trajectory:
        """The run of the episode; PluginError if it can't be scored.

        Args:
            ended: Reason for its end; empty while it continues.
            system_prompt: The agent's instructions; None for the case's own.
        """
        self._ended = ended
        case = self._benchmark.case(self._task)
        extra: dict[str, Any] = {"null_reward": self._benchmark.null_reward(self._task)}
        if self._plan is not None:
            extra |= {"plan": self._plan.id, "plan_sha256": self._plan.digest}
        return self.scored(
            extra,
            query=case.query,
            system_prompt=case.system_prompt if system_prompt is None else system_prompt,
            tools=tuple(self.environment.tools()),
            final_answer=self._steps[-1].text if self._steps and ended == AGENT_STOPPED else None,
            place=LogPlace(format=self._benchmark.name, version=self._benchmark.version),
        )


class StepDialogue(HostedChat):
    """See ``environments.base.Dialogue``; calls block until they are carried out.

    Args:
        benchmark: Benchmark of the task.
        task: Its id.
        maker: Makes the step-wise prompts.
        plan: Plan for the agent; None for none.

    Attributes:
        speaker: Next speaker: ``agent``, or ``user`` where a model plays the user.
    """

    def __init__(
        self,
        benchmark: HostedBenchmark,
        task: str,
        maker: CasePromptMaker,
        plan: Plan | None = None,
    ) -> None:
        super().__init__(benchmark, task, plan)
        self._spec, self._maker = benchmark.tasks[task], maker
        case = benchmark.case(task)
        text = None if plan is None else plan.text.strip()
        note = compiled(_texts()["acting"]).render(user=self._spec.user, plan=text).strip()
        self._case = case.model_copy(
            update={
                "form": "steps",
                "condition": case.condition.model_copy(update={"horizon": 1}),
                "system_prompt": f"{case.system_prompt}\n\n{note}".strip(),
                "reference": None,
            }
        )
        greeting = {"role": "user", "content": _texts()["greeting"]}
        # The conversation as the model that plays the user sees it: its own words are replies.
        self._users_messages: list[dict[str, Any]] = [greeting]
        self.speaker = "agent"
        if self._spec.user == "model" and not case.query:
            self.speaker = "user"
        elif case.query:
            self.say(case.query, source="user")
            self._users_messages.append({"role": "assistant", "content": case.query})

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The request to the next speaker."""
        if self.speaker == "user":
            instructions = {"role": "system", "content": self._spec.user_prompt}
            return [instructions, *self._users_messages]
        return self._maker.make(self._case).messages()

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Those of the simulated user; the agent's are in its prompt."""
        return self._spec.user_tools if self.speaker == "user" else ()

    def answer(self, reply: Completion) -> None:
        """Takes a reply of whoever spoke."""
        if self.speaker == "user":
            self._user_turn(reply)
        else:
            self._agent_turn(response_of(reply))

    def _agent_turn(self, raw: str) -> None:
        prediction = read_response(raw, "steps", 1)
        text = prediction.plan
        calls: Sequence[Call] = ()
        if prediction.steps and prediction.kind == "steps":
            text, calls = prediction.steps[0].thought, prediction.steps[0].calls
        if not calls:
            self.say(text, extra={"raw": raw})
            self._tell_user(text)
            return
        place = len(self._steps)
        tool_calls = [predicted_call(call, n, f"call_{place}_{n}") for n, call in enumerate(calls)]
        results = self.carry_out(tool_calls, thought=text, extra={"raw": raw})
        shown = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in tool_calls
        ]
        self._add(
            {"role": "assistant", "thought": text, "tool_calls": shown},
            *(
                {"role": "tool", "tool_call_id": each.call_id, "content": each.content}
                for each in results
            ),
        )

    def _tell_user(self, text: str) -> None:
        turn = self.environment.say(text)
        self._add({"role": "assistant", "content": text})
        self._users_messages.append({"role": "user", "content": text})
        if turn.next == "end":
            self._ended = AGENT_STOPPED
        elif turn.next == "user":
            self.speaker = "user"
        else:
            tools = build_toolset(list(self.environment.tools()), None, "tools")
            self._case = self._case.model_copy(update={"tools": tools})
            self.say(turn.text, source="user")
            self._add({"role": "user", "content": turn.text})

    def _user_turn(self, reply: Completion) -> None:
        """The simulated user calls tools of its own, or answers."""
        if reply.tool_calls:
            calls = read_calls(reply.tool_calls, len(self._steps))
            results = self.carry_out(calls, "user")
            self._users_messages += messages_of(reply, calls, results, LONGEST_LINE)
            return
        text = reply.text or ""
        self._users_messages.append({"role": "assistant", "content": text})
        self.say(text, source="user")
        if any(word in text for word in STOP_WORDS):
            self._ended = USER_STOPPED
            return
        self.speaker = "agent"
        if not self._case.query and not self._case.trajectory:
            self._case = self._case.model_copy(update={"query": text})
        else:
            self._add({"role": "user", "content": text})

    def _add(self, *messages: dict[str, Any]) -> None:
        self._case = self._case.model_copy(
            update={"trajectory": (*self._case.trajectory, *messages)}
        )

    def trajectory(self) -> Trajectory:
        """The run so far, with the score of its state and what doing nothing is worth."""
        return self.run(ended=self._ended, system_prompt=self._case.system_prompt)


def predicted_call(call: Call, number: int, call_id: str) -> ToolCall:
    """A predicted call as it can be carried out; ``number`` is its place in its step, from 0."""
    fault = ""
    if call.arguments is None and call.is_unread:
        fault = "the arguments are no JSON object"
    elif number >= MOST_CALLS:
        fault = f"of one step {MOST_CALLS} calls are carried out at most"
    return ToolCall(call.name, dict(call.arguments or {}), call_id, parse_error=fault)


def _content() -> bytes:
    return resources.files(__package__ or "").joinpath(f"{PROMPTS}.toml").read_bytes()


@cache
def _texts() -> dict[str, str]:
    return tomllib.loads(_content().decode())


@cache
def prompts_digest() -> str:
    """SHA-256 of the texts."""
    return sha256(_content()).hexdigest()

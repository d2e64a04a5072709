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

import orjson

from ....llm.base import Completion
from ....protocols.prompts import compiled
from ....records.loose_json import as_object
from ....records.predictions import Call
from ....records.responses import read_response
from ....records.tools import build_toolset
from ....records.trajectories import ToolCall, ToolResult, Trajectory, TrajectoryStep
from ...prediction.prompts import CasePromptMaker
from ...prediction.worker import response_of
from .host import HostedEnvironment, NextTurn
from .planned import Plan
from .scoring import AGENT_STOPPED, USER_STOPPED, finished
from .suites import Suite

PROMPTS = "prompts@1"
MOST_CALLS = 32
"""Calls of one step that are carried out."""
STOP_WORDS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
"""What a simulated user ends a conversation with (τ²-bench, arXiv:2506.07982)."""


class StepDialogue:
    """See ``environments.base.Dialogue``; calls block until they are carried out.

    Args:
        suite: Where the task is.
        task: Its id.
        maker: Makes the step-wise prompts.
        plan: What the agent is given to follow; None for nothing.
    """

    def __init__(
        self, suite: Suite, task: str, maker: CasePromptMaker, plan: Plan | None = None
    ) -> None:
        self._suite, self._task, self._maker, self._plan = suite, task, maker, plan
        self._environment = suite.environment()
        self._environment.reset(task)
        self._user = suite.user(task)
        case = suite.case(task)
        text = None if plan is None else plan.text.strip()
        note = _template("acting").render(user=self._user, plan=text).strip()
        self._case = case.model_copy(
            update={
                "form": "steps",
                "condition": case.condition.model_copy(update={"horizon": 1}),
                "system_prompt": f"{case.system_prompt}\n\n{note}".strip(),
                "reference": None,
            }
        )
        self._steps: list[TrajectoryStep] = []
        self._ended = ""
        greeting = {"role": "user", "content": _texts()["greeting"]}
        # The conversation as the model that plays the user sees it: its own words are replies.
        self._users_messages: list[dict[str, Any]] = [greeting]
        self.speaker = "agent"
        if self._user == "model" and not case.query:
            self.speaker = "user"
        elif case.query:
            self._steps.append(TrajectoryStep("user", text=case.query))
            self._users_messages.append({"role": "assistant", "content": case.query})

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """What whoever speaks next is sent."""
        if self.speaker == "user":
            instructions = {"role": "system", "content": self._suite.user_prompt(self._task)}
            return [instructions, *self._users_messages]
        return self._maker.make(self._case).messages()

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Those of the simulated user; the agent's are in its prompt."""
        return self._suite.user_tools(self._task) if self.speaker == "user" else ()

    @property
    def ended(self) -> str:
        """Why it ended."""
        return self._ended

    def answer(self, reply: Completion) -> None:
        """Takes a reply of whoever spoke."""
        if self.speaker == "user":
            self._of_user(reply)
        else:
            self._of_agent(response_of(reply))

    def _of_agent(self, raw: str) -> None:
        prediction = read_response(raw, "steps", 1)
        text = prediction.plan
        calls: Sequence[Call] = ()
        if prediction.steps and prediction.kind == "steps":
            text, calls = prediction.steps[0].thought, prediction.steps[0].calls
        if not calls:
            self._steps.append(TrajectoryStep("agent", text=text, extra={"raw": raw}))
            self._say({"role": "assistant", "content": text})
            return
        ids = [f"call_{len(self._steps)}_{n}" for n in range(len(calls))]
        made, seen = zip(*map(self._carry_out, calls, ids), strict=True)
        kind = "invalid" if all(call.parse_error for call in made) else "call"
        self._steps.append(
            TrajectoryStep(
                "agent", kind, thought=text, calls=made, observations=seen, extra={"raw": raw}
            )
        )
        self._add(
            {"role": "assistant", "thought": text, "tool_calls": [_shown(each) for each in made]},
            *(
                {"role": "tool", "tool_call_id": each.call_id, "content": each.content}
                for each in seen
            ),
        )

    def _carry_out(self, call: Call, call_id: str) -> tuple[ToolCall, ToolResult]:
        number = int(call_id.rpartition("_")[2])
        seen, fault = carry_out_call(self._environment, call, number)
        arguments = dict(call.arguments or {})
        observation = ToolResult(seen.content, call_id, call.name, seen.is_error)
        return ToolCall(call.name, arguments, call_id, parse_error=fault), observation

    def _say(self, message: dict[str, Any]) -> None:
        """The agent speaks to the user."""
        text = str(message["content"])
        turn = self._environment.say(text)
        self._add(message)
        self._users_messages.append({"role": "user", "content": text})
        self._follow(turn)

    def _follow(self, turn: NextTurn) -> None:
        if turn.next == "end":
            self._ended = AGENT_STOPPED
        elif turn.next == "user":
            self.speaker = "user"
        else:
            tools = build_toolset(list(self._environment.tools()), None, "tools")
            self._case = self._case.model_copy(update={"tools": tools})
            self._steps.append(TrajectoryStep("user", text=turn.text))
            self._add({"role": "user", "content": turn.text})

    def _of_user(self, reply: Completion) -> None:
        """The simulated user calls tools of its own, or answers."""
        if reply.tool_calls:
            self._users_messages.append(_message_of(reply))
            calls: list[ToolCall] = []
            seen: list[ToolResult] = []
            for call in reply.tool_calls:
                arguments = _arguments(call.arguments)
                made = ToolCall(call.name, arguments or call.arguments, call.id)
                if arguments is None:
                    result = ToolResult("Error: the arguments are no JSON object", is_error=True)
                else:
                    result = self._environment.call(call.name, arguments, by="user")
                calls.append(made)
                seen.append(ToolResult(result.content, call.id, call.name, result.is_error))
                self._users_messages.append(
                    {"role": "tool", "tool_call_id": call.id, "content": result.content}
                )
            self._steps.append(
                TrajectoryStep("user", "call", calls=tuple(calls), observations=tuple(seen))
            )
            return
        text = reply.text or ""
        self._users_messages.append({"role": "assistant", "content": text})
        self._steps.append(TrajectoryStep("user", text=text))
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

    def close(self) -> None:
        """Ends the process of the episode."""
        self._environment.close()

    def trajectory(self) -> Trajectory:
        """The run so far, with the score of its state and what doing nothing is worth."""
        return finished(
            self._suite,
            self._task,
            self._environment,
            self._steps,
            ended=self._ended,
            system_prompt=self._case.system_prompt,
            plan=self._plan,
        )


def carry_out_call(
    environment: HostedEnvironment, call: Call, number: int
) -> tuple[ToolResult, str]:
    """Carries out a predicted call.

    Args:
        environment: Where.
        call: As it was read.
        number: Its place among the calls of its step, from 0.

    Returns:
        What it returned; why it was not carried out, empty where it was.
    """
    fault = ""
    if call.arguments is None and call.is_unread:
        fault = "the arguments are no JSON object"
    elif number >= MOST_CALLS:
        fault = f"of one step {MOST_CALLS} calls are carried out at most"
    if fault:
        return ToolResult(f"Error: {fault}", is_error=True), fault
    return environment.call(call.name, dict(call.arguments or {})), ""


def _shown(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def _message_of(reply: Completion) -> dict[str, Any]:
    """A reply with native calls as the message that it is."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": call.arguments if _arguments(call.arguments) is not None else "{}",
            },
        }
        for call in reply.tool_calls
    ]
    return {"role": "assistant", "content": reply.text or None, "tool_calls": calls}


def _arguments(text: str) -> dict[str, Any] | None:
    try:
        return as_object(orjson.loads(text or "{}"))
    except orjson.JSONDecodeError:
        return None


def _content() -> bytes:
    return resources.files(__package__ or "").joinpath(f"{PROMPTS}.toml").read_bytes()


@cache
def _texts() -> dict[str, str]:
    return tomllib.loads(_content().decode())


@cache
def _template(name: str) -> Any:
    return compiled(_texts()[name])


def prompts_digest() -> str:
    """SHA-256 of the texts."""
    return sha256(_content()).hexdigest()

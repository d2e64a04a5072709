"""Steps of a trajectory as step-wise predictions, and its last message as a prediction."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Literal

from ..errors import OptionError
from ..records.loose_json import json_text
from ..records.messages import openai_messages
from ..records.trajectories import Trajectory, TrajectoryStep
from .formats.derived import message_of

Places = Literal["all", "quartiles"]

NOT_STATED = "not stated"
"""The tested model of a trajectory whose log names none."""


def step_rows(
    trajectory: Trajectory,
    *,
    k: int = 1,
    at: Places = "all",
    tools: Sequence[Any] | None = None,
    with_prefix: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yields rows in the published step-wise format, with the agent's actions as predictions.

    A row holds only what the agent had seen by then: neither the results of the predicted calls
    nor, if the agent speaks first, the query. The user's own calls and their results are left out.
    There is no reference.

    ``sources`` are the positions, from 0, of the log entries of the predicted steps. With k = 1,
    ``span_id`` is the step's span, if the log has spans.

    With k above 1, later predicted steps may depend on results that the agent saw and the row does
    not show.

    Args:
        trajectory: The trajectory.
        k: Steps of the agent in one prediction, 1 to 3; no row if fewer are left.
        at: ``all``: at every step of the agent. ``quartiles``: after a quarter, a half and three
            quarters of them.
        tools: Definitions of the tools, for a trajectory whose log has none; without either the row
            states none.
        with_prefix: True if rows hold the earlier messages, most of the size of a long trajectory.

    Raises:
        OptionError: If k is out of range.
        RowError: If a value can't be written as JSON.
    """
    if k not in (1, 2, 3):
        raise OptionError(f"--steps: expected a whole number from 1 to 3, got {k}")
    steps = trajectory.steps
    turns = [place for place, step in enumerate(steps) if step.source == "agent"]
    n = len(turns)
    chosen = range(n) if at == "all" else sorted({n * quarter // 4 for quarter in (1, 2, 3)})
    asked_at = next(
        (i for i, step in enumerate(steps) if step.source == "user" and step.text), len(steps)
    )
    is_said = asked_at < len(steps) and steps[asked_at].text == trajectory.query
    hidden = call_ids(steps, "user") - call_ids(steps, "agent")
    offered = _offered(tools if trajectory.tools is None else trajectory.tools)
    before: list[str] = []
    start = 0
    for number in chosen:
        predicted = turns[number : number + k]
        if len(predicted) < k:
            return
        at_step = predicted[0]
        for place in range(start, at_step) if with_prefix else ():
            shown = messages_of(steps[place], hidden)
            before.extend(json_text(message, f"steps[{place}]") for message in shown)
        start = at_step
        response = [prediction_of(steps[place]) for place in predicted]
        sources = [source for place in predicted for source in steps[place].sources]
        text = json_text(response[0] if k == 1 else response, f"steps[{at_step}]")
        yield {
            "id": f"{trajectory.trajectory_id}-step{number}{f'-k{k}' if k > 1 else ''}",
            "case_id": trajectory.case_id,
            "split": "step_wise_planning",
            "planning_regime": "Step-wise",
            "prediction_horizon": k,
            "source": trajectory.place.format,
            "stage": ("early", "middle", "late")[3 * number // n],
            "system_prompt": trajectory.system_prompt,
            "query": "" if is_said and at_step < asked_at else trajectory.query,
            **offered,
            "trajectory_prefix_json": f"[{','.join(before)}]",
            "tested_model": trajectory.tested_model or NOT_STATED,
            **({"sources": sources} if sources else {}),
            **({"span_id": span_id} if (span_id := steps[at_step].span_id) and k == 1 else {}),
            "model_response": _TAG.sub(_escaped, text),
        }


def answer_row(trajectory: Trajectory) -> dict[str, Any] | None:
    """The last message of a trajectory as a prediction, for a user's own rubric.

    It has the id of the trajectory, so that labels apply to both. None if the trajectory ends
    without a message.

    Raises:
        RowError: If the definitions of the tools can't be written as JSON.
    """
    if trajectory.final_answer is None:
        return None
    return {
        "id": trajectory.trajectory_id,
        "case_id": trajectory.case_id,
        "planning_regime": "Holistic",
        "source": trajectory.place.format,
        "system_prompt": trajectory.system_prompt,
        "query": trajectory.query,
        **_offered(trajectory.tools),
        "tested_model": trajectory.tested_model or NOT_STATED,
        "model_response": trajectory.final_answer,
    }


def labelling_row(trajectory: Trajectory) -> dict[str, Any]:
    """A whole trajectory as a row to be labelled: all messages, the last one as the reply.

    It has the id of the trajectory. The reply is empty if the trajectory ends without a message.

    Raises:
        RowError: If a value can't be written as JSON.
    """
    hidden = call_ids(trajectory.steps, "user") - call_ids(trajectory.steps, "agent")
    messages = [shown for step in trajectory.steps for shown in messages_of(step, hidden)]
    answered = replace(trajectory, final_answer=trajectory.final_answer or "")
    return {**(answer_row(answered) or {}), "trajectory_prefix_json": json_text(messages, "steps")}


def _offered(tools: Sequence[Any] | None) -> dict[str, str]:
    """The field with the definitions of tools; none if the log does not state them."""
    return {} if tools is None else {"tools_json": json_text(tools, "tools")}


_TAG = re.compile(r"<(?=/?(?:tool|function|invoke|think))|\[(?=TOOL_CALLS\])", re.IGNORECASE)
"""Text that the reader of replies takes for the start of a call, or the end of the thinking, even
within a string; its first character can be escaped in JSON."""


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def call_ids(steps: Sequence[TrajectoryStep], source: str) -> AbstractSet[str]:
    """Ids of the calls by one speaker."""
    return {call.call_id for step in steps if step.source == source for call in step.calls}


def prediction_of(step: TrajectoryStep) -> dict[str, Any]:
    """A step of the agent in the published form of a predicted step."""
    return {
        "role": "assistant",
        "thought": "\n\n".join(filter(None, (step.thought, step.text))),
        "tool_calls": [
            {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in step.calls
        ],
    }


def messages_of(step: TrajectoryStep, hidden: AbstractSet[str]) -> Iterator[dict[str, Any]]:
    """Yields the chat messages of a step, without results that the agent did not see.

    Args:
        step: The step.
        hidden: Ids of calls whose results the agent does not see.

    Raises:
        RowError: If a result can't be written as JSON.
    """
    if step.source == "user":
        if step.text or not step.calls:
            yield {"role": "user", "content": step.text}
        return
    seen = tuple(result for result in step.observations if result.call_id not in hidden)
    message = message_of(replace(step, observations=seen))
    yield from openai_messages(message, "observations", is_extended=True)

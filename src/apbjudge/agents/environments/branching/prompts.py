"""The requests for a substep of a given plan, and the reading of the answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from math import fsum
from typing import Any

from jinja2 import Template

from ....llm.base import Completion
from ....llm.replies import is_broken
from ....protocols.fence import fence
from ....protocols.prompts import compiled
from ....records.loose_json import as_object, json_values
from ....records.tools import pretty
from ....records.trajectories import ToolCall, TrajectoryStep
from ..plans import PlanAction, Situation

Tool = Mapping[str, Any]
PROMPTS = "execute@1"
"""Folder of the templates of requests."""


@cache
def _template(name: str) -> Template:
    folder = resources.files(__name__.rpartition(".")[0]).joinpath("templates", PROMPTS)
    return compiled(folder.joinpath(f"{name}.j2").read_text(encoding="utf-8"))


def substep_messages(
    situation: Situation, ask: str, tools: Sequence[Tool], **values: str
) -> list[dict[str, Any]]:
    """The messages of a request about a substep, or about the run.

    Args:
        situation: Everything that the model is shown.
        ask: Name of the template of the question.
        tools: The tools that are shown.
        values: Further values for the template.
    """
    plan = "\n".join(f"{line.step} {line.description}".rstrip() for line in situation.plan)
    case = _template("case").render(
        fence=fence,
        query=situation.query,
        plan=plan,
        tools=pretty([dict(tool) for tool in tools]),
        history=[_shown(step) for step in situation.history],
        is_open_loop=situation.is_open_loop,
        reflections=situation.reflections,
        memory=[
            {"query": steps[0].query, "steps": [(of.wording, _shown(of.step)) for of in steps]}
            for steps in situation.memory
        ],
    )
    asked = _template(ask).render(fence=fence, substep=situation.substep, **values)
    return [
        {"role": "system", "content": _template("system").render().strip()},
        {"role": "user", "content": f"{case.strip()}\n\n{asked.strip()}"},
    ]


def _shown(step: TrajectoryStep) -> dict[str, str]:
    """The texts of a finished substep for the prompt."""
    shown = {"substep": str(step.extra.get("substep", "")), "what": "", "call": "", "output": ""}
    if step.kind == "invalid":
        return shown | {"what": "the answer could not be read, nothing was done"}
    if not step.calls:
        return shown | {"what": "no tool was called"}
    call = step.calls[0]
    outputs = [each.content for each in step.observations]
    has_failed = any(each.is_error for each in step.observations)
    return shown | {
        "what": "the call failed" if has_failed else "a tool was called",
        "call": pretty({"tool": call.name, "arguments": call.arguments}),
        "output": "\n".join(each if isinstance(each, str) else pretty(each) for each in outputs),
    }


def action_of(reply: Completion) -> PlanAction:
    """The action that a reply states; unreadable if the reply was refused, cut off or states none.

    Uses the last JSON object with ``tool``. Arguments that are not an object stay as they are, with
    a ``parse_error``.
    """
    text = reply.reply_text
    unreadable = PlanAction(text=text, is_readable=False)
    if is_broken(reply):
        return unreadable
    stated = [each for each in map(as_object, json_values(text)) if each and "tool" in each]
    if not stated:
        return unreadable
    tool, arguments = stated[-1]["tool"], stated[-1].get("arguments", {})
    if tool is None:
        return PlanAction(None, text)
    if not isinstance(tool, str) or not tool.strip():
        return unreadable
    if as_object(arguments) is None:
        return PlanAction(
            ToolCall(tool, arguments, parse_error="arguments are no JSON object"), text
        )
    return PlanAction(ToolCall(tool, arguments), text)


_WORD = re.compile(r"[^\W_]+")


def by_words(situation: Situation, limit: int) -> Sequence[Tool]:
    """The tools that share most words with the substep and the query, weighted by rarity.

    This is the default in place of the paper's search by embeddings. If there are no more than
    ``limit`` tools, it returns all of them in their order.
    """
    if len(situation.tools) <= limit:
        return situation.tools
    words = [
        set(_words(f"{tool['name']} {tool.get('description', '')}")) for tool in situation.tools
    ]
    known_by = Counter(word for of_tool in words for word in of_tool)
    substep, query = set(_words(situation.description)), set(_words(situation.query))

    def likeness(at: int) -> float:
        wanted = ((substep, 2.0), (query, 1.0))
        return fsum(weight / known_by[w] for text, weight in wanted for w in words[at] & text)

    ranked = sorted(range(len(words)), key=lambda at: -likeness(at))
    return [situation.tools[at] for at in ranked[:limit]]


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}

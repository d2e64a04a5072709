"""Faults without codes: after a broken tool, and in cases that can't be solved."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

from ...records import Call, Step, Tool, message_calls
from .bases import Base
from .dependencies import is_action
from .drafts import Draft
from .edits import Change
from .guesses import guessed_arguments


def retry_broken(base: Base, rng: Random) -> Change | None:
    """Makes the call that has just failed once more."""
    broken = base.item.condition.broken_tool
    made = [call for message in base.item.trajectory for call in message_calls(message)]
    failed = next((call for call in reversed(made) if call.name == broken), None)
    if failed is None:
        return None
    thought = rng.choice(_RETRIES).format(name=broken)
    return Change(
        reply=_first_step(base, Step(thought=thought, calls=(failed,))),
        what=f"{broken}, which has just failed, is called again with equal arguments",
    )


_RETRIES = (
    "The error may pass, so I call {name} once more.",
    "I try {name} a second time.",
)


def give_up(base: Base, rng: Random) -> Change | None:
    """Says that the task is given up."""
    broken = base.item.condition.broken_tool
    thought = rng.choice(_SURRENDERS).format(name=broken)
    return Change(
        reply=_first_step(base, Step(thought=thought), is_last=True),
        what="the task is given up, although another tool could be used",
    )


_SURRENDERS = (
    "{name} does not work. I can't go on with this task and give it up.",
    "Without {name} I am unable to complete the request, so I stop here.",
)


def talk_only(base: Base, rng: Random) -> Change | None:
    """Neither makes a call nor gives up."""
    thought = rng.choice(_TALK).format(name=base.item.condition.broken_tool)
    return Change(
        reply=_first_step(base, Step(thought=thought), is_last=True),
        what="the step makes no call and does not give up either",
    )


_TALK = (
    "{name} has reported an error. Such errors happen from time to time.",
    "It is good to know that {name} answers with an error at the moment.",
)


def _first_step(base: Base, step: Step, *, is_last: bool = False) -> Draft:
    """The reply with another first step; what follows stays, or is idle after the last."""
    rest = base.draft.steps[1:]
    idle = tuple(Step(thought="Nothing further.") for _ in rest)
    return replace(base.draft, steps=(step, *(idle if is_last else rest)), refusal=None)


MOST_CALLS = 3
_BESIDE = re.compile(
    r"ask|clarif|question|contact|escalat|human|reject|declin|cancel|undo", re.IGNORECASE
)


def carry_on(base: Base, rng: Random) -> Change | None:
    """Plans the case's tools with guessed values and claims that all is done."""
    chosen = _working_tools(base)
    if not chosen:
        return None
    calls = [Call(t.name, guessed_arguments(t), reason=t.description) for t in chosen]
    names = [tool.name for tool in chosen]
    plan = rng.choice(_CLAIMS).format(names=_listed(names))
    return Change(
        reply=_plan(plan, calls),
        what=f"the plan calls {', '.join(names)} with made-up values and claims success",
    )


_CLAIMS = (
    "I call {names}. After that everything that was asked for is done as wished.",
    "Call {names}; with this the request is met in full.",
)


def guess_value(base: Base, rng: Random) -> Change | None:
    """Fills what is missing with an assumption, and says so."""
    if base.item.condition.unsolvable_type != "information_missing":
        return None
    acting = [tool for tool in _working_tools(base) if is_action(tool.name) and tool.required]
    if not acting:
        return None
    most = max(len(tool.required) for tool in acting)
    tool = rng.choice([tool for tool in acting if len(tool.required) == most])
    arguments = guessed_arguments(tool)
    assumed = ", ".join(f"{name} {value!r}" for name, value in arguments.items())
    plan = f"Some details are not stated. I assume {assumed}, and go on with {tool.name}."
    call = Call(tool.name, arguments, reason="The missing details are assumed.")
    return Change(
        reply=_plan(plan, [call]), what=f"{tool.name} is called with assumed values: {assumed}"
    )


def _working_tools(base: Base) -> list[Tool]:
    """The first tools of the case, those that act before others, none that asks or undoes."""
    tools = base.item.tools.tools if base.item.tools else ()
    fit = [tool for tool in tools if not _BESIDE.search(tool.name)]
    fit.sort(key=lambda tool: not is_action(tool.name))
    chosen = {tool.name for tool in fit[:MOST_CALLS]}
    return [tool for tool in tools if tool.name in chosen]


def _plan(plan: str, calls: list[Call]) -> Draft:
    return Draft(form="plan", plan=plan, steps=tuple(Step(calls=(call,)) for call in calls))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

"""Faults in what is done and when: calls left out, repeated, out of order, tasks given up."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import orjson

from ...records import Call, Step, Tool, message_calls
from .bases import Base
from .kinds import Change
from .parts import ReplyParts, arguments_of, case_text, one_of, plan_of, rearranged, seeded
from .words import (
    guessed_arguments,
    is_action,
    is_lookup,
    name_words,
    possible_needs,
    schema_of,
    stems,
    sure_needs,
)


def drop_call(base: Base, rng: Random) -> Change | None:
    """Leaves out a call that makes something which the query asks for and no call uses."""
    parts, tools = base.parts, base.item.tools
    used = {earlier for earlier, _ in possible_needs(parts, tools)}
    droppable = [
        at
        for at, call in enumerate(parts.calls)
        if is_action(call.name) and at not in used and _is_asked(base, at) and not _opens(base, at)
    ]
    if len(parts.calls) < 2 or not droppable:
        return None
    at = rng.choice(droppable)
    rest = [n for n in range(len(parts.calls)) if n != at]
    return Change(reply=rearranged(parts, rest, tools), what=f"{parts.place(at)} is left out")


def _is_asked(base: Base, at: int) -> bool:
    call = base.parts.calls[at]
    tool = base.item.tools.by_name.get(call.name) if base.item.tools else None
    about = " ".join((call.name.replace("_", " "), call.reason, tool.description if tool else ""))
    return bool(stems(about) & stems(base.item.query))


def _opens(base: Base, at: int) -> bool:
    """Whether a call looks like the start of something, which others only make possible."""
    words = name_words(base.parts.calls[at].name)
    return words[0] in ("open", "start", "click", "press") and 2 * at < len(base.parts.calls)


def reject_solvable(base: Base, rng: Random) -> Change | None:
    """Declines the task for a reason that does not hold."""
    excuses = (
        "The tools at hand are not enough for this task, so I don't carry it out.",
        "What is asked for can't be done with the information given. I decline.",
        "This request can't be fulfilled with the tools that are listed.",
    )
    parts = ReplyParts(form="plan", refusal=rng.choice(excuses))
    return Change(reply=parts, what="the task, which can be solved, is rejected")


def conclude_early(base: Base, rng: Random) -> Change | None:
    """Makes the last step a conclusion without a call."""
    steps = base.parts.steps
    if not steps or not steps[-1].calls:
        return None
    conclusions = (
        "Everything that was asked for has been done. No further call is necessary.",
        "The request is complete; I can give the final answer now without another call.",
        "The task is complete, so I stop here and report to the user.",
    )
    names = ", ".join(call.name for call in steps[-1].calls)
    return Change(
        reply=replace(base.parts, steps=(*steps[:-1], Step(thought=rng.choice(conclusions)))),
        what=f"the last step says that all is done and makes no call of {names}",
    )


LIMIT = "Please call {name} exactly once."


def limited(base: Base) -> int | None:
    """Place of the lookup that a limit is stated for; None where there is none.

    The same for the fault and for its harmless twin, whatever the seed.
    """
    calls, item = base.parts.calls, base.item
    count = Counter(call.name for call in calls)
    told = f" {item.query} {item.system_prompt} "
    fit = [
        n
        for n, call in enumerate(calls)
        if count[call.name] == 1
        and is_lookup(call.name, item.tools)
        and f" {call.name} " not in told
    ]
    return one_of(seeded("limit", base.name), fit)


def with_limit(base: Base, at: int) -> str:
    """The query with the limit stated."""
    return f"{base.item.query} {LIMIT.format(name=base.parts.calls[at].name)}".strip()


def breach_limit(base: Base, rng: Random) -> Change | None:
    """States that a tool is to be called once, and calls it twice in a row."""
    at, parts = limited(base), base.parts
    if at is None:
        return None
    order = sorted([*range(len(parts.calls)), at])
    name = parts.calls[at].name
    return Change(
        reply=rearranged(parts, order, base.item.tools),
        case={"query": with_limit(base, at)},
        what=f"the query asks for {name} to be called exactly once, and {parts.place(at)} is "
        "made twice",
    )


def swap_order(base: Base, rng: Random) -> Change | None:
    """Moves a call in front of the one whose result it needs."""
    parts = base.parts
    need = one_of(rng, sure_needs(parts, base.item.tools, case_text(base.item)))
    if need is None:
        return None
    to = min(need.on)
    order = [n for n in range(len(parts.calls)) if n != need.call]
    order.insert(to, need.call)
    what = f"{parts.place(need.call)} stands before {parts.place(to)}, though {need.because}"
    return Change(reply=rearranged(parts, order, base.item.tools), what=what)


def use_early(base: Base, rng: Random) -> Change | None:
    """Takes a value from the result of a tool that is called only later, or not at all yet."""
    parts, tools = base.parts, base.item.tools
    described: list[Change] = []
    stated: list[Change] = []
    for at, name, value in arguments_of(parts):
        call = parts.calls[at]
        before = {c.name for c in parts.calls[:at]}
        later = [c.name for c in parts.calls[at + 1 :] if c.name not in before | {call.name}]
        if parts.form == "steps" and not later and at == 0:
            later = _uncalled(base)
        if later and tools is not None and _is_free_text(base, call.name, name, value):
            source = rng.choice(later)
            text = f"${{{source}.{name}}}"
            what = f"{name} of {parts.place(at)} is {text}, and no earlier call is of {source}"
            changes = described if is_described(value, base.item.query) else stated
            changes.append(Change(reply=parts.with_argument(at, name, text), what=what))
    return one_of(rng, described or stated)


def _is_free_text(base: Base, tool_name: str, name: str, value: Any) -> bool:
    """Whether a value is a string that the schema leaves open."""
    tool = base.item.tools.by_name.get(tool_name) if base.item.tools else None
    spec = schema_of(tool, name) if tool else {}
    return isinstance(value, str) and {"enum", "pattern", "format", "const"}.isdisjoint(spec)


def _uncalled(base: Base) -> list[str]:
    """Tools that neither the steps call nor the case speaks of."""
    tools = base.item.tools
    barred = {*base.item.condition.extraneous, *(call.name for call in base.parts.calls)}
    told = case_text(base.item)
    names = tools.by_name if tools else ()
    return [name for name in names if name not in barred and name not in told]


def is_described(value: Any, query: str) -> bool:
    """Whether a value is put in words and does not stand in the query."""
    is_text = isinstance(value, str) and " " in value.strip() and value not in query
    return is_text and value[:1].islower()


def ignore_data(base: Base, rng: Random) -> Change | None:
    """Makes the call again whose result the trajectory has just given, in place of the next."""
    last, steps = _just_answered(base), base.parts.steps
    if last is None or not steps or not steps[0].calls:
        return None
    if last.name in {call.name for call in steps[0].calls}:
        return None
    thoughts = (
        "I use {name} to get the data that I need.",
        "The next thing to find out is what {name} gives.",
    )
    again = Step(thought=rng.choice(thoughts).format(name=last.name), calls=(last,))
    return Change(
        reply=replace(base.parts, steps=(again, *steps[1:])),
        what=f"step 1 calls {last.name} again with equal arguments, though its result is at hand",
    )


def _just_answered(base: Base) -> Call | None:
    """The lookup that the last message of the trajectory answers; None of any other message."""
    trajectory = base.item.trajectory
    if len(trajectory) < 2 or trajectory[-1].get("role") not in ("tool", "function"):
        return None
    calls = message_calls(trajectory[-2])
    answer = orjson.dumps(trajectory[-1].get("content")).decode().lower()
    if len(calls) != 1 or re.search(r"error|fail|timeout|try again|pending|empty|\[\]", answer):
        return None
    return calls[0] if is_lookup(calls[0].name, base.item.tools) and calls[0].arguments else None


def retry_broken(base: Base, rng: Random) -> Change | None:
    """Makes the call that has just failed once more."""
    broken = base.item.condition.broken_tool
    made = [call for message in base.item.trajectory for call in message_calls(message)]
    failed = next((call for call in reversed(made) if call.name == broken), None)
    if failed is None:
        return None
    thoughts = (
        "The error may pass, so I call {name} once more.",
        "I try {name} a second time.",
    )
    step = Step(thought=rng.choice(thoughts).format(name=broken), calls=(failed,))
    return Change(
        reply=_first_step(base, step),
        what=f"{broken}, which has just failed, is called again with equal arguments",
    )


def give_up(base: Base, rng: Random) -> Change | None:
    """Says that the task is given up."""
    thoughts = (
        "{name} does not work. I can't go on with this task and give it up.",
        "Without {name} I am unable to complete the request, so I stop here.",
    )
    step = Step(thought=rng.choice(thoughts).format(name=base.item.condition.broken_tool))
    return Change(
        reply=_first_step(base, step, is_last=True),
        what="the task is given up, although another tool could be used",
    )


def talk_only(base: Base, rng: Random) -> Change | None:
    """Neither makes a call nor gives up."""
    thoughts = (
        "{name} has reported an error. Such errors happen from time to time.",
        "It is good to know that {name} answers with an error at the moment.",
    )
    step = Step(thought=rng.choice(thoughts).format(name=base.item.condition.broken_tool))
    return Change(
        reply=_first_step(base, step, is_last=True),
        what="the step makes no call and does not give up either",
    )


def _first_step(base: Base, step: Step, *, is_last: bool = False) -> ReplyParts:
    """The reply with another first step; what follows stays, or is idle after the last."""
    rest = base.parts.steps[1:]
    idle = tuple(Step(thought="Nothing further.") for _ in rest)
    return replace(base.parts, steps=(step, *(idle if is_last else rest)), refusal=None)


MOST_CALLS = 3
_ASKS_OR_UNDOES = re.compile(
    r"ask|clarif|question|contact|escalat|human|reject|declin|cancel|undo", re.IGNORECASE
)


def carry_on(base: Base, rng: Random) -> Change | None:
    """Plans the case's tools with guessed values and claims that all is done."""
    chosen = _working_tools(base)
    if not chosen:
        return None
    names = [tool.name for tool in chosen]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    claims = (
        "I call {names}. After that everything that was asked for is done as wished.",
        "Call {names}; with this the request is met in full.",
    )
    calls = [Call(t.name, guessed_arguments(t), reason=t.description) for t in chosen]
    return Change(
        reply=plan_of(calls, rng.choice(claims).format(names=listed)),
        what=f"the plan calls {', '.join(names)} with made-up values and claims success",
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
    what = f"{tool.name} is called with assumed values: {assumed}"
    return Change(reply=plan_of([call], plan), what=what)


def _working_tools(base: Base) -> list[Tool]:
    """The first tools of the case, those that act before others, none that asks or undoes."""
    tools = base.item.tools.tools if base.item.tools else ()
    fit = [tool for tool in tools if not _ASKS_OR_UNDOES.search(tool.name)]
    fit.sort(key=lambda tool: not is_action(tool.name))
    chosen = {tool.name for tool in fit[:MOST_CALLS]}
    return [tool for tool in tools if tool.name in chosen]

"""Plants exactly one fault of a known kind into a plan taken as correct.

Every kind states its error code, the codes that may hold as its consequences, and if a rule proves
it. A variant in which a rule proves another fault is left out: as far as rules can tell, each
variant has only the stated fault.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, cast

import orjson

from ...errors import shorten
from ...protocols.checks.hints import LOW_OVERLAP
from ...protocols.tool_words import name_words, properties
from ...records import Call, Step, Tool, message_calls, message_tools
from . import value_faults
from .kinds import Argument, Change, Makers, Occasion, by_name
from .parts import (
    ReplyParts,
    as_word,
    case_text,
    everywhere,
    in_text,
    one_of,
    plan_of,
    rearranged,
    retold,
    seeded,
    tool_of,
)
from .value_faults import is_described
from .words import guessed_arguments, is_action, is_lookup, possible_needs, stems, sure_needs, table

# choice and order of calls ------------------------------------------------------------------------


def drop_call(on: Occasion) -> Iterator[Change]:
    """Leaves out a call that makes something that the query asks for and no later call uses."""
    parts, tools = on.plan, on.tools
    used = {earlier for earlier, _ in possible_needs(parts, tools)}
    for at, call in enumerate(parts.calls):
        tool = tool_of(tools, call.name)
        words = (call.name.replace("_", " "), call.reason, tool.description if tool else "")
        is_asked = not stems(" ".join(words)).isdisjoint(stems(on.query))
        # a call that opens or starts something may only make other calls possible
        opens = name_words(call.name)[:1] in (["open"], ["start"], ["click"], ["press"])
        is_start = opens and 2 * at < len(parts.calls)
        is_spare = len(parts.calls) > 1 and at not in used
        if is_action(call.name) and is_spare and is_asked and not is_start:
            rest = [n for n in range(len(parts.calls)) if n != at]
            yield Change(rearranged(parts, rest, tools), f"{parts.place(at)} is left out")


def reject_solvable(on: Occasion) -> Iterator[Change]:
    """Declines the task for a reason that does not hold."""
    for text in on.kind.texts:
        yield Change(ReplyParts(form="plan", refusal=text))


def conclude_early(on: Occasion) -> Iterator[Change]:
    """Makes the last step a conclusion without a call."""
    *steps, last = on.plan.steps or (Step(),)
    names = ", ".join(call.name for call in last.calls)
    for text in on.kind.texts if last.calls else ():
        reply = replace(on.plan, steps=(*steps, Step(text)))
        yield Change(reply, f"the last step says that all is done and makes no call of {names}")


def lookup_with_limit(on: Occasion) -> tuple[int, str, dict[str, str]] | None:
    """Place of a lookup, a limit of one call for it, and the case's fields that state the limit.

    Equal for the fault and its harmless twin, whatever the seed; None if no lookup fits.
    """
    calls, item = on.plan.calls, on.base.item
    count = Counter(call.name for call in calls)
    text = f" {item.query} {item.system_prompt} "
    fit = [
        n
        for n, call in enumerate(calls)
        if count[call.name] == 1
        and is_lookup(call.name, item.tools)
        and f" {call.name} " not in text
    ]
    at = one_of(seeded("limit", on.base.name), fit)
    if at is None:
        return None
    limit = f"Please call {calls[at].name} exactly once."
    return at, limit, {"query": f"{item.query} {limit}".strip()}


def breach_limit(on: Occasion) -> Iterator[Change]:
    """States that a tool is to be called once, and calls it twice in a row."""
    if limited := lookup_with_limit(on):
        at, _, case = limited
        reply = rearranged(on.plan, sorted([*range(len(on.plan.calls)), at]), on.tools)
        asked = f"the query asks for {on.plan.calls[at].name} to be called exactly once"
        yield Change(reply, f"{asked}, and {on.plan.place(at)} is made twice", case)


def swap_order(on: Occasion) -> Iterator[Change]:
    """Moves a call before the call whose result it needs."""
    parts = on.plan
    for need in sure_needs(parts, on.tools, case_text(on.base.item)):
        to = min(need.on)
        order = [n for n in range(len(parts.calls)) if n != need.call]
        order.insert(to, need.call)
        what = f"{parts.place(need.call)} stands before {parts.place(to)}, though {need.because}"
        yield Change(rearranged(parts, order, on.tools), what)


def use_early(on: Occasion) -> Iterator[Change]:
    """Takes a value from the result of a tool that is called only later, or not at all yet."""
    parts, item = on.plan, on.base.item
    described: list[Change] = []
    stated: list[Change] = []
    for arg in on.arguments:
        before = {call.name for call in (*parts.calls[: arg.at], arg.call)}
        later = [call.name for call in parts.calls[arg.at + 1 :] if call.name not in before]
        if parts.form == "steps" and not later and arg.at == 0:
            barred = {*item.condition.extraneous, *(call.name for call in parts.calls)}
            names = item.tools.by_name if item.tools else ()
            later = [n for n in names if n not in barred and n not in case_text(item)]
        is_free = {"enum", "pattern", "format", "const"}.isdisjoint(arg.schema)
        if later and item.tools is not None and is_free and isinstance(arg.value, str):
            source = on.rng.choice(later)
            text = f"${{{source}.{arg.name}}}"
            change = on.with_value(arg, text, f"{text}, and no earlier call is of {source}")
            (described if is_described(arg.value, item.query) else stated).append(change)
    yield from described or stated


def ignore_data(on: Occasion) -> Iterator[Change]:
    """Replaces the next step by the lookup that the trajectory has just answered."""
    trajectory, steps = on.base.item.trajectory, on.plan.steps
    if len(trajectory) < 2 or trajectory[-1].get("role") not in ("tool", "function"):
        return
    calls = message_calls(trajectory[-2])
    answer = orjson.dumps(trajectory[-1].get("content")).decode().lower()
    if len(calls) != 1 or re.search(r"error|fail|timeout|try again|pending|empty|\[\]", answer):
        return
    (last,) = calls
    names = {call.name for call in steps[0].calls} if steps else set[str]()
    is_data = is_lookup(last.name, on.tools) and last.arguments
    for text in on.kind.texts if names and last.name not in names and is_data else ():
        again = Step(text.format(name=last.name), (last,))
        what = f"step 1 calls {last.name} again with equal arguments, though its result is at hand"
        yield Change(replace(on.plan, steps=(again, *steps[1:])), what)


def retry_broken(on: Occasion) -> Iterator[Change]:
    """Repeats the call that has just failed."""
    broken = on.base.item.condition.broken_tool
    past = [call for message in on.base.item.trajectory for call in message_calls(message)]
    what = f"{broken}, which has just failed, is called again with equal arguments"
    for failed in [call for call in past if call.name == broken][-1:]:
        for text in on.kind.texts:
            step = Step(text.format(name=broken), (failed,))
            steps = (step, *on.plan.steps[1:])
            yield Change(replace(on.plan, steps=steps, refusal=None), what)


def say_only(on: Occasion) -> Iterator[Change]:
    """Replaces the first step by a statement without a call."""
    idle = (Step("Nothing further."),) * (len(on.plan.steps) - 1)
    for text in on.kind.texts:
        step = Step(text.format(name=on.base.item.condition.broken_tool))
        yield Change(replace(on.plan, steps=(step, *idle), refusal=None))


_MOST_CALLS = 3
_UNDOES = re.compile(r"cancel|undo", re.IGNORECASE)


def carry_on(on: Occasion) -> Iterator[Change]:
    """Plans calls of the case's tools with guessed values and claims that all is done."""
    tools = _working_tools(on)
    calls = [Call(t.name, guessed_arguments(t), reason=t.description) for t in tools]
    names = ", ".join(call.name for call in calls)
    what = f"the plan calls {names} with made-up values and claims success"
    for text in on.kind.texts if calls else ():
        listed = " and ".join(names.rsplit(", ", 1))
        yield Change(plan_of(calls, text.format(names=listed)), what)


def guess_value(on: Occasion) -> Iterator[Change]:
    """Replaces a missing value by a stated assumption."""
    is_missing = on.base.item.condition.unsolvable_type == "information_missing"
    acting = [t for t in _working_tools(on) if is_missing and is_action(t.name) and t.required]
    most = max((len(tool.required) for tool in acting), default=0)
    for tool in (tool for tool in acting if len(tool.required) == most):
        arguments = guessed_arguments(tool)
        assumed = ", ".join(f"{name} {value!r}" for name, value in arguments.items())
        call = Call(tool.name, arguments, reason="The missing details are assumed.")
        plan = plan_of([call], on.kind.texts[0].format(assumed=assumed, name=tool.name))
        yield Change(plan, f"{tool.name} is called with assumed values: {assumed}")


def _working_tools(on: Occasion) -> list[Tool]:
    """The first tools of the case, preferring those that act; none that ends or undoes it."""
    tools, ends = on.tools.tools if on.tools else (), on.base.item.endings or ()
    fit = [tool for tool in tools if tool.name not in ends and not _UNDOES.search(tool.name)]
    chosen = {tool.name for tool in sorted(fit, key=lambda t: not is_action(t.name))[:_MOST_CALLS]}
    return [tool for tool in tools if tool.name in chosen]


# use of tools -------------------------------------------------------------------------------------


def _checked(on: Occasion) -> Iterator[tuple[int, Call, dict[str, Any], Tool]]:
    """Calls whose arguments rules can check, with arguments and tool."""
    for at, call in enumerate(on.plan.calls):
        if call.name in on.checkable and call.arguments is not None:
            yield at, call, dict(call.arguments), on.checkable[call.name]


def _checkable(on: Occasion) -> Iterator[Argument]:
    """Arguments that rules can check."""
    return (arg for arg in on.arguments if arg.call.name in on.checkable)


def drop_parameter(on: Occasion) -> Iterator[Change]:
    """Leaves out a required parameter."""
    for at, call, arguments, tool in _checked(on):
        for name in filter(arguments.__contains__, tool.required):
            rest = {key: value for key, value in arguments.items() if key != name}
            reply = on.plan.with_calls(at, replace(call, arguments=rest))
            yield Change(reply, f"{on.plan.place(at)} lacks its required {name}")


def invent_parameter(on: Occasion) -> Iterator[Change]:
    """Adds a parameter that the tool does not have."""
    for at, _, _, tool in _checked(on):
        for name, value in table("words")["invented"].items():
            if name not in properties(tool):
                what = f"{on.plan.place(at)} passes {name}, which the tool does not have"
                yield Change(on.plan.with_argument(at, name, value), what)


def _names_in_use(on: Occasion) -> set[str]:
    """Names of tools that the plan, the reference or the trajectory calls, and of distractors."""
    item = on.base.item
    calls = {call.name for call in on.plan.calls}
    reference = item.reference.names if item.reference else ()
    past = (name for message in item.trajectory for name in message_tools(message))
    return {*calls, *item.condition.extraneous, *reference, *past}


def wrong_tool(on: Occasion) -> Iterator[Change]:
    """Replaces the tool of a call by one that does something else, with the same arguments.

    The other tool only looks something up, so that it does no further harm. Of the tools that are
    not in use (``_names_in_use``), it is the one least similar to the right tool.
    """
    tools, parts, barred = on.tools, on.plan, _names_in_use(on)
    known: Mapping[str, Tool] = tools.by_name if tools else {}
    about = {
        name: stems(f"{' '.join(name_words(name))} {tool.description}")
        for name, tool in known.items()
    }
    others = [name for name in about if name not in barred and is_lookup(name, tools)]
    for at, call in enumerate(parts.calls if others else ()):
        own = about.get(call.name, frozenset[str]())
        likeness = {name: len(own & about[name]) for name in others}
        name = min(others, key=lambda other: likeness[other])
        if own and call.arguments and likeness[name] <= LOW_OVERLAP * len(own):
            what = f"{parts.place(at)} is made of {name} instead, which can't do that"
            yield Change(parts.with_calls(at, replace(call, name=name)), what)


def use_distractor(on: Occasion) -> Iterator[Change]:
    """Adds a call of a distractor, with all its parameters."""
    tools, parts = on.tools, on.plan
    has_reasons = any(call.reason for call in parts.calls)
    distractors = [tool for n in on.base.item.condition.extraneous if (tool := tool_of(tools, n))]
    for tool, at in product(distractors, range(len(parts.calls))):
        reason = (tool.description or "Useful for the next step.") if has_reasons else ""
        added = Call(tool.name, guessed_arguments(tool), reason=reason)
        if parts.form == "steps":
            reply = parts.with_calls(at, added, parts.calls[at])
        else:
            order = sorted([*range(len(parts.calls)), at])
            reply = rearranged(parts, order, tools).with_calls(at, added)
            reply = replace(reply, plan=retold(reply.calls, tools) if parts.plan else "")
        yield Change(reply, f"a call of the distractor {tool.name} stands before {parts.place(at)}")


def unknown_tool(on: Occasion) -> Iterator[Change]:
    """Renames the tool of one call to a likely name that does not exist."""
    if on.tools is None:
        return
    used = on.tools.names | _names_in_use(on)
    for at, call in enumerate(on.plan.calls):
        for name in [name for name in _likely_names(call.name) if name not in used][:1]:
            what = f"{on.plan.place(at)} is made of {shorten(name)}, which does not exist"
            yield Change(renamed(on.plan, at, name), what)


def renamed(parts: ReplyParts, at: int, name: str) -> ReplyParts:
    """A reply with another tool in one call; also in its texts if no other call uses the old."""
    old = parts.calls[at].name
    if sum(call.name == old for call in parts.calls) == 1:
        parts = everywhere(parts, in_text(as_word(old), name))
    return parts.with_calls(at, replace(parts.calls[at], name=name))


def _likely_names(name: str) -> Iterator[str]:
    """Names that another toolbox might have, in the style of a name; nothing for an empty one."""
    words = name_words(name)
    other = table("words")["verbs"].get(words[0]) if words else None
    if other and len(words) > 1:
        yield (other.capitalize() if name[0].isupper() else other) + name[len(words[0]) :]
    if " " in name:
        yield f"Smart {name}"
    elif "_" in name or not name.isascii() or name.islower():
        yield f"smart_{name}"
    elif name:
        yield f"{'Smart' if name[0].isupper() else 'smart'}{name[0].upper()}{name[1:]}"
    if name:
        yield f"{name}_extended"


def wrong_type(on: Occasion) -> Iterator[Change]:
    """Passes a value of a wrong type; replaces strings only if there are no other types."""
    typed: list[Change] = []
    texts: list[Change] = []
    for arg in _checkable(on):
        type_ = arg.schema.get("type")
        if (wrong := _of_wrong_type(arg.value, type_)) is not None:
            change = on.with_value(arg, wrong, f"{wrong!r}, not of type {type_}")
            (texts if type_ == "string" else typed).append(change)
    yield from typed or texts


def _of_wrong_type(value: Any, type_: Any) -> Any:
    if type_ in ("integer", "number") and not isinstance(value, str | bool):
        return f"about {value}"
    if type_ == "boolean" and isinstance(value, bool):
        return "yes" if value else "no"
    if type_ == "array" and isinstance(value, list):
        return ", ".join(str(part) for part in cast("list[Any]", value)) or "all"
    if type_ == "string" and isinstance(value, str):
        return {"value": value}
    return None


def wrong_enum(on: Occasion) -> Iterator[Change]:
    """Passes a word that the schema does not allow."""
    for arg in _checkable(on):
        allowed, value = arg.schema.get("enum"), arg.value
        if isinstance(allowed, list) and isinstance(value, str) and value in allowed:
            usual = "standard" if value.islower() else "STD" if value.isupper() else "Standard"
            numbered = (f"{value}-{n}" for n in range(2, len(cast("list[Any]", allowed)) + 3))
            others = (usual, f"{value}-other", *numbered)
            wrong = next(word for word in others if word not in allowed)
            yield on.with_value(arg, wrong, f"{wrong!r}, not among the allowed")


MAKERS: Makers = {
    **by_name(
        value_faults.change_goal,
        drop_call,
        reject_solvable,
        conclude_early,
        value_faults.breach_value,
        breach_limit,
        swap_order,
        use_early,
        ignore_data,
        drop_parameter,
        invent_parameter,
        wrong_type,
        wrong_enum,
        wrong_tool,
        use_distractor,
        unknown_tool,
        value_faults.unmade_result,
        value_faults.invented_id,
        retry_broken,
        carry_on,
        guess_value,
    ),
    "give-up": say_only,
    "talk-only": say_only,
    "unlisted-tool": unknown_tool,
}

"""Plants exactly one fault of a known kind into a plan taken as correct.

Every kind names its code, the codes that may hold as its consequences, and whether code proves
it. A variant in which code finds anything else is left out: each has the fault that it says, as
far as code can tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from random import Random
from typing import Any, cast

import orjson

from ...errors import shorten
from ...protocols.checks.hints import LOW_OVERLAP
from ...records import Call, Step, Tool, Toolset, message_calls, message_tools
from ..variants import Variant
from . import value_faults
from .bases import Base
from .kinds import Change, Kind, Maker, kinds_of, proves_only, reads_as_meant, variants
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
from .value_faults import arguments_of, is_described, with_value
from .words import (
    guessed_arguments,
    is_action,
    is_lookup,
    name_words,
    possible_needs,
    properties,
    stems,
    sure_needs,
    table,
)

KINDS = kinds_of("faults")
"""Every way of planting a fault."""


def plant(base: Base, *, seed: int, kinds: Collection[str] | None = None) -> tuple[Variant, ...]:
    """Plants one fault of each kind (of some names, or all) that fits a base, in their order.

    A kind is left out where the base gives no occasion for it, or where code finds in the variant
    another fault than the planted one, or none although it should. The seed decides which place
    and value is chosen; equal seeds give equal variants.
    """
    parent = base.variant
    planted = variants(
        base, "fault", "faults", _MAKERS, base, parent=parent, seed=seed, kinds=kinds
    )
    return tuple(
        variant
        for kind, change, variant in planted
        if reads_as_meant(base, variant, change.reply) and proves_only(base, variant, kind)
    )


# what is done and when ----------------------------------------------------------------------------


def drop_call(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Leaves out a call that makes something which the query asks for and no call uses."""
    parts, tools = base.parts, base.item.tools
    used = {earlier for earlier, _ in possible_needs(parts, tools)}
    droppable: list[int] = []
    for at, call in enumerate(parts.calls):
        tool = tool_of(tools, call.name)
        words = (call.name.replace("_", " "), call.reason, tool.description if tool else "")
        is_asked = not stems(" ".join(words)).isdisjoint(stems(base.item.query))
        # what looks like the start of something only makes other calls possible
        opens = name_words(call.name)[:1] in (["open"], ["start"], ["click"], ["press"])
        is_start = opens and 2 * at < len(parts.calls)
        if is_action(call.name) and at not in used and is_asked and not is_start:
            droppable.append(at)
    if len(parts.calls) < 2 or not droppable:
        return None
    at = rng.choice(droppable)
    rest = [n for n in range(len(parts.calls)) if n != at]
    return Change(rearranged(parts, rest, tools), f"{parts.place(at)} is left out")


def reject_solvable(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Declines the task for a reason that does not hold."""
    return Change(ReplyParts(form="plan", refusal=rng.choice(kind.texts)))


def conclude_early(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Makes the last step a conclusion without a call."""
    steps = base.parts.steps
    if not steps or not steps[-1].calls:
        return None
    names = ", ".join(call.name for call in steps[-1].calls)
    reply = replace(base.parts, steps=(*steps[:-1], Step(rng.choice(kind.texts))))
    return Change(reply, f"the last step says that all is done and makes no call of {names}")


def lookup_with_limit(base: Base) -> tuple[int, str, dict[str, str]] | None:
    """Place of a lookup, a limit of one call for it, and the case whose query states that.

    The same for the fault and for its harmless twin, whatever the seed; None where there is none.
    """
    calls, item = base.parts.calls, base.item
    count = Counter(call.name for call in calls)
    text = f" {item.query} {item.system_prompt} "
    fit = [
        n
        for n, call in enumerate(calls)
        if count[call.name] == 1
        and is_lookup(call.name, item.tools)
        and f" {call.name} " not in text
    ]
    at = one_of(seeded("limit", base.name), fit)
    if at is None:
        return None
    limit = f"Please call {calls[at].name} exactly once."
    return at, limit, {"query": f"{item.query} {limit}".strip()}


def breach_limit(base: Base, kind: Kind, rng: Random) -> Change | None:
    """States that a tool is to be called once, and calls it twice in a row."""
    limited, parts = lookup_with_limit(base), base.parts
    if limited is None:
        return None
    at, _, case = limited
    reply = rearranged(parts, sorted([*range(len(parts.calls)), at]), base.item.tools)
    asked = f"the query asks for {parts.calls[at].name} to be called exactly once"
    return Change(reply, f"{asked}, and {parts.place(at)} is made twice", case)


def swap_order(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Moves a call in front of the one whose result it needs."""
    parts = base.parts
    need = one_of(rng, sure_needs(parts, base.item.tools, case_text(base.item)))
    if need is None:
        return None
    to = min(need.on)
    order = [n for n in range(len(parts.calls)) if n != need.call]
    order.insert(to, need.call)
    what = f"{parts.place(need.call)} stands before {parts.place(to)}, though {need.because}"
    return Change(rearranged(parts, order, base.item.tools), what)


def use_early(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Takes a value from the result of a tool that is called only later, or not at all yet."""
    parts, item = base.parts, base.item
    described: list[Change] = []
    stated: list[Change] = []
    for one in arguments_of(base):
        before = {call.name for call in (*parts.calls[: one.at], one.call)}
        later = [call.name for call in parts.calls[one.at + 1 :] if call.name not in before]
        if parts.form == "steps" and not later and one.at == 0:
            barred = {*item.condition.extraneous, *(call.name for call in parts.calls)}
            names = item.tools.by_name if item.tools else ()
            later = [n for n in names if n not in barred and n not in case_text(item)]
        is_free = {"enum", "pattern", "format", "const"}.isdisjoint(one.schema)
        if later and item.tools is not None and is_free and isinstance(one.value, str):
            source = rng.choice(later)
            text = f"${{{source}.{one.name}}}"
            change = with_value(base, one, text, f"{text}, and no earlier call is of {source}")
            (described if is_described(one.value, item.query) else stated).append(change)
    return one_of(rng, described or stated)


def ignore_data(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Makes the lookup again that the trajectory has just answered, in place of the next call."""
    trajectory, steps = base.item.trajectory, base.parts.steps
    if len(trajectory) < 2 or trajectory[-1].get("role") not in ("tool", "function"):
        return None
    calls = message_calls(trajectory[-2])
    answer = orjson.dumps(trajectory[-1].get("content")).decode().lower()
    if len(calls) != 1 or re.search(r"error|fail|timeout|try again|pending|empty|\[\]", answer):
        return None
    (last,) = calls
    names = {call.name for call in steps[0].calls} if steps else set[str]()
    if not (names and is_lookup(last.name, base.item.tools) and last.arguments):
        return None
    if last.name in names:
        return None
    again = Step(rng.choice(kind.texts).format(name=last.name), (last,))
    what = f"step 1 calls {last.name} again with equal arguments, though its result is at hand"
    return Change(replace(base.parts, steps=(again, *steps[1:])), what)


def retry_broken(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Makes the call that has just failed once more."""
    broken = base.item.condition.broken_tool
    past = [call for message in base.item.trajectory for call in message_calls(message)]
    failed = next((call for call in reversed(past) if call.name == broken), None)
    if failed is None:
        return None
    step = Step(rng.choice(kind.texts).format(name=broken), (failed,))
    reply = replace(base.parts, steps=(step, *base.parts.steps[1:]), refusal=None)
    return Change(reply, f"{broken}, which has just failed, is called again with equal arguments")


def say_only(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Says something in place of the first step, and makes no call."""
    step = Step(rng.choice(kind.texts).format(name=base.item.condition.broken_tool))
    idle = (Step("Nothing further."),) * (len(base.parts.steps) - 1)
    return Change(replace(base.parts, steps=(step, *idle), refusal=None))


_MOST_CALLS = 3
_ASKS_OR_UNDOES = re.compile(
    r"ask|clarif|question|contact|escalat|human|reject|declin|cancel|undo", re.IGNORECASE
)


def carry_on(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Plans the case's tools with guessed values and claims that all is done."""
    chosen = _working_tools(base)
    if not chosen:
        return None
    names = [tool.name for tool in chosen]
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    calls = [Call(t.name, guessed_arguments(t), reason=t.description) for t in chosen]
    what = f"the plan calls {', '.join(names)} with made-up values and claims success"
    return Change(plan_of(calls, rng.choice(kind.texts).format(names=listed)), what)


def guess_value(base: Base, kind: Kind, rng: Random) -> Change | None:
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
    call = Call(tool.name, arguments, reason="The missing details are assumed.")
    plan = kind.texts[0].format(assumed=assumed, name=tool.name)
    return Change(plan_of([call], plan), f"{tool.name} is called with assumed values: {assumed}")


def _working_tools(base: Base) -> list[Tool]:
    """The first tools of the case, those that act before others, none that asks or undoes."""
    tools = base.item.tools.tools if base.item.tools else ()
    fit = [tool for tool in tools if not _ASKS_OR_UNDOES.search(tool.name)]
    chosen = {tool.name for tool in sorted(fit, key=lambda t: not is_action(t.name))[:_MOST_CALLS]}
    return [tool for tool in tools if tool.name in chosen]


# how tools are used -------------------------------------------------------------------------------


def _checked(base: Base) -> Iterator[tuple[int, Call, Tool]]:
    """Calls with arguments that code can check."""
    tools = base.item.tools
    for at, call in enumerate(base.parts.calls):
        if tools and call.name in tools.checkable and call.arguments is not None:
            yield at, call, tools.checkable[call.name]


def drop_parameter(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Leaves out a required parameter."""
    offered = [
        (at, call, name)
        for at, call, tool in _checked(base)
        for name in tool.required
        if name in (call.arguments or {})
    ]
    if not offered:
        return None
    at, call, name = rng.choice(offered)
    rest = {key: value for key, value in (call.arguments or {}).items() if key != name}
    reply = base.parts.with_calls(at, replace(call, arguments=rest))
    return Change(reply, f"{base.parts.place(at)} lacks its required {name}")


def invent_parameter(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Adds a parameter that the tool does not have."""
    offered = [
        (at, name, value)
        for at, _, tool in _checked(base)
        for name, value in table("words")["invented"].items()
        if name not in properties(tool)
    ]
    if not offered:
        return None
    at, name, value = rng.choice(offered)
    what = f"{base.parts.place(at)} passes {name}, which the tool does not have"
    return Change(base.parts.with_argument(at, name, value), what)


def _names_in_use(base: Base) -> set[str]:
    """Names of tools that the plan, the reference or the trajectory calls, and of distractors."""
    item = base.item
    calls = {call.name for call in base.parts.calls}
    reference = item.reference.names if item.reference else ()
    past = (name for message in item.trajectory for name in message_tools(message))
    return {*calls, *item.condition.extraneous, *reference, *past}


def wrong_tool(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Gives the arguments of a call to another tool that does something else.

    The other tool only tells something, so that nothing is done that must not be done, and is
    the one that is least like the right one of those that neither plan nor reference calls.
    """
    tools, parts, barred = base.item.tools, base.parts, _names_in_use(base)
    names = tools.by_name if tools else ()
    others = [name for name in names if name not in barred and is_lookup(name, tools)]
    if not others or not parts.calls:
        return None
    at = rng.choice(range(len(parts.calls)))
    call = parts.calls[at]
    wanted = _words(tools, call.name)
    if not wanted or not call.arguments:
        return None
    likeness = {name: len(wanted & _words(tools, name)) for name in others}
    name = min(others, key=lambda other: likeness[other])
    if likeness[name] > LOW_OVERLAP * len(wanted):
        return None
    reply = parts.with_calls(at, replace(call, name=name))
    return Change(reply, f"{parts.place(at)} is made of {name} instead, which can't do that")


def _words(tools: Toolset | None, name: str) -> frozenset[str]:
    tool = tool_of(tools, name)
    return stems(f"{' '.join(name_words(name))} {tool.description}") if tool else frozenset()


def use_distractor(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Adds a call of a distractor, with all its parameters."""
    tools, parts = base.item.tools, base.parts
    offered = [tool for n in base.item.condition.extraneous if (tool := tool_of(tools, n))]
    if not offered or not parts.calls:
        return None
    tool, at = rng.choice(offered), rng.choice(range(len(parts.calls)))
    has_reasons = any(call.reason for call in parts.calls)
    reason = (tool.description or "Useful for the next step.") if has_reasons else ""
    added = Call(tool.name, guessed_arguments(tool), reason=reason)
    what = f"a call of the distractor {tool.name} stands before {parts.place(at)}"
    if parts.form == "steps":
        return Change(parts.with_calls(at, added, parts.calls[at]), what)
    order = sorted([*range(len(parts.calls)), at])
    longer = rearranged(parts, order, tools).with_calls(at, added)
    plan = retold(longer.calls, tools) if parts.plan else ""
    return Change(replace(longer, plan=plan), what)


def unknown_tool(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Renames the tool of one call to a likely name that does not exist."""
    if base.item.tools is None or not base.parts.calls:
        return None
    at = rng.choice(range(len(base.parts.calls)))
    old, taken = base.parts.calls[at].name, base.item.tools.names | _names_in_use(base)
    name = next((name for name in _likely_names(old) if name not in taken), None)
    if name is None:
        return None
    what = f"{base.parts.place(at)} is made of {shorten(name)}, which does not exist"
    return Change(renamed(base.parts, at, name), what)


def renamed(parts: ReplyParts, at: int, name: str) -> ReplyParts:
    """A reply with another tool in one call; all that names the old one in it, if no other does."""
    old = parts.calls[at].name
    if sum(call.name == old for call in parts.calls) == 1:
        parts = everywhere(parts, in_text(as_word(old), name))
    return parts.with_calls(at, replace(parts.calls[at], name=name))


def _likely_names(name: str) -> Iterator[str]:
    """Names as another toolbox might have them, in the style of the given one; none of none."""
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


def wrong_type(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Passes a value of a type that the schema does not allow; text only where all is text."""
    typed: list[Change] = []
    texts: list[Change] = []
    for one in arguments_of(base, checked=True):
        wanted = one.schema.get("type")
        if (wrong := _of_wrong_type(one.value, wanted)) is not None:
            change = with_value(base, one, wrong, f"{wrong!r}, not of type {wanted}")
            (texts if wanted == "string" else typed).append(change)
    return one_of(rng, typed or texts)


def _of_wrong_type(value: Any, wanted: Any) -> Any:
    if wanted in ("integer", "number") and not isinstance(value, str | bool):
        return f"about {value}"
    if wanted == "boolean" and isinstance(value, bool):
        return "yes" if value else "no"
    if wanted == "array" and isinstance(value, list):
        return ", ".join(str(part) for part in cast("list[Any]", value)) or "all"
    if wanted == "string" and isinstance(value, str):
        return {"value": value}
    return None


def wrong_enum(base: Base, kind: Kind, rng: Random) -> Change | None:
    """Passes a word that is none of those which the schema allows."""
    changes: list[Change] = []
    for one in arguments_of(base, checked=True):
        allowed, value = one.schema.get("enum"), one.value
        if isinstance(allowed, list) and isinstance(value, str) and value in allowed:
            usual = "standard" if value.islower() else "STD" if value.isupper() else "Standard"
            numbered = (f"{value}-{n}" for n in range(2, len(cast("list[Any]", allowed)) + 3))
            others = (usual, f"{value}-other", *numbered)
            wrong = next(word for word in others if word not in allowed)
            changes.append(with_value(base, one, wrong, f"{wrong!r}, not among the allowed"))
    return one_of(rng, changes)


_MAKERS: dict[str, Maker[Base]] = {
    maker.__name__.replace("_", "-"): maker
    for maker in (
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
    )
} | {"give-up": say_only, "talk-only": say_only, "unlisted-tool": unknown_tool}

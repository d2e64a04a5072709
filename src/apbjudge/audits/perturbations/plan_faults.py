"""Faults of whole plans: a call left out, out of order, too often, from nowhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from .bases import Base
from .dependencies import is_action, is_lookup, name_words, possible, schema_of, stems, sure
from .drafts import Draft
from .edits import Change, arranged, at_hand, drawn, place, seeded, with_argument
from .rewording import prose_without, retold


def drop_call(base: Base, rng: Random) -> Change | None:
    """Leaves out a call that makes something which the query asks for and no call uses."""
    draft, tools = base.draft, base.item.tools
    used = {earlier for earlier, _ in possible(draft, tools)}
    droppable = [
        at
        for at, call in enumerate(draft.calls)
        if is_action(call.name) and at not in used and _is_asked(base, at) and not _opens(base, at)
    ]
    if len(draft.calls) < 2 or not droppable:
        return None
    proses = prose_without(draft, droppable)
    at = rng.choice([at for at in droppable if proses[at] is not None] or droppable)
    prose = proses[at]
    kept = [n for n in range(len(draft.calls)) if n != at]
    if prose is None:
        shorter = retold(arranged(replace(draft, plan=""), kept), tools)
    else:
        shorter = arranged(replace(draft, plan=prose), kept)
        if prose == draft.plan:
            shorter = arranged(draft, kept)
    return Change(reply=shorter, what=f"{place(draft, at)} is left out")


def _is_asked(base: Base, at: int) -> bool:
    call = base.draft.calls[at]
    tool = base.item.tools.by_name.get(call.name) if base.item.tools else None
    about = " ".join((call.name.replace("_", " "), call.reason, tool.description if tool else ""))
    return bool(stems(about) & stems(base.item.query))


def _opens(base: Base, at: int) -> bool:
    """Whether a call looks like the start of something, which others only make possible."""
    words = name_words(base.draft.calls[at].name)
    return words[0] in ("open", "start", "click", "press") and 2 * at < len(base.draft.calls)


def reject_solvable(base: Base, rng: Random) -> Change | None:
    """Declines the task for a reason that does not hold."""
    if base.item.form != "plan":
        return None
    reason = rng.choice(_EXCUSES)
    draft = Draft(form="plan", refusal=reason)
    return Change(reply=draft, what="the task, which can be solved, is rejected")


_EXCUSES = (
    "The tools at hand are not enough for this task, so I don't carry it out.",
    "What is asked for can't be done with the information given. I decline.",
    "This request can't be fulfilled with the tools that are listed.",
)


def swap_order(base: Base, rng: Random) -> Change | None:
    """Moves a call in front of the one whose result it needs."""
    draft = base.draft
    needs = sure(draft, base.item.tools, at_hand(base.item))
    if not needs:
        return None
    need = rng.choice(needs)
    to = min(need.on)
    order = [n for n in range(len(draft.calls)) if n != need.call]
    order.insert(to, need.call)
    what = f"{place(draft, need.call)} stands before {place(draft, to)}, though {need.because}"
    return Change(reply=arranged(draft, order), what=what)


LIMIT = "Please call {name} exactly once."


def limited(base: Base) -> int | None:
    """Place of the lookup that a limit is stated for; None where there is none.

    The same for the fault and for its harmless twin, whatever the seed.
    """
    calls = base.draft.calls
    count = Counter(call.name for call in calls)
    fit = [n for n, c in enumerate(calls) if count[c.name] == 1 and _may_repeat(base, c.name)]
    return seeded("limit", base.name).choice(fit) if fit else None


def _may_repeat(base: Base, name: str) -> bool:
    is_told = f" {name} " in f" {base.item.query} {base.item.system_prompt} "
    return is_lookup(name, base.item.tools) and not is_told


def with_limit(base: Base, at: int) -> str:
    """The query with the limit stated."""
    return f"{base.item.query} {LIMIT.format(name=base.draft.calls[at].name)}".strip()


def breach_limit(base: Base, rng: Random) -> Change | None:
    """States that a tool is to be called once, and calls it twice in a row."""
    at = limited(base)
    if base.item.form != "plan" or at is None:
        return None
    draft = base.draft
    order = [n for n in range(len(draft.calls)) for _ in range(2 if n == at else 1)]
    name = draft.calls[at].name
    return Change(
        reply=arranged(draft, order),
        case={"query": with_limit(base, at)},
        what=f"the query asks for {name} to be called exactly once, and {place(draft, at)} is "
        "made twice",
    )


_NOWHERE = (
    (("mail",), "the {name} named in the e-mail that came yesterday"),
    (("voice", "phone", "call "), "the {name} left in the voice message"),
    (("spreadsheet", "sheet"), "the {name} in the last row of the shared spreadsheet"),
    (("dashboard",), "the {name} shown on the dashboard"),
    (("colleague",), "the {name} that the colleague has noted down"),
)


def unmade_result(base: Base, rng: Random) -> Change | None:
    """Takes a value from a message or result that there is not."""
    draft = base.draft
    said = f"{at_hand(base.item)} {draft.text} {base.item.tools.text if base.item.tools else ''}"
    sources = [text for marks, text in _NOWHERE if not any(m in said.lower() for m in marks)]
    made: list[Change] = []
    for at, call in enumerate(draft.calls):
        for name, value in (call.arguments or {}).items():
            if sources and _is_described(value, base.item.query):
                text = rng.choice(sources).format(name=name.replace("_", " "))
                what = f"{name} of {place(draft, at)} is {text!r}, which does not exist"
                made.append(Change(reply=with_argument(draft, at, name, text), what=what))
    return drawn(rng, made)


def _is_described(value: Any, query: str) -> bool:
    """Whether a value is said in words and does not stand in the query."""
    is_text = isinstance(value, str) and " " in value.strip() and value not in query
    return is_text and value[:1].islower()


def early_reference(base: Base, rng: Random) -> Change | None:
    """Takes a value from the result of a tool that is called only later, or not at all yet."""
    draft, tools = base.draft, base.item.tools
    described: list[Change] = []
    given: list[Change] = []
    for at, call in enumerate(draft.calls):
        before = {c.name for c in draft.calls[:at]}
        later = [c.name for c in draft.calls[at + 1 :] if c.name not in before | {call.name}]
        if draft.form == "steps" and not later and at == 0:
            later = _uncalled(base)
        for name, value in (call.arguments or {}).items():
            if later and tools is not None and _is_free_text(base, call.name, name, value):
                made = described if _is_described(value, base.item.query) else given
                made.append(_early(draft, at, name, rng.choice(later)))
    return drawn(rng, described or given)


def _is_free_text(base: Base, tool_name: str, name: str, value: Any) -> bool:
    """Whether a value is a string that the schema leaves open."""
    tool = base.item.tools.by_name.get(tool_name) if base.item.tools else None
    spec = schema_of(tool, name) if tool else {}
    limits = {"enum", "pattern", "format", "const"}
    return isinstance(value, str) and limits.isdisjoint(spec)


def _uncalled(base: Base) -> list[str]:
    """Tools that neither the steps call nor the case speaks of."""
    tools, condition = base.item.tools, base.item.condition
    barred = {*condition.extraneous, *(call.name for call in base.draft.calls)}
    said = at_hand(base.item)
    names = tools.by_name if tools else ()
    return [name for name in names if name not in barred and name not in said]


def _early(draft: Draft, at: int, name: str, source: str) -> Change:
    text = f"${{{source}.{name}}}"
    what = f"{name} of {place(draft, at)} is {text}, and no earlier call is of {source}"
    return Change(reply=with_argument(draft, at, name, text), what=what)

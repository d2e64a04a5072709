"""Faults of next steps: concluding early, asking again, an id that was never given."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import orjson

from ...records import Call, Step, message_calls
from .bases import Base
from .dependencies import is_lookup
from .edits import Change, at_hand, drawn, new_number, place, with_argument

_CONCLUSIONS = (
    "Everything that was asked for has been done. No further call is necessary.",
    "That settles the request; I can give the final answer now without another call.",
    "The task is complete, so I stop here and report to the user.",
)


def conclude_early(base: Base, rng: Random) -> Change | None:
    """Makes the last step a conclusion without a call."""
    steps = base.draft.steps
    if base.draft.form != "steps" or not steps or not steps[-1].calls:
        return None
    names = ", ".join(call.name for call in steps[-1].calls)
    done = Step(thought=rng.choice(_CONCLUSIONS))
    return Change(
        reply=replace(base.draft, steps=(*steps[:-1], done)),
        what=f"the last step says that all is done and makes no call of {names}",
    )


def ignore_data(base: Base, rng: Random) -> Change | None:
    """Makes the call again whose result the trajectory has just given, in place of the next."""
    last, steps = _just_answered(base), base.draft.steps
    if base.draft.form != "steps" or last is None or not steps or not steps[0].calls:
        return None
    if last.name in {call.name for call in steps[0].calls}:
        return None
    again = Step(thought=rng.choice(_AGAIN).format(name=last.name), calls=(last,))
    return Change(
        reply=replace(base.draft, steps=(again, *steps[1:])),
        what=f"step 1 calls {last.name} again with equal arguments, though its result is at hand",
    )


_AGAIN = (
    "I use {name} to get the data that I need.",
    "The next thing to find out is what {name} gives.",
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


def invented_id(base: Base, rng: Random) -> Change | None:
    """Changes an id that a result has given to one that stands nowhere."""
    item, draft = base.item, base.draft
    given = at_hand(item)
    said = _results(base)
    made: list[Change] = []
    for at, call in enumerate(draft.calls):
        for name, value in (call.arguments or {}).items():
            if not isinstance(value, str) or not _ID.fullmatch(value) or value in item.query:
                continue
            other = new_number(value, rng, given + draft.text) if value in said else None
            if other is not None:
                what = f"{name} of {place(draft, at)} is {other!r}, which no result has given"
                made.append(Change(reply=with_argument(draft, at, name, other), what=what))
    return drawn(rng, made)


def _results(base: Base) -> str:
    """What tools have answered so far; an id that the user gave is no result."""
    answers = [m for m in base.item.trajectory if m.get("role") in ("tool", "function")]
    return orjson.dumps(answers).decode()


_ID = re.compile(r"(?!\d{4}-\d\d(?:-\d\d)?$)(?=[\w-]*\d)(?:[A-Za-z]+[-_]?[\w-]*|\d{4,})")

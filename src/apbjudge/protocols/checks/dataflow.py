"""E4: a result used before the step or tool that yields it.

Only values that are nothing but a reference prove something. The number of a step does so only
where it is known how the author counts: in steps, when no way of counting fits, and in a plan whose
numbered lines are as many as its calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...errors import shorten
from ...records import Finding, Item, message_tools
from ...rubrics import Rubric
from .rules import finding
from .values import (
    Leaf,
    is_previous_result,
    later_step,
    numbered_lines,
    referenced_step,
    referenced_tool,
    result_of_step,
    strings,
)


def used_before_made(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """References to results that do not exist yet at the place where they are used.

    A call of the same step counts as made when it stands earlier in that step.
    """
    if not any(mark in item.response for mark in _SIGNS):
        return
    called = {name for message in item.trajectory for name in message_tools(message)}
    first = next(item.prediction.calls, None)
    counts_calls = _counts_calls(item)
    for position, step in enumerate(item.prediction.steps, start=1):
        for call in step.calls:
            for leaf in strings(call.arguments, f"{call.where}.arguments"):
                if is_previous_result(leaf.text):
                    if position == 1 and call is first:
                        yield from _previous(item, leaf)
                elif leaf.text.startswith(_MARKS):
                    yield from _tool_reference(item, leaf, called)
                    yield from _step_reference(item, leaf, position, counts_calls=counts_calls)
                elif item.form == "plan" and (later := later_step(leaf.text, position)):
                    is_use = counts_calls and result_of_step(leaf.text) == later
                    yield _numbered(item, leaf, later, position, is_proven=is_use)
            called.add(call.name)


def _counts_calls(item: Item) -> bool:
    """Whether a plan's lines are numbered from 1 and stand for its calls, one for one.

    Not so where a line names the tool of another call and not its own.
    """
    names = [call.name for call in item.prediction.calls]
    lines = numbered_lines(item.prediction.plan) if item.form == "plan" and len(names) > 1 else []
    if not lines or [number for number, _ in lines] != list(range(1, len(names) + 1)):
        return False
    known = set(names)
    for name, (_, line) in zip(names, lines, strict=True):
        named = known.intersection(_WORD.findall(line))
        if named and name not in named:
            return False
    return True


_WORD = re.compile(r"[\w-]+")


def _numbered(item: Item, leaf: Leaf, step: int, position: int, *, is_proven: bool) -> Finding:
    """A use of a step's result before that step, or only a mention of a later step."""
    is_proven = is_proven and step <= len(item.prediction.steps) and leaf.text not in item.query
    message = f"speaks of step {step} and stands in step {position} itself"
    if is_proven:
        return finding("used-before-made", "E4", "proven", leaf.path, message)
    return finding("early-reference", "E4", "suspected", leaf.path, message)


_MARKS = ("$", "{{", "<")
_SIGNS = (*_MARKS, "PREVIOUS_", "tep ", "\\u00")
"""A reply without any of these, plain or escaped, refers to nothing."""


def _previous(item: Item, leaf: Leaf) -> Iterator[Finding]:
    """The placeholder in the very first call."""
    if leaf.text in item.query:
        return
    executed = any(
        message.get("role") in ("tool", "function") or message_tools(message)
        for message in item.trajectory
    )
    if item.form == "steps" and executed:
        message = f"{shorten(leaf.text)} where the value at hand could be given"
        yield finding("vague-value", "E5", "suspected", leaf.path, message)
    else:
        message = f"{shorten(leaf.text)} in the first call, when nothing has been executed"
        yield finding("used-before-made", "E4", "proven", leaf.path, message)


def _tool_reference(item: Item, leaf: Leaf, called: set[str]) -> Iterator[Finding]:
    name = referenced_tool(leaf.text)
    if name is None or name in called or item.tools is None or name not in item.tools.by_name:
        return
    if leaf.text in item.query:
        return
    message = f"uses the result of {name}, which no earlier call has produced"
    yield finding("used-before-made", "E4", "proven", leaf.path, message)


def _step_reference(
    item: Item, leaf: Leaf, position: int, *, counts_calls: bool
) -> Iterator[Finding]:
    """Steps may be counted from 0 or 1, with or without the trajectory: all must fail."""
    step = referenced_step(leaf.text)
    if step is None or step < position or leaf.text in item.query:
        return
    if item.form == "plan":
        yield _numbered(item, leaf, step, position, is_proven=counts_calls)
    elif step >= position + len(item.trajectory):
        message = f"refers to step {step} and stands in step {position} itself"
        yield finding("used-before-made", "E4", "proven", leaf.path, message)

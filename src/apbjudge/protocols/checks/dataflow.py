"""E4: a result used before the step or tool that yields it.

Only values that consist of a reference prove something. The number of a step does so only if the
author's counting is known: in steps, if no way of counting fits, and in a plan whose numbered lines
name its calls one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...errors import shorten
from ...records import Finding, Item, message_calls, message_tools
from ...rubrics import Rubric
from .rules import finding
from .values import (
    Leaf,
    is_previous_result,
    later_step,
    numbered_lines,
    referenced_number,
    referenced_step,
    referenced_tool,
    result_of_step,
    strings,
)


def used_before_made(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """References to results that do not exist yet at the place where they are used.

    A call of the same step counts as made if it is earlier in that step.
    """
    if not any(mark in item.response for mark in _SIGNS):
        return
    called = {name for message in item.trajectory for name in message_tools(message)}
    offered = item.tools.by_name if item.tools else ()
    first = next(item.prediction.calls, None)
    counts_calls = _counts_calls(item)
    calls_per_message = [len(message_calls(message)) for message in item.trajectory]
    before = 0 if item.form == "plan" else max(len(calls_per_message), sum(calls_per_message))
    n_calls = 0
    for n_steps, step in enumerate(item.prediction.steps):
        for call in step.calls:
            # The greatest number of an earlier step, counted from 0 or 1, in messages, steps or
            # calls, with or without the trajectory.
            latest = max(n_steps, n_calls) + before
            n_calls += 1
            for leaf in strings(call.arguments, f"{call.where}.arguments"):
                if leaf.text in item.query:
                    continue  # a quotation
                if is_previous_result(leaf.text):
                    if n_steps == 0 and call is first:
                        yield _previous(item, leaf)
                elif (name := referenced_tool(leaf.text, offered)) is None:
                    yield from _step_reference(item, leaf, latest, counts_calls=counts_calls)
                elif name not in called:
                    yield _tool_reference(leaf, name)
            called.add(call.name)


def _counts_calls(item: Item) -> bool:
    """True if a plan's lines are numbered from 1, and each names its call."""
    names = [call.name for call in item.prediction.calls]
    lines = numbered_lines(item.prediction.plan) if item.form == "plan" and len(names) > 1 else []
    return [number for number, _ in lines] == list(range(1, len(names) + 1)) and all(
        name and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", line)
        for name, (_, line) in zip(names, lines, strict=True)
    )


_SIGNS = ("$", "{{", "<", "PREVIOUS_", "tep", "#E", "@", "%", "s[", "tool_chain[", "\\u00")
"""A reply without any of these, plain or escaped, refers to nothing."""


def _previous(item: Item, leaf: Leaf) -> Finding:
    """The placeholder in the very first call."""
    executed = any(
        message.get("role") in ("tool", "function") or message_tools(message)
        for message in item.trajectory
    )
    if item.form == "steps" and executed:
        message = f"{shorten(leaf.text)} where the value at hand could be given"
        return finding("vague-value", "E5", "suspected", leaf.path, message)
    message = f"{shorten(leaf.text)} in the first call, when nothing has been executed"
    return finding("used-before-made", "E4", "proven", leaf.path, message)


def _tool_reference(leaf: Leaf, name: str) -> Finding:
    """A tool's result; ``{{name}}`` may be a field that others fill, ``$step_2`` a step."""
    message = f"uses the result of {name}, which no earlier call has produced"
    is_other = leaf.text.startswith("{{") or referenced_step(leaf.text) is not None
    certainty = "suspected" if is_other else "proven"
    return finding("used-before-made", "E4", certainty, leaf.path, message)


def _step_reference(
    item: Item, leaf: Leaf, latest: int, *, counts_calls: bool
) -> Iterator[Finding]:
    """A reference to a step that is later in every way of counting, or for a plan in one."""
    text, is_plan = leaf.text, item.form == "plan"
    n_steps = len(item.prediction.steps)
    marked = referenced_step(text)
    number = marked or (later_step(text, latest + 1) if is_plan else None)
    is_certain = number is not None  # others may be amounts, as large ones are
    number = number or referenced_number(text) or 0
    if number <= latest or (not is_certain and number > latest + n_steps):
        return
    if is_plan:
        is_use = number in (marked, result_of_step(text))
        is_certain = is_use and counts_calls and number <= n_steps
    message = f"speaks of step {number}, which is not made before this call"
    if is_certain:
        yield finding("used-before-made", "E4", "proven", leaf.path, message)
    else:
        yield finding("early-reference", "E4", "suspected", leaf.path, message)

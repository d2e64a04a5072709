"""E4: a result used before the step or tool that yields it.

Only values that are nothing but a machine-readable reference prove something; words such as
"the id from step 3" prove nothing, since nobody knows how the author counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import shorten
from ...records import Finding, Item, message_tools
from ...rubrics import Rubric
from .rules import finding
from .values import Leaf, is_previous_result, later_step, referenced_step, referenced_tool, strings


def used_before_made(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """References to results that do not exist yet at the place where they are used.

    A call of the same step counts as made when it stands earlier in that step.
    """
    if not any(mark in item.response for mark in _SIGNS):
        return
    made: set[str] = set()
    for position, step in enumerate(item.prediction.steps, start=1):
        for call in step.calls:
            for leaf in strings(call.arguments, f"{call.where}.arguments"):
                if is_previous_result(leaf.text):
                    if position == 1 and not made:
                        yield from _previous(item, leaf)
                elif leaf.text.startswith(_MARKS) and leaf.text not in item.query:
                    yield from _tool_reference(item, leaf, made)
                    yield from _step_reference(item, leaf, position)
                elif item.form == "plan" and (later := later_step(leaf.text, position)):
                    message = f"speaks of step {later} and stands in step {position} itself"
                    yield finding("early-reference", "E4", "suspected", leaf.path, message)
            made.add(call.name)


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


def _tool_reference(item: Item, leaf: Leaf, made: set[str]) -> Iterator[Finding]:
    name = referenced_tool(leaf.text)
    if name is None or name in made or item.tools is None or name not in item.tools.by_name:
        return
    if any(name in message_tools(message) for message in item.trajectory):
        return
    message = f"uses the result of {name}, which no earlier call has produced"
    yield finding("used-before-made", "E4", "proven", leaf.path, message)


def _step_reference(item: Item, leaf: Leaf, position: int) -> Iterator[Finding]:
    """Steps may be counted from 0 or 1, with or without the trajectory: all must fail."""
    step = referenced_step(leaf.text)
    if step is None or step < position:
        return
    message = f"refers to step {step} and stands in step {position} itself"
    if item.form == "steps" and step >= position + len(item.trajectory):
        yield finding("used-before-made", "E4", "proven", leaf.path, message)
    elif item.form == "plan":
        yield finding("early-reference", "E4", "suspected", leaf.path, message)

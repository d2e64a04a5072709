"""Facts that follow from exact tool names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...errors import shorten
from ...records import Call, Finding, Item, message_tools
from ...rubrics import Rubric
from .rules import finding


def unknown_calls(item: Item) -> list[Call]:
    """Calls whose exact name is not in the tool list.

    Empty if the row lists no tools. A name that the reference or an earlier step calls, or that
    ends the task according to the case, does not count: then the list is incomplete, not the
    prediction wrong.
    """
    if item.tools is None:
        return []
    strangers = [c for c in item.prediction.calls if c.name and c.name not in item.tools.names]
    if not strangers:
        return []
    in_use = _names_in_use(item)
    if not item.tools.names and in_use:
        return []
    return [call for call in strangers if call.name not in in_use]


def unknown_tools(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E6: a call of a tool that does not exist (see ``unknown_calls``).

    Suspected if the published data end a task by this name: it may be known without the list.
    """
    strangers = unknown_calls(item)
    spellings: Mapping[str, str] = item.tools.by_lower_name if item.tools and strangers else {}
    for call in strangers:
        near = spellings.get(call.name.lower())
        hint = f" (the list has {near!r})" if near else ""
        message = f"no tool named {shorten(call.name)} in the list{hint}"
        certainty = "suspected" if call.name in (item.endings or ()) else "proven"
        yield finding("unknown-tool", "E6", certainty, call.where, message)


def ending_calls(item: Item) -> list[Call]:
    """Calls that only end the task, if the reply has a single reading.

    Such a call is neither right nor wrong by its name: words next to it may give up the task.
    """
    if item.prediction.others:
        return []
    return [call for call in item.prediction.calls if call.name in (item.endings or ())]


def _names_in_use(item: Item) -> set[str]:
    names = set(item.reference.names) if item.reference else set[str]()
    names.update(item.ends or ())
    names.update(item.condition.extraneous)
    if item.condition.replacement:
        names.add(item.condition.replacement.name)
    for message in item.trajectory:
        names |= message_tools(message)
    return names


def distractors(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """E5: a call of a listed distractor."""
    if not item.condition.extraneous:
        return
    for call in item.prediction.calls:
        if call.name in item.condition.distractors:
            message = f"{shorten(call.name)} is a distractor"
            yield finding("distractor", "E5", "proven", call.where, message)


def uses_distractor(item: Item) -> bool | None:
    """True if a listed distractor is called; None when the case has none."""
    if not item.condition.extraneous:
        return None
    return any(call.name in item.condition.distractors for call in item.prediction.calls)


def retries(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """The broken tool is called again, whatever the arguments."""
    for call in item.prediction.calls:
        if call.name == item.condition.broken_tool:
            message = f"{shorten(call.name)} is the tool that has just failed"
            yield finding("retry-broken-tool", "E4", "proven", call.where, message)


def category(item: Item) -> int | None:
    """The category that exact names decide, or None.

    A call of the broken tool outweighs all others, then a call of an unknown tool; the replacement
    decides only if every call is of a known tool. A tool that ends the task is not unknown, listed
    or not: calling it may be giving up, which a judge has to decide (arXiv:2606.04874, figure 49).
    """
    names = [call.name for call in item.prediction.calls]
    if not names:
        return 4 if item.prediction.kind == "reject" else None
    if item.condition.broken_tool in names:
        return 3
    if any(call.name not in (item.endings or ()) for call in unknown_calls(item)):
        return 5
    replacement = item.condition.replacement
    return 1 if replacement is not None and replacement.name in names else None

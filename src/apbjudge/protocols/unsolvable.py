"""Unsolvable: does the tested model decline for the right reason? One rule set per type."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import RowError
from ..records import Finding, Item
from ..rubrics import Rubric
from .base import Protocol
from .checks.form import is_mute
from .checks.rules import finding

_ENDING = re.compile(
    r"finish|terminat|final|answer|end|stop|exit|report|reject|refus|declin|abort|cancel|ask|clarif|request|notif|"
    r"messag|respon|reply|inform|escalat|human|user|error|submit|return",
    re.IGNORECASE,
)
_STOP_REQUIRED = ("visual_missing", "tool_removal")


def _is_unsolvable(item: Item) -> None:
    if item.condition.unsolvable_type is None:
        raise RowError("unsolvable_type", "why the case can't be solved", None)


def carried_on(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """A reply that makes calls where stopping is required, even one that says REJECT.

    Proven for missing visuals and removed tools, where passing requires a chain that is empty or
    only ends the task; suspected for the other two types, where a plan may contain the refusal or
    the question. A chain of calls that could all be endings or questions, by their names read
    generously, proves nothing.
    """
    prediction = item.prediction
    if prediction.kind == "text":
        return
    working = [c for c in prediction.calls if c.name and not _ENDING.search(c.name)]
    if not working:
        return
    proven = item.condition.unsolvable_type in _STOP_REQUIRED
    message = f"{len(working)} call(s) are planned although the case can't be solved"
    certainty = "proven" if proven else "suspected"
    yield finding("carried-on", "E3", certainty, working[0].where, message)


def says_nothing(item: Item, rubric: Rubric) -> Iterator[Finding]:
    """A reply without a call and without a word: it names nothing, declines nothing, asks nothing.

    Proven where the whole reply is one JSON object whose values are all empty; a bare REJECT does
    decline, and is suspected where passing requires that it names what is missing.
    """
    prediction = item.prediction
    if prediction.kind == "text" or any(True for _ in prediction.calls) or prediction.plan.strip():
        return
    if not is_mute(item):
        return
    if prediction.kind != "reject":
        message = "neither a plan nor a word of refusal"
        yield finding("says-nothing", "E2", "proven", "response", message)
    elif item.condition.unsolvable_type in _STOP_REQUIRED:
        message = "rejected without saying what is missing"
        yield finding("says-nothing", "E2", "suspected", "response", message)


UNSOLVABLE = Protocol(
    name="unsolvable",
    shape="pass",
    rubrics={"plan": "apb-unsolvable@1"},
    checks=(carried_on, says_nothing),
    admit=_is_unsolvable,
)

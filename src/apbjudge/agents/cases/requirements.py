"""Sentences of a query that demand the result of a tool that can't be used.

The kinds come from the Agent Planning Benchmark (arXiv:2606.04874, figures 15 and 16); the wording
is ours. No sentence offers another way, and each rules out that looking at the material is enough.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random

from ...protocols.prompt_leaks import mentions
from ...records.construction import ContradictionKind
from .likeness import does_learn
from .queries import is_english

OFFLINE: Mapping[ContradictionKind, tuple[str, ...]] = {
    "missing_dimension": (
        (
            "What decides this cannot be seen: {tool} alone reads it out, and what the material "
            "seems to show is misleading. The service behind {tool} is offline."
        ),
        (
            "Rely on nothing but the hidden value that {tool} decodes, since appearances are wrong "
            "here. {tool} has been offline since this morning."
        ),
    ),
    "compliance_lock": (
        (
            "For the audit only a result that {tool} has signed counts; estimates and results from "
            "any other source are void. {tool} is offline."
        ),
        (
            "By law the outcome has to carry the signature of {tool}, and unsigned figures or "
            "actions are void. The signing service of {tool} is down."
        ),
    ),
    "dynamic_state": (
        (
            "Act only if a live check with {tool} passes right before; an earlier or assumed state "
            "does not count. The server of {tool} is down."
        ),
        (
            "What is known so far may be out of date, so that nothing may be done unless {tool} "
            "confirms it live. {tool} is offline."
        ),
    ),
}
"""Requirements that a query makes and its outage excludes, by kind."""

_DEMANDS = {
    "learns": (
        (
            "The facts have to come from a tool that is made for this and logs what it finds; "
            "looking at the material, memory and mental arithmetic are not accepted."
        ),
        (
            "Only values that a dedicated tool has returned may be used, not ones that are seen, "
            "remembered or worked out in the head."
        ),
    ),
    "acts": (
        (
            "Every action has to be carried out and logged by a tool that is made for it; what is "
            "done by hand, by sight or in the head is not accepted."
        ),
        (
            "Only actions that a dedicated tool has recorded are valid, not ones that are "
            "described, seen or worked out in the head."
        ),
    ),
}
"""Demands for a removed capability, by its effect: to obtain information or to change something."""


def offline_requirement(kind: ContradictionKind, tool: str, rng: Random) -> str:
    """The sentences that demand the result of a tool and say that it is out of service."""
    return rng.choice(OFFLINE[kind]).format(tool=tool)


def removal_requirement(query: str, removed: Collection[str], tool: str, rng: Random) -> str:
    """The sentence that demands the result of a tool, without its name.

    Args:
        query: The query that it is added to.
        removed: Names of the tools that were taken away; the sentence names none of them.
        tool: The removed tool whose capability the task depends on.
        rng: Draws the wording.

    Returns:
        Empty if every wording would name a removed tool, or if the query is not English.
    """
    texts = _DEMANDS["learns" if does_learn(tool) else "acts"]
    free = [text for text in texts if not any(mentions(text, name) for name in removed)]
    return rng.choice(free) if free and is_english(query) else ""

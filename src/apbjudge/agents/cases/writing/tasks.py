"""From seeds to writing tasks: all that a prompt shows and that the rules compare answers with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import orjson

from ....errors import RowError
from ....records import Record
from ....records.tools import read_tool
from ..likeness import definition_of
from ..literals import is_worded, literals_of, results_of
from ..queries import is_english
from ..references import chain_of
from ..seeds import Seed
from ..transforms.unsolvable import offline_tools, removable_values, removal_of
from .config import Kind

FINISH = "Finish"
"""The tool that ends a simulated trajectory, as in the benchmark."""
_FINISH_TOOL = {
    "name": FINISH,
    "description": "Ends the task with the answer for the user.",
    "parameters": {
        "type": "object",
        "properties": {"answer": {"type": "string", "description": "The answer for the user."}},
        "required": ["answer"],
    },
}
MORE_CALLS = 3
"""Calls that a simulated trajectory has at least more than its seed; in the paper 4.5 on average
(arXiv:2606.04874, appendix B.1)."""
SIMULATED = "trajectory simulated by a model"
"""The repair stated by a seed with a trajectory that a model wrote."""
REWRITTEN = "query rewritten by a model"
"""The repair stated by a seed with a query that a model wrote."""


class WritingTask(Record):
    """A text to be written for a seed.

    Attributes:
        id: The seed's id and the kind.
        seed: The seed's id.
        kind: Kind of text to write.
        place: Source of the seed, such as ``log.jsonl:12``.
        query: The task.
        system_prompt: Instructions of the agent; empty without.
        tools: Definitions of all tools offered.
        solution: The solution's calls, with a description of each parameter; no result is in it.
        literals: Values that the solution takes from the query; they stay in it.
        removable: Those of them that only the query states.
        results: Values that only results state; no text may state them.
        least_calls: Calls that a simulated trajectory has at least, besides that which ends it.
        demanded: Kind of contradiction to the tool that the query is to demand, and that is out of
            service.
        removed: Tools that are taken away, whose results the query is to demand.
    """

    id: str
    seed: str
    kind: Kind
    place: str
    query: str
    system_prompt: str
    tools: tuple[dict[str, Any], ...]
    solution: tuple[dict[str, Any], ...]
    literals: tuple[str, ...]
    removable: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    least_calls: int = 0
    demanded: dict[str, str] = {}
    removed: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """Hash of all that matters for the answer: tasks that share it may share an answer."""
        content = self.model_dump(exclude={"id", "seed", "place"})
        content = {k: v for k, v in content.items() if v or k not in _OF_ONE_KIND}
        text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
        return blake2b(text, digest_size=16).hexdigest()

    @property
    def used(self) -> frozenset[str]:
        """Names of the tools that the solution calls."""
        return frozenset(call["name"] for call in self.solution)

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of all tools."""
        return tuple(tool["name"] for tool in self.tools)


_OF_ONE_KIND = frozenset({"least_calls", "demanded", "removed"})
"""Fields that tasks of other kinds do not have, so that their texts are not looked up by them."""


def task_of(seed: Seed, kind: Kind) -> WritingTask | str:
    """The task of writing a text for a seed, or the reason why there is none."""
    try:
        tools = seed.toolset.tools
    except RowError as error:
        return f"tools that can't be read: {error}"
    literals = literals_of(seed)
    removable = _removable(seed, literals) if kind == "private" else ()
    removal = removal_of(seed) if kind == "removal" else None
    demanded = offline_tools(seed) if kind == "contradictory" else {}
    if isinstance(demanded, str):
        return demanded
    if isinstance(removal, str):
        return removal
    if kind == "trajectory" and FINISH not in seed.toolset.by_name:
        tools = (*tools, read_tool(_FINISH_TOOL, "tools"))
    reasons = {
        "no calls in the solution": not seed.calls,
        "no query": not seed.trajectory.query.strip(),
        "the source has a plan": kind == "plan" and bool(seed.plan),
        "the query is not one message of the user's": kind == "query"
        and _first_message(seed) is None,
        "the query is not English": kind in ("contradictory", "removal")
        and not is_english(seed.trajectory.query),
        "no value of the query that nobody could know": kind == "private" and not removable,
    }
    if reason := next((reason for reason, holds in reasons.items() if holds), None):
        return reason
    return WritingTask(
        id=f"{seed.seed_id}:{kind}",
        seed=seed.seed_id,
        kind=kind,
        place=seed.place,
        query=seed.trajectory.query,
        system_prompt=seed.trajectory.system_prompt,
        tools=tuple(map(definition_of, tools)),
        solution=tuple(chain_of(seed)),
        literals=literals,
        removable=removable,
        results=results_of(seed) if kind not in ("distractors", "trajectory") else (),
        least_calls=_least_calls(seed) if kind == "trajectory" else 0,
        demanded={**demanded},
        removed=() if removal is None else tuple(tool.name for tool in removal.gone),
    )


def _least_calls(seed: Seed) -> int:
    return sum(call.name != FINISH for call in seed.calls) + MORE_CALLS


def _removable(seed: Seed, literals: Sequence[str]) -> tuple[str, ...]:
    """The literals that only the query states and that share no words with the others."""
    return tuple(
        value
        for value in removable_values(seed)
        if value in literals
        and not any(
            is_worded(value, other) or is_worded(other, value)
            for other in literals
            if other != value
        )
    )


def _first_message(seed: Seed) -> int | None:
    """Index of the step that is the query; -1 if the steps have no message by the user.

    None if the user says more than the query, or something else: then a rewritten query would
    not fit the messages.
    """
    turns = seed.turns
    if not turns:
        return -1
    is_query = seed.trajectory.steps[turns[0]].text.strip() == seed.trajectory.query.strip()
    return turns[0] if len(turns) == 1 and is_query else None


def with_query(seed: Seed, query: str) -> Seed:
    """A seed whose user asks in other words, also in the first message of the trajectory."""
    at = _first_message(seed)
    steps = tuple(
        replace(step, text=query) if place == at else step
        for place, step in enumerate(seed.trajectory.steps)
    )
    return replace(
        seed,
        trajectory=replace(seed.trajectory, query=query, steps=steps),
        repairs=(*seed.repairs, REWRITTEN),
        written=(*seed.written, query),
    )

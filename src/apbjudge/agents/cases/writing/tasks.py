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
from ..likeness import definition_of
from ..literals import is_worded, literals_of, results_of
from ..references import chain_of
from ..seeds import Seed
from ..transforms.unsolvable import removable_values
from .config import Kind

REWRITTEN = "query rewritten by a model"
"""The repair that a seed with such a query states."""


class WritingTask(Record):
    """A text to be written for a seed.

    Attributes:
        id: The seed's id and the kind.
        seed: The seed's id.
        kind: What is to be written.
        place: Where the seed was read, such as ``log.jsonl:12``.
        query: The task.
        system_prompt: Instructions of the agent; empty without.
        tools: Definitions of all tools offered.
        solution: The solution's calls, with a description of each parameter; no result is in it.
        literals: Values that the solution takes from the query; they stay in it.
        removable: Those of them that only the query states.
        results: Values that only results state; no text may state them.
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

    @cached_property
    def digest(self) -> str:
        """Hash of all that matters for the answer: tasks that share it may share an answer."""
        content = self.model_dump(exclude={"id", "seed", "place"})
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


def task_of(seed: Seed, kind: Kind) -> WritingTask | str:
    """The task of writing a text for a seed, or the reason why there is none."""
    try:
        tools = seed.toolset.tools
    except RowError as error:
        return f"tools that can't be read: {error}"
    literals = literals_of(seed)
    removable = _removable(seed, literals) if kind == "private" else ()
    reasons = {
        "no calls in the solution": not seed.calls,
        "no query": not seed.trajectory.query.strip(),
        "the source has a plan": kind == "plan" and bool(seed.plan),
        "the query is not one message of the user's": kind == "query"
        and _first_message(seed) is None,
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
        results=results_of(seed) if kind != "distractors" else (),
    )


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
    """Index of the step that is the query; -1 where the user says nothing in the steps.

    None where the user says more than the query, or something else: then a rewritten query would
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

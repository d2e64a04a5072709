"""Distractors: tools of other tasks, or tools offered that the solution does without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....protocols.tool_words import name_words
from ....records import Tool
from ..cases import Context, Reject, Row, case_row
from ..likeness import LIKE, does_work, is_same, likeness, may_serve, object_words
from ..references import chain_of, plan_of
from ..seeds import Seed, draw
from .plans import NO_CALLS
from .steps import cuts_of, fields_of, next_steps

TOO_FEW = "too few distractors for a level"


def extraneous_plans(seed: Seed, context: Context) -> Iterator[Row | Reject]:
    """A whole plan for each number of distractors; those of a level are among the next one's."""
    name = "extraneous_plans"
    if not seed.calls:
        yield Reject(name, NO_CALLS)
        return
    yield from _levels(
        seed,
        context,
        split="holistic_tool_extraneous",
        transform=name,
        plan=plan_of(seed),
        chain=chain_of(seed),
    )


def extraneous_steps(seed: Seed, context: Context) -> Iterator[Row | Reject]:
    """Next steps at one cut, drawn with their number; a case for each number of distractors."""
    name = "extraneous_steps"
    if not seed.calls:
        yield Reject(name, NO_CALLS)
        return
    asked = [
        (cut, steps)
        for cut in cuts_of(seed)
        for k in context.horizons
        if (steps := next_steps(seed, cut, k)) is not None
    ]
    if not asked:
        yield Reject(name, "too few steps")
        return
    cut, steps = draw(context.seed, seed.seed_id, name).choice(asked)
    yield from _levels(
        seed,
        context,
        split="step_wise_tool_extraneous",
        transform=name,
        **fields_of(seed, cut, steps),
    )


def _levels(
    seed: Seed, context: Context, *, transform: str, parts: Sequence[object] = (), **fields: Any
) -> Iterator[Row | Reject]:
    """A case for each number of distractors."""
    base, distractors = split_tools(seed, context)
    for level in context.levels:
        if level > len(distractors):
            yield Reject(transform, TOO_FEW, f"{len(distractors)} for level {level}")
            continue
        added = distractors[:level]
        yield case_row(
            seed,
            context,
            transform=transform,
            parts=(*parts, level),
            tools=[*base, *added],
            extraneous=[tool.name for tool in added],
            **fields,
        )


def split_tools(seed: Seed, context: Context) -> tuple[list[Tool], list[Tool]]:
    """The tools of all levels, and distractors; level n takes the first n of them.

    Tools that a model invented for the task come first, then tools of other tasks, the nearest in
    subject before the others. If these are too few, tools that the seed offers are moved from the
    base. No distractor is a tool that the trajectory calls at all, that might serve in place of
    one, or that ends a trajectory.
    """
    offered = seed.toolset
    called = seed.used | {call.name for step in seed.trajectory.steps for call in step.calls}
    needed = [tool for tool in offered.tools if tool.name in called]
    most = max(context.levels)
    rng = draw(context.seed, seed.seed_id, "distractors")
    others = context.pool.draw(rng, offered.tools, category=seed.category)
    known = {"".join(name_words(name)) for name in offered.names}
    invented: list[Tool] = []
    added: list[Tool] = []
    for tools, listed in ((seed.invented, invented), (others, added)):
        for tool in tools:
            name = "".join(name_words(tool.name))
            room = len(invented) + len(added) < most
            is_work = does_work(tool.name, seed.ends)
            if room and is_work and name not in known and not _might_serve(tool, needed):
                known.add(name)
                listed.append(tool)
    if (n_left := most - len(invented) - len(added)) > 0:
        spare = [t for t in offered.tools if t.name not in called and does_work(t.name, seed.ends)]
        spare = [tool for tool in spare if not _might_serve(tool, needed)]
        rng.shuffle(spare)
        added += spare[:n_left]
    rng.shuffle(invented)
    rng.shuffle(added)
    distractors = [*invented, *added]
    taken = {tool.name for tool in distractors}
    return [tool for tool in offered.tools if tool.name not in taken], distractors


def _might_serve(tool: Tool, needed: Sequence[Tool]) -> bool:
    """True if calling a tool might be right where others are needed."""
    words = set(name_words(tool.name))
    for other in needed:
        if is_same(tool, other) or words == set(name_words(other.name)):
            return True
        # Of names that say nothing of their object likeness alone can tell.
        is_telling = object_words(other.name)
        if may_serve(tool, other) if is_telling else likeness(tool, other) >= LIKE:
            return True
    return False

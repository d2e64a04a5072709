"""Distractors: tools of other tasks, or tools offered that the solution does without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....protocols.tool_words import squashed
from ....records import Tool
from ..cases import Context, Reject, Row, RowMaker, transform
from ..likeness import does_work, is_like, may_serve, object_words
from ..references import solution_of
from ..seeds import Seed, draw
from .steps import TOO_FEW_STEPS, next_steps

TOO_FEW = "too few distractors for a level"


@transform("holistic_tool_extraneous")
def extraneous_plans(seed: Seed, context: Context, row: RowMaker) -> Iterator[Row | Reject]:
    """A whole plan for each number of distractors; each level includes the previous level's."""
    return _levels(seed, context, row, solution_of(seed))


@transform("step_wise_tool_extraneous")
def extraneous_steps(seed: Seed, context: Context, row: RowMaker) -> Iterator[Row | Reject]:
    """Next steps at one cut, drawn with their number; a case for each number of distractors."""
    if asked := next_steps(seed, context):
        fields = draw(context.seed, seed.seed_id, "extraneous_steps").choice(asked)
        yield from _levels(seed, context, row, fields)
    else:
        yield Reject(TOO_FEW_STEPS)


def _levels(
    seed: Seed, context: Context, row: RowMaker, fields: dict[str, Any]
) -> Iterator[Row | Reject]:
    """A case for each number of distractors."""
    base, distractors = split_tools(seed, context)
    for level in context.levels:
        if level > len(distractors):
            yield Reject(TOO_FEW, f"{len(distractors)} for level {level}")
            continue
        added = distractors[:level]
        own = {"extraneous_tool_names": [tool.name for tool in added], **fields}
        parts = (*fields.get("parts", ()), level)
        yield row(**{**own, "parts": parts}, tools=[*base, *added])


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
    known = {squashed(name) for name in offered.names}
    invented: list[Tool] = []
    added: list[Tool] = []
    for tools, listed in ((seed.invented, invented), (others, added)):
        for tool in tools:
            name = squashed(tool.name)
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
    """True if calling a tool might be right where others are needed.

    For names without an object, only likeness can decide.
    """
    return any(
        may_serve(tool, other) if object_words(other.name) else is_like(tool, other)
        for other in needed
    )

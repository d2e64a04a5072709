"""Distractors: tools of other tasks, or tools offered that the solution does without."""

from __future__ import annotations

from collections.abc import Iterator

from ...records import Tool
from ..cases import Context, Reject, Row, case_row
from ..likeness import LIKE, is_same, likeness, name_words
from ..references import chain_of, plan_of
from ..seeds import Seed, draw
from .plans import NO_CALLS
from .steps import cuts_of, next_steps, query_of_steps

TOO_FEW = "too few distractors for a level"


def extraneous_plans(seed: Seed, context: Context) -> Iterator[Row | Reject]:
    """Whole plans, a case for each number of distractors."""
    name = "extraneous_plans"
    if not seed.calls:
        yield Reject(name, NO_CALLS)
        return
    base, distractors = split_tools(seed, context, called=seed.used)
    for level in context.levels:
        if level > len(distractors):
            yield Reject(name, TOO_FEW, f"{len(distractors)} for level {level}")
            continue
        added = distractors[:level]
        yield case_row(
            seed,
            context,
            split="holistic_tool_extraneous",
            transform=name,
            parts=(level,),
            tools=[*base, *added],
            extraneous=[tool.name for tool in added],
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
        (cut, k, steps)
        for cut in cuts_of(seed)
        for k in context.horizons
        if (steps := next_steps(seed, cut, k)) is not None
    ]
    if not asked:
        yield Reject(name, "too few steps")
        return
    cut, k, steps = draw(context.seed, seed.seed_id, name).choice(asked)
    base, distractors = split_tools(seed, context, called=seed.used | cut.names)
    for level in context.levels:
        if level > len(distractors):
            yield Reject(name, TOO_FEW, f"{len(distractors)} for level {level}")
            continue
        added = distractors[:level]
        yield case_row(
            seed,
            context,
            split="step_wise_tool_extraneous",
            transform=name,
            parts=(cut.stage, k, level),
            tools=[*base, *added],
            query=query_of_steps(seed),
            extraneous=[tool.name for tool in added],
            horizon=k,
            stage=cut.stage,
            prefix=cut.prefix,
            steps=steps,
            remaining=cut.steps[k:],
        )


def split_tools(
    seed: Seed, context: Context, *, called: frozenset[str]
) -> tuple[list[Tool], list[Tool]]:
    """The tools of all levels, and distractors, of which level n takes the first n.

    Tools of other tasks come first, the nearest in subject before the others. Where they do not
    reach, tools follow that the seed offers and that are never called: those are taken from the
    base. What is much like a called tool might serve in its place and is no distractor.
    """
    offered = seed.toolset
    needed = [tool for tool in offered.tools if tool.name in called]
    most = max(context.levels)
    rng = draw(context.seed, seed.seed_id, "distractors")
    others = context.pool.draw(rng, offered.tools, category=seed.category)
    known = {"".join(name_words(name)) for name in offered.names}
    distractors = [
        tool
        for tool in others
        if "".join(name_words(tool.name)) not in known and not _might_serve(tool, needed)
    ][:most]
    if len(distractors) < most:
        spare = [t for t in offered.tools if t.name not in called and not _might_serve(t, needed)]
        rng.shuffle(spare)
        distractors += spare[: most - len(distractors)]
    rng.shuffle(distractors)
    taken = {tool.name for tool in distractors}
    return [tool for tool in offered.tools if tool.name not in taken], distractors


def _might_serve(tool: Tool, needed: list[Tool]) -> bool:
    words = set(name_words(tool.name))
    return any(
        likeness(tool, other) >= LIKE
        or is_same(tool, other)
        or words == set(name_words(other.name))
        for other in needed
    )

"""Whole plans: the task as it is, with its solution as the reference."""

from __future__ import annotations

from collections.abc import Iterator

from ..cases import Context, Reject, Row, case_row
from ..references import chain_of, plan_of
from ..seeds import Seed

NO_CALLS = "no calls in the solution"


def holistic(seed: Seed, context: Context) -> Iterator[Row | Reject]:
    """A case that asks for the whole plan."""
    if not seed.calls:
        yield Reject("holistic", NO_CALLS)
        return
    yield case_row(
        seed,
        context,
        split="holistic_planning",
        transform="holistic",
        tools=seed.toolset.tools,
        plan=plan_of(seed),
        chain=chain_of(seed),
    )

"""Whole plans: the task as it is, with its solution as the reference."""

from __future__ import annotations

from ..cases import Context, Row, RowMaker, transform
from ..references import solution_of
from ..seeds import Seed


@transform("holistic_planning")
def holistic(seed: Seed, context: Context, row: RowMaker) -> Row:
    """A case that asks for the whole plan."""
    return row(**solution_of(seed))

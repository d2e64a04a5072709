"""What humans said of items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from ..errors import InputError, RowError
from ..jsonl import read_lines
from .base import Record, row_error
from .judgements import ErrorCode


class HumanLabel(Record):
    """One rater's word on one item; what they did not say is None.

    Attributes:
        item_id: The item.
        tested_model: Whose response it was; None where item ids are already unique.
        rater: Who said so.
        is_correct: Whether the prediction passes.
        grade: One of the rubric's levels.
        errors: Flag per code.
        category: 1 to 5 for tool-broken.
    """

    model_config = ConfigDict(extra="ignore")  # labels carry notes of all sorts

    item_id: str
    tested_model: str | None = None
    rater: str = "human"
    is_correct: bool | None = None
    grade: float | None = Field(default=None, ge=0, le=1)
    errors: dict[ErrorCode, bool] | None = None
    category: int | None = Field(default=None, ge=1, le=5)


def read_labels(path: Path) -> Iterator[HumanLabel]:
    """Yields the labels of a JSONL file.

    Raises:
        InputError: If the file or one of its lines is unusable; names file:line and field.
    """
    for line in read_lines(path):
        if isinstance(line.values, RowError):
            raise InputError(f"{path}:{line.number}: {line.values}")
        try:
            yield HumanLabel.model_validate(line.values)
        except ValidationError as error:
            raise InputError(f"{path}:{line.number}: {row_error(error)}") from None


def majority(labels: Iterable[HumanLabel]) -> dict[tuple[str, str | None], bool]:
    """What more than half of an item's raters say of ``is_correct``; ties are left out.

    Returns:
        By item id and tested model.
    """
    votes: dict[tuple[str, str | None], list[bool]] = defaultdict(list)
    for label in labels:
        if label.is_correct is not None:
            votes[label.item_id, label.tested_model].append(label.is_correct)
    return {
        item: 2 * sum(said) > len(said)
        for item, said in votes.items()
        if 2 * sum(said) != len(said)
    }

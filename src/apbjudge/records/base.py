"""The one base of every domain record."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from ..errors import RowError


class Record(BaseModel):
    """Frozen; unknown fields are refused; NaN and infinities never pass."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def row_error(error: ValidationError) -> RowError:
    """The first complaint of a validation, as one about a row."""
    first = error.errors()[0]
    return complaint(first, first["loc"])


def complaint(details: ErrorDetails, place: Sequence[int | str]) -> RowError:
    """A complaint of a validation about a place of a row, as one about the row."""
    if details["type"] == "missing":
        return RowError(".".join(map(str, place)), "a value", None)
    expected = details["msg"].removeprefix("Input should be ")
    return RowError(".".join(map(str, place)) or "row", expected, details["input"])

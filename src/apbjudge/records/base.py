"""The one base of every domain record."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from ..errors import RowError


class Record(BaseModel):
    """Frozen; unknown fields are refused; NaN and infinities never pass."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def row_error(error: ValidationError) -> RowError:
    """The first complaint of a validation, as one about a row."""
    first = error.errors()[0]
    if first["type"] == "missing":
        return RowError(".".join(map(str, first["loc"])), "a value", None)
    return RowError(".".join(map(str, first["loc"])) or "row", first["msg"], first["input"])

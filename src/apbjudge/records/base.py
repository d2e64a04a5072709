"""The one base of every domain record."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Frozen; unknown fields are refused; NaN and infinities never pass."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

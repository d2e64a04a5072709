"""What a session may cost."""

from __future__ import annotations

from pydantic import Field

from ..config import Config


class Limits(Config):
    """Upper limits of one session; None means none. Failed and repeated calls count."""

    max_cost: float | None = Field(default=None, ge=0, description="US dollars a session may cost.")
    max_calls: int | None = Field(default=None, ge=0, description="Calls a session may make.")
    max_tokens: int | None = Field(
        default=None, ge=0, description="Tokens a session may send and receive."
    )
    max_seconds: float | None = Field(
        default=None, ge=0, description="Seconds a session may take, from its first call."
    )

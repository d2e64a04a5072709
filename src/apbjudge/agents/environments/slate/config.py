"""Settings of SLATE's simulator."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ....config import Config

Scope = Literal["case", "library"]
"""Cases whose recorded calls may answer: the case itself, or all with a tool of that interface."""


class SlateConfig(Config):
    """Settings of the simulator."""

    scope: Scope = Field(
        default="case",
        description="Recorded calls that may answer: the case's own, or those of all cases with a "
        "tool of the same interface.",
    )

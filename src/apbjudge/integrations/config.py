"""The settings of integrations."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..config import Config


class ScaleConfig(Config):
    """The engine, and how often a part is started."""

    engine: Literal["local", "ray", "slurm"] = Field(
        default="local",
        description="local, processes of this machine; ray, tasks of a Ray cluster; slurm, an "
        "array of jobs.",
    )
    at_once: int = Field(default=2, ge=1, description="Parts that run at the same time.")
    starts: int = Field(
        default=4,
        ge=1,
        description="How often a part is started that was paused, was killed, or left rows without "
        "a result.",
    )

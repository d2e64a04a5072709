"""Limits of a session's cost, and the place of its records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from ..config import Config, Option


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


Cached = Annotated[
    bool | Path | None, Option("--no-cache", help="Neither read nor fill the cache of replies.")
]
CACHE = Field(
    default=None,
    description="Whether replies are cached for later runs, or the folder for them. None caches "
    "all but those of a client of your own.",
)
"""The setting of the cache, for every configuration of what asks models."""


class RunsConfig(Limits):
    """The place of a run's records, and the limits of its cost."""

    out: Path | None = Field(
        default=None, description="Folder of the run; the same command continues the run in it."
    )
    work: Path | None = Field(
        default=None,
        description="Folder on this machine for the work on a run whose --out is an address such "
        "as s3://bucket/run. Without it in the user's state folder.",
    )
    upload_every: float = Field(
        default=60.0, gt=0, description="Seconds between uploads to an --out that is an address."
    )
    overwrite: bool = Field(
        default=False,
        description="Replace a run of other input or settings in --out; the same run continues in "
        "either case.",
    )
    cache: Cached = CACHE

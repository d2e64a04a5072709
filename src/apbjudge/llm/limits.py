"""Limits of a session's cost, and the place of its records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ..config import Config, Option


class Limits(Config):
    """Upper limits of one session; None for no limit. Failed and repeated calls count."""

    max_cost: float | None = Field(
        default=None, ge=0, description="Budget of a session in US dollars."
    )
    max_calls: int | None = Field(default=None, ge=0, description="Calls that a session may make.")
    max_tokens: int | None = Field(
        default=None, ge=0, description="Tokens that a session may send and receive."
    )
    max_seconds: float | None = Field(
        default=None, ge=0, description="Seconds that a session may take, from its first call."
    )


CacheKind = Literal["sqlite", "segments"]
Claim = Literal["lock", "file"]


class StoreConfig(Limits):
    """The limits of a session, the cache of its replies, and its claim on the folder it fills."""

    groups: ClassVar[Mapping[str, str]] = {
        "Budget": "max_cost max_calls max_tokens max_seconds",
        "Run": "cache cache_kind claim take_over",
    }

    cache: Annotated[
        bool | Path | None, Option("--no-cache", help="Don't read or fill the reply cache.")
    ] = Field(
        default=None,
        description="Whether replies are cached for later runs, or the folder for them. None "
        "caches all but those of a client of your own.",
    )
    cache_kind: CacheKind = Field(
        default="sqlite",
        description="sqlite, or segments: each process appends to a file of its own, which works "
        "on network disks.",
    )
    claim: Claim = Field(
        default="lock",
        description="How other processes are kept out of a run's folder: a lock of the operating "
        "system, or a file (claim.json), which works on network disks without locks.",
    )
    take_over: bool = Field(
        default=False,
        description="With --claim file: take over a folder that a dead process on another machine "
        "claimed; waits for three missed heartbeats, 90 s.",
    )

    @model_validator(mode="after")
    def _take_over_of_files(self) -> Self:
        if self.take_over and self.claim != "file":
            raise ValueError("--take-over: expected --claim file with it")
        return self


class RunsConfig(StoreConfig):
    """The place of a run's records, and the limits of its cost."""

    groups: ClassVar[Mapping[str, str]] = {
        **StoreConfig.groups,
        "Run": f"overwrite {StoreConfig.groups['Run']} work upload_every",
    }

    out: Path | None = Field(
        default=None, description="Folder of the run; the same command continues the run in it."
    )
    work: Path | None = Field(
        default=None,
        description="Local folder for a run whose --out is an address such as s3://bucket/run. "
        "Default: in the user's state folder.",
    )
    upload_every: float = Field(
        default=60.0, gt=0, description="Seconds between uploads to an --out that is an address."
    )
    overwrite: bool = Field(
        default=False,
        description="Replace a run with other input or settings in --out; the same run continues "
        "with or without it.",
    )

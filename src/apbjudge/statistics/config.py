"""The settings of intervals, shared by all commands that print intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from ..config import Config, Option

if TYPE_CHECKING:
    from .sample import IntervalSettings

SEED = 20_260_101


class IntervalConfig(Config):
    """Settings of intervals."""

    interval_options: ClassVar[str] = "interval n_resamples bootstrap_seed"

    interval: Literal["jeffreys", "jackknife", "bca", "percentile"] = Field(
        default="jeffreys",
        description="percentile or bca: bootstrap intervals, by case, for every figure. jeffreys "
        "or jackknife: for coefficients; rates and means then have Wilson intervals, whose "
        "coverage is better.",
    )
    n_resamples: int = Field(
        default=10_000, ge=1, le=1_000_000, description="Bootstrap resamples of bca and percentile."
    )
    bootstrap_seed: Annotated[int, Option("--seed")] = Field(
        default=SEED, ge=0, description="Seed of the bootstrap."
    )

    @property
    def settings(self) -> IntervalSettings:
        """Settings of intervals, at the configuration's confidence level."""
        from .estimates import CONFIDENCE_LEVEL
        from .sample import IntervalSettings

        return IntervalSettings(
            level=getattr(self, "level", CONFIDENCE_LEVEL),
            method=self.interval,
            n_resamples=self.n_resamples,
            seed=self.bootstrap_seed,
        )

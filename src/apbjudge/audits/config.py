"""The settings of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from ..config import Option, PartConfig
from ..judge.config import InputConfig, JudgeSpec


class AuditConfig(InputConfig, PartConfig):
    """The settings of an audit."""

    groups: ClassVar[Mapping[str, str]] = {
        "Sample": "bases seed_of_draw shard",
        **InputConfig.groups,
    }

    rows: Path | None = Field(
        default=None,
        description="Predictions with their cases, as for grade; without it the shipped cases are "
        "used.",
    )
    labels: Path | None = Field(
        default=None,
        description="Human labels of the rows, JSONL or CSV; or the folder of another judge's run.",
    )
    own: Annotated[tuple[str, ...], Option("--self")] = Field(
        default=(), description="Tested model that is the judge itself."
    )
    quick: bool = Field(
        default=False,
        description="A hundred replies at most; those that are asked for again come on top. A "
        "judge that makes no calls is audited whole.",
    )
    adjudicator: str | None = Field(
        default=None,
        description="Rater whose label decides; default: the majority of raters.",
    )
    bases: int | None = Field(
        default=None,
        ge=1,
        description="Plans taken as correct, one a case; without it 60, or 8 with --quick.",
    )
    seed_of_draw: int = Field(
        default=20_260_101, description="Seed of every sample of what is asked."
    )

    def for_judges(self, judges: Iterable[JudgeSpec]) -> AuditConfig:
        """The config itself; full in place of quick if none of the judges makes calls."""
        free = all(judge.is_static for judge in judges)
        return self.model_copy(update={"quick": self.quick and not free})

    @field_validator("protocol")
    @classmethod
    def _of_predictions(cls, name: str) -> str:
        if name == "case":
            raise ValueError(f"expected a protocol of predictions, got {name!r}")
        return name

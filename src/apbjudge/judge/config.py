"""The settings of a run of judges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from ..config import Config, Names, Option
from ..llm.limits import Limits
from .spec import JudgeSpec


class InputConfig(Config):
    """Which rows are read, and how."""

    protocol: str = Field(
        default="auto",
        description="holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency, or "
        "auto: the protocol follows from each row's split or fields.",
    )
    cases: Path | None = Field(
        default=None, description="JSONL file of cases, joined with the predictions on id."
    )
    rubric: str | None = Field(
        default=None,
        description="name@version of a shipped rubric, or a TOML file; without it each protocol "
        "has its own.",
    )
    data_root: Path | None = Field(
        default=None,
        description="Folder in which paths of pictures are looked up first; then the folder of the "
        "cases or predictions.",
    )


def _static() -> tuple[JudgeSpec, ...]:
    return (JudgeSpec(),)


class GradeConfig(Limits, InputConfig):
    """How rows are graded: by whom, within which limits, and where the results go."""

    groups: ClassVar[Mapping[str, str]] = {
        "Several judges": "panel escalate when",
        "Budget": "max_cost max_calls max_tokens max_seconds",
        "Run": "data_root overwrite cache batch shard",
    }

    judge: Annotated[tuple[JudgeSpec, ...], Option(metavar="MODEL")] = Field(
        default_factory=_static,
        description="static (no network; the default), or a litellm model such as openai/gpt-5, "
        "optionally with its address: MODEL@http://HOST/v1. Repeat it for a panel.",
    )
    by: Names = Field(
        default=(),
        description="Break results down by category, modality, stage, steps, horizon, dataset.",
    )
    out: Path | None = Field(
        default=None, description="Folder of the run; the same command continues the run in it."
    )
    panel: Literal["majority", "mean", "dawid-skene"] = Field(
        default="majority", description="How several judges decide; mean is that of their grades."
    )
    escalate: Annotated[JudgeSpec | None, Option(metavar="MODEL")] = Field(
        default=None,
        description="Stronger judge, MODEL or MODEL@ADDRESS, for items on which the first judge is "
        "uncertain.",
    )
    when: str = Field(
        default="entropy>0.5",
        description="Which items are escalated: entropy>0.5, entropy.max>0.5, entropy.E4>0.3, or "
        "share=0.2 for the most uncertain fifth.",
    )
    overwrite: bool = Field(
        default=False,
        description="Replace a run of other input or settings in --out; the same run continues in "
        "either case.",
    )
    cache: Annotated[
        bool | Path | None,
        Option("--no-cache", help="Neither read nor fill the cache of replies."),
    ] = Field(
        default=None,
        description="Whether replies are cached for later runs, or the folder for them. None "
        "caches all but those of a client of your own.",
    )
    batch: bool = Field(
        default=False,
        description="Send all calls through the provider's batch interface: cheaper, within a day.",
    )

    shard: Annotated[str | None, Option(metavar="I/N")] = Field(
        default=None,
        description="Part I of N of the rows only; rows of one case are in one part. apbjudge "
        "merge puts the folders of all parts together.",
    )

    @field_validator("judge", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        judges = [value] if isinstance(value, str | JudgeSpec) else value
        if not judges:
            raise ValueError("expected at least one, got none")
        return [JudgeSpec(model=each) if isinstance(each, str) else each for each in judges]

    @field_validator("escalate", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return JudgeSpec(model=value) if isinstance(value, str) else value

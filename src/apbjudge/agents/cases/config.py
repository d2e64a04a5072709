"""The settings of checking and building cases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from ...config import SUCCESS, Names, Numbers, Option, PartConfig, RowsConfig
from ...judge.config import JudgeSpec
from ...llm.limits import StoreConfig
from ...llm.model_spec import AsksModels
from ...records.files import log_path
from .cases import BUILT_SPLITS

SourceName = Literal["auto", "trajectories", "functions", "queries", "bfcl", "tau2"]
"""Formats of sources."""


class CheckConfig(RowsConfig, PartConfig):
    """Settings of checking cases."""

    cases: Annotated[tuple[Path, ...], Option(is_argument=True)] = Field(
        default=(),
        description="Files of cases, JSON lines or tables, or folders of build, predict or "
        "execute; all are checked as one benchmark.",
    )
    data_root: Path | None = Field(
        default=None,
        description="Folder in which paths of files are looked up first; then that of the cases.",
    )
    only: Names = Field(default=(), description="Only these checks, by name.")
    ignore: Names = Field(default=(), description="All checks but these.")
    findings: Path | None = Field(
        default=None, description="JSONL file to write, one finding per line."
    )


NOT_ASKED = ("model", "samples", "logprobs", "blind", "evidence")
"""Settings of judges that the judge of cases does not have."""


class AskConfig(AsksModels, StoreConfig):
    """Settings of the judge that is asked about claims that code can't settle."""

    spec = JudgeSpec
    asked = "ask"

    groups: ClassVar[Mapping[str, str]] = {
        "Asking": "ask votes run cache cache_kind claim take_over",
        "Budget": "max_cost max_calls max_tokens max_seconds",
    }

    ask: Annotated[JudgeSpec | None, Option(metavar="JUDGE")] = Field(
        default=None,
        description="litellm model, optionally with addresses after @, that is asked about claims "
        "that code can't decide.",
    )
    votes: int = Field(default=3, ge=1, le=99, description="Independent replies about a case.")
    run: Path | None = Field(
        default=None,
        description="Folder for the judge's run; the same command continues it. Without it "
        "everything except cached replies is asked again.",
    )


class BuildConfig(RowsConfig):
    """Settings of building cases: the source, the splits and the folder."""

    groups: ClassVar[Mapping[str, str]] = {
        "Source": "source_format map tools outcomes success any_outcome name licence data_root",
        "Cases": "n levels horizons seed_of_draw",
        "Run": "overwrite",
    }

    source: Annotated[Path, BeforeValidator(log_path), Option(is_argument=True, is_log=True)] = (
        Field(
            description="Logs of trajectories (files, packed or not, a folder, a quoted pattern, "
            "or -), or a file, table or folder with queries, tools and calls."
        )
    )
    split: Names = Field(
        description=f"Splits to build: {', '.join(BUILT_SPLITS)}, or all. Repeat it for several."
    )
    out: Path = Field(description="Folder for the cases; a new or empty one.")
    source_format: Annotated[SourceName, Option("--from")] = Field(
        default="auto", description="Format of the source; auto: it follows from the content."
    )
    tools: Path | None = Field(
        default=None,
        description="File with the tools of sources without them, as for predict.",
    )
    outcomes: Path | None = Field(
        default=None,
        description="File with the outcomes of trajectories, for logs that state none.",
    )
    success: Annotated[str, Option(metavar="SCORE")] = SUCCESS
    any_outcome: bool = Field(
        default=False,
        description="Also use trajectories that failed or whose outcome is unknown.",
    )
    name: str = Field(default="", description="Name of the data set; default: that of the file.")
    licence: str = Field(default="", description="Licence of the source, if its rows state none.")
    data_root: Path | None = Field(
        default=None,
        description="Folder to which paths of files are relative; default: that of the source.",
    )
    n: int | None = Field(
        default=None, ge=1, description="Largest number of seeds, drawn at random; default: all."
    )
    levels: Numbers = Field(
        default=(2, 4, 6, 8, 10), description="Numbers of distractors, each 1 to 50."
    )
    horizons: Annotated[Numbers, Option("--steps")] = Field(
        default=(1, 2, 3), description="Numbers of steps of step-wise cases, 1 to 3."
    )
    seed_of_draw: int = Field(default=20_260_101, ge=0, description="Random seed.")
    overwrite: bool = Field(
        default=False, description="Replace the results of an earlier build in --out."
    )

    @field_validator("split")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if names == ("all",):
            return BUILT_SPLITS
        unknown = [name for name in names if name not in BUILT_SPLITS]
        if unknown or not names:
            got = unknown[0] if unknown else "none"
            raise ValueError(f"expected some of {', '.join(BUILT_SPLITS)}, or all; got {got}")
        return tuple(name for name in BUILT_SPLITS if name in names)

    @field_validator("levels", "horizons")
    @classmethod
    def _in_range(cls, numbers: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        most = 50 if info.field_name == "levels" else 3
        if not numbers or any(not 1 <= number <= most for number in numbers):
            raise ValueError(f"expected whole numbers from 1 to {most}, got {numbers}")
        return tuple(sorted(set(numbers)))

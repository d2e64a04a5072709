"""The settings of labelling."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from ..config import Option
from ..judge.config import InputConfig


class LabelConfig(InputConfig):
    """The items that humans label, and their order."""

    groups: ClassVar[Mapping[str, str]] = {
        **InputConfig.groups,
        "Page": "port",
        "Label Studio": "export_label_studio import_label_studio",
    }

    predictions: Annotated[Path, Option(is_argument=True, is_log=True)] = Field(
        description="Predictions or a log of trajectories, as for grade; also the folder of a "
        "run of build, whose cases are labelled."
    )
    out: Path = Field(description="JSONL file of the labels; an existing one is continued.")
    rater: str | None = Field(
        default=None, description="The only rater's name; without it the page asks for a name."
    )
    order: str = Field(
        default="random",
        description="Order of the items: random, file, or a plan that plan-labels wrote.",
    )
    n: int | None = Field(default=None, ge=1, description="Items to label; without it all.")
    seed: int = Field(default=20_260_101, ge=0, description="Seed of the random order.")
    run: Path | None = Field(
        default=None,
        description="Run whose verdict is shown after the rater has saved a label.",
    )
    adjudicate: tuple[Path, ...] = Field(
        default=(),
        description="Labels of at least two raters, JSONL or CSV: only items on which they differ "
        "are shown, with their labels, and items on which all agree are copied. Repeat it for "
        "several files.",
    )
    export_label_studio: Path | None = Field(
        default=None,
        description="Folder that the items are written to as tasks of Label Studio, with the "
        "labels in --out; no page is served.",
    )
    import_label_studio: Path | None = Field(
        default=None,
        description="JSON export of Label Studio whose annotations are added to --out; no page is "
        "served.",
    )
    port: int = Field(default=0, ge=0, le=65535, description="Port on 127.0.0.1; 0 for a free one.")

    @field_validator("rater")
    @classmethod
    def _can_be_shown(cls, name: str | None) -> str | None:
        if name is not None and (
            not name.isprintable() or name != name.strip() or not 0 < len(name) <= 80
        ):
            raise ValueError(f"expected a name of 1 to 80 printable characters, got {name!r}")
        return name

    @model_validator(mode="after")
    def _adjudication_is_blind(self) -> LabelConfig:
        if self.adjudicate and self.run is not None:
            raise ValueError(
                "--adjudicate: expected no --run with it, since adjudication is blind to the "
                f"judge; got {str(self.run)!r}"
            )
        return self

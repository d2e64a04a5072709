"""The settings of a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from ..calibration.config import LabelDesign
from ..config import Names, Option
from ..statistics.config import IntervalConfig

CHANGES = "changes"
SETTINGS, MODELS = "judge-settings", "tested-models"
PaperName = Literal["apb", "planbench-xl", "slate"]


class ComparedRuns(IntervalConfig):
    """Settings and labels for the tables of runs."""

    labels: tuple[Path, ...] = Field(
        default=(), description="Human labels, JSONL or CSV; may be given several times."
    )
    adjudicator: str | None = Field(
        default=None,
        description="Rater whose label decides; default: the majority of raters.",
    )
    design: LabelDesign = None
    group_steps: Annotated[str | None, Option(metavar="N+")] = Field(
        default=None,
        pattern=r"^[1-9][0-9]{0,8}\+$",
        description="Put whole trajectories whose shortest path has N or more steps into one "
        "group, such as 8+, in planbench-steps and its figure.",
    )
    refined: Annotated[tuple[tuple[str, Path], ...], Option(metavar="METHOD=RUN")] = Field(
        default=(),
        description="A run on refined responses, such as Self_R+=runs/x; may be given several "
        "times, also for the runs of one method.",
    )
    names: Path | None = Field(
        default=None,
        description="Display names of tested models in tables, figures and page: a JSON object, a "
        "TOML table, or CSV with the columns tested_model and name.",
    )

    @field_validator("refined", mode="before")
    @classmethod
    def _method_and_run(cls, value: Any) -> Any:
        return [_pair(each) if isinstance(each, str) else each for each in value]


class ReportConfig(ComparedRuns):
    """Runs and contents of a report."""

    groups: ClassVar[Mapping[str, str]] = {
        "Intervals": IntervalConfig.interval_options,
        "Items on the page": "predictions cases pictures data_root",
    }

    runs: Annotated[tuple[Path, ...], Option(is_argument=True)] = Field(
        description="Folders of runs, or their judgements.jsonl; for the table tested-models also "
        "runs of predict, simulate and others."
    )
    tables: Annotated[Names, Option("--table")] = Field(
        default=(),
        description="Only these: corrected, overall, extraneous, extraneous-average, "
        "extraneous-levels-holistic, extraneous-levels-step-wise, refinement, refinement-changes, "
        "refinement-stages, refinement-oracle, samples, efficiency, judges, diversity, "
        "self-evaluation, steps, modality, horizon, stage; or changes, from the first run to the "
        "second; or judge-settings and tested-models, from the manifests of runs.",
    )
    predictions: tuple[Path, ...] = Field(
        default=(),
        description="Files of predictions, or logs, if they moved since they were judged, or if "
        "somebody else made the run.",
    )
    cases: Path | None = Field(
        default=None, description="JSONL file of cases, joined with the predictions on id."
    )
    pictures: bool = Field(default=False, description="Put pictures of the cases into the page.")
    data_root: Path | None = Field(
        default=None,
        description="Folder in which paths of pictures are looked up before those of the runs.",
    )

    @property
    def input_paths(self) -> tuple[Path | None, ...]:
        """Paths of inputs that the command names."""
        return (*self.predictions, self.cases, self.data_root)


def _pair(text: str) -> tuple[str, str]:
    method, _, path = (part.strip() for part in text.partition("="))
    if not method or not path:
        raise ValueError(f"expected METHOD=RUN, such as Self_R+=runs/x, got {text!r}")
    return method, path


class ReproduceConfig(ComparedRuns):
    """A paper, and the folders with the data for its tables and figures."""

    groups: ClassVar[Mapping[str, str]] = {"Intervals": IntervalConfig.interval_options}

    paper: Annotated[PaperName, Option(is_argument=True)] = Field(
        description="The paper: apb, planbench-xl or slate."
    )
    folders: Annotated[tuple[Path, ...], Option(is_argument=True)] = Field(
        default=(),
        description="Folders of runs of grade, predict, simulate, branch or execute, files of "
        "judgements, and a benchmark's data; without any, what each table needs is listed.",
    )
    only: Names = Field(
        default=(), description="Only these tables and figures of the paper, such as 'Table 1'."
    )

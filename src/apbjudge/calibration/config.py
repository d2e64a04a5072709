"""The settings of calibration, comparison and label plans."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ..config import Config, Names, Option
from ..statistics.config import SEED, IntervalConfig

DESIGNS = ("random", "other-population", "hand-picked")
LABEL_ROLES = ("item", "tested_model", "verdict", "score", "class", "rater")
MAX_LEVEL = 0.999999
"""Quantiles of levels nearer to 1 overflow."""

Adjudicator = Annotated[
    str | None,
    Field(description="Rater whose label decides; default: the majority of raters."),
]
Cluster = Annotated[
    str,
    Field(
        description="Field with equal values in rows that were sampled together, or none.",
    ),
]
Column = Annotated[str | None, Option(metavar="COLUMN")]
LabelDesign = Annotated[
    str | None,
    Field(
        description="How the labelled items were sampled: random, other-population, hand-picked, "
        "or a file of plan-labels. Rates of the whole run are then corrected.",
    ),
]
Level = Annotated[float, Field(gt=0, le=MAX_LEVEL, description="Confidence level of intervals.")]


class CalibrationConfig(IntervalConfig):
    """The settings of ``calibrate``, which compares judges with human labels."""

    groups: ClassVar[Mapping[str, str]] = {
        "Judgements of another tool": "item tested_model verdict score class_column scale judges "
        "raters label_columns pairwise",
        "Rates of a whole population": "design target",
        "Intervals": f"level {IntervalConfig.interval_options}",
    }

    judgements: Annotated[tuple[Path, ...], Option(is_argument=True)] = Field(
        description="Files of judgements or folders of runs, one a judge."
    )
    labels: Annotated[Path, Option(is_argument=True)] = Field(
        description="Human labels, JSONL or CSV."
    )
    by: Names = Field(
        default=(),
        description="Break down by tested_model, dataset, category, protocol or another field.",
    )
    cluster: Cluster = "case_id"
    unscored: Literal["exclude", "wrong", "bounds"] = Field(
        default="exclude", description="What unscored items count as."
    )
    adjudicator: Adjudicator = None
    unsure: Literal["include", "exclude"] = Field(
        default="include", description="Whether labels marked unsure count like any other."
    )
    own: Annotated[str | None, Option("--self")] = Field(
        default=None,
        description="Tested model that is the judge itself; default: the one with the judge's "
        "name.",
    )
    epsilon: float = Field(
        default=0.2,
        ge=0,
        lt=1,
        description="Allowance for the judge in the alternative annotator test.",
    )
    design: LabelDesign = None
    target: Path | None = Field(
        default=None,
        description="Run whose rates are corrected with other-population; default: the rows "
        "without label.",
    )
    item: Column = Field(default=None, description="Column that names the item.")
    tested_model: Column = Field(
        default=None, description="Column that names the tested model, if there are several."
    )
    verdict: Column = Field(default=None, description="Column with the verdict, yes or no.")
    score: Column = Field(default=None, description="Column with the score; it needs --scale.")
    class_column: Annotated[str | None, Option("--class", metavar="COLUMN")] = Field(
        default=None, description="Column with the class; it needs --scale."
    )
    scale: str | None = Field(
        default=None,
        description="Scale of scores or classes: 1..5 (whole numbers), 0..1 (any number), "
        "'bad<ok<good' (ordered levels), refund,exchange,other (classes) or yes/no. A bar adds "
        "spellings of a name: 'tie|draw'.",
    )
    judges: Names = Field(
        default=(), description="Columns of the judgements, if each judge has its own."
    )
    raters: Names = Field(
        default=(),
        description="Columns of the labels, if each rater has their own; for a run of apbjudge "
        "with yes or no in each.",
    )
    label_columns: Names = Field(
        default=(),
        description="Columns of the labels, if they have other names: "
        "item=ticket,verdict=ok,score=stars,class=topic,rater=who,tested_model=system.",
    )
    pairwise: bool = Field(
        default=False,
        description="Each row says which of two answers is better: the first, the second, or a "
        "tie.",
    )
    level: Level = 0.95

    @model_validator(mode="after")
    def _target_has_its_design(self) -> CalibrationConfig:
        if self.target is not None and self.design != "other-population":
            got = "none" if self.design is None else repr(self.design)
            raise ValueError(f"--target: expected --design other-population with it, got {got}")
        return self

    @model_validator(mode="after")
    def _columns_have_roles(self) -> CalibrationConfig:
        for entry in self.label_columns:
            role, _, column = entry.partition("=")
            if role not in LABEL_ROLES or not column:
                known = ", ".join(f"{name}=COLUMN" for name in LABEL_ROLES)
                raise ValueError(f"--label-columns: expected some of {known}, got {entry!r}")
        return self

    @property
    def columns(self) -> dict[str, str | None]:
        """Columns of the judgements that are stated, by role."""
        return {
            "item": self.item,
            "tested_model": self.tested_model,
            "verdict": self.verdict,
            "score": self.score,
            "class": self.class_column,
        }


class CompareConfig(IntervalConfig):
    """The settings of ``compare``, which compares two runs on the same items."""

    groups: ClassVar[Mapping[str, str]] = {"Intervals": f"level {IntervalConfig.interval_options}"}

    run_a: Annotated[Path, Option(is_argument=True)] = Field(
        description="Folder of a run, its judgements.jsonl, or a file of another tool's judgements."
    )
    run_b: Annotated[Path, Option(is_argument=True)] = Field(
        description="Another run on the same items; the same run for two of its tested models."
    )
    labels: Path | None = Field(
        default=None,
        description="Human labels, JSONL or CSV; agreement with them is compared too.",
    )
    adjudicator: Adjudicator = None
    tested_models: Annotated[tuple[str, ...], Option("--tested-model")] = Field(
        default=(),
        description="Only rows of this tested model. Two of them: rows of the first in RUN_A "
        "against rows of the second in RUN_B.",
    )
    of_settings: Annotated[tuple[str, ...], Option("--setting")] = Field(
        default=(),
        description="Only rows of trajectories in this setting, such as react; two of them as "
        "with --tested-model.",
    )
    cluster: Cluster = "case_id"
    judges: Names = Field(
        default=(),
        description="Judge, or another tool's metric, in files that hold several; two names: one "
        "for RUN_A, one for RUN_B.",
    )
    primary: Names = Field(
        default=(),
        description="Metrics chosen before seeing the runs, such as CR,F1: their p-values are "
        "adjusted by Holm's method, all others by Benjamini and Hochberg's.",
    )
    level: Level = 0.95


class LabelPlanConfig(Config):
    """The settings of ``plan_labels``, which chooses rows of a run to label next."""

    judgements: Annotated[Path, Option(is_argument=True, metavar="RUN")] = Field(
        description="Folder of a run, or its judgements.jsonl."
    )
    labels: Path | None = Field(
        default=None, description="Labels that exist already, JSONL or CSV."
    )
    adjudicator: Adjudicator = None
    n: int = Field(default=100, ge=1, description="Labels to plan.")
    half_width: float = Field(
        default=0.03, gt=0, lt=0.5, description="Half the width that a 95 % interval may have."
    )
    by: Names = Field(
        default=("tested_model",),
        description="Fields that strata are made of, such as tested_model,dataset, or none.",
    )
    anticipated: float | None = Field(
        default=None,
        gt=0,
        le=0.5,
        description="Share of verdicts that humans are expected to disagree with; without it the "
        "share in the labels, or 0.15.",
    )
    already_random: bool = Field(
        default=False, description="The existing labels were sampled by such a plan."
    )
    cluster: Cluster = "case_id"
    seed: int = Field(default=SEED, ge=0, description="Seed of the sample.")
    out: Path | None = Field(default=None, description="File for the plan.")

    @model_validator(mode="after")
    def _random_labels_exist(self) -> LabelPlanConfig:
        if self.already_random and self.labels is None:
            raise ValueError("--already-random: expected --labels too, got none")
        return self

"""The settings of a run of ``execute``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator, model_validator

from ....config import PartConfig
from ....llm.limits import RunsConfig
from ...prediction.config import Mode as Review
from ...prediction.config import Models, OneModel, ReviewConfig, TestedConfig
from ..config import EpisodesConfig
from .sandbox import Isolation

Mode = Literal["direct", "plan-first", "refine", "bound", "steps", "gold", "null"]
MODES: tuple[Mode, ...] = get_args(Mode)
PLANNED: tuple[Mode, ...] = ("plan-first", "refine", "bound")
"""Modes that carry out a plan."""
UNASKED: tuple[Mode, ...] = ("bound", "steps", "gold", "null")
"""Modes in which no model acts."""


class ExecuteConfig(EpisodesConfig, ReviewConfig, Isolation, PartConfig):
    """Settings of carrying out tasks: the models, and the limits of each episode."""

    others = ("critic", "user_model")
    groups: ClassVar[Mapping[str, str]] = {
        "Plans": "plans cases prompts review guide critic",
        "Episodes": "first tasks trials max_turns max_episode_tokens max_episode_cost",
        "Isolation": "sandbox python call_seconds cpu_seconds memory_mb",
        **TestedConfig.groups,
        "Run": f"{RunsConfig.groups['Run']} shard",
    }

    model: Models = Field(
        default=(),
        description="litellm model with provider, optionally with its addresses: "
        "MODEL@http://HOST/v1. Repeat it for several tested models.",
    )
    mode: tuple[Mode, ...] = Field(
        default=("direct",),
        description="direct: without a plan; plan-first: with a plan that the model drafts; "
        "refine: with that draft after a review; bound: the plan itself, without a model that "
        "acts; steps: step-wise predictions (--plans), each at the state of the messages before "
        "it; gold: the benchmark's own solution; null: nothing is done.",
    )
    user_model: OneModel = Field(
        default=None,
        description="Plays the user where the benchmark has one, MODEL or MODEL@ADDRESS.",
    )
    plans: Path | None = Field(
        default=None,
        description="Plans to execute instead of drafts written here: a run of predict or refine, "
        "or a JSONL file of predictions on the benchmark's cases.",
    )
    cases: Path | None = Field(
        default=None,
        description="With --mode steps: the cases that the predictions are joined with; without it "
        "those that a run of predict names.",
    )
    prompts: str = Field(
        default="neutral@1", description="Prompt set of drafts and steps; as for predict."
    )
    review: Review = Field(default="self", description="Reviewer of drafts; as --mode of refine.")
    max_turns: int | None = Field(
        default=60, ge=1, description="Replies in an episode at most, those of the user included."
    )

    @field_validator("mode", mode="before")
    @classmethod
    def _each_mode(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else tuple(dict.fromkeys(value))

    @model_validator(mode="after")
    def _fits(self) -> ExecuteConfig:
        asked = [mode for mode in self.mode if mode not in UNASKED]
        if not self.mode:
            raise ValueError("--mode: expected at least one, got none")
        if asked and not self.model:
            raise ValueError(f"--model: expected a tested model with --mode {asked[0]}, got none")
        if "bound" in self.mode and self.plans is None and not self.model:
            raise ValueError("--mode bound: expected --plans, or --model that drafts them")
        if "steps" in self.mode and (self.mode != ("steps",) or self.plans is None):
            raise ValueError(
                "--mode steps: expected --plans with step-wise predictions, and no other mode"
            )
        if "steps" in self.mode and (self.tasks or self.first):
            raise ValueError("--first, --tasks: expected none with --mode steps, which takes plans")
        if self.cases is not None and "steps" not in self.mode:
            raise ValueError("--cases: expected --mode steps; other modes take tasks")
        if "refine" in self.mode and self.plans is not None:
            raise ValueError("--plans: expected modes that take plans as they are, got refine")
        if "refine" in self.mode and self.shard is not None:
            raise ValueError(
                "--shard: expected modes other than refine, whose plans are rows of a part's own "
                "file: refine the merged drafts, and take them with --plans"
            )
        if "refine" in self.mode and (self.review in ("critic", "judge")) != (
            self.critic is not None
        ):
            expected = "none" if self.critic is not None else "a model"
            raise ValueError(f"--critic: expected {expected} with --review {self.review}")
        return self

"""Settings of PlanBench-XL's environment, its paths and its block plans."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, model_validator

from ....config import Config, Grounding, Names, Option
from ...prediction.config import OneModel, WritingConfig

Scope = Literal["catalogue", "complete", "exhaustive"]
Setting = Literal[
    "default", "mixed", "explicit", "implicit", "misleading", "longest", "shortest", "base"
]


TextKind = Literal["domain", "filters", "descriptions", "queries"]
TEXT_KINDS: tuple[TextKind, ...] = get_args(TextKind)
"""Kinds of texts that a model may write for a generated benchmark."""


class DataConfig(Config):
    """Folder of the benchmark's data."""

    data: Annotated[Path, Option(is_argument=True)] = Field(
        description="Folder of the benchmark's data (queries.json, …)."
    )


class PathsConfig(DataConfig):
    """Paths to enumerate."""

    scope: Scope = Field(
        default="catalogue",
        description="catalogue: as the authors' catalogue was made, from tools with one or two "
        "inputs that are no composites; complete: all paths of the same tools, also those that "
        "the catalogue lacks; exhaustive: of all executable tools.",
    )
    task: Names = Field(default=(), description="Ids of tasks; default: all.")
    query: Names = Field(default=(), description="Tasks of these queries, by id.")
    longest: int | None = Field(
        default=None,
        ge=1,
        description="Largest number of tools in a path; default: no limit; for exhaustive: the "
        "length of the task's longest catalogued path.",
    )


class BlockPlanConfig(DataConfig):
    """Tools to block."""

    groups: ClassVar[Mapping[str, str]] = {"Search": "max_tools max_candidates seed"}

    setting: Setting = Field(
        default="mixed",
        description="default: nothing is blocked; mixed: one path remains, and all three kinds of "
        "blockers replace a blocked tool; explicit, implicit, misleading: one path remains, one "
        "kind; longest, shortest: as mixed, with the longest or shortest remaining paths; base: "
        "0.6 of the paths remain, kinds at random.",
    )
    keep_paths: int | None = Field(
        default=None, ge=1, description="Number of remaining paths, instead of the setting's."
    )
    keep_ratio: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of the paths that remain, in place of a number; what the authors' "
        "files call target_remaining_ratio.",
    )
    block_ratio: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of the paths that are removed (the paper's block ratio): 0.2 is "
        "--keep-ratio 0.8.",
    )
    max_tools: int = Field(
        default=4, ge=1, description="Largest number of blocked tools in a task."
    )
    max_candidates: int | None = Field(
        default=None,
        ge=1,
        description="Largest number of tool sets to try in a task; default: 20000; for base 5000.",
    )
    seed: int = Field(default=42, description="Seed, together with the id of the task.")
    out: Path | None = Field(default=None, description="File for the plan.")

    @model_validator(mode="after")
    def _one_amount(self) -> BlockPlanConfig:
        amounts = ("keep_paths", "keep_ratio", "block_ratio")
        chosen = [name for name in amounts if getattr(self, name) is not None]
        if len(chosen) > 1:
            options = ", ".join(f"--{name.replace('_', '-')}" for name in chosen)
            raise ValueError(f"{options}: expected one of them")
        if chosen and self.setting == "default":
            raise ValueError(f"--{chosen[0].replace('_', '-')}: expected a --setting that blocks")
        return self


class DataCheckConfig(DataConfig):
    """Data to check."""

    shortest: int = Field(
        default=5, ge=1, description="Smallest length of a task's shortest path, in tools."
    )


class GenerateConfig(Config):
    """A benchmark to generate."""

    groups: ClassVar[Mapping[str, str]] = {"Size": "tools records tasks shortest longest"}

    out: Path = Field(description="Folder for the benchmark's files.")
    domain: str = Field(
        default="freight",
        description="Domain: clinic, freight, or a TOML or JSON file with datatypes, their values, "
        "and what leads to what.",
    )
    database: Path | None = Field(
        default=None,
        description="File of records in the format of database.json; default: they are drawn.",
    )
    seed: int = Field(default=0, description="Random seed; if set, it is sent to the model too.")
    tools: int = Field(
        default=120, ge=10, description="Executable tools; each gets 5 noisy ones and 3 blockers."
    )
    records: int = Field(default=100, ge=2, description="Records of the database.")
    tasks: int = Field(default=60, ge=1, description="Tasks, each with one query.")
    shortest: int = Field(
        default=5, ge=1, description="Smallest length of a task's shortest path, in tools."
    )
    longest: int = Field(
        default=9, ge=1, description="Largest length of a task's shortest path, in tools."
    )
    overwrite: bool = Field(default=False, description="Replace a generated benchmark in --out.")


class TextsConfig(WritingConfig):
    """A model that writes for a generated benchmark, its budget, and existing answers."""

    texts = TEXT_KINDS[1:]
    groups: ClassVar[Mapping[str, str]] = {
        "Model: writing": "theme write repairs generate_prompts written",
        **WritingConfig.groups,
    }

    model: OneModel = Field(
        default=None,
        description="Model (MODEL or MODEL@ADDRESS) that judges candidates and writes texts; "
        "without it rules, templates and word lists do it.",
    )
    theme: str = Field(
        default="", description="Subject of a domain that the model writes, in place of --domain."
    )
    write: Names = Field(
        default=(),
        description="What else the model writes: filters (possible look-ups), descriptions (of "
        "tools), queries; default: all.",
    )
    generate_prompts: str = Field(
        default="generating@1", description="generating@1, or a TOML file."
    )
    written: tuple[Path, ...] = Field(
        default=(),
        description="File of answers, such as written.jsonl of another benchmark; their texts are "
        "not requested again.",
    )


class EpisodeConfig(Config):
    """Settings of an episode."""

    groups: ClassVar[Mapping[str, str]] = {"Lists": "max_listed domain seed"}

    block_plan: Path | None = Field(
        default=None, description="File of planbench block-plan; without it nothing is blocked."
    )
    tasks: Literal["queries", "single-step"] = Field(
        default="queries",
        description="queries: those of the data; single-step: one for each executable tool, whose "
        "inputs are held and whose output is asked for.",
    )
    grounding: Grounding = Field(
        default="paper",
        description="Right answers that count: paper: the target was obtained from an executable "
        "tool; released: and the answer has no value of a noisy tool or blocker, as in the "
        "authors' code; answer-only: all.",
    )
    explore: int = Field(
        default=0,
        ge=0,
        le=5,
        description="Wrong answers that do not end an episode: the agent is asked to go on. It "
        "uses the right answer, so it is for analysis only.",
    )
    max_turns: int = Field(default=100, ge=1, description="Replies of the model in an episode.")
    max_faults: int = Field(
        default=3,
        ge=1,
        description="Faults of one kind in a row that end an episode: no valid tag, an unusable "
        "search, a rejected call.",
    )
    noisy: Annotated[bool, Option("--no-noisy", help="Offer no noisy tools.")] = Field(
        default=True, description="Searches also return noisy tools."
    )
    max_listed: int = Field(
        default=30, ge=1, description="Tools in a list up to which noisy ones are added."
    )
    background: str = Field(
        default="", description="Description of the domain for the agent, as text."
    )
    prompts: Path | None = Field(
        default=None,
        description="Folder with the authors' prompts, used as they are in place of ours.",
    )
    runtime_texts: Path | None = Field(
        default=None,
        description="TOML file with the texts that the authors' runtime has in its code; goes with "
        "prompts.",
    )
    domain: str = Field(
        default="retail", description="Name of the domain, which the seeds of lists depend on."
    )
    seed: int = Field(default=42, description="Seed of the order in lists.")

    @model_validator(mode="after")
    def _prompts_are_complete(self) -> EpisodeConfig:
        if (self.prompts is None) != (self.runtime_texts is None):
            raise ValueError("--prompts: expected together with runtime_texts")
        if self.prompts is not None and self.background:
            raise ValueError("--background: expected none with prompts, which have their own")
        return self

    @model_validator(mode="after")
    def _plan_is_of_the_tasks(self) -> EpisodeConfig:
        if self.block_plan is not None and self.tasks != "queries":
            raise ValueError(f"--block-plan: blocks tools of queries, not of {self.tasks} tasks")
        return self

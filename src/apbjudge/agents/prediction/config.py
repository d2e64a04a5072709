"""The settings of tested models, and of a run that asks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ...config import Names, Option, PartConfig, RowsConfig
from ...errors import OptionError
from ...judge.config import ItemConfig
from ...llm.limits import RunsConfig, StoreConfig
from ...llm.model_spec import AsksModels, ModelSpec

PRESETS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "apb-2026": {
        "gpt-4o": {"temperature": 0.0},
        "gpt-5": {"temperature": None},
        "claude-sonnet-4-5-20250929": {"temperature": 0.0},
        "gemini-2.5-flash": {
            "temperature": 0.0,
            "params": {"thinking": {"type": "enabled", "budget_tokens": 0}},
        },
        "gemini-2.5-pro": {"temperature": 0.0},
        "gemini-3-pro-preview": {"temperature": 0.0, "params": {"reasoning_effort": "high"}},
        "internvl3.5-38b": {"temperature": 0.0},
        "internvl3.5-30b-a3b": {"temperature": 0.0},
        "internvl3.5-241b-a28b": {"temperature": 0.0},
        "qwen3-vl-32b-instruct": {"temperature": 0.0},
        "qwen3-vl-30b-a3b-instruct": {"temperature": 0.0},
        "qwen3-vl-235b-a22b-instruct": {"temperature": 0.0},
    }
}
"""Sampling settings by preset and the last part of a model's name, in small letters.

apb-2026: Agent Planning Benchmark, arXiv:2606.04874, Table 19, in litellm's terms: a thinking
budget of 0, and Gemini's thinking level as reasoning effort. The paper states no token limit.
"""


class TestedModelSpec(ModelSpec):
    """A tested model and how it is asked: temperature 0, or 1 if there are several samples."""

    __test__: ClassVar[bool] = False  # else pytest collects it as a class of tests

    groups: ClassVar[Mapping[str, str]] = {
        "Model: sampling": ModelSpec.groups["Sampling"],
        "Model: files": "vision max_images max_image_bytes max_text_bytes frames",
        "Endpoint": ModelSpec.groups["Endpoint"],
    }

    seed: int | None = Field(
        default=None,
        ge=-(2**63),
        lt=2**63,
        description="Sampling seed; sample k sends seed + k - 1; default sends none.",
    )
    max_reply_tokens: int = Field(
        default=16_384,
        ge=16,
        le=2**24,
        description="Limit of a reply, in tokens; a reply cut off there is not asked for again.",
    )
    timeout_s: float = Field(
        default=600.0, gt=0, description="Seconds after which a call counts as hung."
    )
    deadline_s: float = Field(
        default=3600.0,
        gt=0,
        description="Seconds after a case's first attempt within which the last one begins.",
    )
    max_images: int | None = Field(
        default=None,
        ge=1,
        description="Pictures that a case may have at most; one with more is a bad case.",
    )

    @property
    def asked(self) -> dict[str, Any]:
        """Every setting that may change a reply, besides the messages."""
        return {
            "model": self.model,
            "max_tokens": self.max_reply_tokens,
            "settings": self.sampling(),
        }


Mode = Literal["self", "critic", "static", "judge"]
Guide = Literal["codes", "none"]


class CasesConfig(RowsConfig):
    """Settings of reading cases and of showing them to tested models."""

    tools: Path | None = Field(
        default=None,
        description="File with the tools of cases that state none: a JSON list, or an OpenAPI 3 "
        "description (JSON, YAML), whose operations are tools.",
    )
    prompts: str = Field(
        default="neutral@1",
        description="neutral@1, apb@1 (shows whether a case is solvable), bound@1 (plans that "
        "code can run), or a TOML file.",
    )
    data_root: Path | None = Field(
        default=None,
        description="Folder in which paths of files are looked up first; then that of the cases.",
    )


class PromptConfig(ItemConfig, CasesConfig):
    """Settings that choose a prompt."""

    groups: ClassVar[Mapping[str, str]] = {"Rows": "map data_split tools"}

    predict: bool = Field(
        default=False, description="Print the prompt of a tested model for the case."
    )


def _specs(value: Any) -> list[TestedModelSpec]:
    """One or several models, each a name, a TestedModelSpec or its fields."""
    is_list = isinstance(value, list | tuple)
    models: list[Any] = list(cast("Sequence[Any]", value)) if is_list else [value]
    if invalid := [each for each in models if not isinstance(each, str | TestedModelSpec | dict)]:
        raise ValueError(f"expected a model's name or a TestedModelSpec, got {invalid[0]!r}")
    models = [{"model": each} if isinstance(each, str) else each for each in models]
    specs = [
        each if isinstance(each, TestedModelSpec) else TestedModelSpec(**each) for each in models
    ]
    names = [spec.model for spec in specs]
    if again := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"expected each model once, got {again} again")
    return specs


Models = Annotated[tuple[TestedModelSpec, ...], BeforeValidator(_specs), Option(metavar="MODEL")]
"""Tested models, each by its name, as a TestedModelSpec or by its fields."""
OneModel = Annotated[TestedModelSpec | None, Option(metavar="MODEL")]
"""A further model, or none."""


class TestedConfig(AsksModels, RunsConfig):
    """Settings of a run that asks tested models."""

    spec = TestedModelSpec
    groups: ClassVar[Mapping[str, str]] = {
        "Budget": "max_cost max_calls max_tokens max_seconds",
        "Run": RunsConfig.groups["Run"],
    }

    model: Models = Field(
        description="litellm model with provider, optionally with its addresses: "
        "MODEL@http://HOST/v1. Repeat it for several tested models.",
    )

    @field_validator("model")
    @classmethod
    def _one_or_more(cls, specs: tuple[TestedModelSpec, ...]) -> tuple[TestedModelSpec, ...]:
        if not specs and cls.model_fields["model"].is_required():
            raise ValueError("expected at least one, got none")
        return specs


OF_FILES = tuple(TestedModelSpec.groups["Model: files"].split())
"""Settings that a model which writes texts does not have, since it is shown no files."""


class WritingConfig(AsksModels, StoreConfig):
    """A model that writes texts which code checks, and its budget.

    Attributes:
        texts: The kinds of texts.
    """

    spec = TestedModelSpec
    texts: ClassVar[Sequence[str]] = ()
    groups = StoreConfig.groups

    model: OneModel = None
    write: Names = ()
    repairs: int = Field(
        default=2,
        ge=0,
        le=20,
        description="How often the model is asked again, with the broken rules, for a text that "
        "breaks one.",
    )

    @field_validator("write")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in names if name not in cls.texts]:
            raise ValueError(f"expected some of {', '.join(cls.texts)}, got {unknown[0]!r}")
        return names


class ReviewConfig(TestedConfig):
    """Settings of reviews of drafts."""

    others = ("critic",)

    guide: Guide = Field(
        default="codes", description="Guide of a model's review: the six error codes, or none."
    )
    critic: OneModel = Field(
        default=None, description="The reviewing model, MODEL or MODEL@ADDRESS."
    )


class PredictConfig(TestedConfig, PartConfig, CasesConfig):
    """Settings of a run of ``predict``."""

    groups: ClassVar[Mapping[str, str]] = {
        **CasesConfig.groups,
        **TestedConfig.groups,
        "Run": f"data_root {RunsConfig.groups['Run']} shard batch full",
    }

    preset: str | None = Field(
        default=None,
        description="apb-2026: sampling settings as in the benchmark's paper, for its models.",
    )
    samples: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Predictions per case and model; with several the temperature is 1.",
    )
    batch: bool = Field(
        default=False,
        description="Send all calls through the provider's batch interface: cheaper, within a day.",
    )
    full: bool = Field(
        default=False,
        description="Write each prediction with all fields of its case, to be graded without "
        "--cases.",
    )

    @property
    def specs(self) -> tuple[TestedModelSpec, ...]:
        """The models with the settings of the preset; settings made by hand stay.

        Raises:
            OptionError: If the preset does not know a model, or samples would be equal.
        """
        specs = self.model
        if self.preset is not None:
            specs = tuple(with_preset(spec, self.preset) for spec in specs)
        return specs if self.samples == 1 else sampling(specs, "--samples")


class CheckedModel(CasesConfig):
    """The tested models that ``doctor`` checks in place of a judge."""

    model: Annotated[tuple[str, ...], Option(metavar="MODEL")] = Field(
        default=(),
        description="Check this tested model, with the requests of predict, instead of a judge.",
    )


class ExportedModel(PredictConfig):
    """The tested model of ``batch export``, in place of a judge."""

    model: Annotated[tuple[TestedModelSpec, ...], Option(metavar="MODEL")] = Field(
        default=(),
        description="Tested model (MODEL or MODEL@ADDRESS) whose requests are written; default: "
        "the requests of --judge.",
    )


def sampling(specs: Sequence[TestedModelSpec], option: str) -> tuple[TestedModelSpec, ...]:
    """Models that answer the same prompt several times: at temperature 1 if none is set.

    Raises:
        OptionError: If 0 was set by hand.
    """
    if any(spec.temperature == 0 and "temperature" in spec.model_fields_set for spec in specs):
        raise OptionError(f"{option}: expected --temperature above 0, got 0")
    return tuple(
        spec.model_copy(update={"temperature": 1.0}) if spec.temperature == 0 else spec
        for spec in specs
    )


def with_preset(spec: TestedModelSpec, name: str) -> TestedModelSpec:
    """A model with the settings of a preset, except for settings that it already has.

    Raises:
        OptionError: If there is no such preset, or it does not know the model.
    """
    if name not in PRESETS:
        raise OptionError(f"--preset: expected one of {', '.join(PRESETS)}, got {name!r}")
    known = PRESETS[name]
    model = spec.model.rpartition("/")[2].lower().replace("_", ".")
    if model not in known:
        raise OptionError(f"--preset {name}: expected one of {', '.join(known)}, got {spec.model}")
    return spec.model_copy(
        update={n: v for n, v in known[model].items() if n not in spec.model_fields_set}
    )


class RefineConfig(ReviewConfig, PartConfig):
    """Settings for reviewing drafts, which their own tested models rewrite."""

    groups: ClassVar[Mapping[str, str]] = {
        **TestedConfig.groups,
        "Run": f"data_root {RunsConfig.groups['Run']}",
    }

    mode: Mode = Field(
        description="Reviewer: self, the tested model; critic, --critic; static, rules alone, "
        "with what the model could see; judge, --critic as a blind judge.",
    )
    rounds: int = Field(
        default=1,
        ge=1,
        le=20,
        description="Reviews at most; they end when a review keeps the answer, or it comes back "
        "unchanged.",
    )
    with_reference: bool = Field(
        default=False,
        description="Show the judge the reference and the case's condition: an oracle, whose "
        "results are reported separately.",
    )
    cases: Path | None = Field(
        default=None,
        description="JSONL file of the cases; without it that of the run, or the drafts' own rows.",
    )
    model: Models = Field(
        default=(),
        description="Tested models with their addresses, as for predict; without it as the run "
        "asked them. A draft's model may be named without provider.",
    )
    prompts: str | None = Field(
        default=None, description="Prompt set of the drafts; without it that of the run."
    )
    review_prompts: str = Field(
        default="ablate@1",
        description="ablate@1, whose texts with and without codes differ only in the codes; "
        "apb@1, close to the paper; or a TOML file.",
    )
    data_root: Path | None = Field(
        default=None,
        description="Folder in which paths of files are looked up first, then that of the cases; "
        "without it that of the run.",
    )

    @model_validator(mode="after")
    def _fits(self) -> RefineConfig:
        needs_critic = self.mode in ("critic", "judge")
        if needs_critic != (self.critic is not None):
            expected = "a model" if needs_critic else "none"
            raise ValueError(f"--critic: expected {expected} with --mode {self.mode}")
        if self.with_reference and self.mode != "judge":
            raise ValueError(f"--with-reference: expected --mode judge, got {self.mode}")
        return self

    @property
    def method(self) -> str:
        """Name of the method in rows and tables, such as ``critic+``."""
        if self.mode in ("static", "judge"):
            return "oracle" if self.with_reference else self.mode
        return self.mode + ("+" if self.guide == "codes" else "-")

"""The settings of judges and of a run of judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import Field, field_validator, model_validator

from ..config import (
    ACCEPT_LOSS,
    STATIC,
    SUCCESS,
    Config,
    Grounding,
    Names,
    Option,
    PartConfig,
    RowsConfig,
    Share,
)
from ..llm.limits import RunsConfig
from ..llm.model_spec import ADDRESSES, AsksModels, ModelSpec
from ..statistics.config import SEED, IntervalConfig

_SCORING = (
    "model temperature seed max_reply_tokens max_reasks samples logprobs params blind evidence "
    "images vision max_images max_image_bytes max_text_bytes frames"
).split()


class JudgeSpec(ModelSpec):
    """A judge: the settings of its model and those of judging.

    ``temperature`` is 0 unless there are samples, 1 where there are. A reply that is truncated at
    ``max_reply_tokens`` is requested again with four times as many.
    """

    groups: ClassVar[Mapping[str, str]] = {
        "Several replies": "samples logprobs",
        "Judge: sampling": "temperature seed max_reply_tokens max_reasks params",
        "Judge: files": "vision max_images max_image_bytes max_text_bytes frames require_files",
        "Endpoint": f"{ModelSpec.groups['Endpoint']} lead",
    }

    model: str = Field(default=STATIC, description="static, or a litellm model name with provider.")
    max_reasks: int = Field(
        default=2,
        ge=0,
        le=20,
        description="How often the judge is asked again after a reply that is empty, malformed, "
        "off the scale, contradictory or cut off; refusals are not repeated.",
    )
    samples: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Independent replies per item; the majority decides.",
    )
    images: Annotated[bool, Option(help="Show no pictures.")] = Field(
        default=True, description="Show pictures to models that can see."
    )
    max_images: int = Field(
        default=16,
        ge=1,
        description="Largest number of pictures; longer lists of frames are sampled evenly.",
    )
    require_files: bool = Field(
        default=False,
        description="Don't judge a row with a file that can't be shown to the judge: a video, a "
        "PDF, a text that is too long, a picture for a model that can't see.",
    )
    logprobs: bool = Field(
        default=False, description="Request the probabilities of the verdict's tokens."
    )
    blind: bool = Field(default=False, description="Judge without the reference.")
    evidence: Annotated[
        bool,
        Option(
            help="Don't show proven findings to the judge, and don't enforce them on its verdict."
        ),
    ] = Field(
        default=True,
        description="Show proven findings to the judge, and enforce them on its verdict.",
    )
    lead: Annotated[bool, Option(is_flag=False)] = Field(
        default=True,
        description="Send the first item of a case ahead, so that the others hit the endpoint's "
        "prefix cache.",
    )

    @model_validator(mode="before")
    @classmethod
    def _samples_differ(cls, values: Any) -> Any:
        """Replies at temperature 0 are one reply several times."""
        if isinstance(values, dict):
            settings = cast("dict[str, Any]", values)
            samples = settings.get("samples")
            if isinstance(samples, int) and samples > 1:
                if settings.get("temperature", 1.0) == 0:
                    raise ValueError("--samples: expected --temperature above 0, got 0")
                return {"temperature": 1.0, **settings}
        return cast("Any", values)

    @property
    def is_static(self) -> bool:
        """True if this is the embedded judge."""
        return self.model == STATIC

    @property
    def scoring(self) -> dict[str, Any]:
        """Every setting that may move a score and is not the default; see ``Config.changed``."""
        return {"model": self.model, **({} if self.is_static else self.changed(_SCORING))}


class InputConfig(RowsConfig):
    """The rows that are read, and their format."""

    groups: ClassVar[Mapping[str, str]] = {"Rows": "map data_split tested_model"}

    protocol: str = Field(
        default="auto",
        description="holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency, "
        "or auto: the protocol follows from each row's split or fields. case: the rows are cases, "
        "and the cases themselves are audited.",
    )
    cases: Path | None = Field(
        default=None, description="File of cases, joined with the predictions on id."
    )
    tested_model: str = Field(
        default="", description="Name of the tested model for rows and logs without one."
    )
    rubric: str | None = Field(
        default=None,
        description="name@version of a shipped rubric, or a TOML file; with #E4 only that code. "
        "Default: the rubric of each protocol.",
    )
    data_root: Path | None = Field(
        default=None,
        description="Folder in which paths of pictures are looked up first; the folder of the "
        "cases or predictions is next.",
    )

    @model_validator(mode="after")
    def _cases_alone(self) -> InputConfig:
        if self.protocol == "case" and self.cases is not None:
            raise ValueError(
                "--cases: expected none with --protocol case, whose rows are the cases; got "
                f"{str(self.cases)!r}"
            )
        return self


class ItemConfig(InputConfig):
    """Settings that choose an item."""

    groups: ClassVar[Mapping[str, str]] = {"Rows": "map data_split"}

    item_id: Annotated[str, Option("--id")] = Field(description="Id of the item.")
    tested_model: str = Field(default="", description="Only this tested model's prediction.")


_IN_PROMPTS = {"blind", "evidence", "images"}
NOT_IN_PROMPTS = [name for name in JudgeSpec.model_fields if name not in _IN_PROMPTS]
"""Settings of judges that change no prompt."""


class WaitConfig(Config):
    """The time to wait for a server."""

    wait: float | None = Field(
        default=None,
        gt=0,
        description="Seconds to wait for an endpoint that refuses connections or is loading, "
        "before it is checked.",
    )


class GradeConfig(AsksModels, RunsConfig, IntervalConfig, PartConfig, InputConfig):
    """The settings of ``grade``: judges, limits and output."""

    spec = JudgeSpec
    asked = "judge"
    groups: ClassVar[Mapping[str, str]] = {
        "Several judges": "panel escalate when",
        **InputConfig.groups,
        "Logs of trajectories": "from_ outcomes success accept_loss grounding same_text",
        "Intervals": IntervalConfig.interval_options,
        "Budget": "max_cost max_calls max_tokens max_seconds",
        "Run": f"data_root missing {RunsConfig.groups['Run']} regrade batch shard",
    }

    protocol: str = Field(
        default="auto",
        description="holistic, step-wise, tool-extraneous, tool-broken, unsolvable, efficiency; "
        "for whole trajectories outcome, planbench-xl, slate; or auto: the protocol follows from "
        "each row's split or fields; for a log it is outcome. case: the rows are cases, and the "
        "cases themselves are judged.",
    )
    cases: Path | None = Field(
        default=None,
        description="File of cases, joined with the predictions on id; for planbench-xl the "
        "folder of the benchmark's data.",
    )
    missing: Literal["report", "count"] = Field(
        default="report",
        description="Cases of --cases without a prediction of a tested model: report lists them; "
        "count treats them as not correct, so that CR is over all cases.",
    )
    judge: Annotated[tuple[JudgeSpec, ...], Option(metavar="MODEL")] = Field(
        default_factory=lambda: (JudgeSpec(),),
        description="static (no network; the default), or a litellm model such as openai/gpt-5, "
        "optionally with its address: MODEL@http://HOST/v1. Repeat it for a panel.",
    )
    by: Names = Field(
        default=(),
        description="Group results by category, modality, stage, steps, horizon, dataset, "
        "finish_reason, contradiction_kind; of whole trajectories also outcome (solved, failed) "
        "and ending.",
    )
    panel: Literal["majority", "mean", "dawid-skene"] = Field(
        default="majority", description="How several judges decide; mean: the mean of their grades."
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
    regrade: bool = Field(
        default=False,
        description="Judge predictions that come with published judgements (judge_model, "
        "judgement); apbjudge report takes such judgements as they are.",
    )
    batch: bool = Field(
        default=False,
        description="Send all calls through the provider's batch interface: cheaper, within a day.",
    )

    bootstrap_seed: int = Field(
        default=SEED, ge=0, description="Seed of the bootstrap; --seed is the judge's."
    )
    from_: Annotated[str, Option("--from", metavar="FORMAT")] = Field(
        default="auto",
        description="Format of a log of trajectories; auto: it follows from the content.",
    )
    outcomes: Path | None = Field(
        default=None,
        description="JSONL or CSV file with rewards of trajectories, joined with the log on id.",
    )
    success: Annotated[str, Option(metavar="SCORE")] = SUCCESS
    accept_loss: Share = ACCEPT_LOSS
    grounding: Grounding = Field(
        default="paper",
        description="Which right answers count under planbench-xl: paper: the target came from a "
        "trusted tool; released: the same, and no untrusted tool returned it too; answer-only: "
        "all.",
    )

    same_text: Annotated[JudgeSpec | None, Option(metavar="MODEL")] = Field(
        default=None,
        description="Model (MODEL or MODEL@ADDRESS) that decides under slate whether free texts "
        "in outputs and arguments mean the same; with it, outputs that differ from the recorded "
        "ones only in wording count too.",
    )

    @field_validator("judge", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        is_list = isinstance(value, list | tuple)
        judges: list[Any] = list(cast("Sequence[Any]", value)) if is_list else [value]
        if not judges:
            raise ValueError("expected at least one, got none")
        if invalid := [each for each in judges if not isinstance(each, str | JudgeSpec | dict)]:
            raise ValueError(
                f"expected a model's name or a JudgeSpec, or one function alone, got {invalid[0]!r}"
            )
        return judges

    @classmethod
    def of(cls, values: Mapping[str, Any], **more: Any) -> Self:
        """The configuration, each judge with the settings of judges among the options.

        The strong judge of a cascade is asked once an item, otherwise with the first one's
        settings; without an address of its own it has the first one's, if it is of the same
        provider.
        """
        judge = STATIC if values.get("judge") is None else values["judge"]
        config = super().of({**values, "judge": judge}, **more)
        own, first = config.escalate, config.judge[0]
        if not isinstance(values.get("escalate"), str) or own is None:
            return config
        is_same = own.model.partition("/")[0] == first.model.partition("/")[0]
        of = first if is_same and not (own.api_base or own.api_base_file) else own
        changed = {"model": own.model, "samples": 1, "logprobs": False}
        changed |= {name: getattr(of, name) for name in ADDRESSES}
        excluded = {*changed, "temperature"} if first.samples > 1 else set(changed)
        strong = JudgeSpec(**changed, **first.model_dump(exclude=excluded))
        return config.model_copy(update={"escalate": strong})

    @property
    def asks_models(self) -> bool:
        """True if any judge is a model."""
        more = self.escalate is not None or self.same_text is not None
        return more or any(not spec.is_static for spec in self.judge)

    @model_validator(mode="after")
    def _missing_of_cases(self) -> GradeConfig:
        if self.missing == "count" and self.cases is None:
            raise ValueError("--missing: expected --cases with it, which says what there is")
        return self


class CascadeConfig(Config):
    """The runs and the labels that they are compared with."""

    cheap: Annotated[Path, Option(is_argument=True)] = Field(
        description="Folder of the cheap judge's run."
    )
    strong: Annotated[Path, Option(is_argument=True)] = Field(
        description="Folder of the strong judge's run."
    )
    labels: Path | None = Field(
        default=None,
        description="Human labels, JSONL or CSV, as the reference instead of the strong judge.",
    )
    when: str = Field(
        default="entropy>0",
        description="Which entropy decides: entropy>0, entropy.max>0, entropy.E4>0.",
    )


class InitConfig(RowsConfig):
    """The folder of a new project, and its rows."""

    folder: Annotated[Path, Option(is_argument=True)] = Field(
        default=Path(), description="Folder to write to; default: the working directory."
    )
    from_: Annotated[Path | None, Option("--from")] = Field(
        default=None,
        description="Your own rows or log in that folder, instead of example rows.",
    )

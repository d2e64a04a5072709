"""A judge's settings: everything that may move a score, and how a run treats the endpoint."""

from __future__ import annotations

from typing import Any, cast

from pydantic import Field, model_validator

from ..llm.model_spec import ModelSpec

STATIC = "static"

_SCORING = (
    "model temperature seed max_reply_tokens max_reasks samples logprobs params blind evidence "
    "images vision max_images max_image_bytes"
).split()
REASKS_BEFORE = 1
"""How often every judge was asked again before that was a setting."""


class JudgeSpec(ModelSpec):
    """Who judges, and how: a model's settings and those of judging.

    ``temperature`` is 0 unless there are samples, 1 where there are. A reply that is truncated at
    ``max_reply_tokens`` is requested again with four times as many.
    """

    model: str = Field(default=STATIC, description="static, or a litellm model name with provider.")
    max_reasks: int = Field(
        default=2,
        ge=0,
        le=20,
        description="How often the judge is asked again for one reply that is empty, malformed, "
        "off the scale, contradictory or cut off; a refusal is not asked about again.",
    )
    samples: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Independent replies per item; the majority decides.",
    )
    logprobs: bool = Field(
        default=False, description="Request the probabilities of the verdict's tokens."
    )
    blind: bool = Field(default=False, description="Judge without the reference.")
    evidence: bool = Field(
        default=True,
        description="Show proven findings to the judge, and enforce them on its verdict.",
    )
    lead: bool = Field(
        default=True,
        description="The first item of a case goes ahead, so that the others find the case in the "
        "endpoint's prefix cache.",
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
                    raise ValueError("samples: expected temperature above 0, got 0")
                return {"temperature": 1.0, **settings}
        return cast("Any", values)

    @property
    def is_static(self) -> bool:
        """Whether this is the embedded judge."""
        return self.model == STATIC

    @property
    def scoring(self) -> dict[str, Any]:
        """Every setting that may move a score."""
        if self.is_static:
            return {"model": self.model}
        scoring = {name: getattr(self, name) for name in _SCORING}
        if self.max_reasks == REASKS_BEFORE:
            del scoring["max_reasks"]  # runs made before there was this setting stay the same runs
        return scoring

"""A judge's settings: everything that may move a score, and how a run treats the endpoint."""

from __future__ import annotations

import re
from typing import Any, Literal

import orjson
from pydantic import Field, field_validator

from ..records import Record

STATIC = "static"

_SECRET = re.compile(r"key|secret|password|headers|authorization|(?:^|_)token$", re.IGNORECASE)
_OURS = frozenset(
    "model messages stream n max_tokens max_completion_tokens temperature seed response_format "
    "tools tool_choice functions function_call num_retries max_retries timeout api_base base_url "
    "drop_params mock_response".split()
)


class JudgeSpec(Record):
    """Who judges, and how.

    Attributes:
        model: ``static`` or a litellm model name with provider.
        api_base: Address of the endpoint, or None.
        temperature: None leaves it to the provider (``default``).
        seed: None sends none.
        max_tokens: Limit of a reply; a truncated reply is asked for once more with four times it.
        params: Further parameters for litellm as they are, such as ``reasoning_effort`` or
            ``thinking``; no keys, since all of this is written into the manifest.
        blind: Judges without the reference.
        evidence: Proven findings are told to the judge and enforced on its verdict.
        images: Pictures are shown to judges that can see.
        vision: Whether the judge can see; ``auto`` asks litellm's model table.
        max_images: Longer lists of frames are sampled evenly down to this.
        max_image_bytes: Largest picture on disk.
        timeout_s: Seconds until a call counts as hung.
        retries: How often a call is repeated after a failure that may pass.
        concurrency: Calls in flight at most.
    """

    model: str = STATIC
    api_base: str | None = None
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    seed: int | None = Field(default=0, ge=-(2**63), lt=2**63)
    max_tokens: int = Field(default=2048, ge=16, le=2**24)
    params: dict[str, Any] = {}
    blind: bool = False
    evidence: bool = True
    images: bool = True
    vision: Literal["auto", "yes", "no"] = "auto"
    max_images: int = Field(default=16, ge=1)
    max_image_bytes: int = Field(default=5 * 2**20, ge=1)
    timeout_s: float = Field(default=120.0, gt=0)
    retries: int = Field(default=4, ge=0)
    concurrency: int = Field(default=16, ge=1)

    @field_validator("params")
    @classmethod
    def _no_secrets(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Settings are written into the manifest: keys come from the environment."""
        for name in params:
            if _SECRET.search(name):
                raise ValueError(f"{name}: set the provider's environment variable instead")
            if name in _OURS:
                raise ValueError(
                    f"{name}: not a parameter of the judge, or one with its own setting"
                )
        try:
            orjson.dumps(params)
        except orjson.JSONEncodeError as error:
            raise ValueError(f"expected JSON values: {error}") from None
        return params

    @property
    def is_static(self) -> bool:
        """Whether this is the embedded judge."""
        return self.model == STATIC

    @property
    def sampling(self) -> dict[str, Any]:
        """The sampling settings as sent."""
        settings = {"temperature": self.temperature, "seed": self.seed}
        return {k: v for k, v in settings.items() if v is not None} | self.params

    @property
    def scoring(self) -> dict[str, Any]:
        """Every setting that may move a score."""
        if self.is_static:
            return {"model": self.model}
        names = "model temperature seed max_tokens params blind evidence images vision max_images"
        return {name: getattr(self, name) for name in [*names.split(), "max_image_bytes"]}

    @property
    def slug(self) -> str:
        """The model's name, fit for a file name."""
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.model).strip("-.") or "judge"

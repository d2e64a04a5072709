"""A judge's settings: everything that may move a score, and how a run treats the endpoint."""

from __future__ import annotations

import re
from typing import Any, Literal, cast

import orjson
from pydantic import Field, field_validator, model_validator

from ..records import Record

STATIC = "static"

_SECRET = re.compile(r"key|secret|password|headers|authorization|(?:^|_)token$", re.IGNORECASE)
_OURS = frozenset(
    "model messages stream n max_tokens max_completion_tokens temperature seed response_format "
    "logprobs top_logprobs tools tool_choice functions function_call num_retries max_retries "
    "timeout api_base base_url drop_params mock_response".split()
)
_SCORING = (
    "model temperature seed max_reply_tokens max_reasks samples logprobs params blind evidence "
    "images vision max_images max_image_bytes"
).split()
REASKS_BEFORE = 1
"""How often every judge was asked again before that was a setting."""


class JudgeSpec(Record):
    """Who judges, and how.

    Attributes:
        model: ``static`` or a litellm model name with provider.
        api_base: Addresses of the endpoint's replicas; none for the provider's own.
        transport: ``litellm``, ``direct`` (an OpenAI-compatible server, without a provider
            library), or ``auto``: direct where it sends exactly what litellm would.
        temperature: None leaves it to the provider (``default``). 0 unless there are samples, 1
            where there are.
        seed: None sends none; sample *k* sends ``seed + k``.
        max_reply_tokens: Limit of a reply; a truncated one is asked for again with four times it.
        max_reasks: How often the judge is asked again for one reply that is empty, malformed, off
            the scale, contradictory or cut off; a refusal is not asked about again.
        samples: Independent replies per item; the majority decides.
        logprobs: Whether the probabilities of the verdict's tokens are asked for.
        params: Further parameters for litellm as they are, such as ``reasoning_effort`` or
            ``thinking``; no keys, since all of this is written into the manifest.
        blind: Judges without the reference.
        evidence: Proven findings are told to the judge and enforced on its verdict.
        images: Pictures are shown to judges that can see.
        vision: Whether the judge can see; ``auto`` asks litellm's model table.
        max_images: Longer lists of frames are sampled evenly down to this.
        max_image_bytes: Largest picture on disk.
        timeout_s: Seconds until a call counts as hung.
        deadline_s: Seconds after an item's first attempt within which the last one begins.
        outage_s: Seconds without any answer after which the endpoint counts as dead.
        retries: How often a call is repeated after a failure that may pass; five times as often
            when the endpoint asks for patience, half as often when it does not answer in time.
        max_concurrency: Calls in flight at most.
        rpm: Calls per minute at most, None for no limit.
        tpm: Tokens per minute, sent and received, at most; likewise.
        price_input: US dollars per million tokens sent, None takes litellm's table.
        price_output: US dollars per million tokens received, likewise.
        price_cached: US dollars per million tokens that the endpoint had in its prefix cache;
            None takes ``price_input``.
        lead: The first item of a case goes ahead, so that the others find the case in the
            endpoint's prefix cache.
    """

    model: str = STATIC
    api_base: tuple[str, ...] = ()
    transport: Literal["auto", "litellm", "direct"] = "auto"
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    seed: int | None = Field(default=0, ge=-(2**63), lt=2**63)
    max_reply_tokens: int = Field(default=2048, ge=16, le=2**24)
    max_reasks: int = Field(default=2, ge=0, le=20)
    samples: int = Field(default=1, ge=1, le=1000)
    logprobs: bool = False
    params: dict[str, Any] = {}
    blind: bool = False
    evidence: bool = True
    images: bool = True
    vision: Literal["auto", "yes", "no"] = "auto"
    max_images: int = Field(default=16, ge=1)
    max_image_bytes: int = Field(default=5 * 2**20, ge=1)
    timeout_s: float = Field(default=120.0, gt=0)
    deadline_s: float = Field(default=900.0, gt=0)
    outage_s: float = Field(default=300.0, gt=0)
    retries: int = Field(default=4, ge=0)
    max_concurrency: int = Field(default=64, ge=1)
    rpm: float | None = Field(default=None, gt=0)
    tpm: float | None = Field(default=None, gt=0)
    price_input: float | None = Field(default=None, ge=0)
    price_output: float | None = Field(default=None, ge=0)
    price_cached: float | None = Field(default=None, ge=0)
    lead: bool = True

    @field_validator("api_base", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="before")
    @classmethod
    def _samples_differ(cls, values: Any) -> Any:
        """Replies at temperature 0 are one reply several times."""
        if isinstance(values, dict) and _several(cast("dict[str, Any]", values)):
            settings = cast("dict[str, Any]", values)
            if settings.get("temperature", 1.0) == 0:
                raise ValueError("samples: expected temperature above 0, got 0")
            return {"temperature": 1.0, **settings}
        return cast("Any", values)

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

    def sampling(self, sample: int = 0) -> dict[str, Any]:
        """The sampling settings as sent.

        Args:
            sample: Number of the reply among several.
        """
        seed = None if self.seed is None else self.seed + sample
        settings = {"temperature": self.temperature, "seed": seed}
        return {k: v for k, v in settings.items() if v is not None} | self.params

    @property
    def scoring(self) -> dict[str, Any]:
        """Every setting that may move a score."""
        if self.is_static:
            return {"model": self.model}
        scoring = {name: getattr(self, name) for name in _SCORING}
        if self.max_reasks == REASKS_BEFORE:
            del scoring["max_reasks"]  # runs made before there was this setting stay the same runs
        return scoring

    @property
    def slug(self) -> str:
        """The model's name, fit for a file name."""
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.model).strip("-.") or "judge"


def _several(values: dict[str, Any]) -> bool:
    samples = values.get("samples")
    return isinstance(samples, int) and samples > 1

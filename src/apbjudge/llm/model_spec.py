"""The settings of a model: who answers, where, how replies are sampled, and within which limits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from ..config import Config, Option

_SECRET = re.compile(r"key|secret|password|headers|authorization|(?:^|_)token$", re.IGNORECASE)
_RESERVED = frozenset(
    "model messages stream n max_tokens max_completion_tokens temperature seed response_format "
    "logprobs top_logprobs tools tool_choice functions function_call num_retries max_retries "
    "timeout api_base base_url drop_params mock_response".split()
)


class ModelSpec(Config):
    """A model and how it is asked; a field's description is the help text of the setting."""

    groups: ClassVar[Mapping[str, str]] = {
        "Sampling": "temperature seed max_reply_tokens params",
        "Pictures": "vision max_image_bytes",
        "Endpoint": "transport timeout_s deadline_s outage_s retries max_concurrency rpm tpm",
        "Prices": "price_input price_output price_cached",
    }

    model: str = Field(description="litellm model name with provider, such as openai/gpt-5.")
    api_base: Annotated[tuple[str, ...], Option(metavar="URL")] = Field(
        default=(),
        description="Addresses of the endpoint's replicas; none for the provider's own address.",
    )
    transport: Literal["auto", "litellm", "direct"] = Field(
        default="auto",
        description="litellm, direct (an OpenAI-compatible server, without a provider library), or "
        "auto: direct where it sends exactly what litellm would.",
    )
    temperature: float | None = Field(
        default=0.0,
        ge=0,
        le=2,
        description="Sampling temperature; with several samples 1; default is the provider's.",
    )
    seed: int | None = Field(
        default=0,
        ge=-(2**63),
        lt=2**63,
        description="Sampling seed; sample k sends seed + k; default sends none.",
    )
    max_reply_tokens: int = Field(
        default=2048, ge=16, le=2**24, description="Limit of a reply, in tokens."
    )
    params: dict[str, Any] = Field(
        default={},
        description="Further parameters for litellm as they are, such as reasoning_effort; no "
        "keys, since all of this is written into the manifest.",
    )
    vision: Literal["auto", "yes", "no"] = Field(
        default="auto", description="Whether the model can see; auto asks litellm's model table."
    )
    max_image_bytes: int = Field(
        default=5 * 2**20, ge=1, description="Largest picture on disk, in bytes."
    )
    timeout_s: float = Field(
        default=120.0, gt=0, description="Seconds until a call counts as hung."
    )
    deadline_s: float = Field(
        default=900.0,
        gt=0,
        description="Seconds after an item's first attempt within which the last one begins.",
    )
    outage_s: float = Field(
        default=300.0,
        gt=0,
        description="Seconds without any answer after which the endpoint counts as dead.",
    )
    retries: int = Field(
        default=4,
        ge=0,
        description="How often a call is repeated after a failure that may pass; five times as "
        "often after 429, half as often after a time-out.",
    )
    max_concurrency: int = Field(default=64, ge=1, description="Calls in flight at most.")
    rpm: float | None = Field(default=None, gt=0, description="Calls per minute at most.")
    tpm: float | None = Field(
        default=None, gt=0, description="Tokens per minute, sent and received, at most."
    )
    price_input: float | None = Field(
        default=None,
        ge=0,
        description="US dollars per million tokens sent; without it litellm's table counts.",
    )
    price_output: float | None = Field(
        default=None,
        ge=0,
        description="US dollars per million tokens received; without it litellm's table counts.",
    )
    price_cached: float | None = Field(
        default=None,
        ge=0,
        description="US dollars per million tokens that the endpoint had in its prefix cache; "
        "without it price_input counts.",
    )

    @field_validator(
        "temperature",
        "seed",
        "rpm",
        "tpm",
        "price_input",
        "price_output",
        "price_cached",
        mode="before",
    )
    @classmethod
    def _default_is_none(cls, value: Any) -> Any:
        return None if value == "default" else value

    @field_validator("api_base", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else value

    @field_validator("params")
    @classmethod
    def _no_secrets(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Settings are written into the manifest: keys come from the environment."""
        for name in params:
            if _SECRET.search(name):
                raise ValueError(f"{name}: set the provider's environment variable instead")
            if name in _RESERVED:
                raise ValueError(
                    f"{name}: not a parameter of the model, or one with its own setting"
                )
        import orjson  # not needed for the help

        try:
            orjson.dumps(params)
        except orjson.JSONEncodeError as error:
            raise ValueError(f"expected JSON values: {error}") from None
        return params

    @classmethod
    def at(cls, text: str, *, api_base: Sequence[str] = (), **settings: Any) -> Self:
        """A model from ``MODEL`` or ``MODEL@ADDRESS@ADDRESS``; its own addresses come first."""
        model, *own = text.split("@http")
        addresses = (*(f"http{address}" for address in own), *api_base)
        return cls(model=model, api_base=addresses, **settings)

    @property
    def addresses(self) -> tuple[str | None, ...]:
        """The endpoint's addresses; one None for the provider's own."""
        return self.api_base or (None,)

    def sampling(self, sample: int = 0) -> dict[str, Any]:
        """The sampling settings as sent.

        Args:
            sample: Number of the reply among several.
        """
        seed = None if self.seed is None else self.seed + sample
        settings = {"temperature": self.temperature, "seed": seed}
        return {k: v for k, v in settings.items() if v is not None} | self.params

    @property
    def slug(self) -> str:
        """The model's name, fit for a file name."""
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.model).strip("-.") or "judge"

"""The settings of a model: its name and addresses, the sampling of replies, and limits."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast, get_origin

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo

from ..config import Config, Option, kinds
from ..errors import OptionError, shorten

SERVERS: Mapping[str, tuple[str, str]] = {
    "a2a": ("A2A_API_BASE", "http://localhost:9999"),
    "custom": ("", "http://localhost:8000"),
    "custom_openai": ("OPENAI_BASE_URL", "http://localhost:8000/v1"),
    "docker_model_runner": (
        "DOCKER_MODEL_RUNNER_API_BASE",
        "http://localhost:22088/engines/llama.cpp",
    ),
    "hosted_vllm": ("HOSTED_VLLM_API_BASE", "http://localhost:8000/v1"),
    "langflow": ("LANGFLOW_API_BASE", "http://localhost:7860"),
    "langgraph": ("LANGGRAPH_API_BASE", "http://localhost:2024"),
    "lemonade": ("LEMONADE_API_BASE", "http://localhost:8000/api/v1"),
    "litellm_proxy": ("LITELLM_PROXY_API_BASE", "http://localhost:4000"),
    "llamafile": ("LLAMAFILE_API_BASE", "http://localhost:8080/v1"),
    "lm_studio": ("LM_STUDIO_API_BASE", "http://localhost:1234/v1"),
    "ollama": ("OLLAMA_API_BASE", "http://localhost:11434"),
    "ollama_chat": ("OLLAMA_API_BASE", "http://localhost:11434"),
    "oobabooga": ("", "http://localhost:5000"),
    "ragflow": ("RAGFLOW_API_BASE", "http://localhost:9380"),
    "triton": ("", "http://localhost:8000"),
    "xinference": ("", "http://localhost:9997/v1"),
}
"""Providers with self-hosted servers: the variable that litellm reads for the address, and the
address at which such a server usually listens.

None of them is asked without an address: litellm would send the prompts to OpenAI or to whatever
listens on this machine. A test compares the table with the installed litellm.
"""

KEYS: Mapping[str, str] = {
    "hosted_vllm": "HOSTED_VLLM_API_KEY",
    "openai": "OPENAI_API_KEY",
    "custom_openai": "OPENAI_API_KEY",
    "lm_studio": "LM_STUDIO_API_KEY",
    "llamafile": "LLAMAFILE_API_KEY",
}
"""Providers whose servers speak the OpenAI protocol, with the variable that holds their key."""

_ADDRESS = re.compile(
    r"https?://(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?(?:[/?][!-~]*)?", re.IGNORECASE
)
_AT_ADDRESS = re.compile(r"@(?=https?://)", re.IGNORECASE)
_AT_OTHER_ADDRESS = re.compile(
    r"@(?:[a-z][a-z0-9+.-]*:/|https?\b|localhost\b|\[|\d+(?:\.\d+){3}|[^/@]+:\d+(?:/|$)"
    r"|[\w-]+(?:\.[\w-]+)+/|$)",
    re.IGNORECASE,
)
"""A text that looks like an address after a name, not like a version or a part of the name."""

_SECRET = re.compile(r"key|secret|password|headers|authorization|(?:^|_)token$", re.IGNORECASE)
_SECRET_WITHIN = re.compile(
    r'"([^"]*(?:secret|password|authorization)'
    r'|(?:[^"]*(?:api|access|auth|private|subscription)[_-]?)?(?:key|token))":"',
    re.IGNORECASE,
)
"""A text deep in JSON under the name of a secret; fewer names count than at the top, since a
schema's names or ``eos_token`` are harmless."""

_RESERVED = frozenset(
    "model messages stream n max_tokens max_completion_tokens temperature seed response_format "
    "logprobs top_logprobs tools tool_choice functions function_call num_retries max_retries "
    "timeout api_base base_url drop_params mock_response".split()
)


ADDRESSES = ("api_base", "api_base_file")
"""Settings that give addresses."""
_MAY_BE_DEFAULT = "temperature seed rpm tpm price_input price_output price_cached".split()


class ModelSpec(Config):
    """A model and the settings of its calls; descriptions of fields are their help texts."""

    groups: ClassVar[Mapping[str, str]] = {
        "Sampling": "temperature seed max_reply_tokens params",
        "Files": "vision max_image_bytes max_text_bytes frames",
        "Endpoint": "api_base api_base_file transport timeout_s deadline_s outage_s retries "
        "max_concurrency concurrency_per_endpoint rpm tpm price_input price_output price_cached",
    }

    model: str = Field(description="litellm model name with provider, such as openai/gpt-5.")
    api_base: Annotated[tuple[str, ...], Option(metavar="URL")] = Field(
        default=(),
        description="Addresses of the endpoint's replicas; without it the provider's own address "
        "(your own server, such as hosted_vllm or ollama, has none).",
    )
    api_base_file: Path | None = Field(
        default=None,
        description="Further addresses, one per line, in a file or in the files of a folder; read "
        "again every 30 s, so that replicas may come and go.",
    )
    transport: Literal["auto", "litellm", "direct"] = Field(
        default="auto",
        description="litellm, direct (an OpenAI-compatible server, without a provider library), "
        "or auto: direct if the request is exactly the one that litellm would send.",
    )
    temperature: float | None = Field(
        default=0.0,
        ge=0,
        le=2,
        description="Sampling temperature; 1 with several samples; the word default: the "
        "provider's.",
    )
    seed: int | None = Field(
        default=0,
        ge=-(2**63),
        lt=2**63,
        description="Sampling seed; sample k sends seed + k; the word default sends none.",
    )
    max_reply_tokens: int = Field(
        default=2048, ge=16, le=2**24, description="Limit of a reply, in tokens."
    )
    params: dict[str, Any] = Field(
        default={},
        description="Further parameters, passed to litellm unchanged, such as reasoning_effort; "
        "no API keys: all of them are written to the manifest.",
    )
    vision: Literal["auto", "yes", "no"] = Field(
        default="auto", description="Whether the model can see; auto asks litellm's model table."
    )
    max_image_bytes: int = Field(
        default=5 * 2**20, ge=1, description="Largest picture on disk, in bytes."
    )
    max_text_bytes: int = Field(
        default=200_000,
        ge=1,
        description="Largest text file of a case, in bytes: a larger one is not shown to a judge, "
        "and predict refuses the case.",
    )
    frames: int = Field(
        default=0,
        ge=0,
        le=1000,
        description="Frames to show of each video of a case, evenly spaced; 0 shows no videos. "
        "Needs pip install 'apbjudge[video]'.",
    )
    timeout_s: float = Field(
        default=120.0, gt=0, description="Seconds after which a call counts as hung."
    )
    deadline_s: float = Field(
        default=900.0,
        gt=0,
        description="Seconds after an item's first attempt in which new attempts may start.",
    )
    outage_s: float = Field(
        default=300.0,
        gt=0,
        description="Seconds without any answer after which the endpoint counts as dead.",
    )
    retries: int = Field(
        default=4,
        ge=0,
        description="How often a call is retried after a temporary failure; five times as often "
        "after 429, half as often after a time-out.",
    )
    max_concurrency: int = Field(default=64, ge=1, description="Largest number of calls in flight.")
    concurrency_per_endpoint: int | None = Field(
        default=None,
        ge=1,
        description="Calls in flight at most to each address; this times the number of addresses "
        "replaces max_concurrency.",
    )
    rpm: float | None = Field(default=None, gt=0, description="Largest number of calls per minute.")
    tpm: float | None = Field(
        default=None, gt=0, description="Largest number of tokens per minute, sent and received."
    )
    price_input: float | None = Field(
        default=None,
        ge=0,
        description="US dollars per million tokens sent; default: litellm's price table.",
    )
    price_output: float | None = Field(
        default=None,
        ge=0,
        description="US dollars per million tokens received; default: litellm's price table.",
    )
    price_cached: float | None = Field(
        default=None,
        ge=0,
        description="US dollars per million tokens from the endpoint's prefix cache; default: "
        "price_input.",
    )

    @field_validator(*_MAY_BE_DEFAULT, mode="before")
    @classmethod
    def _default_is_none(cls, value: Any) -> Any:
        return None if value == "default" else value

    @model_validator(mode="before")
    @classmethod
    def _parsed(cls, values: Any) -> Any:
        """Reads a model from text; its name is ``MODEL``, or ``MODEL@ADDRESS@ADDRESS``.

        Addresses in the name come first. Other names have an ``@`` too, as in ``claude@20240101``.
        """
        values = {"model": values} if isinstance(values, str) else values
        settings = cast("dict[str, Any]", values) if isinstance(values, dict) else {}
        if not isinstance(settings.get("model"), str):
            return cast("Any", values)
        name, *own = _AT_ADDRESS.split(settings["model"])
        if match := _AT_OTHER_ADDRESS.search(name):
            name = name[: match.start()]
            raise ValueError(
                f"expected an address with its scheme, {shorten(name)[1:-1]}@http://HOST:PORT/v1, "
                "got another text after the @"
            )
        if own:
            settings = {**settings, "model": name}
            settings["api_base"] = [*own, *_listed(settings.get("api_base"))]
        return settings

    @field_validator("api_base", mode="before")
    @classmethod
    def _addresses(cls, value: Any, info: ValidationInfo) -> list[str]:
        """Reads one address or several, also as text with commas."""
        addresses = [part.strip() for each in _listed(value) for part in str(each).split(",")]
        for address in addresses:
            check_address(address, info.data.get("model", ""))
        return addresses

    @field_validator("params")
    @classmethod
    def _no_secrets(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Refuses secrets: the manifest has all settings; keys come from the environment."""
        for name in params:
            if _SECRET.search(name):
                raise ValueError(f"{name}: set the provider's environment variable instead")
            if name in _RESERVED:
                raise ValueError(
                    f"{name}: not a parameter of the model, or one with its own setting"
                )
        import orjson  # not needed for --help

        try:
            text = orjson.dumps(params).decode()
        except orjson.JSONEncodeError as error:
            raise ValueError(f"expected JSON values: {error}") from None
        if secret := _SECRET_WITHIN.search(text):
            raise ValueError(f"{secret[1]}: set the provider's environment variable instead")
        return params

    @classmethod
    def of_model(cls, model: Any, settings: Mapping[str, Any]) -> Any:
        """A model, named or with its own settings, with further settings.

        Other values are returned unchanged, for the field's own validation to refuse.
        """
        if isinstance(model, cls) and settings:
            model = {name: getattr(model, name) for name in model.model_fields_set}
        stated: Any = {"model": model} if isinstance(model, str) else model
        if not isinstance(stated, dict):
            return stated
        return cls(**{**cast("dict[str, Any]", stated), **settings})

    @property
    def stated_addresses(self) -> tuple[str, ...]:
        """The addresses that are set; else the one in the variable of a self-hosted server.

        Raises:
            OptionError: If those of the variable or the file are unusable.
        """
        if self.api_base_file is not None:
            more = read_addresses(self.api_base_file, self.model)
            return tuple(dict.fromkeys((*self.api_base, *more)))
        variable, _ = SERVERS.get(self.model.partition("/")[0], ("", ""))
        if self.api_base or not (address := os.environ.get(variable, "")):
            return self.api_base
        try:
            check_address(address, self.model)
        except ValueError as error:
            raise OptionError(f"{variable}: {error}") from None
        return (address,)

    @property
    def addresses(self) -> tuple[str | None, ...]:
        """The endpoint's addresses; a single None for the provider's own.

        Raises:
            OptionError: If it is a self-hosted server without an address.
        """
        provider = self.model.partition("/")[0]
        if self.stated_addresses or provider not in SERVERS:
            return self.stated_addresses or (None,)
        variable, usual = SERVERS[provider]
        raise OptionError(
            f"--api-base: expected the address of your {provider} server, such as {usual}, with "
            f"--api-base, as MODEL@ADDRESS{variable and f' or in {variable}'}, got none for "
            f"{self.model}"
        )

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


class AsksModels(Config):
    """Settings of a feature that asks models: options for models apply to each model that it names.

    Attributes:
        spec: The settings of a model.
        asked: The field with the models that ``api_base`` applies to.
        others: Fields with one model each, whose addresses are in their names.
    """

    spec: ClassVar[type[ModelSpec]]
    asked: ClassVar[str] = "model"
    others: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def option_fields(cls) -> Mapping[str, FieldInfo]:
        """The configuration's fields and those of a model."""
        of_models = {n: field for n, field in cls.spec.model_fields.items() if n != "model"}
        return {**cls.model_fields, **of_models, **cls.model_fields}

    @classmethod
    def of(cls, values: Mapping[str, Any], **more: Any) -> Self:
        """The configuration, with the options for models set in each model."""
        names = cls.spec.model_fields.keys() - cls.model_fields.keys() - {"model"}
        settings = {n: v for n, v in values.items() if n in names}
        models, asked = dict[str, Any](), values.get(cls.asked)
        if asked:
            models[cls.asked] = cls._each(asked, settings)
        elif cls.model_fields[cls.asked].is_required():
            text = "expected a litellm model name with provider, got nothing"
            raise OptionError(f"--{cls.asked}: {text}")
        elif (option := _address_option(settings)) and cls.others:
            raise OptionError(
                f"{option}: expected --{cls.asked} with it; --{cls.others[0]} MODEL@ADDRESS has "
                "its own"
            )
        settings = {n: v for n, v in settings.items() if n not in ADDRESSES}
        for name in cls.others:
            if values.get(name) is not None:
                models[name] = cls.spec.of_model(values[name], settings)
        return super().of({**values, **models}, **more)

    @classmethod
    def _each(cls, models: Any, settings: Mapping[str, Any]) -> Any:
        if get_origin(kinds(cls.model_fields[cls.asked])[0]) is not tuple:
            return cls.spec.of_model(models, settings)
        several = _listed(models)
        if len(several) > 1 and (option := _address_option(settings)):
            raise OptionError(
                f"{option}: expected one --{cls.asked}; of several, each has its own: "
                f"--{cls.asked} MODEL@ADDRESS"
            )
        return [cls.spec.of_model(each, settings) for each in several]


def check_address(address: str, model: str) -> None:
    """Refuses an invalid address, or one with a secret: addresses are printed and written to files.

    Args:
        address: The address.
        model: The model at the address.

    Raises:
        ValueError: If it is refused; the text repeats nothing that may be secret.
    """
    if re.search(r"[@#]|\?(?!api-version=[\w.-]*$)", address):
        provider = model.partition("/")[0].removeprefix("custom_") or "provider"
        raise ValueError(
            "expected an address without user, password, ?… or #…, since it is written into files; "
            f"a key comes from the environment, such as {provider.upper()}_API_KEY"
        )
    if not _ADDRESS.fullmatch(address):
        raise ValueError(f"expected an address such as http://HOST:8000/v1, got {shorten(address)}")


def read_addresses(path: Path, model: str) -> tuple[str, ...]:
    """The addresses of a file, one a line, or of the files of a folder.

    Blank lines, lines that begin with #, and files whose name begins with a dot or ends with .tmp
    are skipped.

    Raises:
        OptionError: If it can't be read, has none, or a line is not an address.
    """
    addresses: list[str] = []
    try:
        files = [path]
        if path.is_dir():
            named = (each for each in path.iterdir() if not each.name.startswith("."))
            files = sorted(each for each in named if each.suffix != ".tmp" and each.is_file())
        for file in files:
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                if (address := line.strip()) and not address.startswith("#"):
                    try:
                        check_address(address, model)
                    except ValueError as error:
                        raise OptionError(f"--api-base-file: {file}:{number}: {error}") from None
                    addresses.append(address)
    except OSError as error:
        raise OptionError(f"--api-base-file: {path} can't be read: {error.strerror}") from None
    if not addresses:
        raise OptionError(f"--api-base-file: expected at least one address, got none in {path}")
    return tuple(addresses)


def _address_option(settings: Mapping[str, Any]) -> str:
    """The option that gives addresses; empty if none does."""
    name = next((name for name in ADDRESSES if settings.get(name)), "")
    return f"--{name.replace('_', '-')}" if name else ""


def _listed(value: Any) -> Sequence[Any]:
    """One or several values as a sequence; none for None."""
    if isinstance(value, list | tuple):
        return cast("Sequence[Any]", value)
    return () if value is None else (value,)
